//! The table of `docs/rights.md`: what the roles of Keystone may do.

use std::collections::BTreeMap;

use kiln_identity::{Caller, Policy};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/rights.md");
/// The lines before the table, and after it.
const BEGIN: &str = "|---|---|---|---|---|---|---|\n";
const PROJECT: &str = "p";
/// Each persona with its roles: in Keystone, a role implies the ones before it.
const PERSONAS: [(&str, &[&str]); 6] = [
    ("reader", &["reader"]),
    ("member", &["reader", "member"]),
    ("manager", &["reader", "member", "manager"]),
    ("admin", &["reader", "member", "manager", "admin"]),
    ("service", &["service"]),
    ("stack user", &["heat_stack_user"]),
];

fn caller(roles: &[&str]) -> Caller {
    let user = Caller::without_token("u".to_owned(), "u".to_owned(), PROJECT.to_owned());
    Caller { roles: roles.iter().map(|role| (*role).to_owned()).collect(), is_admin_project: true, ..user }
}

fn allows(policy: &Policy, rule: &str, caller: &Caller) -> bool {
    match rule.strip_prefix("resource_types:") {
        Some(resource_type) => policy.allows_type(resource_type, caller),
        None => policy.allows(rule, caller, PROJECT),
    }
}

/// Rows of rules with the same rights.
fn table() -> String {
    let (new, old) = (kiln_api::policy(true), kiln_api::policy(false));
    let mut rows = BTreeMap::<Vec<&str>, Vec<String>>::new();
    // Those without a colon are parts of others.
    let mut names = new.names();
    names.retain(|rule| rule.contains(':'));
    names.sort();
    for rule in names {
        let cells = PERSONAS.iter().map(|(_, roles)| {
            let caller = caller(roles);
            match (allows(&new, &rule, &caller), allows(&old, &rule, &caller)) {
                (true, true) => "yes",
                (false, true) => "old",
                (false, false) => "",
                (true, false) => panic!("{rule}: the older rules are added to the newer ones"),
            }
        });
        rows.entry(cells.collect()).or_default().push(format!("`{rule}`"));
    }
    let mut lines: Vec<String> =
        rows.iter().map(|(cells, rules)| format!("| {} | {} |\n", rules.join(" "), cells.join(" | "))).collect();
    lines.sort();
    lines.concat()
}

#[test]
fn the_table_of_the_manual_is_that_of_the_policy() {
    let page = std::fs::read_to_string(PAGE).unwrap();
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let after = rest.find("\n\n").map_or("", |end| &rest[end + 1..]);
    let wanted = format!("{before}{BEGIN}{}{after}", table());
    if std::env::var_os("KILN_UPDATE_DATA").is_some() {
        std::fs::write(PAGE, wanted).unwrap();
    } else {
        assert!(page == wanted, "KILN_UPDATE_DATA=1 .ci/tests kiln-server:lib rights writes docs/rights.md");
    }
}

/// The example of the page: managers approve, and members do not.
#[test]
fn the_example_of_the_manual_is_a_policy() {
    let page = std::fs::read_to_string(PAGE).unwrap();
    let example = page.split("```yaml\n").nth(1).unwrap().split("```").next().unwrap();
    let rules = kiln_yaml::parse(example).unwrap().value;
    let policy = kiln_api::policy(true).with_overrides(rules.as_map().unwrap()).unwrap();
    let may = |rule| PERSONAS[..4].iter().map(|(_, roles)| allows(&policy, rule, &caller(roles))).collect::<Vec<_>>();
    assert_eq!(may("plans:approve"), [false, false, true, true]);
    assert_eq!(may("stacks:environment"), [false, true, true, true]);
    assert_eq!(may("stacks:global_index"), [false, false, false, true]);
}

#[test]
fn each_role_may_do_what_the_one_below_it_may() {
    for new_defaults in [true, false] {
        let policy = kiln_api::policy(new_defaults);
        for rule in policy.names().iter().filter(|rule| rule.contains(':')) {
            let allowed = PERSONAS[..4].iter().map(|(_, roles)| allows(&policy, rule, &caller(roles)));
            assert!(allowed.is_sorted(), "{rule}");
        }
    }
}
