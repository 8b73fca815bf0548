//! The default policy compared with the reference: every rule, persona and project.

use std::collections::BTreeMap;

use kiln_identity::{Caller, Policy};
use kiln_value::value;
use serde::Deserialize;

#[derive(Deserialize)]
struct Reference {
    policy_personas: BTreeMap<String, Vec<String>>,
    policy_matrix_allowed_personas: BTreeMap<String, Allowed>,
}

#[derive(Deserialize)]
struct Allowed {
    own_project: Vec<String>,
    other_project: Vec<String>,
}

fn reference() -> Reference {
    serde_json::from_str(include_str!("../data/policy.json")).expect("the reference is JSON")
}

fn caller(roles: &[String]) -> Caller {
    Caller {
        user_id: "u".into(),
        username: "user".into(),
        user_domain_id: "default".into(),
        project_id: "own".into(),
        project_name: "own".into(),
        project_domain_id: "default".into(),
        roles: roles.to_vec(),
        is_admin: false,
        is_admin_project: true,
        by_trust: false,
        trust_end: None,
        login: None,
        is_system: false,
        catalog: None,
        token: None,
    }
}

fn allows(policy: &Policy, rule: &str, caller: &Caller, project: &str) -> bool {
    match rule.strip_prefix("resource_types:") {
        // The rule of a family is checked with any of its types.
        Some(name) => policy.allows_type(&name.replace('*', "Anything"), caller),
        None => policy.allows(rule, caller, project),
    }
}

#[test]
fn the_matrix_of_personas() {
    let reference = reference();
    let policy = Policy::default();
    for (rule, allowed) in &reference.policy_matrix_allowed_personas {
        for (persona, roles) in &reference.policy_personas {
            let caller = caller(roles);
            let seen = |project| allows(&policy, rule, &caller, project);
            assert_eq!(seen("own"), allowed.own_project.contains(persona), "{rule}: {persona} in the own project");
            assert_eq!(seen("other"), allowed.other_project.contains(persona), "{rule}: {persona} in another project");
        }
    }
    assert!(reference.policy_matrix_allowed_personas.len() > 90);
}

#[test]
fn older_defaults_are_sufficient_unless_new_ones_are_enforced() {
    let roleless = caller(&[]);
    assert!(!Policy::new(true, []).allows("stacks:create", &roleless, "own"));
    assert!(Policy::new(false, []).allows("stacks:create", &roleless, "own"));
    let stack_user = caller(&["heat_stack_user".into()]);
    assert!(!Policy::new(false, []).allows("stacks:create", &stack_user, "own"));
}

#[test]
fn an_operator_may_change_rules() {
    let overrides = value!({
        "stacks:create": "role:builder or 'u':%(user)s",
        "stacks:delete": "user_id:u and is_admin_project:True",
        "resource_types:OS::Nova::Server": "!",
        "stacks:index": "rule:loop",
        "loop": "rule:loop",
    });
    let policy = Policy::default().with_overrides(overrides.as_map().unwrap()).unwrap();
    let builder = caller(&["Builder".into()]);
    assert!(policy.allows("stacks:create", &builder, "own"));
    assert!(!policy.allows("stacks:create", &caller(&["member".into()]), "own"), "the target has no user");
    assert!(policy.allows("stacks:delete", &builder, "own"));
    assert!(!policy.allows_type("OS::Nova::Server", &builder));
    assert!(policy.allows_type("OS::Nova::KeyPair", &builder));
    assert!(!policy.allows("stacks:index", &builder, "own"), "a rule that refers to itself is never true");
    assert!(!policy.allows("no:such", &builder, "own"));
}

#[test]
fn an_invalid_rule_is_refused() {
    let overrides = value!({"stacks:create": "role:member and"});
    let error = Policy::default().with_overrides(overrides.as_map().unwrap()).unwrap_err();
    assert_eq!(error.to_string(), r#"policy rule "stacks:create": the rule ends where a check was expected"#);
}
