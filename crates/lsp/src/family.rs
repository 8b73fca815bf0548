//! The files related to a text: its references, their references, and the templates in its directory.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use kiln_authoring::Page;
use kiln_authoring::language::environment::{Neighbour, Sheet, is_environment};
use kiln_authoring::language::{Surroundings, files, links, with_links};
use kiln_client::address;
use kiln_value::Map;

/// More files are not read for one template.
pub(super) const MOST_FILES: usize = 500;
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
    /// The contents of the files, by the names that the template uses, and by URL what its children name; and the
    /// environment.
    pub(super) around: Surroundings,
    /// The URLs of all, also of those that cannot be read.
    pub(super) urls: BTreeSet<String>,
    /// The types that environments declare.
    declared: BTreeSet<String>,
}

/// Where a name in a document leads.
pub(super) fn target(document: &str, name: &str) -> String {
    address::join(&address::base_of(document), name).replace(' ', "%20")
}

/// Reads files.
pub(super) type Read<'r> = &'r dyn Fn(&str) -> Option<String>;

/// Reads what a template at a URL names.
pub(super) fn gather(url: &str, page: &Page, read: Read) -> Family {
    let mut family = Family::default();
    family.add(files(page).into_iter().map(|name| (target(url, &name), name)).collect(), read);
    family
}

impl Family {
    /// Reads files, each by its URL and the name that it is known by, and what these name.
    fn add(&mut self, mut waiting: Vec<(String, String)>, read: Read) {
        while let Some((url, name)) = waiting.pop() {
            if self.around.files.0.contains_key(&name) || self.urls.len() >= MOST_FILES {
                continue;
            }
            self.urls.insert(url.clone());
            let Some(mut content) = read(&url) else { continue };
            if let Some(child) = looks_like_template(&content).then(|| Page::read(content.as_str()).ok()).flatten()
                && !links(&child).is_empty()
            {
                // Names in the child are relative to its own place.
                let inner = with_links(&child, &|name| target(&url, name));
                waiting.extend(files(&child).into_iter().map(|name| (target(&url, &name), target(&url, &name))));
                content = kiln_value::text::json(&inner);
            }
            self.around.files.0.insert(name, content);
        }
    }

    /// Adds the types that an environment at a URL declares, where nothing else does.
    pub(super) fn declare(&mut self, url: &str, sheet: &Sheet, is_known: &dyn Fn(&str) -> bool, read: Read) {
        // It may declare more once it changes.
        self.urls.insert(url.to_owned());
        for (name, mut stands_for) in sheet.types() {
            if is_known(&name) || !self.declared.insert(name.clone()) {
                continue;
            }
            if !stands_for.contains("::") {
                stands_for = target(url, &stands_for);
                self.add(vec![(stands_for.clone(), stands_for.clone())], read);
            }
            // What is wrong with an entry is shown in the environment.
            _ = self.around.environment.registry.load(&Map::from_iter([(name, stands_for.into())]));
        }
    }
}

/// The environments in the folder of a document.
pub(super) fn environments(document: &str) -> Vec<(String, Sheet)> {
    let environment = |path: PathBuf| {
        let text = read(&path).filter(|text| !looks_like_template(text) && is_environment(text))?;
        Some((address::url_of(&path.to_string_lossy()), Sheet::read(&text, None)?))
    };
    let folder = address::file_of(&address::base_of(document));
    let paths = folder.into_iter().flat_map(|folder| entries(&folder));
    let paths = paths.filter(|path| path.extension().is_some_and(|end| end == "yaml" || end == "yml" || end == "env"));
    paths.filter_map(environment).take(MOST_NEIGHBOURS).collect()
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
