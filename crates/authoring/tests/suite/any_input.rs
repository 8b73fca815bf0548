//! Generated texts: the tools preserve their meaning and do not panic.

use kiln_authoring::Page;
use kiln_authoring::format::format;
use kiln_authoring::language::environment::{self, Sheet};
use kiln_authoring::language::{
    Surroundings, complete, diagnose, fixes, folds, hover, links, references, repaired, signature, tokens,
};
use kiln_authoring::lint::lint;
use kiln_value::{Position, text};
use proptest::prelude::*;

/// Lines that resemble YAML, half of them badly indented.
fn lines() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("a:"),
        Just("b: 1"),
        Just("- c"),
        Just("-   d: {x: [1,  2]}"),
        Just("# note"),
        Just("#note"),
        Just(""),
        Just("e: |"),
        Just("f: >-"),
        Just("text of: several"),
        Just("'g':   \"h"),
        Just("  i\""),
        Just("- - j"),
        Just("k:  # why"),
        Just("l: [1,"),
        Just("2]"),
        Just("m: &x {n: 1}"),
        Just("<<: *x"),
        Just("-"),
        Just("\u{e9}: ü"),
    ];
    let line = (0_usize..5, piece).prop_map(|(depth, piece)| format!("{}{piece}", "  ".repeat(depth)));
    prop::collection::vec(line, 0..14).prop_map(|lines| lines.join("\n"))
}

/// A template that may be invalid.
fn template() -> impl Strategy<Value = String> {
    lines().prop_map(|lines| {
        let inner = lines.replace('\n', "\n      ");
        format!("heat_template_version: 2021-04-16\nresources:\n  r:\n    type: OS::Nova::Server\n    properties:\n      {inner}")
    })
}

/// A template whose sections are in any order, with comments between them.
fn shuffled() -> impl Strategy<Value = String> {
    let sections = vec![
        "heat_template_version: 2021-04-16",
        "description: >\n  told\n\n  twice",
        "parameters:\n  p:\n    type: string\n#  q: {type: string}",
        "conditions: {c: true}",
        "resources:\n    r: {type: OS::Heat::None}\n\n# alone\n\n    # within\n    s: {type: OS::Heat::None}",
        "outputs:\n  o: {value: &v 1}\n  l:\n  - *v",
    ];
    let between =
        prop_oneof![Just("\n"), Just("\n\n"), Just("\n#why\n"), Just("\n\n# banner\n\n"), Just("\n# a\n\n#b\n")];
    let betweens = prop::collection::vec(between, sections.len() + 1);
    (Just(sections).prop_shuffle(), betweens).prop_map(|(sections, betweens)| {
        let mut text = betweens[0].to_owned();
        text.extend(sections.iter().zip(&betweens[1..]).flat_map(|(section, between)| [*section, *between]));
        text
    })
}

/// The value of a text, regardless of the order of its sections.
fn sections(text: &str) -> Option<Vec<String>> {
    let document = kiln_yaml::parse(text).ok()?;
    let Some(sections) = document.value.as_map() else { return Some(vec![text::repr(&document.value)]) };
    let mut values: Vec<String> =
        sections.iter().map(|(name, value)| format!("{name}: {}", text::repr(value))).collect();
    values.sort();
    Some(values)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn formatting_keeps_the_value_and_is_idempotent(source in prop_oneof![lines(), template(), shuffled()]) {
        if let Ok(once) = format(&source) {
            prop_assert_eq!(sections(&once), sections(&source));
            prop_assert_eq!(once.matches('#').count(), source.matches('#').count());
            prop_assert_eq!(format(&once).ok(), Some(once.clone()), "from {:?}", source);
        }
    }

    #[test]
    fn sections_are_ordered(source in shuffled()) {
        let formatted = format(&source).unwrap();
        let found = ["heat_template_version:", "description:", "parameters:", "conditions:", "resources:", "outputs:"]
            .map(|name| formatted.lines().position(|line| line.starts_with(name)));
        prop_assert!(found.is_sorted() && found.iter().all(Option::is_some), "{}", formatted);
    }

    #[test]
    fn an_editor_can_request_any_position(source in template(), line in 0_u32..20, column in 0_u32..30) {
        let catalog = CATALOG.get_or_init(crate::bench::catalog);
        let at = Position { line, column };
        let _ = complete(&source, at, catalog, &Surroundings::default());
        for trouble in diagnose(&source, catalog, &Surroundings::default()) {
            prop_assert!(!trouble.message.is_empty());
        }
        let _ = signature(&source, at);
        let _ = fixes(&source, &diagnose(&source, catalog, &Surroundings::default()));
        if let Some(page) = repaired(&source) {
            let _ = hover(&page, at, catalog, &Surroundings::default());
            for link in links(&page) {
                prop_assert_eq!(page.slice(link.span).trim_matches(['"', '\'']), link.name);
            }
            let last = u32::try_from(source.lines().count()).unwrap();
            prop_assert!(folds(&page).iter().all(|fold| fold.first < fold.last && fold.last <= last));
            prop_assert!(tokens(&page).windows(2).all(|pair| pair[0].span.end <= pair[1].span.start));
        }
        if let Some(sheet) = Sheet::read(&source, Some(at)) {
            let _ = (sheet.references(at), sheet.rename(at, "x"), sheet.outline(), sheet.links());
        }
        let _ = environment::complete(&source, at, catalog, &[]);
        if let Ok(page) = Page::read(source.as_str()) {
            let _ = hover(&page, at, catalog, &Surroundings::default());
            let _ = references(&page, at);
            let _ = lint(&page, catalog, |_| true);
        }
    }
}

static CATALOG: std::sync::OnceLock<kiln_plan::ResourceTypes> = std::sync::OnceLock::new();
