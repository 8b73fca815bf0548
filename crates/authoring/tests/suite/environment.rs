//! Diagnostics of environments.

use kiln_authoring::Page;
use kiln_authoring::language::environment::{
    Neighbour, Origin, Sheet, complete, definition, diagnose, hover, is_environment,
};
use kiln_authoring::language::{Level, RenameError};
use kiln_value::Position;

/// Line, column, level and message of all diagnostics; `there.yaml` is the only existing file.
fn diagnostics(text: &str) -> Vec<(u32, u32, Level, String)> {
    let troubles = diagnose(text, &crate::bench::catalog(), &|name| name == "there.yaml", &[]);
    let one = |trouble: kiln_authoring::language::Trouble| {
        let texts: Vec<String> = std::iter::once(trouble.message).chain(trouble.hints).collect();
        (trouble.span.start.line, trouble.span.start.column, trouble.level, texts.join(" | "))
    };
    troubles.into_iter().map(one).collect()
}

#[test]
fn a_valid_environment_has_no_diagnostics() {
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
    assert_eq!(diagnostics(text), []);
    assert_eq!(diagnostics(""), []);
    assert_eq!(diagnostics("resource_registry: {base_url: 'http://example.org/', My::Web: web.yaml}\n"), []);
}

#[test]
fn every_error_has_its_position() {
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
        error(1, 1, "environment has wrong section \"parameter_default\" | did you mean parameter_defaults?"),
        error(2, 1, &format!("{section} \"parameters\" must be a map")),
        error(3, 47, "Invalid event sink type 'mail', valid types are: zaqar-queue."),
        error(4, 1, &format!("{section} \"encrypted_param_names\" must be a list")),
        error(5, 1, "environment has empty section \"parameter_defaults\""),
        error(6, 30, "'join' is not a merge strategy | Valid strategies: overwrite, merge, deep_merge."),
        error(8, 3, "The file web.yaml does not exist."),
        (
            9,
            3,
            Level::Warning,
            "The Resource Type (OS::Neutron::Nte) could not be found. | did you mean OS::Neutron::Net?".to_owned(),
        ),
        error(
            10,
            3,
            "'int' object has no attribute 'support_status' | My::Port must be the name of a resource type or template",
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
    let found = diagnostics(text);
    for (found, expected) in found.iter().zip(&expected) {
        assert_eq!(found, expected);
    }
    assert_eq!(found.len(), expected.len());
}

#[test]
fn unreadable_environments_are_reported() {
    assert_eq!(diagnostics("parameters: [\n").len(), 1);
    let list = "The environment is not a valid YAML mapping data type.".to_owned();
    assert_eq!(diagnostics("- a\n"), [(1, 1, Level::Error, list)]);
}

#[test]
fn only_environments_are_recognized() {
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

const TEMPLATE: &str = "heat_template_version: 2021-04-16
parameters:
  size: {type: string, description: How big., constraints: [{allowed_values: [small, large]}]}
  image: {type: string}
resources:
  web: {type: OS::Heat::None}
";

fn beside() -> Vec<Neighbour> {
    vec![Neighbour { url: "file:///web.yaml".to_owned(), page: Page::read(TEMPLATE).unwrap() }]
}

/// The text without its `^`, and the position of the `^`.
fn cursor(text: &str) -> (String, Position) {
    let (before, after) = text.split_once('^').unwrap();
    let column = before.rsplit('\n').next().unwrap().chars().count() + 1;
    let line = u32::try_from(before.matches('\n').count() + 1).unwrap();
    (format!("{before}{after}"), Position { line, column: u32::try_from(column).unwrap() })
}

#[test]
fn suggestions_fit_their_position() {
    for (text, some, not) in [
        ("para^", "parameter_defaults", "resource_registry"),
        ("parameters:\n  image: x\n  ^\n", "size", "image"),
        ("parameters: {^", "size", "web"),
        ("parameters:\n  size: ^\n", "large", "size"),
        ("parameter_defaults:\n  s^\n", "size", "image"),
        ("parameter_merge_strategies:\n  size: ^\n", "deep_merge", "size"),
        ("encrypted_param_names: [^]\n", "image", "web"),
        ("resource_registry:\n  My::Net: OS::Neutron::N^\n", "OS::Neutron::Net", "OS::Nova::Server"),
        ("resource_registry:\n  ^\n", "resources", "size"),
        ("resource_registry:\n  resources:\n    ^\n", "web", "size"),
        ("resource_registry:\n  resources:\n    web: {hooks: ^", "pre-create", "web"),
        ("resource_registry:\n  resources:\n    web: {restricted_actions: [^", "replace", "web"),
    ] {
        let (text, at) = cursor(text);
        let found: Vec<String> =
            complete(&text, at, &crate::bench::catalog(), &beside()).into_iter().map(|one| one.label).collect();
        assert!(found.iter().any(|label| label == some), "{text}: {some} is not in {found:?}");
        assert!(!found.iter().any(|label| label == not), "{text}: {not} is in {found:?}");
    }
}

#[test]
fn names_lead_to_their_definitions() {
    let text = "parameters: {size: small}
parameter_defaults: {'size': large}
resource_registry:
  My::Web: there.yaml
  My::Net: OS::Neutron::Net
  resources:
    web: {OS::Heat::None: My::Net}
";
    let sheet = Sheet::read(text, None).unwrap();
    let at = |line, column| Position { line, column };
    let text_at = |at| hover(&sheet, at, &crate::bench::catalog(), &beside()).unwrap().text;
    assert!(text_at(at(1, 15)).contains("How big."));
    assert!(text_at(at(5, 14)).contains("**OS::Neutron::Net**"));
    let found = definition(&sheet, at(1, 15), &beside());
    assert!(matches!(&found[..], [Origin::Template(url, span)] if url == "file:///web.yaml" && span.start.line == 3));
    assert_eq!(definition(&sheet, at(4, 14), &[]), [Origin::File("there.yaml".to_owned())]);
    assert!(matches!(&definition(&sheet, at(7, 30), &[])[..], [Origin::Here(span)] if span.start.line == 5));
    assert_eq!(sheet.links().len(), 1);
    assert_eq!(sheet.references(at(1, 15)).len(), 2);
    let edits = sheet.rename(at(7, 30), "Our::Net").unwrap();
    let places: Vec<(u32, u32)> = edits.iter().map(|edit| (edit.span.start.line, edit.span.start.column)).collect();
    assert_eq!(places, [(5, 3), (7, 27)]);
    let edits = sheet.rename(at(2, 24), "extent").unwrap();
    let places: Vec<(u32, u32)> = edits.iter().map(|edit| (edit.span.start.line, edit.span.start.column)).collect();
    assert_eq!(places, [(1, 14), (2, 23)]);
    assert_eq!(sheet.rename(at(5, 14), "Our::Net"), Err(RenameError::Nothing));
    assert_eq!(sheet.rename(at(5, 5), "My::Web"), Err(RenameError::Taken("My::Web".to_owned())));
    let outline: Vec<String> = sheet.outline().into_iter().map(|one| one.name).collect();
    assert_eq!(outline, ["parameters", "parameter_defaults", "resource_registry"]);
}
