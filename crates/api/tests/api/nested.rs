//! Templates that are used as types, before anything is created.

use http::Method;
use serde_json::{Value, json};

use crate::support::{Answer, App};

const PARENT: &str = "
heat_template_version: 2018-08-31
resources: {it: {type: 'My::Type', properties: {given: a}}}
";

const FACADE: &str = "
heat_template_version: 2018-08-31
parameters: {given: {type: string}}
outputs: {shown: {value: 1}}
";

/// Creates a stack in which `concrete` takes the place of `FACADE` for one resource.
async fn with_facade(app: &App, name: &str, concrete: &str) -> Answer {
    let registry = json!({ "My::Type": "facade.yaml", "resources": { "it": { "My::Type": "concrete.yaml" } } });
    let files = json!({ "facade.yaml": FACADE, "concrete.yaml": concrete });
    create(app, name, PARENT, json!({ "resource_registry": registry }), files).await
}

async fn create(app: &App, name: &str, template: &str, environment: Value, files: Value) -> Answer {
    let body = json!({ "stack_name": name, "template": template, "environment": environment, "files": files });
    app.json(Method::POST, "/v1/tenant1/stacks", &body).await
}

#[tokio::test]
async fn a_template_that_takes_the_place_of_another_is_like_it() {
    let app = App::new().await;
    let cases = [
        ("", "outputs: {shown: {value: 2}}", "Required property given for facade My::Type missing in provider"),
        ("given: {type: string}", "", "Attribute shown for facade My::Type missing in provider"),
        (
            "given: {type: string}, more: {type: string}",
            "outputs: {shown: {value: 2}}",
            "Provider requires property more unknown in facade My::Type",
        ),
    ];
    for (parameters, outputs, text) in cases {
        let concrete = format!("heat_template_version: 2018-08-31\nparameters: {{{parameters}}}\n{outputs}\n");
        let answer = with_facade(&app, "refused", &concrete).await;
        assert_eq!(answer.json()["error"]["message"], text, "{}", answer.text);
    }
    let fine = "heat_template_version: 2018-08-31\nparameters: {given: {type: string}, more: {type: string, default: x}}\n\
                outputs: {shown: {value: 2}}\n";
    let answer = with_facade(&app, "fine", fine).await;
    assert_eq!(answer.status, 201, "{}", answer.text);
}
