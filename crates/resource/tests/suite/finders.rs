//! The finders of definition files.

use std::collections::BTreeMap;

use kiln_resource::constraint::{CLOUD, is_taken};
use kiln_resource::translation::Rule;
use kiln_resource::{Finder, FinderClient, ResourceType, definition, shipped};

fn shipped_types() -> Vec<ResourceType> {
    shipped::types().expect("definitions")
}

#[test]
fn every_name_that_a_type_finds_has_a_finder() {
    let finders = shipped::finders();
    for this in shipped_types() {
        let found = this.translation.iter().filter_map(|translation| match &translation.rule {
            Rule::Find(finder) if !finder.contains('{') => Some(finder),
            _ => None,
        });
        for name in found {
            let is_known = finders.get(name).is_some() || CLOUD.contains(&name.as_str());
            assert!(is_known, "{}: no finder {name}", this.name);
        }
    }
}

#[test]
fn no_two_types_have_the_same_finder() {
    let mut types = BTreeMap::new();
    for this in shipped_types() {
        let Some(finder) = this.finder else { continue };
        assert!(is_taken(&finder.name));
        assert!(!CLOUD.contains(&finder.name.as_str()), "{} is code too", finder.name);
        if let Some(other) = types.insert(finder.name.clone(), this.name.clone()) {
            panic!("{other} and {} have the finder {}", this.name, finder.name);
        }
    }
    assert!(types.len() > 25);
}

fn finder_of(text: &str) -> Result<Finder, String> {
    let rest = "rest: { collection: /v1/shelves, member: shelf, id: uuid }";
    let text = format!("type: Acme::Shelf\nsummary: A shelf.\nservice: acme\n{rest}\nfinder: {text}\n");
    match definition::parse("shelf.yaml", &text) {
        Ok(this) => Ok(this.finder.expect("a finder")),
        Err(errors) => Err(errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")),
    }
}

#[test]
fn what_a_finder_does_not_say_is_that_of_the_type() {
    let short = finder_of("acme.shelf").expect("a finder");
    assert_eq!(short, finder_of("{ name: acme.shelf }").expect("a finder"));
    let found = (short.service.as_str(), short.collection.as_str(), short.id.as_str(), short.by.as_deref());
    assert_eq!(found, ("acme", "/v1/shelves", "uuid", Some("name")));
    assert_eq!((short.client, short.word.as_str()), (FinderClient::Heat, "Shelf"));
    let neutron = finder_of("{ name: acme.shelf, client: neutron, by: false, id: id }").expect("a finder");
    assert_eq!((neutron.word.as_str(), neutron.by, neutron.id.as_str()), ("shelf", None, "id"));
}

#[test]
fn mistakes_are_told_where_they_are() {
    for (text, told) in [
        ("{ by: title }", "shelf.yaml:5:9: missing key name"),
        ("{ name: a.b, client: nova }", "shelf.yaml:5:30: expected heat, osc, sdk, neutron or neutron_extension"),
        ("{ name: a.b, colection: /x }", "shelf.yaml:5:22: unknown key colection; did you mean collection?"),
        ("5", "shelf.yaml:5:9: "),
    ] {
        let found = finder_of(text).expect_err("an error");
        assert!(found.starts_with(told), "{text}: {found}");
    }
}
