//! Diagnostics, completion and hover of blueprints, CAMP plans, TOSCA templates and type files.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use kiln_authoring::language::{Cursor, Level, Slot, Sort, Suggestion, Trouble, fitting};
use kiln_authoring::type_files::unknown_resources_of;
use kiln_plan::ResourceTypes;
use kiln_topology::TypeFiles;
use kiln_topology::author::{self, Around};
use kiln_topology::check::check;
use kiln_topology::tosca::Files;
use kiln_value::{Position, Segment, Span};

use super::family::{MOST_FILES, Read, target};

/// The files that a document imports, by URL.
struct Imports<'r> {
    read: Read<'r>,
    urls: RefCell<BTreeSet<String>>,
}

impl Files for Imports<'_> {
    fn text(&self, name: &str) -> Option<String> {
        // Others are not read while somebody types.
        if !name.starts_with(SCHEME) || self.urls.borrow().len() >= MOST_FILES {
            return None;
        }
        self.urls.borrow_mut().insert(name.to_owned());
        (self.read)(name)
    }
}

/// Words that may be written at a position, with the resource types of `catalog` in type files.
pub(super) fn complete(
    url: &str,
    text: &str,
    at: Position,
    types: &Arc<TypeFiles>,
    catalog: &ResourceTypes,
    read: Read,
) -> Vec<Suggestion> {
    let imports = Imports { read, urls: RefCell::default() };
    let cursor = Cursor::at(text, at);
    let is_key = cursor.slot == Slot::Key;
    let around = Around { root: &target(url, url), files: &imports, types };
    let replace = cursor.replaced(at);
    let suggestion = |label: &str, sort: Sort, detail: String, documentation: String| Suggestion {
        label: label.to_owned(),
        sort,
        detail,
        documentation,
        insert: match sort {
            Sort::Keyword | Sort::Property if is_key => format!("{label}: "),
            _ => label.to_owned(),
        },
        replace,
        deprecated: false,
    };
    let words = author::words(text, at.line, &cursor.path, is_key, around);
    let mut found: Vec<Suggestion> = words
        .into_iter()
        .map(|word| {
            let sort = match word.sort {
                author::Sort::Key => Sort::Keyword,
                author::Sort::Type => Sort::Type,
                author::Sort::Property => Sort::Property,
                author::Sort::Name => Sort::Resource,
            };
            suggestion(&word.label, sort, word.detail, word.documentation)
        })
        .collect();
    if let [Segment::Key(hot), Segment::Key(resources), _, Segment::Key(kind)] = &cursor.path.0[..]
        && (hot.as_str(), resources.as_str(), kind.as_str(), is_key) == ("hot", "resources", "type", false)
    {
        let all = catalog.types.iter().map(|known| known.resource_type.name.as_str());
        found.extend(all.map(|name| suggestion(name, Sort::Type, String::new(), String::new())));
    }
    fitting(found, &cursor.word)
}

/// What stands at a position.
pub(super) fn hover(url: &str, text: &str, at: Position, types: &Arc<TypeFiles>, read: Read) -> Option<(String, Span)> {
    let imports = Imports { read, urls: RefCell::default() };
    author::explain(text, at, Around { root: &target(url, url), files: &imports, types })
}

const SCHEME: &str = "file://";

/// What is wrong with a document at a URL or has no effect, and the URLs of the files that it imports.
pub(super) fn diagnose(
    url: &str,
    text: &str,
    types: &Arc<TypeFiles>,
    catalog: &ResourceTypes,
    read: Read,
) -> (Vec<Trouble>, BTreeSet<String>) {
    let imports = Imports { read, urls: RefCell::default() };
    let root = target(url, url);
    let found = check(text, &root, &imports, types).unwrap_or_default().into_iter().map(|one| Trouble {
        level: if one.is_error { Level::Error } else { Level::Warning },
        code: one.refusal.kind.to_owned(),
        message: one.refusal.text(),
        path: one.refusal.at,
        span: one.span,
        name: None,
        hints: one.refusal.hints,
    });
    let resources = unknown_resources_of(text, &root, types, catalog).into_iter().map(|(refusal, span)| Trouble {
        level: Level::Error,
        code: refusal.kind.to_owned(),
        message: refusal.message,
        path: refusal.at,
        span,
        name: None,
        hints: refusal.hints,
    });
    let found = found.chain(resources).collect();
    let mut urls = imports.urls.into_inner();
    urls.remove(&root);
    (found, urls)
}
