//! Validation of templates that are used as types.

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

/// Creates the stack `parent`, in which `concrete` replaces `FACADE` for one resource.
async fn with_facade(app: &App, name: &str, parent: &str, concrete: &str) -> Answer {
    let registry = json!({ "My::Type": "facade.yaml", "resources": { "it": { "My::Type": "concrete.yaml" } } });
    let files = json!({ "facade.yaml": FACADE, "concrete.yaml": concrete });
    create(app, name, parent, json!({ "resource_registry": registry }), files).await
}

async fn create(app: &App, name: &str, template: &str, environment: Value, files: Value) -> Answer {
    let body = json!({ "stack_name": name, "template": template, "environment": environment, "files": files });
    app.json(Method::POST, "/v1/tenant1/stacks", &body).await
}

#[tokio::test]
async fn a_template_that_takes_the_place_of_another_is_like_it() {
    let app = App::new().await;
    let shown = "outputs: {shown: {value: 2}}";
    let property = |text: &str| format!("Property error: : resources.it.properties: : {text}");
    // Heat looks at the properties first.
    let cases = [
        ("given: a", "", shown, property("Unknown Property given")),
        ("", "", shown, "Required property given for facade My::Type missing in provider".to_owned()),
        ("given: a", "given: {type: string}", "", "Attribute shown for facade My::Type missing in provider".to_owned()),
        ("given: a", "given: {type: string}, more: {type: string}", shown, property("Property more not assigned")),
        (
            "given: a, more: b",
            "given: {type: string}, more: {type: string}",
            shown,
            "Provider requires property more unknown in facade My::Type".to_owned(),
        ),
    ];
    for (properties, parameters, outputs, text) in cases {
        let concrete = format!("heat_template_version: 2018-08-31\nparameters: {{{parameters}}}\n{outputs}\n");
        let parent = PARENT.replace("given: a", properties);
        let answer = with_facade(&app, "refused", &parent, &concrete).await;
        assert_eq!(answer.json()["error"]["message"], text, "{}", answer.text);
    }
    let fine = "heat_template_version: 2018-08-31\nparameters: {given: {type: string}, more: {type: string, default: x}}\n\
                outputs: {shown: {value: 2}}\n";
    let answer = with_facade(&app, "fine", PARENT, fine).await;
    assert_eq!(answer.status, 201, "{}", answer.text);
}

/// The texts of the real Heat: error and path are followed by two colons, the paths of nested templates are joined.
#[tokio::test]
async fn errors_read_as_those_of_heat() {
    let app = App::new().await;
    let resource = |kind: &str, properties: &str| {
        format!("heat_template_version: 2018-08-31\nresources: {{r: {{type: {kind}, properties: {{{properties}}}}}}}\n")
    };
    let parent = resource("p.yaml", "");
    let top = "Property error: : resources.r.properties.length: : 1000 is out of range (min: 1, max: 512)";
    let name = "Property error: : resources.r<p.yaml>.resources.r.properties: : Unknown Property nme";
    let value = "ValueError: : resources.r<p.yaml>.resources.r: : Value 'BAD' is not an integer";
    for (template, child, text) in [
        (resource("OS::Heat::RandomString", "length: 1000"), String::new(), top),
        (parent.clone(), resource("OS::Heat::RandomString", "nme: x"), name),
        (parent.clone(), resource("OS::Heat::RandomString", "length: BAD"), value),
    ] {
        let answer = create(&app, "refused", &template, json!({}), json!({ "p.yaml": child })).await;
        assert_eq!(answer.json()["error"]["message"], text, "{}", answer.text);
    }
    // The validate call returns the text of the engine itself.
    let body = json!({ "template": resource("OS::Heat::RandomString", "nme: x") });
    let answer = app.json(Method::POST, "/v1/tenant1/validate", &body).await;
    let text = "Property error: resources.r.properties: Unknown Property nme";
    assert_eq!(answer.json()["error"]["message"], text, "{}", answer.text);
    // A missing value in a nested template is detected only in a create.
    let child = resource("OS::Heat::ResourceChain", "");
    let answer = create(&app, "later", &parent, json!({}), json!({ "p.yaml": child })).await;
    assert_eq!(answer.status, 201, "{}", answer.text);
}

/// Parameters without values do not hide the parameters of nested templates.
#[tokio::test]
async fn nested_parameters_are_shown_where_values_are_not_known() {
    let app = App::new().await;
    let parent = "heat_template_version: 2018-08-31
parameters: {word: {type: string}}
resources:
  one: {type: child.yaml, properties: {said: {get_param: word}}}
  many:
    type: OS::Heat::ResourceGroup
    properties: {count: 3, resource_def: {type: child.yaml, properties: {said: {get_param: word}}}}
";
    let child = "heat_template_version: 2018-08-31\nparameters: {said: {type: string}}\n";
    let body = json!({ "template": parent, "files": { "child.yaml": child } });
    let answer = app.json(Method::POST, "/v1/tenant1/validate?show_nested=true", &body).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let nested = &answer.json()["NestedParameters"];
    assert_eq!(nested["one"]["Parameters"]["said"]["Type"], "String", "{nested}");
    let member = &nested["many"]["NestedParameters"]["0"];
    assert_eq!(member["Parameters"]["said"]["Type"], "String", "{nested}");
}

const CHILD: &str = "heat_template_version: 2018-08-31
parameters: {said: {type: string}, often: {type: number, default: 3}}
";

/// The answer of the validate call to one resource, with what the templates in it ask for.
async fn shown(app: &App, kind: &str, properties: &str) -> Answer {
    let parent = format!(
        "heat_template_version: 2018-08-31\nparameters: {{word: {{type: string}}, size: {{type: number}}}}\n\
         resources: {{r: {{type: '{kind}', properties: {{{properties}}}}}}}\n"
    );
    let body = json!({ "template": parent, "files": { "child.yaml": CHILD } });
    app.json(Method::POST, "/v1/tenant1/validate?show_nested=true&ignore_errors=99001", &body).await
}

/// As in Heat, a value that is not known or does not fit is left out of what the nested template shows.
#[tokio::test]
async fn values_that_cannot_be_had_are_left_out_of_nested_parameters() {
    let app = App::new().await;
    for properties in ["", "said: {get_param: nothing}", "said: {list_join: ['-', [{get_param: word}]]}"] {
        let answer = shown(&app, "child.yaml", &format!("often: abc, {properties}")).await;
        assert_eq!(answer.status, 200, "{properties}: {}", answer.text);
        let nested = &answer.json()["NestedParameters"]["r"];
        assert_eq!(nested["Parameters"]["said"]["Type"], "String", "{nested}");
        assert_eq!(nested["Parameters"]["said"]["Value"], Value::Null, "{nested}");
        assert_eq!(nested["Parameters"]["often"]["Value"], Value::Null, "{nested}");
    }
}

/// As in Heat, a nested template may have conditions over values that are not known yet.
#[tokio::test]
async fn conditions_of_nested_templates_do_not_need_values() {
    let app = App::new().await;
    let parent = "heat_template_version: 2018-08-31
parameters: {word: {type: string}, size: {type: number}, names: {type: comma_delimited_list}, extra: {type: json}}
resources:
  random: {type: OS::Heat::RandomString}
  unset:
    type: child.yaml
    properties: {word: {get_param: word}, size: {get_param: size}, names: {get_param: names}, extra: {get_param: extra}}
  unmade:
    type: child.yaml
    properties:
      word: {get_attr: [random, value]}
      size: {get_attr: [random, value]}
      names: {get_attr: [random, value]}
      extra: {get_attr: [random, value]}
  partly:
    type: child.yaml
    properties: {word: a, size: 1, names: [{get_attr: [random, value]}], extra: {names: {get_attr: [random, value]}}}
";
    let child = "heat_template_version: 2018-08-31
parameters: {word: {type: string}, size: {type: number}, names: {type: comma_delimited_list}, extra: {type: json}}
conditions:
  is_a: {equals: [{get_param: word}, a]}
  is_large: {equals: [{get_param: size}, 5]}
  has_names: {yaql: {expression: $.data.names.len() > 0, data: {names: {get_param: names}}}}
  has_extra: {yaql: {expression: $.data.extra.containsKey(b), data: {extra: {get_param: extra}}}}
resources:
  one: {type: OS::Heat::RandomString, condition: is_a}
  two: {type: OS::Heat::RandomString, condition: {or: [is_large, has_names, has_extra]}}
";
    let body = json!({ "template": parent, "files": { "child.yaml": child } });
    let answer = app.json(Method::POST, "/v1/tenant1/validate?show_nested=true", &body).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    for name in ["unset", "unmade"] {
        let parameters = &answer.json()["NestedParameters"][name]["Parameters"];
        for parameter in ["word", "size", "names", "extra"] {
            assert_eq!(parameters[parameter]["Value"], Value::Null, "{name}: {parameters}");
        }
    }
}

/// A value that is not known yet is unknown in the nested template too: it decides no condition, and none fails with it.
#[tokio::test]
async fn conditions_over_values_that_are_not_known_are_no_errors() {
    let app = App::new().await;
    let parent = "heat_template_version: 2018-08-31
parameters: {names: {type: comma_delimited_list}, extra: {type: json}, size: {type: number}}
resources:
  random: {type: OS::Heat::RandomString}
  unset:
    type: child.yaml
    properties: {names: {get_param: names}, extra: {get_param: extra}, size: {get_param: size}}
  unmade:
    type: child.yaml
    properties:
      names: {get_attr: [random, value]}
      extra: {get_attr: [random, value]}
      size: {get_attr: [random, value]}
  partly:
    type: child.yaml
    properties: {names: [{get_param: size}], extra: {a: {get_param: size}}, size: 1}
";
    let child = "heat_template_version: 2018-08-31
parameters: {names: {type: comma_delimited_list}, extra: {type: json}, size: {type: number}}
conditions:
  first: {yaql: {expression: \"$.data.x.first() = 'a'\", data: {x: {get_param: names}}}}
  member: {yaql: {expression: $.data.x.a = 2, data: {x: {get_param: extra}}}}
  divided: {yaql: {expression: 10 / $.data.x > 2, data: {x: {get_param: size}}}}
resources:
  one: {type: grandchild.yaml, condition: first, properties: {extra: {get_param: extra}}}
  two: {type: OS::Heat::RandomString, condition: {or: [member, divided]}}
outputs:
  of_one: {condition: divided, value: {get_param: size}}
";
    let grandchild = "heat_template_version: 2018-08-31
parameters: {extra: {type: json}}
conditions:
  member: {yaql: {expression: $.data.x.a = 2, data: {x: {get_param: extra}}}}
resources:
  three: {type: OS::Heat::RandomString, condition: member}
";
    let files = json!({ "child.yaml": child, "grandchild.yaml": grandchild });
    let body = json!({ "template": parent, "files": files });
    let answer = app.json(Method::POST, "/v1/tenant1/validate?show_nested=true", &body).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    for name in ["unset", "unmade", "partly"] {
        let nested = &answer.json()["NestedParameters"][name];
        assert_eq!(nested["Parameters"]["extra"]["Value"], Value::Null, "{name}: {nested}");
        // A resource whose condition is not known may exist.
        assert_eq!(nested["NestedParameters"]["one"]["Parameters"]["extra"]["Type"], "Json", "{name}: {nested}");
    }
}

/// As in Heat, a resource that does not exist yet has its name in place of its ID, except for types that refer by ID only.
#[tokio::test]
async fn references_to_resources_that_do_not_exist_are_shown_as_in_heat() {
    let app = App::new().await;
    let parent = "heat_template_version: 2018-08-31
resources:
  random: {type: OS::Heat::RandomString}
  net: {type: OS::Neutron::Net}
  key: {type: OS::Nova::KeyPair, properties: {name: k}}
  child: {type: child.yaml, properties: {random: {get_resource: random}, net: {get_resource: net}, key: {get_resource: key}}}
";
    let child = "heat_template_version: 2018-08-31
parameters: {random: {type: string}, net: {type: string}, key: {type: string}}
";
    let body = json!({ "template": parent, "files": { "child.yaml": child } });
    let answer = app.json(Method::POST, "/v1/tenant1/validate?show_nested=true&ignore_errors=99001", &body).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let parameters = &answer.json()["NestedParameters"]["child"]["Parameters"];
    let values = ["random", "net", "key"].map(|name| parameters[name]["Value"].clone());
    assert_eq!(values, [json!("random"), Value::Null, Value::Null], "{parameters}");
}

/// Heat looks at parameters before it looks up types and references, and at conditions before both.
#[tokio::test]
async fn missing_parameters_are_reported_before_types_and_references() {
    let app = App::new().await;
    let template = |resource: &str| {
        format!(
            "heat_template_version: 2018-08-31\nparameters: {{word: {{type: string}}}}\nresources: {{r: {{{resource}}}}}\n"
        )
    };
    for resource in [
        "type: 'OS::No::Type'",
        "type: 'OS::Heat::Value', depends_on: gone",
        "type: 'OS::Heat::Value', properties: {value: {get_resource: gone}}",
        "type: 'OS::Heat::Value', properties: {value: {get_attr: [r, value]}}",
    ] {
        let answer = create(&app, "refused", &template(resource), json!({}), json!({})).await;
        let error = answer.json()["error"].clone();
        let told = (&error["type"], &error["message"]);
        assert_eq!(
            told,
            (&json!("UserParameterMissing"), &json!("The Parameter (word) was not provided.")),
            "{resource}"
        );
        assert_eq!(error["diagnostics"].as_array().map(Vec::len), Some(2), "{error}");
    }
    let answer = create(&app, "refused", &template("typ: OS::Heat::Value"), json!({}), json!({})).await;
    assert_eq!(answer.json()["error"]["type"], "StackValidationFailed", "{}", answer.text);
}

/// An empty ID is no object's: Heat looks for it and refuses the stack, a new object would be a surprise.
#[tokio::test]
async fn an_empty_external_id_is_refused() {
    let app = App::new().await;
    let template = |kind: &str, id: &str| {
        format!(
            "heat_template_version: 2021-04-16\nparameters: {{id: {{type: string, default: ''}}}}\n\
             conditions: {{given: {{not: {{equals: [{{get_param: id}}, '']}}}}}}\n\
             resources: {{r: {{type: {kind}, external_id: {id}}}}}\n"
        )
    };
    let refused = "Invalid external resource: Resource  (OS::Heat::RandomString) can not be found.";
    for id in ["''", "{get_param: id}"] {
        let answer = create(&app, "refused", &template("OS::Heat::RandomString", id), json!({}), json!({})).await;
        assert_eq!(answer.json()["error"]["message"], refused, "{}", answer.text);
    }
    // Without an ID, the resource is a new one, and its properties are checked.
    let without = template("OS::Heat::RandomString", "{if: [given, {get_param: id}]}");
    assert_eq!(create(&app, "new", &without, json!({}), json!({})).await.status, 201);
    let wrong = without.replace("type: OS", "properties: {length: 1000}, type: OS");
    let answer = create(&app, "wrong", &wrong, json!({}), json!({})).await;
    assert!(answer.text.contains("1000 is out of range"), "{}", answer.text);
}

/// One member of a scaling group is shown. Its definition must be known, its size need not.
#[tokio::test]
async fn a_member_of_a_scaling_group_is_shown() {
    let app = App::new().await;
    let group = async |said: &str| {
        let properties =
            format!("min_size: {{get_param: size}}, max_size: 3, resource: {{type: child.yaml, properties: {said}}}");
        shown(&app, "OS::Heat::AutoScalingGroup", &properties).await
    };
    let answer = group("{said: x}").await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let group_shown = answer.json()["NestedParameters"]["r"].clone();
    assert_eq!((&group_shown["Type"], &group_shown["Parameters"]), (&json!("OS::Heat::AutoScalingGroup"), &json!({})));
    let members: Vec<&Value> = group_shown["NestedParameters"].as_object().unwrap().values().collect();
    assert_eq!(members.len(), 1, "{group_shown}");
    assert_eq!(members[0]["Parameters"]["said"]["Value"], "x", "{group_shown}");
    let answer = group("{said: {get_param: word}}").await;
    assert_eq!(
        (answer.status.as_u16(), &answer.json()["error"]["type"]),
        (400, &json!("ValueError")),
        "{}",
        answer.text
    );
}

/// Heat resolves the format of a server's user data before all other properties, also in the validate call.
#[tokio::test]
async fn the_format_of_user_data_must_be_known() {
    let app = App::new().await;
    let server = |format: &str| {
        format!(
            "heat_template_version: 2018-08-31\nparameters: {{known: {{type: string, default: RAW}}}}\nresources:\n  \
             s: {{type: OS::Nova::Server, properties: {{flavor: f, image: i, user_data_format: {{get_param: {format}}}}}}}\n"
        )
    };
    for (format, status) in [("known", 200), ("unknown", 400)] {
        let body = json!({ "template": server(format) });
        let answer = app.json(Method::POST, "/v1/tenant1/validate?ignore_errors=99001", &body).await;
        assert_eq!(answer.status.as_u16(), status, "{}", answer.text);
    }
    let body = json!({ "template": server("unknown") });
    let answer = app.json(Method::POST, "/v1/tenant1/validate?ignore_errors=99001", &body).await;
    assert_eq!(answer.json()["error"]["type"], "ValueError", "{}", answer.text);
}
