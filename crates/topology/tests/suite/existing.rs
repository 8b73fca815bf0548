//! Components of other stacks, and the country of the region.

use kiln_topology::blueprint::{self, Library};
use kiln_topology::lower::{Lowered, by_cloud_init, lower};
use kiln_topology::question::Wanted;
use kiln_topology::{Refusal, TypeFiles};
use kiln_value::{Value, value};

fn components(text: &str) -> Result<Lowered, Vec<Refusal>> {
    let library = Library::of(&TypeFiles::shipped()?)?;
    let read = blueprint::read(text, &library).map_err(|(_, refusals)| refusals)?;
    lower(&read.graph()?.0, "heat.yaml")
}

fn asked(lowered: &Lowered) -> Vec<(&str, String)> {
    lowered.questions.iter().map(|question| (question.parameter.as_str(), question.wanted.text())).collect()
}

fn property(lowered: &Lowered, resource: &str, name: &str) -> Value {
    let resource = lowered.template.get("resources").and_then(|all| all.get(resource));
    resource.and_then(|resource| resource.get("properties")?.get(name)).cloned().unwrap()
}

#[test]
fn a_database_of_another_stack_is_asked_for_once() {
    let lowered = components(
        "components:\n  shop: {type: org.jetty.Server, requires: {database: heat://shared-services/database}}\n  \
         tables: {type: com.example.database:Schema, content: t.sql, requires: heat://shared-services/database}\n",
    )
    .unwrap();
    let asked = asked(&lowered);
    let asked: Vec<_> = asked.iter().filter(|(name, _)| name.starts_with("shared")).collect();
    assert_eq!(
        asked,
        [
            &(
                "shared_services_database_hostname",
                "The attribute hostname of database of the stack shared-services.".to_owned()
            ),
            &(
                "shared_services_database_password_value",
                "The attribute value of database_password of the stack shared-services.".to_owned()
            ),
        ]
    );
    let resources = lowered.template.get("resources").and_then(Value::as_map).unwrap();
    assert!(resources.values().all(|resource| resource.str_at("type") != Some("OS::Trove::Instance")));
    let inputs = property(&lowered, "tables_create_deploy", "input_values");
    assert_eq!(inputs.get("db_host"), Some(&value!({"get_param": "shared_services_database_hostname"})));
    // Secrets are not shown.
    let password = lowered.template.get("parameters").unwrap().get("shared_services_database_password_value").unwrap();
    assert_eq!(password.get("hidden"), Some(&value!(true)));
}

#[test]
fn load_balancers_and_servers_of_other_stacks_are_used() {
    let balanced = components(
        "components:\n  t:\n    type: tier\n    nodespec: {type: server}\n    requires: {loadbalancer: {publicPort: 80, \
         membersPort: 8080, fulfillment: 'heat://infra/lb'}}\n",
    )
    .unwrap();
    assert_eq!(property(&balanced, "infra_lb_listener", "loadbalancer"), value!({"get_param": "infra_lb"}));
    assert_eq!(property(&balanced, "infra_lb_listener", "protocol_port"), value!(80));
    let resources = balanced.template.get("resources").and_then(Value::as_map).unwrap();
    assert!(resources.values().all(|resource| resource.str_at("type") != Some("OS::Octavia::LoadBalancer")));
    let script = "components:\n  s: {type: com.example.script.ShellScript, content: a.sh, requires: {runOn: \
                  'heat://infra/server'}}\n";
    let deployed = components(script).unwrap();
    assert_eq!(property(&deployed, "s_create_deploy", "server"), value!({"get_param": "infra_server"}));
    let refused = by_cloud_init(deployed).unwrap_err();
    assert_eq!(refused[0].message, "s_create_deploy runs on a server that exists already, which requires an agent.");
}

#[test]
fn what_cannot_be_taken_is_refused_by_its_name() {
    let refused = |requires: &str| {
        let text = format!("components:\n  web: {{type: server, requires: {requires}}}\n");
        components(&text).unwrap_err()[0].message.clone()
    };
    assert_eq!(refused("{run: 'heat://a/b'}"), "run cannot be fulfilled by what exists already.");
    let text = "components:\n  s: {type: org.jetty.Server, requires: {database: 'http://a/b'}}\n";
    assert_eq!(components(text).unwrap_err()[0].message, "http://a/b names no component.");
}

#[test]
fn the_country_is_a_parameter() {
    let lowered =
        components("components:\n  web: {type: server}\nrequires: {jurisdiction: {iso3166: [de, FR]}}\n").unwrap();
    let parameter = lowered.template.get("parameters").unwrap().get("jurisdiction").unwrap();
    assert_eq!(parameter.get("constraints"), Some(&value!([{"allowed_values": ["DE", "FR"]}])));
    let wanted = Wanted::Jurisdiction(vec!["DE".to_owned(), "FR".to_owned()]);
    assert!(lowered.questions.iter().any(|question| question.wanted == wanted));
    let none =
        components("components:\n  web: {type: server}\nrequires: [{jurisdiction: de}, {jurisdiction: [fr, us]}]\n");
    assert_eq!(none.unwrap_err()[0].message, "No country satisfies all requirements of the type jurisdiction.");
}
