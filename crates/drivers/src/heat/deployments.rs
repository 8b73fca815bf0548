//! Groups of software deployments: a nested stack with one deployment for each server.

use async_trait::async_trait;
use indexmap::IndexMap;
use kiln_resource::{Context, Driver, Facts, Failure, Found, Nested, Operation, Step};
use kiln_template::select;
use kiln_value::{Diagnostic, Map, Value, text, value};

use super::{deployment, members};

/// The driver of the groups; it has the type of the members.
pub(super) struct Deployments(&'static str);

impl Deployments {
    /// The group with this type.
    pub(super) fn of_type(name: &str) -> Option<Self> {
        match name {
            "OS::Heat::SoftwareDeploymentGroup" | "OS::Heat::SoftwareDeployments" => {
                Some(Self("OS::Heat::SoftwareDeployment"))
            }
            "OS::Heat::StructuredDeploymentGroup" | "OS::Heat::StructuredDeployments" => {
                Some(Self("OS::Heat::StructuredDeployment"))
            }
            _ => None,
        }
    }
}

#[async_trait]
impl Driver for Deployments {
    async fn start(&self, _: &Context<'_>, _: &Operation) -> Result<Step, Failure> {
        Ok(Step::done())
    }

    /// Nothing is made outside.
    async fn find(&self, _: &Context<'_>) -> Result<Found, Failure> {
        Ok(Found::NotMade)
    }

    fn needs_cloud(&self) -> bool {
        false
    }

    fn is_repeatable(&self) -> bool {
        true
    }

    async fn attributes(&self, _: &Context<'_>, _: &[&str]) -> Result<Map, Failure> {
        Ok(Map::new())
    }

    fn validate(&self, facts: &Facts) -> Result<(), Diagnostic> {
        deployment::refuse_transport(facts)
    }

    fn nested(&self, facts: &Facts, wanted: &[Vec<Value>]) -> Option<Result<Nested, Diagnostic>> {
        Some(Ok(Nested { template: template(facts, self.0, wanted), ..Nested::default() }))
    }

    fn draft_needs(&self) -> &'static [&'static str] {
        &["servers"]
    }

    fn nested_attribute(
        &self,
        _: &Facts,
        outputs: &Map,
        _: &IndexMap<String, Value>,
        name: &str,
        path: &[Value],
    ) -> Option<Value> {
        outputs.get(&format!("attributes, {}", attribute(name))).map(|all| select(all.clone(), path))
    }
}

/// Members of the type `member`, named as the servers are, with all properties of the group.
pub fn template(facts: &Facts, member: &str, wanted: &[Vec<Value>]) -> Value {
    let servers = facts.property("servers").as_map().cloned().unwrap_or_default();
    let mut common = facts.properties.clone();
    common.shift_remove("servers");
    let resources = servers.iter().map(|(name, server)| {
        let mut properties = common.clone();
        properties.insert("server".to_owned(), server.clone());
        (name.clone(), value!({"type": member, "properties": properties}))
    });
    let outputs = wanted.iter().filter_map(|path| {
        let attribute = attribute(&text::str(path.first()?));
        let each = servers.keys().map(|name| (name.clone(), value!({"get_attr": [name, (attribute.as_str())]})));
        Some((format!("attributes, {attribute}"), value!({"value": (each.collect::<Value>())})))
    });
    members::template(resources.collect(), outputs.collect::<Map>())
}

/// The attribute of a deployment that an attribute of its group gathers.
fn attribute(of_group: &str) -> String {
    match of_group {
        "deploy_stdouts" | "deploy_stderrs" => of_group.trim_end_matches('s').to_owned(),
        "deploy_status_codes" => "deploy_status_code".to_owned(),
        other => other.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deploys_to_each_server() {
        let mut facts = Facts::default();
        facts.properties.insert("servers".to_owned(), value!({"a": "id"}));
        facts.properties.insert("name".to_owned(), Value::Null);
        let made = template(&facts, "OS::Heat::SoftwareDeployment", &[vec!["deploy_stdouts".into()]]);
        let expected = value!({
            "heat_template_version": "2015-04-30",
            "resources": {"a": {"type": "OS::Heat::SoftwareDeployment", "properties": {"name": null, "server": "id"}}},
            "outputs": {"attributes, deploy_stdout": {"value": {"a": {"get_attr": ["a", "deploy_stdout"]}}}}
        });
        assert_eq!(made, expected);
    }
}
