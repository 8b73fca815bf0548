//! Groups of software deployments: a nested stack with one deployment for each server. The types do not exist yet; this
//! module generates their templates.

use kiln_resource::Facts;
use kiln_value::{Map, Value, text, value};

use super::members;

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
