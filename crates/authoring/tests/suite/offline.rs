//! Errors that are found without a cloud, even if other parts are unknown or invalid.

use kiln_authoring::language::{Level, Surroundings, diagnose};

/// The errors of a template: path and message.
fn errors(text: &str) -> Vec<(String, String)> {
    let troubles = diagnose(text, &crate::bench::catalog(), &Surroundings::default());
    let errors = troubles.into_iter().filter(|trouble| trouble.level == Level::Error);
    errors.map(|trouble| (trouble.path.to_string(), trouble.message)).collect()
}

fn messages(text: &str) -> Vec<String> {
    errors(text).into_iter().map(|(_, message)| message).collect()
}

#[test]
fn unknown_values_hide_no_errors() {
    let text = "heat_template_version: 2021-04-16
parameters:
  net: {type: string}
  size: {type: number}
resources:
  port:
    type: OS::Neutron::Port
    properties: {network: {get_param: net}, nmae: x, admin_state_up: [1]}
  random:
    type: OS::Heat::RandomString
    properties: {length: 1000, salt: {str_replace: {template: a-b, params: {a: {get_param: size}}}}}
  fine:
    type: OS::Neutron::Port
    properties: {network: {get_param: net}, name: {list_join: ['-', [a, {get_param: net}]]}}
outputs:
  wrong: {value: {get_param: nett}}
  fine: {value: {get_param: net}}
";
    let expected = [
        "Property error: resources.port.properties: Unknown Property nmae",
        "Property error: resources.port.properties.admin_state_up: \"[1]\" is not a valid boolean",
        "Property error: resources.random.properties.length: 1000 is out of range (min: 1, max: 512)",
        "The Parameter (nett) was not provided.",
    ];
    assert_eq!(messages(text), expected);
}

#[test]
fn undecided_conditions_hide_no_errors() {
    let text = "heat_template_version: 2021-04-16
parameters: {big: {type: boolean}}
conditions: {is_big: {get_param: big}}
resources:
  net: {type: OS::Neutron::Net, condition: is_big, properties: {nmae: x}}
";
    assert_eq!(messages(text), ["Property error: resources.net.properties: Unknown Property nmae"]);
}

#[test]
fn invalid_parts_hide_no_other_errors() {
    let text = "heat_template_version: 2021-04-16
sections: 1
parameters:
  bad: {type: strin}
resources:
  one: {type: OS::Neutron::Nett}
  two: {tyype: OS::Neutron::Net}
  three: {type: OS::Neutron::Net, properties: {nmae: {get_attr: [one, show]}, value: {get_param: bad}}}
outputs:
  wrong: {value: {get_attr: [three, nothing]}}
";
    let found = errors(text);
    for part in ["sections", "parameters.bad", "resources.one.type", "resources.two", "resources.three.properties"] {
        assert!(found.iter().any(|(path, _)| path.starts_with(part)), "{part}: {found:?}");
    }
    assert!(found.iter().any(|(_, message)| message.contains("Unknown Property nmae")), "{found:?}");
    assert!(found.iter().any(|(_, message)| message.contains("(three nothing)")), "{found:?}");
}

/// Paths have the keys of the template's language, so that positions are found.
#[test]
fn cfn_templates_have_cfn_paths() {
    let text = "HeatTemplateFormatVersion: 2012-12-12
Parameters: {Net: {Type: String}}
Resources:
  Port: {Type: 'OS::Neutron::Port', Properties: {network: {Ref: Net}, nmae: x, admin_state_up: [1]}}
";
    let found = errors(text);
    let expected = [
        ("Resources.Port.Properties.nmae", "Property error: Resources.Port.Properties: Unknown Property nmae"),
        (
            "Resources.Port.Properties.admin_state_up",
            "Property error: Resources.Port.Properties.admin_state_up: \"[1]\" is not a valid boolean",
        ),
    ];
    let found: Vec<(&str, &str)> = found.iter().map(|(path, message)| (path.as_str(), message.as_str())).collect();
    assert_eq!(found, expected);
    let lines: Vec<u32> = diagnose(text, &crate::bench::catalog(), &Surroundings::default())
        .iter()
        .filter(|trouble| trouble.level == Level::Error)
        .map(|trouble| trouble.span.start.line)
        .collect();
    assert_eq!(lines, [4, 4]);
}

fn has(found: &[(String, String)], path: &str, part: &str) {
    assert!(found.iter().any(|(at, message)| at == path && message.contains(part)), "{path}: {part}: {found:#?}");
}

/// An error of a function does not hide errors in the names or values of other properties, and an invalid reference
/// does not hide other errors of its resource.
#[test]
fn every_error_of_every_resource_is_found() {
    let text = "heat_template_version: 2021-04-16
resources:
  one:
    type: OS::Heat::RandomString
    depends_on: nowhere
    properties: {length: 1000, salt: {get_resource: gone}, lenth: 1, lngth: 2}
  two:
    type: OS::Heat::RandomString
    properties: {length: {str_split: 1}, salt: {get_attr: [one, vlue]}, lenth: 1}
  three:
    type: OS::Heat::RandomStrng
    properties: {salt: {get_attr: [two, nothing]}}
  four:
    type: OS::Heat::RandomString
    depend_on: one
    properties: {lenth: 1}
";
    let found = errors(text);
    has(&found, "resources.one.depends_on", "\"nowhere\" (in one)");
    has(&found, "resources.one.properties.salt.get_resource", "\"gone\" (in one.Properties.salt)");
    has(&found, "resources.one.properties.length", "1000 is out of range");
    has(&found, "resources.one.properties.lenth", "Unknown Property lenth");
    has(&found, "resources.one.properties.lngth", "Unknown Property lngth");
    has(&found, "resources.two.properties.length", "str_split");
    has(&found, "resources.two.properties.lenth", "Unknown Property lenth");
    has(&found, "resources.two.properties.salt.get_attr[1]", "(one vlue)");
    has(&found, "resources.three.type", "OS::Heat::RandomStrng");
    has(&found, "resources.three.properties.salt.get_attr[1]", "(two nothing)");
    has(&found, "resources.four.depend_on", "depend_on");
    has(&found, "resources.four.properties.lenth", "Unknown Property lenth");
    assert_eq!(found.len(), 12, "{found:#?}");
}

/// The same for CFN templates, whose paths have CFN's keys.
#[test]
fn every_error_of_a_cfn_template_has_a_position() {
    let text = "AWSTemplateFormatVersion: 2010-09-09
Conditions: {Odd: {'Fn::Equals': [1]}}
Resources:
  R: {Type: 'OS::Heat::RandomString', DependsOn: Nowhere, Properties: {salt: {Ref: Gone}, length: 1000}}
  S: {Type: 'OS::Heat::RandomStrng'}
";
    let found = errors(text);
    has(&found, "Conditions.Odd.Fn::Equals", "Fn::Equals");
    has(&found, "Resources.R.DependsOn", "\"Nowhere\" (in R)");
    has(&found, "Resources.R.Properties.salt.Ref", "\"Gone\"");
    has(&found, "Resources.R.Properties.length", "1000 is out of range");
    has(&found, "Resources.S.Type", "OS::Heat::RandomStrng");
    assert_eq!(found.len(), 5, "{found:#?}");
}

/// An invalid section, and parameters with invalid defaults, do not hide errors in other sections.
#[test]
fn invalid_sections_hide_no_errors() {
    let text = "heat_template_version: 2021-04-16
parameters: [net]
resources:
  r: {type: OS::Heat::RandomString, properties: {salt: {get_param: net}, lenth: 1}}
";
    let found = errors(text);
    has(&found, "parameters", "");
    has(&found, "resources.r.properties.lenth", "Unknown Property lenth");
    assert_eq!(found.len(), 2, "{found:#?}");
    let text = "heat_template_version: 2021-04-16
parameters:
  size: {type: number, default: 5, constraints: [{range: {max: 3}}]}
conditions: {odd: {equals: [1]}, strange: 5}
resources:
  r: {type: OS::Heat::RandomString, properties: {length: {get_param: size}, lenth: 1}}
outputs: [1]
";
    let found = errors(text);
    has(&found, "parameters.size", "out of range");
    has(&found, "conditions.odd.equals", "equals");
    has(&found, "conditions.strange", "strange");
    has(&found, "outputs", "");
    has(&found, "resources.r.properties.lenth", "Unknown Property lenth");
    assert_eq!(found.len(), 5, "{found:#?}");
}

/// Values that only a stack has are unknown, wherever they are used: in conditions, lists, functions and nested
/// templates. What does not depend on them is still checked.
#[test]
fn what_only_a_stack_knows_is_unknown_not_wrong() {
    let child = "heat_template_version: 2018-08-31
parameters:
  kind: {type: string, constraints: [{allowed_values: [a, b]}]}
  list: {type: comma_delimited_list}
conditions:
  is_a: {equals: [{get_param: kind}, a]}
  has_x: {yaql: {expression: $.data.list.any($ = x), data: {list: {get_param: list}}}}
resources:
  one: {type: OS::Heat::RandomString, condition: is_a, properties: {lenth: 1}}
  two: {type: OS::Heat::RandomString, condition: has_x}
";
    let text = "heat_template_version: 2018-08-31
parameters:
  p: {type: string}
  big: {type: boolean}
conditions:
  is_big: {get_param: big}
  in_production: {equals: [{get_param: 'OS::stack_name'}, production]}
  both: {and: [is_big, in_production]}
  neither: {not: {or: [is_big, in_production]}}
resources:
  group:
    type: OS::Nova::ServerGroup
    deletion_policy: {if: [both, retain, delete]}
    properties: {policies: [{get_param: p}], name: {str_split: ['-', {get_param: 'OS::stack_name'}, 1]}}
  child: {type: child.yaml, properties: {kind: {get_param: p}, list: [{get_param: p}]}}
  server:
    type: OS::Nova::Server
    properties:
      flavor: {if: [both, {get_param: p}, m1.small]}
      image: {if: [neither, {get_resource: gone}, cirros]}
      networks: [{network: {get_param: p}}]
      nmae: {get_param: 'OS::project_id'}
  random: {type: OS::Heat::RandomString, condition: neither, properties: {length: 1000}}
outputs:
  id: {value: {if: [both, {get_attr: [random, value]}, {get_param: 'OS::stack_id'}]}}
";
    let around = Surroundings {
        files: kiln_template::Files([("child.yaml".to_owned(), child.to_owned())].into()),
        ..Surroundings::default()
    };
    let troubles = diagnose(text, &crate::bench::catalog(), &around);
    let errors: Vec<_> = troubles.iter().filter(|trouble| trouble.level == Level::Error).collect();
    let found: Vec<&str> = errors.iter().map(|trouble| trouble.message.as_str()).collect();
    let expected = [
        "The specified reference \"gone\" (in server.Properties.image.if[1]) is incorrect.",
        "Property error: resources.child<child.yaml>.resources.one.properties: Unknown Property lenth",
        "Property error: resources.server.properties: Unknown Property nmae",
        "Property error: resources.random.properties.length: 1000 is out of range (min: 1, max: 512)",
    ];
    assert_eq!(found, expected);
}

#[test]
fn the_pseudo_parameters_of_cfn_are_unknown() {
    let text = "HeatTemplateFormatVersion: 2012-12-12
Mappings: {Images: {us-east-1: {Id: a}}}
Resources:
  R:
    Type: OS::Heat::RandomString
    Properties:
      length: 1000
      salt: {'Fn::Join': ['', [{Ref: 'AWS::StackName'}, {Ref: 'AWS::StackId'}]]}
  V:
    Type: OS::Heat::Value
    Properties: {value: {'Fn::FindInMap': [Images, {Ref: 'AWS::Region'}, Id]}}
";
    let expected = ["Property error: Resources.R.Properties.length: 1000 is out of range (min: 1, max: 512)"];
    assert_eq!(messages(text), expected);
}

/// Values are checked as far as that needs no cloud: by custom constraints, types of parameters, and outputs of nested
/// templates.
#[test]
fn mistakes_that_the_service_finds_later_are_found() {
    let child = "heat_template_version: 2018-08-31
resources: {inner: {type: OS::Heat::RandomString}}
outputs: {address: {value: {get_attr: [inner, value]}}}
";
    let text = "heat_template_version: 2018-08-31
parameters:
  count: {type: number, default: many}
  open: {type: boolean, default: perhaps}
  settings: {type: json, default: '{a: '}
  flavor: {type: string, constraints: [{custom_constraint: nova.flavr}]}
  image: {type: string, constraints: [{custom_constraint: glance.image}]}
  range: {type: string, default: 10.0.0.0/325, constraints: [{custom_constraint: net_cidr}]}
conditions:
  unused: {equals: [{get_param: cuont}, 1]}
resources:
  net: {type: OS::Neutron::Net}
  subnet: {type: OS::Neutron::Subnet, properties: {network: {get_resource: net}, cidr: 10.0.0.0/325}}
  port:
    type: OS::Neutron::Port
    properties: {network: {get_resource: net}, mac_address: 'fa:16:3e:zz', fixed_ips: [{ip_address: 10.0.0.256}]}
  nightly: {type: OS::Aodh::GnocchiAggregationByMetricsAlarm, properties: {metrics: [a], threshold: 1, time_constraints: [{name: a, start: 0 25 * * *, duration: 9}]}}
  child: {type: child.yaml}
  value: {type: OS::Heat::Value, properties: {value: {get_attr: [child, adress]}}}
  fine: {type: OS::Heat::Value, properties: {value: [{get_attr: [child, address, 0]}, {get_attr: [child, resource.inner, value]}]}}
outputs:
  wrong: {value: {get_attr: [child, adres]}}
  fine: {value: {get_attr: [child, show]}}
";
    let around = Surroundings {
        files: kiln_template::Files([("child.yaml".to_owned(), child.to_owned())].into()),
        ..Surroundings::default()
    };
    let troubles = diagnose(text, &crate::bench::catalog(), &around);
    let errors = troubles.into_iter().filter(|trouble| trouble.level == Level::Error);
    let found: Vec<_> = errors.map(|trouble| (trouble.path.to_string(), trouble.message)).collect();
    for (path, part) in [
        ("parameters.count", "Parameter 'count' is invalid: could not convert string to float: 'many'"),
        ("parameters.open", "Parameter 'open' is invalid"),
        ("parameters.settings", "Parameter 'settings' is invalid: Value must be valid JSON"),
        ("parameters.flavor.constraints", "there is no custom constraint \"nova.flavr\""),
        ("parameters.range", "Error validating value '10.0.0.0/325'"),
        ("conditions.unused.equals[0].get_param", "The Parameter (cuont) was not provided."),
        ("resources.subnet.properties.cidr", "Error validating value '10.0.0.0/325'"),
        ("resources.port.properties.mac_address", "Error validating value 'fa:16:3e:zz'"),
        ("resources.port.properties.fixed_ips[0].ip_address", "10.0.0.256"),
        ("resources.nightly.properties.time_constraints[0].start", "Invalid CRON expression"),
        ("resources.value.properties.value.get_attr[1]", "The Referenced Attribute (child adress) is incorrect."),
        ("outputs.wrong.value.get_attr[1]", "The Referenced Attribute (child adres) is incorrect."),
    ] {
        has(&found, path, part);
    }
    assert_eq!(found.len(), 12, "{found:#?}");
}

/// The service refuses a default with an unknown constraint: the reason is a hint, and no second error.
#[test]
fn an_unknown_constraint_is_told_once() {
    let template = |default: &str| {
        format!(
            "heat_template_version: 2018-08-31
parameters: {{flavor: {{type: string, {default}constraints: [{{custom_constraint: nova.flavr}}]}}}}
"
        )
    };
    for (default, hint) in [
        ("", "did you mean nova.flavor?"),
        ("default: m1.small, ", "there is no custom constraint \"nova.flavr\"; did you mean nova.flavor?"),
    ] {
        let found = diagnose(&template(default), &crate::bench::catalog(), &Surroundings::default());
        let errors: Vec<_> = found.iter().filter(|trouble| trouble.level == Level::Error).collect();
        assert_eq!(errors.len(), 1, "{errors:#?}");
        assert_eq!(errors[0].hints, [hint]);
    }
}

/// A function that the version does not have is data. Data that only has the name of a function is none of our business.
#[test]
fn functions_that_are_newer_than_the_version_are_found() {
    let template = |version: &str| {
        format!(
            "heat_template_version: {version}
resources:
  a: {{type: OS::Heat::Value, properties: {{value: {{str_split: [',', 'a,b']}}}}}}
  b: {{type: OS::Heat::Value, properties: {{value: {{repeat: daily}}}}}}
outputs:
  o: {{value: [{{yaql: {{expression: $.data, data: 1}}}}]}}
"
        )
    };
    let found = errors(&template("2014-10-16"));
    has(&found, "resources.a.properties.value.str_split", "\"str_split\" is data in version 2014-10-16");
    has(&found, "outputs.o.value[0].yaql", "\"yaql\" is data");
    assert_eq!(found.len(), 2, "{found:#?}");
    assert_eq!(errors(&template("2016-10-14").replace("{repeat: daily}", "daily")), []);
}
