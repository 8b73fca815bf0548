//! Which properties of each type a comparison sees: an object is made with each one, and shows no difference; with another
//! value in the stack it shows one. The definitions give the reason for every other property, and the manual lists these.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use kiln_resource::translation::{Rule, Source};
use kiln_resource::{Operation, PropertySchema, ResourceType, Unread};

use crate::resource::{Resource, types};
use crate::sweep::cases::Case;
use crate::sweep::properties::{Trial, places, values};
use crate::sweep::settings::{Setting, settings};

/// What a comparison sees of a property, the best first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Sight {
    /// Another value.
    Seen,
    /// The object does not show it.
    Unread,
    /// Another value is no difference.
    Blind,
    /// The value that was given is a difference.
    False(String),
    /// No object could be made with it.
    Untried(String),
}

/// The properties by which the objects of settings are found.
const FOUND_BY: [(&str, &str); 4] = [
    ("OS::Cinder::Quota", "project"),
    ("OS::Neutron::Quota", "project"),
    ("OS::Nova::Quota", "project"),
    ("OS::Octavia::Quota", "project"),
];

/// The best sight of each property, by `type property`.
type Sights = BTreeMap<String, Sight>;

/// The reason in the definition, of the property or of what it is a member of.
fn reason(place: &[(String, &PropertySchema)]) -> Option<Unread> {
    place.iter().find_map(|(_, schema)| schema.unread.or_else(|| schema.items()?.unread))
}

/// The property that drivers get; a former name is translated.
fn present_name<'a>(kind: &'a ResourceType, place: &'a [(String, &PropertySchema)]) -> &'a str {
    let is_former = |path: &[String], old: &[String]| {
        let names = path.iter().take(path.len() - 1).chain(old);
        names.eq(place.iter().map(|(name, _)| name))
    };
    let rule = kind.translation.iter().find(|rule| match &rule.rule {
        Rule::Replace(Source::Sibling(old)) | Rule::Add(Source::Sibling(old)) => is_former(&rule.path, old),
        _ => false,
    });
    rule.map_or(&place[0].0, |rule| &rule.path[0])
}

async fn sight(trial: &Trial<'_>, place: &[(String, &PropertySchema)], setting: Option<&Setting>) -> Sight {
    let Some((_, schema)) = place.last() else { unreachable!("a place has a name") };
    let values = match setting.and_then(|setting| setting.values.as_list()) {
        Some([a, b]) => [a, b].map(|value| trial.filled(value)),
        _ => values(schema),
    };
    let name = present_name(trial.kind(), place);
    let mut resources = Vec::new();
    for value in &values {
        match trial.with(place, setting, value).await {
            Ok(resource) => resources.push(resource),
            Err(error) => return Sight::Untried(error),
        }
    }
    let mut sights = Vec::new();
    for (one, other) in [(0, 1), (1, 0)] {
        let mut one = resources[one].clone();
        let stage = trial.fresh_stage().await;
        one.cloud = stage.cloud.clone();
        sights.push(match one.act(Operation::Create).await {
            Ok(()) => look(&one, &resources[other], name).await,
            Err(failure) => Sight::Untried(failure.message),
        });
    }
    // At least the value that cannot be given is noticed.
    if sights.iter().all(|sight| matches!(sight, Sight::Untried(_))) {
        return look(trial.made(), &resources[0], name).await;
    }
    let wrong = sights.iter().find(|sight| matches!(sight, Sight::False(_))).cloned();
    wrong.or_else(|| sights.into_iter().min()).unwrap_or(Sight::Unread)
}

/// What a comparison of an object sees of a property that another value would make like the other resource.
async fn look(one: &Resource, other: &Resource, name: &str) -> Sight {
    tokio::time::sleep(Duration::from_mins(1)).await;
    let shown = match one.shown().await {
        Ok(shown) => shown,
        Err(failure) => return Sight::Untried(failure.message),
    };
    let drift = shown.whole_drift(&one.facts.properties);
    if let Some(live) = drift.get(name) {
        return Sight::False(format!("{:?} is {live:?}", one.facts.properties.get(name)));
    }
    if one.facts.properties == other.facts.properties || FOUND_BY.contains(&(&one.kind.name, name)) {
        return if shown.live.contains_key(name) { Sight::Seen } else { Sight::Unread };
    }
    let mut mistaken = one.clone();
    mistaken.facts.properties.clone_from(&other.facts.properties);
    match mistaken.shown().await {
        Ok(other) if other.whole_drift(&mistaken.facts.properties).contains_key(name) => Sight::Seen,
        Ok(other) if shown.live.contains_key(name) || other.live.contains_key(name) => Sight::Blind,
        Ok(_) => Sight::Unread,
        // The object is found by it.
        Err(failure) if failure.is_not_found() => Sight::Seen,
        Err(failure) => Sight::Untried(failure.message),
    }
}

async fn try_properties(case: &Case, settings: &[Setting], sights: &mut Sights) {
    let trial = Trial::of(case).await;
    let kind = trial.kind();
    for (name, place) in named_places(kind) {
        let key = format!("{} {name}", kind.name);
        if sights.get(&key) == Some(&Sight::Seen) {
            continue;
        }
        let setting = settings.iter().find(|setting| setting.kind == kind.name && setting.property == name);
        let sight = sight(&trial, &place, setting).await;
        let best = sights.entry(key).or_insert_with(|| sight.clone());
        if *best > sight {
            *best = sight;
        }
    }
}

type Place<'a> = Vec<(String, &'a PropertySchema)>;

fn named_places(kind: &ResourceType) -> Vec<(String, Place<'_>)> {
    let mut all = Vec::new();
    places(&kind.properties, &[], &mut all);
    let name = |place: &Place<'_>| place.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(".");
    all.into_iter().map(|place| (name(&place), place)).collect()
}

/// What a comparison sees of every property of the types that fit.
async fn sights(fits: impl Fn(&str) -> bool) -> Sights {
    let settings = settings();
    let mut sights = Sights::new();
    for (_, case) in crate::sweep::all().into_iter().filter(|(_, case)| fits(case.type_name)) {
        Box::pin(try_properties(&Case { is_admin: true, ..case }, &settings, &mut sights)).await;
    }
    sights
}

/// Every property is seen, or its definition says why not.
async fn every_property_is_compared(fits: impl Fn(&str) -> bool) {
    let sights = sights(&fits).await;
    let mut problems = Vec::new();
    for kind in types().iter().filter(|kind| fits(&kind.name)) {
        for (name, place) in named_places(kind) {
            let Some(sight) = sights.get(&format!("{} {name}", kind.name)) else { continue };
            match (sight, reason(&place)) {
                // Lists with a member that is seen show all of them.
                (Sight::Seen, Some(reason)) if place.len() == 1 => {
                    problems.push(format!("{} {name} is compared, but is {reason:?}", kind.name));
                }
                (Sight::Seen, _) | (_, Some(_)) => {}
                (sight, None) => problems.push(format!("{} {name}: {sight:?}", kind.name)),
            }
        }
    }
    assert!(problems.is_empty(), "{} properties:\n{}", problems.len(), problems.join("\n"));
}

#[tokio::test(start_paused = true)]
async fn every_property_of_nova_is_compared() {
    Box::pin(every_property_is_compared(|name| name.starts_with("OS::Nova"))).await;
}

#[tokio::test(start_paused = true)]
async fn every_property_of_neutron_is_compared() {
    Box::pin(every_property_is_compared(|name| name.starts_with("OS::Neutron"))).await;
}

#[tokio::test(start_paused = true)]
async fn every_property_of_other_services_is_compared() {
    Box::pin(every_property_is_compared(|name| !name.starts_with("OS::Neutron") && !name.starts_with("OS::Nova")))
        .await;
}

/// The page lists what the definitions give a reason for.
#[test]
fn the_manual_lists_what_cannot_be_compared() {
    let swept: Vec<&str> = crate::sweep::all().into_iter().map(|(_, case)| case.type_name).collect();
    let (mut all, mut open) = (0, 0);
    let mut table = String::new();
    for kind in types().iter().filter(|kind| swept.contains(&kind.name.as_str())) {
        let mut columns: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for (name, place) in named_places(kind) {
            let word = match reason(&place) {
                Some(Unread::Kiln) => continue,
                Some(Unread::Secret) => "secret",
                Some(Unread::Request) => "request",
                None => "",
            };
            all += 1;
            if !word.is_empty() {
                open += 1;
                columns.entry(word).or_default().push(format!("`{name}`"));
            }
        }
        if !columns.is_empty() {
            let column = |word| columns.get(word).map(|names| names.join(", ")).unwrap_or_default();
            writeln!(table, "| `{}` | {} | {} |", kind.name, column("secret"), column("request")).unwrap();
        }
    }
    let table = format!(
        "{} of {all} properties of the types with an object are compared.\n\n| type | secret | not shown after its request |\n| --- | --- | --- |\n{table}",
        all - open
    );
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/drift.md");
    let page = std::fs::read_to_string(&file).unwrap();
    let (begin, _) = page.split_once("so they are reported as `not checked`:\n").unwrap();
    let expected = format!("{begin}so they are reported as `not checked`:\n\n{table}");
    if std::env::var_os("KILN_UPDATE_DATA").is_some() {
        std::fs::write(&file, &expected).unwrap();
    } else {
        assert!(page == expected, "KILN_UPDATE_DATA=1 .ci/tests kiln-drivers:suite the_manual writes docs/drift.md");
    }
}
