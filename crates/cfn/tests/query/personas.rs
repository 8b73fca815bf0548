//! Every action of Heat, asked by every persona (`policy_matrix_allowed_personas` of reference/rest_api.json).

use crate::support::{App, TEMPLATE};
use kiln_cfn::Options;

/// The roles of the personas.
const PERSONAS: [(&str, &[&str]); 5] = [
    ("admin", &["admin", "member", "reader"]),
    ("member", &["member", "reader"]),
    ("reader", &["reader"]),
    ("no_role", &[]),
    ("heat_stack_user", &["heat_stack_user"]),
];
/// The parameters of an action.
type Parameters = &'static [(&'static str, &'static str)];

const READ: &[&str] = &["admin", "member", "reader"];
const WRITE: &[&str] = &["admin", "member"];

#[tokio::test]
async fn every_action_admits_the_personas_of_the_reference() {
    let this: Parameters = &[("StackName", "s")];
    let resource: Parameters = &[("StackName", "s"), ("LogicalResourceId", "missing")];
    let body: Parameters = &[("TemplateBody", TEMPLATE)];
    let update: Parameters = &[("StackName", "s"), ("TemplateBody", TEMPLATE)];
    // Stack users may describe their own resource only (stack_users.rs).
    let actions: [(&str, Parameters, &[&str]); 13] = [
        ("CancelUpdateStack", this, WRITE),
        ("CreateStack", &[("StackName", "new"), ("TemplateBody", TEMPLATE)], WRITE),
        ("DeleteStack", this, WRITE),
        ("DescribeStackEvents", this, READ),
        ("DescribeStackResource", resource, READ),
        ("DescribeStackResources", this, READ),
        ("DescribeStacks", this, READ),
        ("EstimateTemplateCost", body, READ),
        ("GetTemplate", this, READ),
        ("ListStackResources", this, READ),
        ("ListStacks", &[], READ),
        ("UpdateStack", update, WRITE),
        ("ValidateTemplate", body, READ),
    ];
    let mut wrong = Vec::new();
    for (action, params, admitted) in actions {
        let owner = App::new().await;
        owner.create("s").await;
        // Those who are denied come first: the others change the stack.
        let personas = PERSONAS.iter().filter(|(name, _)| !admitted.contains(name));
        for (name, roles) in personas.chain(PERSONAS.iter().filter(|(name, _)| admitted.contains(name))) {
            let answer = App::on(owner.store.clone(), roles, Options::default()).post(action, params).await;
            let is_denied = answer.status.as_u16() == 403 && answer.element("Code") == "AccessDenied";
            if is_denied == admitted.contains(name) {
                wrong.push(format!("{action} by {name}: {} {}", answer.status, answer.text));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
