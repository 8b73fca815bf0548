//! `OS::Heat::InstanceGroup` and `AWS::AutoScaling::AutoScalingGroup`: groups of instances with the settings of a launch
//! configuration (docs/heat-behaviour.md §15.3).

use async_trait::async_trait;
use indexmap::IndexMap;
use kiln_resource::{Context, Facts, Failure, Group, Nested, NestedStack, Rescale, Sibling, Siblings, TypeRules};
use kiln_template::select;
use kiln_value::{Class, Diagnostic, Map, Value, text, value};

use super::copied_settings;
use super::rolling::Policy;
use super::scaling_group::{self, Wanted};
use super::scaling_limits::Limits;
use crate::validation::failed;

/// The type of the members: a server with the properties of an EC2 instance.
const MEMBER_TYPE: &str = "OS::Heat::ScaledResource";
const INSTANCE_TYPE: &str = "AWS::EC2::Instance";

/// The property that refers to the launch configuration.
const CONFIGURATION: &str = "LaunchConfigurationName";
/// The server whose settings are copied, instead of a launch configuration or in one.
const INSTANCE: &str = "InstanceId";
/// The load balancers of the group.
const BALANCERS: &str = "LoadBalancerNames";
const BALANCER_TYPE: &str = "AWS::ElasticLoadBalancing::LoadBalancer";

/// The attribute with the addresses of the instances.
const INSTANCE_LIST: &str = "InstanceList";

/// Settings of an instance that are lists of maps, from which null entries are removed.
const LISTS: [&str; 2] = ["BlockDeviceMappings", "NovaSchedulerHints"];

/// The drivers of the types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InstanceGroup {
    /// `OS::Heat::InstanceGroup`, with a fixed size.
    Fixed,
    /// `AWS::AutoScaling::AutoScalingGroup`.
    Scaling,
}

impl InstanceGroup {
    fn limits(facts: &Facts) -> Limits {
        Limits::of(facts, ["MinSize", "MaxSize", "DesiredCapacity", "Cooldown"])
    }

    fn policy_name(self) -> &'static str {
        match self {
            Self::Fixed => "RollingUpdate",
            Self::Scaling => "AutoScalingRollingUpdate",
        }
    }

    fn size(self, facts: &Facts, rolling: bool) -> i64 {
        match self {
            Self::Fixed => facts.property("Size").as_i64().unwrap_or(0),
            Self::Scaling if facts.physical_id.is_some() => {
                Self::limits(facts).kept(scaling_group::size_to_keep(facts, rolling))
            }
            Self::Scaling => Self::limits(facts).first(),
        }
    }

    /// The property that names the source of the settings, its value, and the server to copy, if there is one.
    fn source(facts: &Facts) -> (&'static str, &Value, Option<String>) {
        let server = |value: Option<&Value>| value.filter(|id| id.is_truthy()).map(text::str);
        if let Some(id) = server(Some(facts.property(INSTANCE))) {
            return (INSTANCE, facts.property(INSTANCE), Some(id));
        }
        let copied = facts.observed.first().and_then(|launch| server(launch.properties.get(INSTANCE)));
        (CONFIGURATION, facts.property(CONFIGURATION), copied)
    }

    /// A member with the settings of the launch configuration or the server; `None` if they are not known.
    fn member(self, facts: &Facts) -> Option<Value> {
        let (property, reference, server) = Self::source(facts);
        let mut properties = match server {
            Some(_) => copied_settings::stored(facts, reference)?.clone(),
            None => Map::new(),
        };
        let configuration = facts.observed.first().filter(|_| property == CONFIGURATION);
        if configuration.is_none() && property == CONFIGURATION {
            return None;
        }
        let given = configuration.into_iter().flat_map(|launch| &launch.properties);
        let given = given.filter(|(name, value)| !value.is_null() && *name != INSTANCE);
        properties.extend(given.map(|(name, value)| (name.clone(), without_nulls(name, value))));
        properties.insert("Tags".to_owned(), self.tags(facts).into());
        if let Some(subnet) = facts.property("VPCZoneIdentifier").as_list().and_then(<[Value]>::first) {
            properties.insert("SubnetId".to_owned(), subnet.clone());
        }
        let mut member =
            Map::from([("Type".to_owned(), MEMBER_TYPE.into()), ("Properties".to_owned(), properties.into())]);
        if let Some(launch) = configuration.filter(|launch| launch.metadata.is_truthy()) {
            member.insert("Metadata".to_owned(), launch.metadata.clone());
        }
        Some(member.into())
    }

    /// The tags of the group, with those by which meters recognize its members.
    fn tags(self, facts: &Facts) -> Vec<Value> {
        let mut tags = facts.property("Tags").as_list().unwrap_or_default().to_vec();
        let tag = |key: &str| value!({"Key": key, "Value": (scaling_group::name(facts))});
        if !tags.iter().any(|tag| tag.str_at("Key").is_some_and(|key| key.starts_with("metering."))) {
            tags.push(tag("metering.groupname"));
        }
        if self == Self::Scaling {
            tags.push(tag("metering.AutoScalingGroupName"));
        }
        tags
    }

    /// `None`: the launch configuration is not known yet.
    fn wanted(self, facts: &Facts) -> Result<Option<Wanted>, Diagnostic> {
        let changes =
            facts.nested.changed.iter().any(|name| name == CONFIGURATION) || facts.nested.step.get("target").is_some();
        let policy = facts.nested.update_policy.get(self.policy_name()).and_then(Value::as_map).filter(|_| changes);
        let rolling = policy.map(Policy::of_cfn).transpose()?;
        let size = self.size(facts, rolling.is_some());
        Ok(self.member(facts).map(|definition| Wanted { definition, size, rolling }))
    }
}

fn without_nulls(name: &str, value: &Value) -> Value {
    let Some(items) = value.as_list().filter(|_| LISTS.contains(&name)) else { return value.clone() };
    let kept = |item: &Value| match item {
        Value::Map(map) => map
            .iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect::<Map>()
            .into(),
        other => other.clone(),
    };
    items.iter().map(kept).collect()
}

/// A template of CFN; sections without anything in them are left out.
fn template(members: Map, names: &[String], read: &[Vec<Value>]) -> Value {
    let mut template = Map::from([("HeatTemplateFormatVersion".to_owned(), "2012-12-12".into())]);
    let reads_list = read.iter().any(|path| path.first().is_some_and(|name| *name == INSTANCE_LIST.into()));
    if !members.is_empty() {
        template.insert("Resources".to_owned(), members.into());
    }
    if reads_list {
        let each: Vec<Value> = names.iter().map(|name| value!({"Fn::GetAtt": [(name.as_str()), "PublicIp"]})).collect();
        template.insert("Outputs".to_owned(), value!({INSTANCE_LIST: {"Value": each}}));
    }
    template.into()
}

fn registry() -> Map {
    Map::from([(MEMBER_TYPE.to_owned(), INSTANCE_TYPE.into())])
}

impl TypeRules for InstanceGroup {
    fn observes(&self, facts: &Facts) -> Vec<Value> {
        vec![facts.property(CONFIGURATION).clone()]
    }

    fn reference(&self, facts: &Facts) -> Value {
        scaling_group::reference(facts)
    }

    fn update_policies(&self) -> &'static [&'static str] {
        match self {
            Self::Fixed => &["RollingUpdate"],
            Self::Scaling => &["AutoScalingRollingUpdate"],
        }
    }

    fn validate(&self, facts: &Facts) -> Result<(), Diagnostic> {
        if *self == Self::Fixed {
            return Ok(());
        }
        Self::limits(facts).validate()?;
        if facts.property("VPCZoneIdentifier").as_list().is_some_and(|zones| zones.len() > 1) {
            let text = "Anything other than one VPCZoneIdentifier is not supported.";
            return Err(Diagnostic::new(Class::NotSupported, text));
        }
        let given = |name: &str| facts.given.iter().any(|given| given == name);
        if given("InstanceId") == given(CONFIGURATION) {
            return Err(failed("Either 'InstanceId' or 'LaunchConfigurationName' must be provided."));
        }
        Ok(())
    }

    /// The load balancers must be resources of the stack, of the one supported type.
    fn validate_among(&self, this: &Sibling<'_>, siblings: &Siblings<'_>) -> Result<(), Diagnostic> {
        let names = this.properties().get(BALANCERS).and_then(Value::as_list).unwrap_or_default();
        for name in names.iter().filter_map(|name| name.as_str().or_else(|| name.str_at("get_resource"))) {
            match siblings.get(name) {
                Some(balancer) if balancer.resource_type == BALANCER_TYPE => {}
                Some(_) => return Err(failed(format!("Unsupported resource '{name}' in LoadBalancerNames"))),
                None => {
                    let text = format!("The Resource ({name}) in LoadBalancerNames could not be found.");
                    return Err(failed(text));
                }
            }
        }
        Ok(())
    }
}

#[async_trait]
impl NestedStack for InstanceGroup {
    fn prepares(&self, facts: &Facts) -> Option<&'static str> {
        let (property, reference, server) = Self::source(facts);
        (server.is_some() && copied_settings::stored(facts, reference).is_none()).then_some(property)
    }

    async fn prepare(&self, cx: &Context<'_>) -> Result<Map, Failure> {
        match Self::source(cx.facts) {
            (_, reference, Some(server)) => copied_settings::read(cx, &server, reference).await,
            (_, _, None) => Ok(Map::new()),
        }
    }

    fn nested(&self, facts: &Facts, read: &[Vec<Value>]) -> Option<Result<Nested, Diagnostic>> {
        let wanted = match self.wanted(facts) {
            Ok(wanted) => wanted?,
            Err(error) => return Some(Err(error)),
        };
        let nested = scaling_group::next(facts, &wanted, |members, names| template(members, names, read));
        Some(nested.map(|nested| Nested { registry: registry(), ..nested }))
    }

    /// One member without settings: its type is checked.
    fn draft(&self, _: &Facts, _: &[Vec<Value>]) -> Option<Result<Nested, Diagnostic>> {
        let member = Map::from([("member".to_owned(), value!({"Type": MEMBER_TYPE}))]);
        Some(Ok(Nested { template: template(member, &[], &[]), registry: registry(), ..Nested::default() }))
    }

    fn attribute(
        &self,
        _: &Facts,
        outputs: &Map,
        _: &IndexMap<String, Value>,
        name: &str,
        path: &[Value],
    ) -> Option<Value> {
        if name != INSTANCE_LIST {
            return None;
        }
        let Some(addresses) = outputs.get(INSTANCE_LIST).and_then(Value::as_list) else { return Some(Value::Null) };
        let shown = |address: &Value| if address.is_null() { "0.0.0.0".to_owned() } else { text::str(address) };
        let all: Vec<String> = addresses.iter().map(shown).collect();
        Some(if all.is_empty() { Value::Null } else { select(all.join(",").into(), path) })
    }

    fn group(&self) -> Option<&dyn Group> {
        Some(self)
    }
}

impl Group for InstanceGroup {
    fn load_balancers(&self, facts: &Facts) -> Vec<String> {
        let names = facts.property(BALANCERS).as_list().unwrap_or_default();
        names.iter().filter_map(Value::as_str).map(str::to_owned).collect()
    }

    fn initial_size(&self, facts: &Facts) -> Option<usize> {
        usize::try_from(self.size(&Facts { physical_id: None, ..facts.clone() }, false)).ok()
    }

    fn members_by_age(&self) -> bool {
        true
    }

    fn completed(&self, facts: &Facts, size: usize, now: f64) -> Option<Map> {
        (*self == Self::Scaling).then(|| Self::limits(facts).after_change(facts, size, now))
    }

    fn rescale(&self, facts: &Facts, adjustment: &Value, now: f64) -> Option<Rescale> {
        if *self == Self::Fixed { None } else { Self::limits(facts).rescale(facts, adjustment, now) }
    }

    fn rescaled(&self, facts: &Facts, adjustment: &Value, succeeded: bool, now: f64) -> Map {
        Self::limits(facts).rescaled(facts, adjustment, succeeded, now)
    }

    fn member_attribute(&self, name: &str) -> Option<&'static str> {
        (name == INSTANCE_LIST).then_some("PublicIp")
    }
}

#[cfg(test)]
mod tests {
    use kiln_resource::Observed;

    use super::*;

    fn group() -> Facts {
        let properties = value!({"MinSize": 2, "MaxSize": 4, "LaunchConfigurationName": "lc",
            "VPCZoneIdentifier": ["sub"], "Tags": [{"Key": "k", "Value": "v"}]});
        let settings = value!({"ImageId": "i", "InstanceType": "t", "KeyName": null,
            "BlockDeviceMappings": [{"DeviceName": "vdb", "Ebs": null}]});
        Facts {
            id: "3f2504e0-4f89-41d3-9a0c-0305e82c3301".to_owned(),
            name: "g".to_owned(),
            physical_name: "stack-g-1".to_owned(),
            properties: properties.as_map().unwrap().clone(),
            given: vec!["LaunchConfigurationName".to_owned()],
            observed: vec![Observed {
                name: "launch".to_owned(),
                physical_id: None,
                properties: settings.as_map().unwrap().clone(),
                metadata: value!({"m": 1}),
                ..Observed::default()
            }],
            ..Facts::default()
        }
    }

    #[test]
    fn members_have_the_settings_of_the_launch_configuration() {
        let nested = InstanceGroup::Scaling.nested(&group(), &[vec!["InstanceList".into()]]).unwrap().unwrap();
        let members = nested.template.get("Resources").unwrap().as_map().unwrap();
        assert_eq!(members.len(), 2);
        let expected = value!({
            "Type": "OS::Heat::ScaledResource",
            "Properties": {
                "ImageId": "i",
                "InstanceType": "t",
                "BlockDeviceMappings": [{"DeviceName": "vdb"}],
                "Tags": [
                    {"Key": "k", "Value": "v"},
                    {"Key": "metering.groupname", "Value": "stack-g-1"},
                    {"Key": "metering.AutoScalingGroupName", "Value": "stack-g-1"}
                ],
                "SubnetId": "sub"
            },
            "Metadata": {"m": 1}
        });
        assert!(members.values().all(|member| *member == expected), "{members:?}");
        let list = nested.template.get("Outputs").unwrap().get("InstanceList").unwrap().get("Value").unwrap();
        assert_eq!(list.as_list().unwrap().len(), 2);
        assert_eq!(nested.registry, registry());
    }

    #[test]
    fn what_is_not_there_is_refused_by_name() {
        let text = |facts: &Facts| InstanceGroup::Scaling.validate(facts).err().map(|error| error.text.clone());
        assert_eq!(text(&group()), None);
        let mut facts = group();
        facts.given.push("InstanceId".to_owned());
        assert_eq!(text(&facts).as_deref(), Some("Either 'InstanceId' or 'LaunchConfigurationName' must be provided."));
        let mut facts = group();
        facts.properties.insert("VPCZoneIdentifier".to_owned(), value!(["a", "b"]));
        assert_eq!(text(&facts).as_deref(), Some("Anything other than one VPCZoneIdentifier is not supported."));
    }

    #[test]
    fn settings_of_a_server_are_the_defaults_of_the_launch_configuration() {
        let mut facts = group();
        facts.observed[0].properties.insert("InstanceId".to_owned(), "s".into());
        facts.observed[0].properties.insert("ImageId".to_owned(), Value::Null);
        assert_eq!(InstanceGroup::Scaling.prepares(&facts), Some("LaunchConfigurationName"));
        assert!(InstanceGroup::Scaling.nested(&facts, &[]).is_none(), "they are not known");
        let copied = value!({"for": "lc", "settings": {"ImageId": "copied", "InstanceType": "copied", "KeyName": "k"}});
        facts.data.insert("copied_settings".to_owned(), copied);
        assert_eq!(InstanceGroup::Scaling.prepares(&facts), None);
        let properties = |facts: &Facts| {
            let nested = InstanceGroup::Scaling.nested(facts, &[]).unwrap().unwrap();
            let members = nested.template.get("Resources").unwrap().as_map().unwrap().clone();
            let (_, member) = members.into_iter().next().unwrap();
            let of = |key: &str| member.get("Properties").unwrap().str_at(key).map(str::to_owned);
            [of("ImageId"), of("InstanceType"), of("KeyName"), of("InstanceId")].map(Option::unwrap_or_default)
        };
        assert_eq!(properties(&facts), ["copied", "t", "k", ""]);
        // Another launch configuration: the server is read again.
        facts.properties.insert("LaunchConfigurationName".to_owned(), "lc2".into());
        assert_eq!(InstanceGroup::Scaling.prepares(&facts), Some("LaunchConfigurationName"));
        // Without a launch configuration.
        facts.properties.insert("LaunchConfigurationName".to_owned(), Value::Null);
        facts.properties.insert("InstanceId".to_owned(), "s".into());
        facts.observed.clear();
        assert_eq!(InstanceGroup::Scaling.prepares(&facts), Some("InstanceId"));
        let copied = value!({"for": "s", "settings": {"ImageId": "i", "InstanceType": "f"}});
        facts.data.insert("copied_settings".to_owned(), copied);
        assert_eq!(properties(&facts), ["i", "f", "", ""]);
    }

    #[test]
    fn load_balancers_are_resources_of_the_stack() {
        let names = |names: Value| {
            let properties = Map::from([("LoadBalancerNames".to_owned(), names)]);
            let group = Sibling::new("g", "AWS::AutoScaling::AutoScalingGroup", &[], move || properties);
            let none = || Map::new();
            let others: Siblings<'_> =
                [Sibling::new("lb", BALANCER_TYPE, &[], none), Sibling::new("net", "OS::Neutron::Net", &[], none)]
                    .into_iter()
                    .collect();
            InstanceGroup::Scaling.validate_among(&group, &others).map_err(|error| error.text.clone())
        };
        assert_eq!(names(value!([{"get_resource": "lb"}, "lb"])), Ok(()));
        assert_eq!(names(value!(["net"])), Err("Unsupported resource 'net' in LoadBalancerNames".to_owned()));
        let missing = "The Resource (lbx) in LoadBalancerNames could not be found.".to_owned();
        assert_eq!(names(value!(["lbx"])), Err(missing));
    }

    #[test]
    fn addresses_are_joined() {
        let outputs = value!({"InstanceList": ["10.0.0.1", null]});
        let read = |outputs: &Value| {
            let outputs = outputs.as_map().unwrap();
            InstanceGroup::Fixed.attribute(&group(), outputs, &IndexMap::new(), "InstanceList", &[])
        };
        assert_eq!(read(&outputs), Some("10.0.0.1,0.0.0.0".into()));
        assert_eq!(read(&value!({"InstanceList": []})), Some(Value::Null));
    }
}
