//! Any text is an environment or is refused; environments are merged, stored, inherited and asked for types.
#![no_main]

use std::sync::LazyLock;

use kiln_template::environment::{self, Environment, Globals};
use kiln_template::{Files, Template, source};
use kiln_value::{Diagnostic, Map, Value};
use libfuzzer_sys::fuzz_target;

/// Divides the files that are merged, in this order.
const NEXT_FILE: &str = "\n=====\n";

static TEMPLATE: LazyLock<Template> = LazyLock::new(|| {
    let text = "\
heat_template_version: 2021-04-16
parameters:
  s: {type: string}
  n: {type: number}
  l: {type: comma_delimited_list}
  j: {type: json}
  b: {type: boolean}
";
    let document = source::parse(text, source::ROOT, source::MAX_TEMPLATE_SIZE).expect("a template");
    Template::from_value(document.value).expect("a version")
});

fn read(input: &str) -> Result<(), Diagnostic> {
    let texts = input.split(NEXT_FILE).enumerate();
    let files = Files(texts.map(|(i, text)| (format!("file{i}"), text.to_owned())).collect());
    let names: Vec<String> = files.0.keys().cloned().collect();

    let first = files.get("file0").unwrap_or_default();
    let mut sections = environment::from_request(Some(&Value::from(first)), &Map::new())?;
    environment::merge(names.get(1..).unwrap_or_default(), &files, &mut sections, &TEMPLATE)?;
    let mut environment = Environment::from_sections(&sections)?;

    let globals = Globals::new(["OS::Nova::Server".to_owned()]).with_default_aliases();
    for name in ["a", "OS::Nova::Server", "AWS::EC2::Instance", "a.yaml"] {
        _ = environment.resolve(&globals, name, Some("server"));
    }
    for hook in environment::HOOKS {
        environment.registry.has_hook("server", hook);
    }
    drop((environment.registry.restricted_actions("server"), environment.child(None, Some("a.yaml"), Some("group"))));
    drop(TEMPLATE.parameters(None, &environment.parameters, &environment.parameter_defaults)?);

    // What is stored is read again and stored alike, but for levels of the registry without anything in them.
    let stored = stored_again(&environment.to_stored());
    assert_eq!(format!("{:?}", stored_again(&stored)), format!("{stored:?}"));
    Ok(())
}

fn stored_again(stored: &Value) -> Value {
    let sections = stored.as_map().expect("sections");
    Environment::from_sections(sections).expect("a sound environment").to_stored()
}

fuzz_target!(|input: &str| {
    if let Err(error) = read(input) {
        assert!(!error.class.name().is_empty(), "{error:?}");
    }
});
