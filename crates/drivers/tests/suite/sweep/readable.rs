//! Which properties of each type can be read in its object: the manual lists the others.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use kiln_resource::Operation;

use crate::resource::types;
use crate::sweep::stage::Stage;

/// The properties that the objects of all cases show, by type.
async fn shown() -> BTreeMap<String, BTreeSet<String>> {
    let mut shown: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (name, case) in crate::sweep::all() {
        let stage = Stage::furnished(&case).await;
        let mut resource = stage.resource(case.type_name, "it");
        stage.give(&mut resource, &case.create).await;
        let made = resource.act(Operation::Create).await;
        made.unwrap_or_else(|failure| panic!("{name}: {failure}"));
        tokio::time::sleep(Duration::from_mins(1)).await;
        shown
            .entry(case.type_name.to_owned())
            .or_default()
            .extend(resource.live().await.into_iter().map(|(name, _)| name));
    }
    shown
}

#[tokio::test(start_paused = true)]
async fn the_manual_lists_what_cannot_be_compared() {
    let shown = shown().await;
    let (mut table, mut all, mut open) = (String::new(), 0, 0);
    for kind in types() {
        let Some(shown) = shown.get(&kind.name) else { continue };
        let implemented = kind.properties.iter().filter(|(_, schema)| schema.implemented).map(|(name, _)| name);
        let names: BTreeSet<&str> = implemented.map(String::as_str).collect();
        let missing: Vec<String> =
            names.iter().filter(|name| !shown.contains(**name)).map(|name| format!("`{name}`")).collect();
        all += names.len();
        open += missing.len();
        if !missing.is_empty() {
            let is_all = missing.len() == names.len();
            let what = if is_all { "all: only its existence is checked".to_owned() } else { missing.join(", ") };
            writeln!(table, "| `{}` | {what} |", kind.name).unwrap();
        }
    }
    let compared = all - open;
    let table = format!(
        "{compared} of {all} properties of the types with an object are compared.\n\n| type | not compared |\n| --- | --- |\n{table}"
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
