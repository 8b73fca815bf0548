//! Every property of every type has an effect: its value reaches a request, in a create, and in an update if it can be
//! updated; or code decides by it.
//!
//! Each property gets two values in turn, in the resource of a case. The requests must differ, and one of them must
//! contain its value, unless the definition says that the property is not sent as it is (`as: false`).

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path as FilePath;
use std::sync::Arc;

use kiln_resource::change::{self, Comparison};
use kiln_resource::properties::Schema;
use kiln_resource::translation::{self, Answers, Source};
use kiln_resource::{Cloud as _, Failure, Operation, PropertyChange, PropertySchema, ResourceType, Wire};
use kiln_template::constraint::{DataType, Rule};
use kiln_value::{Map, Value, text, value};

use crate::resource::{Ending, Resource, types};
use crate::sweep::cases::Case;
use crate::sweep::recorder::Recorder;
use crate::sweep::settings::{Setting, settings};
use crate::sweep::stage::Stage;

/// What Heat does with a property that has no effect in some operations: type, property, operations.
const NO_EFFECT: &[(&str, &str, &str)] = &[
    ("AWS::AutoScaling::AutoScalingGroup", "AvailabilityZones", "create, update: ignored"),
    ("AWS::EC2::EIP", "Domain", "create: ignored"),
    ("AWS::EC2::NetworkInterface", "Description", "create: ignored"),
    ("AWS::EC2::SecurityGroup", "VpcId", "create: ignored"),
    ("AWS::EC2::VPC", "CidrBlock", "create: ignored"),
    ("AWS::EC2::VPCGatewayAttachment", "InternetGatewayId", "create: ignored"),
    ("AWS::ElasticLoadBalancing::LoadBalancer", "AvailabilityZones", "create, update: ignored"),
    ("AWS::IAM::User", "Groups", "create: ignored"),
    ("AWS::IAM::User", "Path", "create: ignored"),
    ("OS::Cinder::Volume", "imageRef", "create: refused, because it counts as a second image beside image"),
    ("OS::Heat::DeployedServer", "deployment_swift_data.*", "update: only software_config_transport has an effect"),
    ("OS::Heat::DeployedServer", "metadata", "create, update: ignored"),
    ("OS::Heat::InstanceGroup", "AvailabilityZones", "create, update: ignored"),
    ("OS::Manila::ShareNetwork", "nova_network", "create, update: sent to a Manila that refuses it"),
    ("OS::Neutron::FloatingIP", "dns_*", "update: only port_id and fixed_ip_address are sent"),
    ("OS::Neutron::Port", "replacement_policy", "create: decides about updates"),
    ("OS::Nova::Server", "admin_user", "create: ignored"),
    ("OS::Nova::Server", "deployment_swift_data.*", "update: only software_config_transport has an effect"),
    ("OS::Nova::Server", "networks.port_extra_properties.mac_address", "update: Kiln keeps that of the port"),
    ("OS::Nova::Server", "networks.port_extra_properties.binding:vnic_type", "update: Kiln keeps that of the port"),
    ("OS::Nova::Server", "networks.port_extra_properties.no_fixed_ips", "update: Kiln keeps those of the port"),
    ("OS::Nova::Server", "networks.tag", "update: attaches the interface again, without a tag; Kiln keeps it"),
];

/// The properties by which code decides in a case that this test does not have.
const DECIDES: &[(&str, &str, &str)] = &[
    ("AWS::EC2::RouteTable", "VpcId", "create: finds the gateway of the VPC"),
    ("AWS::EC2::VPCGatewayAttachment", "VpcId", "create: finds the route tables of a stack"),
    ("AWS::IAM::User", "Policies", "create: names of other resources"),
    ("OS::Mistral::ExternalResource", "actions.UPDATE.*", "create: for changes of the input"),
    ("OS::Mistral::ExternalResource", "always_update", "create: for changes of the input"),
    ("OS::Mistral::ExternalResource", "replace_on_change_inputs", "create: for changes of the input"),
    ("OS::Nova::Server", "flavor_update_policy", "create, update: for changes of the flavor"),
    ("OS::Nova::Server", "image_update_policy", "create, update: for changes of the image"),
    ("OS::Nova::Server", "user_data_update_policy", "create, update: for changes of the user data"),
    ("OS::Swift::Container", "PurgeOnDelete", "create: for containers with objects"),
];

/// Two values that satisfy the constraints; equal ones if there is only one.
pub(crate) fn values(schema: &PropertySchema) -> [Value; 2] {
    let (mut least, mut most) = (1, i64::MAX);
    for constraint in &schema.constraints {
        match &constraint.rule {
            Rule::AllowedValues(allowed) => {
                let own = [allowed.last(), allowed.first()].map(|value| value.cloned().unwrap_or_default());
                return if schema.kind == DataType::List { own.map(|one| value!([one])) } else { own };
            }
            Rule::Custom(name) => {
                let pair = match name.as_str() {
                    "ip_addr" => ["10.71.0.41", "10.71.0.42"],
                    "mac_addr" => ["fa:16:3e:00:00:41", "fa:16:3e:00:00:42"],
                    "net_cidr" | "ip_or_cidr" => ["10.41.0.0/24", "10.42.0.0/24"],
                    "cron_expression" => ["1 1 * * *", "2 2 * * *"],
                    "dns_domain" => ["value-a.", "value-b."],
                    "timezone" => ["Europe/Berlin", "Asia/Tokyo"],
                    "iso_8601" | "expiration" => ["2041-01-01T00:00:00", "2042-01-01T00:00:00"],
                    "json_string" => ["{\"a\": \"value-a\"}", "{\"b\": \"value-b\"}"],
                    _ => continue,
                };
                return pair.map(Value::from);
            }
            Rule::Range { min, max } => {
                least = min.as_ref().and_then(Value::as_i64).unwrap_or(least);
                most = max.as_ref().and_then(Value::as_i64).unwrap_or(most);
            }
            Rule::Length { .. } | Rule::Modulo { .. } | Rule::AllowedPattern(_) => {}
        }
    }
    let number = |n: i64| if least + n > most { most - n % 2 } else { least + n };
    let texts = ["value-a", "value-b"];
    match schema.kind {
        DataType::Boolean => [true.into(), false.into()],
        DataType::Integer | DataType::Number => [number(41).into(), number(42).into()],
        DataType::List => {
            schema.items().map_or(texts.map(|text| value!([text])), |items| values(items).map(|item| value!([item])))
        }
        DataType::Map => match schema.members() {
            Some(members) => [0, 1].map(|n| {
                let required = members.iter().filter(|(_, member)| member.required);
                required.map(|(name, member)| (name.clone(), values(member)[n].clone())).collect::<Map>().into()
            }),
            None => texts.map(|text| value!({"key": text})),
        },
        _ => texts.map(Value::from),
    }
}

fn members(schema: &PropertySchema) -> Option<&Schema> {
    schema.members().or_else(|| schema.items()?.members())
}

/// The paths of the properties with their schemas, down to members of maps and of items of lists.
pub(crate) fn places<'a>(
    schema: &'a Schema,
    at: &[(String, &'a PropertySchema)],
    out: &mut Vec<Vec<(String, &'a PropertySchema)>>,
) {
    let is_implemented = |schema: &PropertySchema| schema.implemented && schema.items().is_none_or(|i| i.implemented);
    for (name, property) in schema.iter().filter(|(_, property)| is_implemented(property)) {
        let at = [at, &[(name.clone(), property)]].concat();
        match members(property) {
            Some(members) => places(members, &at, out),
            None => out.push(at),
        }
    }
}

/// Sets the value at a place; maps and items of lists on the way are added if there are none.
fn set(data: &mut Map, kind: &ResourceType, place: &[(String, &PropertySchema)], wanted: &Value) {
    let [(name, schema), rest @ ..] = place else { return };
    if rest.is_empty() {
        for rule in &kind.translation {
            // Its present name.
            if matches!(&rule.rule, translation::Rule::Replace(Source::Sibling(old)) if old.last() == Some(name)) {
                data.shift_remove(rule.path.last().map_or("", String::as_str));
            }
        }
        data.insert(name.clone(), wanted.clone());
        return;
    }
    let held = data.entry(name.clone()).or_default();
    if !held.is_truthy() {
        *held = values(schema)[0].clone();
    }
    let inner = match held {
        Value::List(items) => items.first_mut().and_then(Value::as_map_mut),
        other => other.as_map_mut(),
    };
    if let Some(inner) = inner {
        set(inner, kind, rest, wanted);
    }
}

/// What a request shows of a value.
fn shown(value: &Value) -> String {
    match value {
        Value::List(items) => items.first().map(shown).unwrap_or_default(),
        Value::Map(entries) => entries.values().next().map(shown).unwrap_or_default(),
        scalar => text::str(scalar).to_lowercase(),
    }
}

/// The lines of a run of an operation: its requests and its result; after a create also what follows.
async fn requests(resource: &Resource, stage: &Stage, operation: &Operation) -> (BTreeSet<String>, Option<Failure>) {
    let mut resource = resource.clone();
    let cloud = Arc::new(Recorder::new(stage.cloud.clone()));
    resource.cloud = cloud.clone();
    let failure = carry(&mut resource, &cloud, operation).await;
    for message in [Value::Null, value!({"input": {"value-a": "b"}, "params": {"value-a": "b"}})] {
        cloud.note(format!("received {:?}", resource.driver().receive(&resource.context(), &message).await));
    }
    // The attributes of an object show what is in the cloud, not what an update sends.
    if *operation == Operation::Create || resource.kind.service.iter().any(|service| service == "orchestration") {
        let names: Vec<&str> = resource.kind.attributes.keys().map(String::as_str).collect();
        cloud.note(format!("reference {:?}", resource.reference()));
        if let Ok(attributes) = resource.driver().attributes(&resource.context(), &names).await {
            cloud.note(format!("attributes {attributes:?}"));
        }
    }
    if *operation == Operation::Create {
        for operation in [Operation::Suspend, Operation::Resume, Operation::Delete] {
            drop(carry(&mut resource, &cloud, &operation).await);
        }
    }
    (cloud.sent(), failure)
}

/// Runs an operation to its end or its failure.
async fn carry(resource: &mut Resource, cloud: &Recorder, operation: &Operation) -> Option<Failure> {
    let ending = resource.carry(operation).await;
    for step in &resource.stored {
        cloud.note(format!("stored {:?} {:?}", step.physical_id, step.data));
    }
    match ending {
        Ok(Ending::Stopped) => None,
        Ok(ending) => {
            cloud.note(format!("{ending:?}"));
            None
        }
        Err(failure) => Some(failure),
    }
}

/// Whether the lines of runs with two values show that the value has an effect.
fn has_effect([a, b]: &[BTreeSet<String>; 2], values: &[Value; 2], is_converted: bool) -> bool {
    let shows = |lines: &BTreeSet<&String>, value: &Value| {
        let text = shown(value);
        lines.iter().any(|line| line.to_lowercase().contains(&text))
    };
    if values[0] == values[1] {
        return shows(&a.iter().collect(), &values[0]);
    }
    let own: [BTreeSet<&String>; 2] = [a.difference(b).collect(), b.difference(a).collect()];
    if is_converted {
        own.iter().any(|own| !own.is_empty())
    } else {
        shows(&own[0], &values[0]) || shows(&own[1], &values[1])
    }
}

/// Properties without an effect, as `type property operation`, with the reason as far as it is known; `None` for those
/// with one.
type Problems = BTreeMap<String, Option<String>>;

/// The resource of a case, ready to give values to its properties.
pub(crate) struct Trial<'a> {
    case: &'a Case,
    furnished: Stage,
    /// The cloud after a create.
    stage: Stage,
    made: Resource,
    base: Map,
}

impl<'a> Trial<'a> {
    pub(crate) async fn of(case: &'a Case) -> Self {
        let furnished = Stage::furnished(case).await;
        let stage = furnished.fork(case).await;
        let mut made = stage.resource(case.type_name, "it");
        stage.give(&mut made, &case.create).await;
        if let Err(failure) = made.act(Operation::Create).await {
            assert!(case.is_untold, "{}: {failure}", case.type_name);
        }
        let Value::Map(base) = furnished.filled(&case.create) else { panic!("properties are a map") };
        Self { case, furnished, stage, made, base }
    }

    /// The resource with a value at a place, or why it is invalid.
    pub(crate) async fn with(
        &self,
        place: &[(String, &PropertySchema)],
        setting: Option<&Setting>,
        value: &Value,
    ) -> Result<Resource, String> {
        let kind = &self.made.kind;
        let mut given = self.base.clone();
        let only = setting.and_then(|setting| setting.only.as_ref()).filter(|(own, _)| own == value);
        for beside in setting.map(|setting| &setting.beside).into_iter().chain(only.map(|(_, beside)| beside)) {
            given.extend(self.furnished.filled(beside).as_map().cloned().unwrap_or_default());
        }
        given.retain(|_, value| !value.is_null());
        set(&mut given, kind, place, value);
        let mut answers = Answers::new();
        for lookup in translation::lookups(&kind.translation, &given).into_keys() {
            if let Ok(id) = self.stage.cloud.find(&lookup.finder, &lookup.value).await {
                answers.insert(lookup, id);
            }
        }
        let mut resource = self.stage.resource(self.case.type_name, "it");
        resource.engine.further_attempts = 0;
        let checked = resource.assume(given, &answers).and_then(|()| resource.validate());
        checked.map(|()| resource).map_err(|error| error.to_string())
    }

    pub(crate) fn kind(&self) -> &ResourceType {
        &self.made.kind
    }

    /// The resource of the case, which exists.
    pub(crate) fn made(&self) -> &Resource {
        &self.made
    }

    /// A value of the case.
    pub(crate) fn filled(&self, value: &Value) -> Value {
        self.furnished.filled(value)
    }

    /// A cloud in which the resource is not made yet.
    pub(crate) async fn fresh_stage(&self) -> Stage {
        self.furnished.fork(self.case).await
    }

    /// The problem of a property in a create.
    async fn create(&self, resources: &[Resource; 2], values: &[Value; 2], is_converted: bool) -> Option<String> {
        let (mut lines, mut failures) = ([BTreeSet::new(), BTreeSet::new()], Vec::new());
        for (resource, lines) in resources.iter().zip(&mut lines) {
            let stage = self.furnished.fork(self.case).await;
            let (own, failure) = requests(resource, &stage, &Operation::Create).await;
            *lines = own;
            failures.extend(failure.map(|failure| failure.message));
        }
        (!has_effect(&lines, values, is_converted)).then(|| failures.join("; "))
    }

    /// The problem of a property in an update to each value from the other one.
    async fn update(&self, resources: &[Resource; 2], values: &[Value; 2], is_converted: bool) -> Option<String> {
        let (mut lines, mut failures) = ([BTreeSet::new(), BTreeSet::new()], Vec::new());
        for (n, lines) in lines.iter_mut().enumerate() {
            let before = resources[1 - n].facts.properties.clone();
            let after = resources[n].facts.properties.clone();
            let Comparison::Update { changed } = change::compare_resolved(&self.made.kind, "it", &before, &after)
            else {
                continue;
            };
            let mut resource = self.made.clone();
            resource.facts.properties.clone_from(&after);
            let names = changed.keys().cloned().collect();
            if resource.driver().needs_replace(&PropertyChange { before: before.clone(), after, changed: names }) {
                lines.insert(format!("replaced {}", shown(&values[n])));
                continue;
            }
            let stage = self.stage.fork(self.case).await;
            let (own, failure) = requests(&resource, &stage, &Operation::Update { before, changed }).await;
            *lines = own;
            failures.extend(failure.map(|failure| failure.message));
        }
        (!has_effect(&lines, values, is_converted)).then(|| failures.join("; "))
    }
}

/// Gives values to the properties that have no effect so far.
async fn try_properties(case: &Case, settings: &[Setting], problems: &mut Problems) {
    let trial = Trial::of(case).await;
    let kind = trial.made.kind.clone();
    let mut all = Vec::new();
    places(&kind.properties, &[], &mut all);
    for place in all {
        let name = place.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(".");
        let Some((_, schema)) = place.last() else { continue };
        let setting = settings.iter().find(|setting| setting.kind == kind.name && setting.property == name);
        let own = setting.and_then(|setting| setting.values.as_list());
        let values = match own {
            Some([a, b]) => [a, b].map(|value| trial.furnished.filled(value)),
            _ => values(schema),
        };
        let can_update = kind.can_update(&place[0].0) && values[0] != values[1];
        let keys = [("create", true), ("update", can_update)].map(|(operation, is_possible)| {
            let key = format!("{} {name} {operation}", kind.name);
            (is_possible && problems.get(&key) != Some(&None)).then_some(key)
        });
        if keys == [None, None] {
            continue;
        }
        // Requests have the value in another form.
        let is_converted = schema.kind == DataType::Boolean
            || own.is_some()
            || place.iter().any(|(_, schema)| schema.wire == Wire::Never);
        let one = trial.with(&place, setting, &values[0]).await;
        let other = trial.with(&place, setting, &values[1]).await;
        let resources = match (one, other) {
            (Ok(one), Ok(other)) => [one, other],
            (Err(error), _) | (_, Err(error)) => {
                problems.extend(keys.into_iter().flatten().map(|key| (key, Some(error.clone()))));
                continue;
            }
        };
        let [create, update] = keys;
        if let Some(key) = create {
            problems.insert(key, trial.create(&resources, &values, is_converted).await);
        }
        if let Some(key) = update {
            problems.insert(key, trial.update(&resources, &values, is_converted).await);
        }
    }
}

/// Whether an entry of a list is about a line `type property operation`.
fn is_about((kind, property, what): &(&str, &str, &str), line: &str) -> bool {
    let operations = what.split(':').next().unwrap_or_default();
    let is = |operation: &str| match property.strip_suffix('*') {
        Some(front) => line.starts_with(&format!("{kind} {front}")) && line.ends_with(&format!(" {operation}")),
        None => line == format!("{kind} {property} {operation}"),
    };
    operations.split(", ").any(is)
}

/// Tries the properties of the types that fit.
async fn every_property_has_an_effect(fits: impl Fn(&str) -> bool) {
    let settings = settings();
    let mut problems = Problems::new();
    for (_, case) in crate::sweep::all().into_iter().filter(|(_, case)| fits(case.type_name)) {
        Box::pin(try_properties(&Case { is_admin: true, ..case }, &settings, &mut problems)).await;
    }
    let known = || NO_EFFECT.iter().chain(DECIDES).filter(|entry| fits(entry.0));
    let swept = swept();
    for entry in known().filter(|entry| swept.contains(entry.0)) {
        let is_needed = problems.iter().any(|(line, problem)| problem.is_some() && is_about(entry, line));
        assert!(is_needed, "{entry:?} has an effect");
    }
    let count = problems.len();
    problems.retain(|line, problem| problem.is_some() && !known().any(|entry| is_about(entry, line)));
    assert!(problems.is_empty(), "{} of {count} have no effect:\n{problems:#?}", problems.len());
}

#[tokio::test(start_paused = true)]
async fn every_property_of_nova_has_an_effect() {
    Box::pin(every_property_has_an_effect(|name| name.starts_with("OS::Nova"))).await;
}

#[tokio::test(start_paused = true)]
async fn every_property_of_neutron_has_an_effect() {
    Box::pin(every_property_has_an_effect(|name| name.starts_with("OS::Neutron"))).await;
}

#[tokio::test(start_paused = true)]
async fn every_property_of_other_services_has_an_effect() {
    Box::pin(every_property_has_an_effect(|name| !name.starts_with("OS::Neutron") && !name.starts_with("OS::Nova")))
        .await;
}

/// The types with a case.
fn swept() -> BTreeSet<&'static str> {
    crate::sweep::all().into_iter().map(|(_, case)| case.type_name).collect()
}

/// The source of these crates.
fn source(crates: &[&str]) -> String {
    fn read(folder: &FilePath, out: &mut String) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                read(&path, out);
            } else {
                out.push_str(&std::fs::read_to_string(&path).unwrap());
            }
        }
    }
    let mut out = String::new();
    for name in crates {
        read(&FilePath::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name).join("src"), &mut out);
    }
    out
}

/// Properties that no code names: the definition says that a change replaces the resource, or they are stored with
/// others. The type for Heat's own tests has some that these tests do not need.
const UNNAMED: [&str; 3] =
    ["OS::Heat::RandomString salt", "OS::Heat::SoftwareComponent tool", "OS::Heat::TestResource"];

/// The properties of types without a case, and those that no case can show: code names them.
#[test]
fn every_other_property_is_named_in_code() {
    let code = source(&["drivers", "resource"]);
    let is_named = |name: &str| code.contains(&format!("\"{name}\""));
    let swept = swept();
    let has_code = |kind: &&ResourceType| kind.rest.is_none() && kiln_drivers::driver_for(kind).is_some();
    let mut unnamed = Vec::new();
    for kind in types().iter().filter(|kind| !swept.contains(kind.name.as_str())).filter(has_code) {
        let mut all = Vec::new();
        places(&kind.properties, &[], &mut all);
        let names = all.iter().filter_map(|place| place.last()).map(|(name, _)| name);
        unnamed.extend(names.filter(|name| !is_named(name)).map(|name| format!("{} {name}", kind.name)));
    }
    for (kind, property, _) in DECIDES {
        let name = property.split('.').next().unwrap_or_default();
        unnamed.extend((!is_named(name)).then(|| format!("{kind} {name}")));
    }
    let is_known = |line: &str| {
        let line_of_create = format!("{line} create");
        NO_EFFECT.iter().any(|entry| is_about(entry, &line_of_create))
            || UNNAMED.iter().any(|own| line.starts_with(own))
    };
    unnamed.retain(|line| !is_known(line));
    assert!(unnamed.is_empty(), "{unnamed:#?}");
}

#[test]
fn few_properties_have_no_effect() {
    assert!(NO_EFFECT.len() <= 22, "{}", NO_EFFECT.len());
}
