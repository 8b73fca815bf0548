//! The tools with real templates: OpenStack's heat-templates, or those of `KILN_CORPUS`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use kiln_authoring::format::{FormatError, format};
use kiln_authoring::lint::lint;
use kiln_authoring::{Page, upgrade};
use kiln_value::text;

/// All files that are templates.
fn templates() -> Vec<(PathBuf, String)> {
    fn gather(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                gather(&path, found);
            } else {
                found.push(path);
            }
        }
    }
    let folder = std::env::var("KILN_CORPUS").unwrap_or_else(|_| "../../tests/data/heat-templates".to_owned());
    let mut paths = Vec::new();
    gather(Path::new(&folder), &mut paths);
    paths.sort();
    let texts = paths.into_iter().filter_map(|path| Some((path.clone(), fs::read_to_string(&path).ok()?)));
    texts.filter(|(_, text)| Page::read(text.as_str()).is_ok()).collect()
}

#[test]
fn formatting_keeps_the_value_and_is_idempotent() {
    let (mut formatted, mut json, mut refused) = (0, 0, Vec::new());
    for (path, text) in templates() {
        match format(&text) {
            Ok(once) => {
                // The order of sections has no meaning.
                let says = |text: &str| -> BTreeMap<String, String> {
                    let document = kiln_yaml::parse(text).unwrap();
                    let sections = document.value.as_map().unwrap();
                    sections.iter().map(|(name, value)| (name.clone(), text::repr(value))).collect()
                };
                assert_eq!(says(&once), says(&text), "{}", path.display());
                assert_eq!(format(&once).unwrap(), once, "{}", path.display());
                let comments = |text: &str| text.matches('#').count();
                assert_eq!(comments(&once), comments(&text), "{}", path.display());
                formatted += 1;
            }
            Err(FormatError::Json) => json += 1,
            Err(error) => refused.push(format!("{}: {error}", path.display())),
        }
    }
    println!("{formatted} formatted, {json} are JSON, refused: {refused:#?}");
    assert!(formatted >= 5, "{formatted}");
}

#[test]
fn findings_have_positions_in_the_text() {
    let catalog = crate::bench::catalog();
    let mut all = 0;
    for (path, text) in templates() {
        let page = Page::read(text).unwrap();
        for finding in lint(&page, &catalog, |_| true) {
            assert!(page.lines().range(&page.text, finding.span).is_some(), "{}: {finding:?}", path.display());
            all += 1;
        }
    }
    println!("{all} findings");
    assert!(all > 5, "{all}");
}

#[test]
fn upgrades_are_proved_or_refused_with_a_reason() {
    let (mut done, mut refused) = (0, 0);
    for (path, text) in templates() {
        let page = Page::read(text).unwrap();
        match upgrade::upgrade(&page) {
            Ok(upgraded) => {
                let new = Page::read(upgraded.text).unwrap();
                assert_eq!(new.release(), upgrade::NEWEST, "{}", path.display());
                assert!(upgraded.proof.bindings > 0);
                done += 1;
            }
            Err(obstacles) => {
                println!("{}: {}: {}", path.display(), obstacles[0].path, obstacles[0].message);
                refused += 1;
            }
        }
    }
    println!("{done} upgraded, {refused} refused");
    assert!(done >= 5, "{done}");
}
