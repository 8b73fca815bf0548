//! What an editor is told of an environment.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod bench;

use kiln_authoring::language::Level;
use kiln_authoring::language::environment::{diagnose, is_environment};

/// Line, column, level and message of everything that is told; `there.yaml` is the only file.
fn told(text: &str) -> Vec<(u32, u32, Level, String)> {
    let troubles = diagnose(text, &bench::catalog(), &|name| name == "there.yaml");
    let one = |trouble: kiln_authoring::language::Trouble| {
        let told: Vec<String> = std::iter::once(trouble.message).chain(trouble.hints).collect();
        (trouble.span.start.line, trouble.span.start.column, trouble.level, told.join(" | "))
    };
    troubles.into_iter().map(one).collect()
}

#[test]
fn a_sound_environment_is_left_alone() {
    let text = "
parameters: {size: 1}
parameter_defaults: {image: cirros}
parameter_merge_strategies: {default: merge, hosts: deep_merge}
encrypted_param_names: [secret]
event_sinks: [{type: zaqar-queue, target: events}]
resource_registry:
  My::Web: there.yaml
  My::Net: OS::Neutron::Net
  My::Other: My::Net
  Our::*: OS::Heat::*
  OS::Ceilometer::Alarm: OS::Ceilometer::CombinationAlarm
  OS::Nova::Server: https://example.org/server.yaml
  OS::Cinder::*: null
  resources:
    'web*': {hooks: [pre-create, post-update], restricted_actions: replace}
    database: {OS::Nova::Server: there.yaml}
";
    assert_eq!(told(text), []);
    assert_eq!(told(""), []);
    assert_eq!(told("resource_registry: {base_url: 'http://example.org/', My::Web: web.yaml}\n"), []);
}

#[test]
fn every_mistake_stands_at_its_place() {
    let text = "\
parameter_default: {}
parameters: [1]
event_sinks: [{type: zaqar-queue, target: q}, {type: mail}]
encrypted_param_names: {}
parameter_defaults:
parameter_merge_strategies: {a: join}
resource_registry:
  My::Web: web.yaml
  My::Net: OS::Neutron::Nte
  My::Port: 1
  resources:
    web: {hooks: pre-creat}
    database: {restricted_actions: [update, move]}
";
    let error = |line, column, message: &str| (line, column, Level::Error, message.to_owned());
    let section = "environment section";
    let expected = [
        error(1, 1, "environment has wrong section \"parameter_default\" | Did you mean parameter_defaults?"),
        error(2, 1, &format!("{section} \"parameters\" must be a map")),
        error(3, 47, "Invalid event sink type 'mail', valid types are: zaqar-queue."),
        error(4, 1, &format!("{section} \"encrypted_param_names\" must be a list")),
        error(5, 1, "environment has empty section \"parameter_defaults\""),
        error(6, 30, "'join' is no merge strategy | It may be overwrite, merge, deep_merge."),
        error(8, 3, "There is no file web.yaml."),
        (
            9,
            3,
            Level::Warning,
            "The Resource Type (OS::Neutron::Nte) could not be found. | Did you mean OS::Neutron::Net?".to_owned(),
        ),
        error(
            10,
            3,
            "'int' object has no attribute 'support_status' | My::Port must name a resource type or a template",
        ),
        error(
            12,
            11,
            "Invalid hook type \"pre-creat\" for resource breakpoint, acceptable hook types are: ('pre-create', \
             'pre-update', 'pre-delete', 'post-create', 'post-update', 'post-delete')",
        ),
        error(
            13,
            16,
            "Invalid restricted_action type \"['update', 'move']\" for resource, acceptable restricted_action types \
             are: ('update', 'replace')",
        ),
    ];
    let found = told(text);
    for (found, expected) in found.iter().zip(&expected) {
        assert_eq!(found, expected);
    }
    assert_eq!(found.len(), expected.len());
}

#[test]
fn what_cannot_be_read_is_told_as_well() {
    assert_eq!(told("parameters: [\n").len(), 1);
    let list = "The environment is not a valid YAML mapping data type.".to_owned();
    assert_eq!(told("- a\n"), [(1, 1, Level::Error, list)]);
}

#[test]
fn only_environments_are_taken_for_one() {
    for text in ["parameters: {a: 1}\n", "resource_registry: {\n", "parameter_defaults:\n  a: 1\nresources: {}\n"] {
        assert!(is_environment(text), "{text}");
    }
    for text in ["", "- hosts: all\n", "parameters: {a: 1}\njobs: []\n", "parameters: [\n", "a:\n  event_sinks: []\n"] {
        assert!(!is_environment(text), "{text}");
    }
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
    let mut seen = 0;
    for file in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let Ok(text) = std::fs::read_to_string(&file) else { continue };
        assert!(!is_environment(&text) || !text.contains("heat_template_version"), "{}", file.display());
        seen += 1;
    }
    assert!(seen > 0);
}
