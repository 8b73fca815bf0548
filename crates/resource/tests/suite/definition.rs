//! Definition files: content and errors.

use std::collections::HashMap;
use std::time::Duration;

use kiln_resource::change::{Comparison, compare};
use kiln_resource::constraint::{Judge, OwnConstraints};
use kiln_resource::properties::Judged;
use kiln_resource::rest::Adopt;
use kiln_resource::translation::{Lookup, Rule, Source, Translation, apply, attempt, lookups};
use kiln_resource::{DriverKind, Method, ResourceType, Wire, definition, properties, shipped, translation};
use kiln_value::{Map, Path, Value, value};

const THING: &str = "
type: My::Thing
summary: A thing.
service: things
since: 2014.1
rest:
  collection: /v1/things
  member: thing
  update: patch
  ready: { done: [ok], failed: [bad], every: 0.5 }
  parts:
    tags: { path: '/v1/things/{id}/tags' }
properties:
  name: { type: string, update: true }
  network: { type: string, required: true, formerly: network_id, find: neutron.network, as: net.id }
  network_id: { type: string, is: neutron.network, status: [hidden 5.0.0, deprecated 2014.2] }
  size: { type: integer, default: 1, range: { min: 1 }, immutable: true }
  hosts:
    type: list
    items:
      type: map
      properties:
        host: { type: string, formerly: address, find: nova.host }
        address: string
        port: { type: integer, default: 80 }
  tags: { type: list, items: string, update: true }
  extra: { type: map, merge: true }
attributes:
  state: { type: string, live: true }
  anything: ~
";

fn thing() -> ResourceType {
    definition::parse("thing.yaml", THING).unwrap()
}

fn map(value: &Value) -> Map {
    value.as_map().unwrap().clone()
}

fn mistakes(text: &str) -> Vec<String> {
    definition::parse("t.yaml", text).unwrap_err().iter().map(ToString::to_string).collect()
}

#[test]
fn the_requests_are_parsed() {
    let thing = thing();
    assert_eq!(thing.driver, DriverKind::Rest);
    let rest = thing.rest.unwrap();
    assert_eq!((rest.item.as_str(), rest.list.as_str(), rest.id.as_str()), ("/v1/things/{id}", "things", "id"));
    assert_eq!(rest.name.as_deref(), Some("name"));
    assert_eq!(rest.adopt, Adopt { name: true, ..Adopt::default() });
    assert_eq!(rest.update.unwrap().method, Method::Patch);
    let ready = rest.ready.unwrap();
    assert_eq!((ready.at, ready.every), (vec!["status".to_owned()], Duration::from_millis(500)));
    assert_eq!(rest.parts.get("tags").map(|p| (p.method, p.wire.as_str())), Some((Method::Put, "tags")));
    assert_eq!(thing.properties["network"].wire, Wire::As("net.id".to_owned()));
    assert_eq!(thing.properties["extra"].wire, Wire::Merged);
    assert!(thing.attributes["state"].live);
    assert_eq!(thing.attributes["anything"].kind, None);
}

#[test]
fn every_error_is_reported_with_its_position() {
    let text = "type: My::Thing\nsummary: A thing.\nproperties:\n  a: { type: strnig }\n  b: { type: list, itmes: string }\n  c: { range: { min: x } }\ncolour: red\n";
    assert_eq!(
        mistakes(text),
        [
            "t.yaml:4:14: unknown type strnig",
            "t.yaml:5:20: unknown key itmes; did you mean items?",
            "t.yaml:6:6: missing key type",
            "t.yaml:6:15: could not convert string to float: 'x'",
            "t.yaml:7:1: unknown key colour",
        ]
    );
    let text = "type: T\nsummary: A t.\ndriver: rest\nproperties:\n  a: { type: string, range: { min: 1 } }\n";
    assert_eq!(
        mistakes(text),
        ["t.yaml:3:9: driver rest requires a rest section", "t.yaml:5:6: Range constraint invalid for String"]
    );
    let list = ["t.yaml:1:1: expected a map, found ['a']", "t.yaml:1:1: missing key type"];
    assert_eq!(mistakes("- a\n"), list);
    assert_eq!(mistakes("type: ]").len(), 1);
}

#[test]
fn ids_are_found_under_former_names() {
    let thing = thing();
    let data = map(&value!({"network_id": "net", "hosts": [{"address": "h1"}, {"host": "h2", "port": "81"}]}));
    let lookup = |finder: &str, value: &str| Lookup { finder: finder.to_owned(), value: value.to_owned() };
    let (wanted, places): (Vec<_>, Vec<_>) = lookups(&thing.translation, &data).into_iter().unzip();
    let places: Vec<String> = places.iter().map(ToString::to_string).collect();
    assert_eq!(places, ["network", "hosts[0].host", "hosts[1].host"]);
    assert_eq!(wanted, [lookup("neutron.network", "net"), lookup("nova.host", "h1"), lookup("nova.host", "h2")]);
    let answers = HashMap::from([(wanted[0].clone(), "id-0".to_owned()), (wanted[1].clone(), "id-1".to_owned())]);
    let translated = apply(&thing.translation, data, &answers, &Path::root()).unwrap();
    let resolved = properties::resolve(&thing.properties, &translated).unwrap();
    assert_eq!(resolved["network"], "id-0".into());
    assert_eq!(resolved["network_id"], Value::Null);
    let hosts = value!([
        {"host": "id-1", "address": null, "port": 80},
        {"host": "h2", "address": null, "port": 81}
    ]);
    assert_eq!(resolved["hosts"], hosts);
}

#[test]
fn former_and_current_name_together_are_refused() {
    let data = map(&value!({"network": "x", "network_id": "y"}));
    let error = apply(&thing().translation, data, &HashMap::new(), &Path::root().key("properties")).unwrap_err();
    let text = "Property error: properties.network: Cannot define the following properties at the same time: network, \
                network_id";
    assert_eq!(error.to_string(), text);
}

#[test]
fn rules_that_cannot_be_applied_are_skipped() {
    let data = map(&value!({"network": "x", "network_id": "y", "size": 5}));
    let (left, faults) = attempt(&thing().translation, data, &HashMap::new());
    assert_eq!(left, map(&value!({"network": "x", "size": 5})));
    assert_eq!(faults[0].text, "Cannot define the following properties at the same time: network, network_id");
    assert_eq!(faults[0].path, Path::root().key("network"));
}

#[test]
fn additions_require_a_list_even_if_there_is_nothing_to_add() {
    let source = Source::Sibling(vec!["nothing".to_owned()]);
    let rules = [Translation { path: vec!["tags".to_owned()], rule: Rule::Add(source), when: None }];
    let (_, faults) = attempt(&rules, map(&value!({"tags": 5})), &HashMap::new());
    assert_eq!(faults.len(), 1);
}

#[test]
fn values_that_were_refused_before_are_replaced() {
    let decide = |before: Value, after: Value| compare(&thing(), "t", &map(&before), &map(&after));
    assert!(matches!(decide(value!({}), value!({"tags": []})), Comparison::Replace { .. }));
    assert!(matches!(decide(value!({"network": "x"}), value!({})), Comparison::Error(_)));
    let tags = |tags: Value| value!({"network": "x", "tags": tags});
    assert!(matches!(decide(tags(5.into()), tags(6.into())), Comparison::Error(_)));
}

#[test]
fn every_error_is_reported_with_a_suggestion() {
    let data = map(&value!({"netwrok": "x", "size": 0, "hosts": [{"port": "http"}]}));
    let at = Path::root().key("resources").key("t").key("properties");
    let faults = properties::validate(&thing().properties, &data, &|_| Judged::Wholly, &Judge::default(), &at);
    let texts: Vec<String> = faults.iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        [
            "Property error: resources.t.properties: Unknown Property netwrok",
            "Property error: resources.t.properties: Property network not assigned",
            "Property error: resources.t.properties.size: 0 is out of range (min: 1, max: None)",
            "Property error: resources.t.properties.hosts[0].port: Value 'http' is not an integer",
        ]
    );
    assert_eq!(faults[0].hints, ["did you mean network?"]);
}

#[test]
fn unknown_values_are_not_checked() {
    let thing = thing();
    let data = map(&value!({"network": null, "size": 0, "tags": null}));
    let judged = |path: &Path| if path.to_string() == "size" { Judged::Wholly } else { Judged::ByKind };
    assert_eq!(properties::validate(&thing.properties, &data, &judged, &Judge::default(), &Path::root()).len(), 1);
}

#[test]
fn custom_constraints_are_checked() {
    let thing = thing();
    let mut judge = Judge::new(0.0, &OwnConstraints::of(shipped::finders().clone()));
    let lookup = Lookup { finder: "neutron.network".to_owned(), value: "a".to_owned() };
    judge.answers.insert(lookup, Err("The Network (a) could not be found.".to_owned()));
    let data = map(&value!({"network": "a"}));
    let faults = properties::validate(&thing.properties, &data, &|_| Judged::Wholly, &judge, &Path::root());
    let text = "Property error: network: Error validating value 'a': The Network (a) could not be found.";
    assert_eq!(faults[0].to_string(), text);
}

#[test]
fn translated_values_are_not_checked() {
    let rule = |path: &[&str], rule| Translation {
        path: path.iter().map(|name| (*name).to_owned()).collect(),
        rule,
        when: None,
    };
    let former = Rule::Replace(Source::Sibling(vec!["subnet_id".to_owned()]));
    let rules = [rule(&["ips", "subnet"], former), rule(&["gone"], Rule::Delete)];
    let before = map(&value!({"ips": [{"subnet": "a"}, {"subnet_id": "b"}], "kept": 1}));
    let after = apply(&rules, before.clone(), &HashMap::new(), &Path::root()).unwrap();
    let places: Vec<String> = translation::moved(&rules, &before, &after).iter().map(Path::to_string).collect();
    assert_eq!(places, ["ips[1].subnet_id", "ips[1].subnet", "gone"]);
}
