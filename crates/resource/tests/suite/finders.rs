//! The finders of definition files.

use std::collections::BTreeMap;

use kiln_resource::constraint::is_taken;
use kiln_resource::finder::{Complaint, Ids, Missing, Several};
use kiln_resource::translation::Rule;
use kiln_resource::{Finder, FinderClient, ResourceType, definition, shipped};
use kiln_value::Class;

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
            assert!(finders.get(name).is_some(), "{}: no finder {name}", this.name);
        }
    }
}

#[test]
fn no_two_types_have_the_same_finder() {
    let mut types = BTreeMap::new();
    for this in shipped_types() {
        for finder in &this.finders {
            assert!(is_taken(&finder.name));
            if let Some(other) = types.insert(finder.name.clone(), this.name.clone()) {
                panic!("{other} and {} have the finder {}", this.name, finder.name);
            }
            if let Some((_, scope)) = &finder.within {
                assert!(shipped::finders().get(scope).is_some(), "{}: no finder {scope}", finder.name);
            }
        }
    }
    assert!(types.len() > 55);
}

/// Every constraint of Heat that asks a service is a finder, or accepts everything.
#[test]
fn every_constraint_of_heat_is_known() {
    let known: serde_json::Value = serde_json::from_str(include_str!("../data/constraints.json")).expect("JSON");
    for (name, client) in known.as_object().expect("constraints") {
        assert!(is_taken(name), "{name}");
        let asks = client.is_string() && !["nova.network", "zaqar.queue"].contains(&name.as_str());
        if asks {
            assert!(shipped::finders().get(name).is_some(), "{name}");
        }
    }
}

fn finder_of(text: &str) -> Result<Finder, String> {
    let rest = "rest: { collection: /v1/shelves, member: shelf, id: uuid }";
    let text = format!("type: Acme::Shelf\nsummary: A shelf.\nservice: acme\n{rest}\nfinder: {text}\n");
    match definition::parse("shelf.yaml", &text) {
        Ok(this) => Ok(this.finders.into_iter().next().expect("a finder")),
        Err(errors) => Err(errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")),
    }
}

#[test]
fn what_a_finder_does_not_say_is_that_of_the_type() {
    let short = finder_of("acme.shelf").expect("a finder");
    assert_eq!(short, finder_of("{ name: acme.shelf }").expect("a finder"));
    let found = (short.service.as_str(), short.item.as_str(), short.id.as_deref(), short.by.as_deref());
    assert_eq!(found, ("acme", "/v1/shelves/{id}", Some("uuid"), Some("name")));
    assert_eq!((short.client, short.word.as_str()), (FinderClient::Heat, "Shelf"));
    let neutron = finder_of("{ name: acme.shelf, client: neutron, by: false, id: id }").expect("a finder");
    assert_eq!((neutron.word.as_str(), neutron.by, neutron.id.as_deref()), ("shelf", None, Some("id")));
}

#[test]
fn requests_and_errors_can_be_described() {
    let text = "{ name: acme.shelf, ids: list, id: false, query: { all: 1 }, filter: false, pages: true, \
                within: { room_id: acme.room }, several: first, missing: 'NoShelf: There is no {value}: {known}.' }";
    let finder = finder_of(text).expect("a finder");
    assert_eq!((finder.ids, finder.id, finder.filter, finder.pages), (Ids::List, None, false, true));
    assert_eq!(finder.query, [("all".to_owned(), "1".to_owned())]);
    assert_eq!(finder.within, Some(("room_id".to_owned(), "acme.room".to_owned())));
    let text = "There is no {value}: {known}.".to_owned();
    assert_eq!(finder.missing, Missing::Custom(Complaint { class: Class::of("NoShelf"), text }));
    assert_eq!(finder.several, Several::First);
    let finder = finder_of("{ name: acme.shelf, missing: false, several: missing }").expect("a finder");
    assert_eq!((finder.missing, finder.several), (Missing::Response, Several::Missing));
}

/// Objects that no type creates have finders too.
#[test]
fn a_type_can_have_finders_of_other_objects() {
    let text = "type: Acme::Shelf\nsummary: A shelf.\nservice: acme\nfinders:\n  \
                - { name: acme.room, collection: /v1/rooms, word: Room }\n  - { name: acme.door }\n";
    let errors = definition::parse("shelf.yaml", text).expect_err("an error");
    let told: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(told, ["shelf.yaml:6:5: missing key collection"]);
    let fixed = text.replace("acme.door", "acme.door, collection: /v1/doors, service: doors");
    let this = definition::parse("shelf.yaml", &fixed).expect("a type");
    let found: Vec<_> = this.finders.iter().map(|f| (f.name.as_str(), f.service.as_str(), f.item.as_str())).collect();
    assert_eq!(found, [("acme.room", "acme", "/v1/rooms/{id}"), ("acme.door", "doors", "/v1/doors/{id}")]);
}

#[test]
fn mistakes_are_told_where_they_are() {
    for (text, told) in [
        ("{ by: title }", "shelf.yaml:5:9: missing key name"),
        ("{ name: a.b, client: nova }", "shelf.yaml:5:30: expected heat, osc, sdk, neutron or neutron_extension"),
        ("{ name: a.b, colection: /x }", "shelf.yaml:5:22: unknown key colection; did you mean collection?"),
        ("{ name: a.b, ids: name }", "shelf.yaml:5:27: expected read, uuid, taken, url, list or false"),
        ("{ name: a.b, missing: Nothing }", "shelf.yaml:5:31: expected the class of the error, a colon and its text"),
        ("{ name: a.b, within: { a: b, c: d } }", "shelf.yaml:5:30: expected one entry"),
        ("5", "shelf.yaml:5:9: "),
    ] {
        let found = finder_of(text).expect_err("an error");
        assert!(found.starts_with(told), "{text}: {found}");
    }
}
