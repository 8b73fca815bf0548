//! The manual: all pages are in its table of contents, and links lead somewhere.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::run::files;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The lines of a page outside of code.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    text.lines().filter(move |line| {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
            return false;
        }
        !is_code && !line.starts_with("    ")
    })
}

/// The targets of the links of a line: `[text](target)`, outside of code spans.
fn links(line: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for (index, part) in line.split('`').enumerate() {
        // Between backquotes there is code, but a link may have code as its text.
        let mut rest = part;
        while let Some((before, after)) = rest.split_once("](") {
            let is_link = index % 2 == 0 && (before.contains('[') || index > 0);
            let (target, after) = after.split_once(')').unwrap_or((after, ""));
            if is_link {
                found.push(target);
            }
            rest = after;
        }
    }
    found
}

/// The anchor of a heading, as GitHub and mdBook make it.
fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = text.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

fn pages() -> Vec<PathBuf> {
    let root = Path::new(ROOT);
    let mut pages = files(&root.join("docs"), "md");
    pages.extend(
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "examples/README.md", "editors/README.md"]
            .map(|name| root.join(name)),
    );
    pages
}

#[test]
fn links_lead_to_files_and_headings() {
    let mut count = 0;
    for page in pages() {
        let text = read(&page);
        for target in prose(&text).flat_map(links) {
            if target.starts_with("http://") || target.starts_with("https://") {
                continue;
            }
            let (file, heading) = target.split_once('#').unwrap_or((target, ""));
            let path = if file.is_empty() { page.clone() } else { page.parent().unwrap().join(file) };
            assert!(path.exists(), "{}: {target} does not exist", page.display());
            if !heading.is_empty() {
                let text = read(&path);
                let mut headings = prose(&text).filter(|line| line.starts_with('#'));
                assert!(headings.any(|line| anchor(line) == heading), "{}: no heading for {target}", page.display());
            }
            count += 1;
        }
    }
    assert!(count > 50, "{count} links");
}

#[test]
fn every_page_is_in_the_table_of_contents_once() {
    let docs = Path::new(ROOT).join("docs");
    let contents = read(&docs.join("SUMMARY.md"));
    let listed: Vec<&str> = contents.lines().flat_map(links).collect();
    let once: BTreeSet<&str> = listed.iter().copied().collect();
    assert_eq!(listed.len(), once.len());
    let pages: BTreeSet<String> = files(&docs, "md")
        .iter()
        .map(|page| page.strip_prefix(&docs).unwrap().display().to_string())
        .filter(|name| name != "SUMMARY.md")
        .collect();
    assert_eq!(once, pages.iter().map(String::as_str).collect());
}
