//! Diagnostics of blueprints, CAMP plans and TOSCA templates.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use kiln_authoring::language::{Level, Trouble};
use kiln_topology::TypeFiles;
use kiln_topology::check::check;
use kiln_topology::tosca::Files;

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

const SCHEME: &str = "file://";

/// What is wrong with a document at a URL or has no effect, and the URLs of the files that it imports.
pub(super) fn diagnose(url: &str, text: &str, types: &Arc<TypeFiles>, read: Read) -> (Vec<Trouble>, BTreeSet<String>) {
    let imports = Imports { read, urls: RefCell::default() };
    let root = target(url, url);
    let found = check(text, &root, &imports, types).unwrap_or_default().into_iter().map(|one| Trouble {
        level: if one.is_error { Level::Error } else { Level::Warning },
        code: one.refusal.kind.to_owned(),
        message: one.refusal.text(),
        path: one.refusal.at,
        span: one.span,
        hints: one.refusal.hints,
    });
    let found = found.collect();
    let mut urls = imports.urls.into_inner();
    urls.remove(&root);
    (found, urls)
}
