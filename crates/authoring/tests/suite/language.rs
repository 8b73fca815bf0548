//! The functions of the language server with a realistic template.

use kiln_authoring::Page;
use kiln_authoring::language::{
    Level, RenameError, Surroundings, Target, complete, definition, diagnose, files, fixes, hover, outline, references,
    rename,
};
use kiln_value::Position;

const TEXT: &str = include_str!("../../../../tests/data/heat-templates/hot/servers_in_new_neutron_net.yaml");

/// The position in the middle of the n-th occurrence of a string.
fn place(text: &str, what: &str, nth: usize) -> Position {
    let (offset, _) = text.match_indices(what).nth(nth).unwrap();
    let before = &text[..offset + what.len() / 2];
    let column = before.rsplit('\n').next().unwrap().chars().count() + 1;
    Position { line: u32::try_from(before.matches('\n').count() + 1).unwrap(), column: u32::try_from(column).unwrap() }
}

/// The labels of the suggestions at the `^` in a text.
fn labels(text: &str) -> Vec<String> {
    let (before, after) = text.split_once('^').unwrap();
    let column = before.rsplit('\n').next().unwrap().chars().count() + 1;
    let line = u32::try_from(before.matches('\n').count() + 1).unwrap();
    let at = Position { line, column: u32::try_from(column).unwrap() };
    let text = format!("{before}{after}");
    complete(&text, at, &crate::bench::catalog(), &Surroundings::default())
        .into_iter()
        .map(|suggestion| suggestion.label)
        .collect()
}

const HEAD: &str = "heat_template_version: 2021-04-16
parameters:
  flavor: {type: string, description: How big., default: m1.tiny}
conditions:
  is_big: {equals: [{get_param: flavor}, big]}
resources:
  net: {type: OS::Neutron::Net}
";

#[test]
fn suggestions_fit_their_position() {
    for (rest, some, not) in [
        ("  s:\n    type: OS::Nova::S^", "OS::Nova::Server", "OS::Neutron::Net"),
        ("  s:\n    type: OS::Nova::Server\n    properties:\n      ^", "flavor", "get_param"),
        ("  s:\n    type: OS::Nova::Server\n    properties:\n      networks:\n        - ^", "network", "flavor"),
        ("  s:\n    type: OS::Nova::Server\n    properties:\n      name: {get_^", "get_param", "list_join"),
        ("  s:\n    type: OS::Nova::Server\n    properties:\n      name: {get_param: ^}", "flavor", "net"),
        ("  s:\n    type: OS::Nova::Server\n    properties:\n      name: {get_param: ^", "OS::stack_name", "net"),
        ("  s:\n    type: OS::Nova::Server\n    properties:\n      config_drive: ^", "true", "flavor"),
        ("  s:\n    type: OS::Nova::Server\n    properties:\n      name: {get_attr: [^", "net", "s"),
        ("  s:\n    type: OS::Nova::Server\n    properties:\n      name: {get_attr: [net, ^]}", "subnets", "net"),
        ("  s:\n    type: OS::Nova::Server\n    depends_on: ^", "net", "flavor"),
        ("  s:\n    condition: ^", "is_big", "net"),
        ("  s:\n    ^", "depends_on", "flavor"),
        ("outputs:\n  o:\n    ^", "value", "type"),
        ("out^", "outputs", "resources"),
    ] {
        let found = labels(&format!("{HEAD}{rest}"));
        assert!(found.iter().any(|label| label == some), "{rest}: {some} is not in {found:?}");
        assert!(!found.iter().any(|label| label == not), "{rest}: {not} is in {found:?}");
    }
}

#[test]
fn existing_keys_are_not_suggested_again() {
    let found = labels(&format!("{HEAD}  s:\n    type: OS::Nova::Server\n    properties:\n      flavor: x\n      ^\n"));
    assert!(found.contains(&"image".to_owned()) && !found.contains(&"flavor".to_owned()), "{found:?}");
}

#[test]
fn a_name_leads_to_its_declaration_and_its_uses() {
    let page = Page::read(TEXT).unwrap();
    let at = place(TEXT, "private_net }", 0);
    let Some(Target::Here(span)) = definition(&page, at) else { panic!("no definition") };
    assert_eq!((page.slice(span), span.start.column), ("private_net", 3));
    let all = references(&page, at);
    assert!(all.len() > 3 && all.iter().any(|one| one.span == span && one.is_declaration));
    assert!(all.iter().all(|one| page.slice(one.span) == "private_net"));
}

#[test]
fn a_resource_is_renamed_everywhere() {
    let page = Page::read(TEXT).unwrap();
    let at = place(TEXT, "private_net }", 0);
    let mut edits = rename(&page, at, "inner_net").unwrap();
    edits.sort_by_key(|edit| std::cmp::Reverse(edit.span.start));
    let mut text = TEXT.to_owned();
    for edit in &edits {
        text.replace_range(page.lines().range(TEXT, edit.span).unwrap(), &edit.text);
    }
    let renamed = Page::read(text.as_str()).unwrap();
    assert_eq!(references(&renamed, place(&text, "inner_net }", 0)).len(), edits.len());
    assert!(
        !diagnose(&text, &crate::bench::catalog(), &Surroundings::default())
            .iter()
            .any(|one| one.level == Level::Error)
    );

    assert_eq!(rename(&page, at, "private_subnet"), Err(RenameError::Taken("private_subnet".to_owned())));
    assert_eq!(rename(&page, at, "yes"), Err(RenameError::Invalid("yes".to_owned())));
    assert_eq!(rename(&page, at, "a b"), Err(RenameError::Invalid("a b".to_owned())));
    assert_eq!(rename(&page, Position { line: 1, column: 1 }, "x"), Err(RenameError::Nothing));
}

#[test]
fn hover_texts_describe_names() {
    let catalog = crate::bench::catalog();
    let page = Page::read(TEXT).unwrap();
    let text = |at| hover(&page, at, &catalog, &Surroundings::default()).unwrap().text;
    assert!(text(place(TEXT, "OS::Neutron::Net", 0)).contains("**OS::Neutron::Net**"));
    assert!(text(place(TEXT, "get_param", 0)).contains("function of heat_template_version"));
    assert!(text(place(TEXT, "private_net }", 0)).contains("OS::Neutron::Net"));
    assert!(text(place(TEXT, "network_id", 0)).contains("**network_id** · string"));
    assert!(hover(&page, Position { line: 999, column: 1 }, &catalog, &Surroundings::default()).is_none());
}

#[test]
fn every_error_has_its_position() {
    let catalog = crate::bench::catalog();
    let errors = |text: &str| -> Vec<(u32, String)> {
        let all = diagnose(text, &catalog, &Surroundings::default()).into_iter();
        all.filter(|one| one.level == Level::Error).map(|one| (one.span.start.line, one.code)).collect()
    };
    assert_eq!(errors(TEXT), []);
    let wrong = "heat_template_version: 2021-04-16
resources:
  a:
    type: OS::Neutron::Subnet
    properties:
      network: {get_resource: b}
      ip_version: five
  b:
    type: OS::Neutron::Net
    properties: {nmae: x}
";
    // The dependencies of a resource are checked before it, as in Heat.
    let mut lines: Vec<u32> = errors(wrong).into_iter().map(|(line, _)| line).collect();
    lines.sort_unstable();
    assert_eq!(lines, [7, 10]);
    assert_eq!(errors("heat_template_version: 2021-04-16\na: [1\n"), [(3, "ValueError".to_owned())]);
    let unknown = "heat_template_version: 2021-04-16\nresources:\n  a:\n    type: OS::Nova::Sever\n";
    assert_eq!(errors(unknown), [(4, "StackValidationFailed".to_owned())]);
}

#[test]
fn files_and_sections_are_listed() {
    let page = Page::read(
        "heat_template_version: 2021-04-16
resources:
  a: {type: inner.yaml, properties: {b: {get_file: data.txt}}}
",
    )
    .unwrap();
    assert_eq!(files(&page), ["data.txt", "inner.yaml"]);
    let outline = outline(&page);
    assert_eq!(outline.len(), 1);
    assert_eq!(outline[0].children[0].detail.as_deref(), Some("inner.yaml"));
    assert_eq!(definition(&page, place(&page.text, "data.txt", 0)), Some(Target::File("data.txt".to_owned())));
}

/// Applies one quick fix after the other, until there are none.
fn fixed(text: &str) -> String {
    let catalog = crate::bench::catalog();
    let mut text = text.to_owned();
    for _ in 0..20 {
        let troubles = diagnose(&text, &catalog, &Surroundings::default());
        let Some(fix) = fixes(&text, &troubles).into_iter().next() else { break };
        let lines = kiln_authoring::lines::Lines::new(&text);
        let mut edits = fix.edits;
        edits.sort_by_key(|edit| std::cmp::Reverse(edit.span.start));
        let mut changed = text.clone();
        for edit in &edits {
            let start = lines.offset(&text, edit.span.start).unwrap();
            let end = lines.offset(&text, edit.span.end).unwrap_or(text.len());
            changed.replace_range(start..end, &edit.text);
        }
        let repaired = &troubles[fix.trouble].message;
        let left = diagnose(&changed, &catalog, &Surroundings::default());
        assert!(!left.iter().any(|one| one.message == *repaired), "{}: {changed}", fix.title);
        text = changed;
    }
    text
}

#[test]
fn quick_fixes_apply_hints() {
    let text = "heat_template_version: 2021-04-16
parameters:
  # Nobody needs it.
  unused:
    type: string

  db_password: {type: string}
  api_secret:
    type: string
resources:
  a:
    type: OS::Neutron::Nett
  b:
    type: OS::Neutron::Port
    depends_on: [d, c]
    properties:
      network: {get_resource: c}
      nmae: {get_param: db_pasword}
      mac_address: {get_param: api_secret}
  c:
    type: 'OS::Neutron::Net'
    properties: {}
  d:
    type: OS::Heat::Value
    properties: {value: {get_atr: [c, show]}}
  e: {type: OS::Heat::Value, properties: {value: 0755}, depends_on: bb}
";
    let expected = "heat_template_version: 2021-04-16
parameters:
  # Nobody needs it.

  db_password: {hidden: true, type: string}
  api_secret:
    hidden: true
    type: string
resources:
  a:
    type: OS::Neutron::Net
  b:
    type: OS::Neutron::Port
    depends_on: [d, c]
    properties:
      network: {get_resource: c}
      name: {get_param: db_password}
      mac_address: {get_param: api_secret}
  c:
    type: 'OS::Neutron::Net'
  d:
    type: OS::Heat::Value
    properties: {value: {get_attr: [c, show]}}
  e: {type: OS::Heat::Value, properties: {value: \"0755\"}, depends_on: b}
";
    assert_eq!(fixed(text), expected);
}

#[test]
fn words_of_the_language_are_suggested() {
    let text = "heat_template_version: 2021-04-16
conditons: {big: true}
parameters:
  size: {typ: number, constraints: [{rnage: {min: 1}}]}
  sort: {type: boolen}
  unused: {type: string}
parameter_groups: [{parameters: [unused]}]
resources:
  a: {type: OS::Heat::Value, proprties: {value: [{get_param: size}, {get_param: sort}]}, condition: big}
";
    let expected = text
        .replace("conditons", "conditions")
        .replace("typ:", "type:")
        .replace("rnage", "range")
        .replace("boolen", "boolean")
        .replace("proprties", "properties");
    assert_eq!(fixed(text), expected);
}
