//! The files around a text: those that it names, those that these name, and the templates beside it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use kiln_authoring::Page;
use kiln_authoring::language::environment::Neighbour;
use kiln_authoring::language::{files, links, with_links};
use kiln_client::address;
use kiln_template::Files;

/// More files are not read for one template.
const MOST_FILES: usize = 500;
/// More templates beside an environment are not read.
const MOST_NEIGHBOURS: usize = 50;
/// A longer file is no template that people write.
const MOST_BYTES: u64 = 4 << 20;
/// Folders that are searched for templates in all, and how deep.
const MOST_FOLDERS: usize = 500;
const DEPTH: usize = 8;

/// What a template names, at any depth.
#[derive(Debug, Default)]
pub(super) struct Family {
    /// The contents: by the names that the template uses, and by URL what its children name.
    pub(super) files: Files,
    /// The URLs of all, also of those that cannot be read.
    pub(super) urls: BTreeSet<String>,
}

/// Where a name in a document leads.
pub(super) fn target(document: &str, name: &str) -> String {
    address::join(&address::base_of(document), name).replace(' ', "%20")
}

/// Reads what a template at a URL names; `read` gives the text at a URL.
pub(super) fn gather(url: &str, page: &Page, read: &dyn Fn(&str) -> Option<String>) -> Family {
    let mut family = Family::default();
    let mut waiting: Vec<(String, String)> = files(page).into_iter().map(|name| (target(url, &name), name)).collect();
    while let Some((url, name)) = waiting.pop() {
        if family.files.0.contains_key(&name) || family.urls.len() >= MOST_FILES {
            continue;
        }
        family.urls.insert(url.clone());
        let Some(mut content) = read(&url) else { continue };
        if let Some(child) = looks_like_template(&content).then(|| Page::read(content.as_str()).ok()).flatten()
            && !links(&child).is_empty()
        {
            // Names in the child are relative to its own place.
            let inner = with_links(&child, &|name| target(&url, name));
            waiting.extend(files(&child).into_iter().map(|name| (target(&url, &name), target(&url, &name))));
            content = kiln_value::text::json(&inner);
        }
        family.files.0.insert(name, content);
    }
    family
}

/// Editors open all kinds of YAML here: only what looks like a template or an environment is judged.
pub(super) fn looks_like_template(text: &str) -> bool {
    text.contains("heat_template_version") || text.contains("TemplateFormatVersion")
}

/// The text of a file.
pub(super) fn stored(url: &str) -> Option<String> {
    read(&address::file_of(url)?)
}

fn read(path: &Path) -> Option<String> {
    let is_short = std::fs::metadata(path).is_ok_and(|data| data.is_file() && data.len() <= MOST_BYTES);
    if is_short { std::fs::read_to_string(path).ok() } else { None }
}

/// The templates in the folder of a document.
pub(super) fn neighbours(document: &str) -> Vec<Neighbour> {
    let Some(folder) = address::file_of(&address::base_of(document)) else { return Vec::new() };
    let paths = entries(&folder).into_iter().filter(|path| is_named_like_template(path));
    paths.filter_map(|path| template(&path)).take(MOST_NEIGHBOURS).collect()
}

/// The templates in a folder and the folders in it.
pub(super) fn templates_below(folder: &Path) -> Vec<Neighbour> {
    let mut found = Vec::new();
    let mut folders = vec![(folder.to_owned(), 0)];
    let mut seen = 0;
    while let Some((folder, depth)) = folders.pop() {
        seen += 1;
        for path in entries(&folder) {
            let is_hidden = path.file_name().is_none_or(|name| name.to_string_lossy().starts_with('.'));
            if is_hidden || path.is_symlink() {
                continue;
            }
            if path.is_dir() {
                if depth < DEPTH && folders.len() + seen < MOST_FOLDERS && !path.ends_with("node_modules") {
                    folders.push((path, depth + 1));
                }
            } else if is_named_like_template(&path) && found.len() < MOST_FILES {
                found.extend(template(&path));
            }
        }
    }
    found
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    paths
}

fn is_named_like_template(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "yaml" || ending == "yml" || ending == "template")
}

fn template(path: &Path) -> Option<Neighbour> {
    let text = read(path).filter(|text| looks_like_template(text))?;
    let page = Page::read(text).ok()?;
    Some(Neighbour { url: address::url_of(&path.to_string_lossy()), page })
}
