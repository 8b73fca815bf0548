//! Names that keep their IDs, in every property of every type that has names.

use kiln_resource::translation::{Answers, Rule, apply, lookups};
use kiln_resource::{Inner, PropertySchema, StoredDefinition, names, shipped};
use kiln_value::{Map, Path, Value};

/// A value of the schema with a name at the path below it.
fn value(schema: &PropertySchema, path: &[String], name: &str) -> Value {
    match (&schema.inner, path.split_first()) {
        (Some(Inner::Items(items)), _) => vec![value(items, path, name)].into(),
        (Some(Inner::Members(members)), Some((key, rest))) => {
            Map::from_iter([(key.clone(), value(&members[key], rest, name))]).into()
        }
        _ => name.into(),
    }
}

#[test]
fn an_unchanged_name_needs_no_look_up_in_any_property() {
    let mut seen = 0;
    for this in shipped::types().expect("sound definitions") {
        for rule in this.translation.iter().filter(|rule| matches!(rule.rule, Rule::Find(_))) {
            let (first, rest) = rule.path.split_first().expect("a property");
            let given = |name: &str| {
                let mut given = Map::from_iter([(first.clone(), value(&this.properties[first], rest, name))]);
                // The finder of a tag depends on another property.
                if this.properties.contains_key("object_type") {
                    given.insert("object_type".to_owned(), "network".into());
                }
                if let Some(when) = &rule.when {
                    given.entry(when.clone()).or_insert("x".into());
                }
                given
            };
            let place = format!("{}: {:?}", this.name, rule.path);
            let answered = |given: &Map, ids: &[(&str, &str)]| -> Answers {
                let named = lookups(&this.translation, given).into_keys();
                named
                    .filter_map(|one| {
                        let (_, id) = ids.iter().find(|(name, _)| *name == one.value)?;
                        Some((one, (*id).to_owned()))
                    })
                    .collect()
            };
            let old = given("golden");
            let properties = apply(&this.translation, old.clone(), &answered(&old, &[("golden", "1")]), &Path::root());
            let held = StoredDefinition::of_type(&this.name).with_properties(old.clone(), properties.expect(&place));
            let kept = |given: &Map, ids: &[(&str, &str)]| {
                let mut answers = answered(given, ids);
                answers.extend(answered(&old, ids));
                let kept = names::kept(&this.translation, &held, given, &answers);
                let mut properties = apply(&this.translation, given.clone(), &answers, &Path::root()).expect(&place);
                names::keep(&mut properties, &kept);
                (properties == held.properties, kept.len())
            };
            let all = lookups(&this.translation, &old).len();
            assert!(all > 0, "{place}");
            assert_eq!(kept(&old, &[]), (true, all), "{place}");
            assert_eq!(kept(&old, &[("golden", "2")]), (true, all), "{place}");
            // Its own ID, today's and the stored one; then another object.
            assert!(kept(&given("2"), &[("golden", "2"), ("2", "2")]).0, "{place}");
            assert!(kept(&given("1"), &[("golden", "2"), ("1", "1")]).0, "{place}");
            assert!(!kept(&given("other"), &[("golden", "2"), ("other", "3")]).0, "{place}");
            assert!(!kept(&given("other"), &[("other", "3")]).0, "{place}");
            seen += 1;
        }
    }
    assert!(seen > 80, "{seen}");
}
