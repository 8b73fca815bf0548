//! Sets of type files: those that Kiln ships, with those of an operator, of a user and of a package.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock};

use kiln_package::Package;
use kiln_value::{Map, Path, Span};
use kiln_yaml::Document;

use super::{TypeFile, check, format};
use crate::Refusal;

/// Files in a set.
const MOST_FILES: usize = 1000;

/// Bytes of a file.
const MOST_BYTES: usize = 256 << 10;

/// Files of a package, which belong to a user.
const MOST_IN_PACKAGE: usize = 100;

/// The folder of a package with type files.
const FOLDER: &str = "topology-types/";

/// Kiln's own.
const SHIPPED: [(&str, &str); 7] = [
    ("software/ansible.yaml", include_str!("../../../../topology-types/software/ansible.yaml")),
    ("software/chef.yaml", include_str!("../../../../topology-types/software/chef.yaml")),
    ("software/compose.yaml", include_str!("../../../../topology-types/software/compose.yaml")),
    ("software/container.yaml", include_str!("../../../../topology-types/software/container.yaml")),
    ("software/puppet.yaml", include_str!("../../../../topology-types/software/puppet.yaml")),
    ("tosca/container-application.yaml", include_str!("../../../../topology-types/tosca/container-application.yaml")),
    ("tosca/container-runtime.yaml", include_str!("../../../../topology-types/tosca/container-runtime.yaml")),
];

/// A file with its document.
pub(super) type Parsed = (TypeFile, Document);

/// Types by their names, in the order of their files.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TypeFiles {
    types: Map<Arc<TypeFile>>,
    /// The texts of those that are not Kiln's own, by the type.
    texts: BTreeMap<String, Arc<str>>,
}

impl TypeFiles {
    /// The types that are part of Kiln.
    pub fn shipped() -> Result<Arc<Self>, Vec<Refusal>> {
        static READ: LazyLock<Result<Arc<TypeFiles>, Vec<Refusal>>> = LazyLock::new(|| {
            let parsed = parse(SHIPPED)?;
            Ok(Arc::new(TypeFiles::default().checked(&parsed)?))
        });
        READ.clone()
    }

    /// These types and those of other files: names for errors with their texts.
    ///
    /// Errors: all in the files, with their positions.
    pub fn with<'f>(&self, files: impl IntoIterator<Item = (&'f str, &'f str)>) -> Result<Self, Vec<Refusal>> {
        let files: Vec<(&str, &str)> = files.into_iter().collect();
        let parsed = parse(files.iter().copied())?;
        if parsed.is_empty() {
            return Ok(self.clone());
        }
        if parsed.len() + self.types.len() > MOST_FILES {
            let message = format!("There are more than {MOST_FILES} type files.");
            return Err(vec![Refusal::new("too-large", &Path::root(), message)]);
        }
        let mut extended = self.checked(&parsed)?;
        // Each file has one type.
        let texts = parsed.iter().zip(&files).map(|((this, _), (_, text))| (this.name.clone(), Arc::from(*text)));
        extended.texts.extend(texts);
        Ok(extended)
    }

    /// The types that are not Kiln's own: names and texts of the files.
    pub fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.texts.iter().map(|(name, text)| (name.as_str(), &**text))
    }

    /// These types with a file that is being written, and that may be one of them already.
    ///
    /// Errors: all in the file, with their positions.
    pub fn with_changed(&self, file: &str, text: &str) -> Result<Self, Vec<Refusal>> {
        let mut others = self.clone();
        others.types.retain(|_, this| path_of(&this.file) != path_of(file));
        others.texts.retain(|name, _| others.types.contains_key(name));
        others.with([(file, text)])
    }

    /// These types and those of a package, in its folder `topology-types/`.
    ///
    /// Errors: all in the files; more than 100 of them; files that are no texts.
    pub fn of_package(&self, package: &Package) -> Result<Self, Vec<Refusal>> {
        let mut files = Vec::new();
        for (name, content) in package.files.iter().filter(|(name, _)| is_member(name)) {
            let Ok(text) = std::str::from_utf8(content) else {
                let mut refusal = Refusal::new("not-yaml", &Path::root(), "A type file must be a text in UTF-8.");
                refusal.file = Some(name.clone());
                return Err(vec![refusal]);
            };
            files.push((name.as_str(), text));
        }
        if files.len() > MOST_IN_PACKAGE {
            let message = format!("A package may have {MOST_IN_PACKAGE} type files, but this has {}.", files.len());
            return Err(vec![Refusal::new("too-large", &Path::root(), message)]);
        }
        self.with(files)
    }

    /// The type of this name.
    pub fn get(&self, name: &str) -> Option<&Arc<TypeFile>> {
        self.types.get(name)
    }

    /// All types, in the order of their files.
    pub fn all(&self) -> impl DoubleEndedIterator<Item = &Arc<TypeFile>> {
        self.types.values()
    }

    /// These types and others, which replace those of their names.
    fn checked(&self, parsed: &[Parsed]) -> Result<Self, Vec<Refusal>> {
        let mut extended = self.clone();
        for (this, _) in parsed {
            extended.types.insert(this.name.clone(), Arc::new(this.clone()));
        }
        check::check(self, &extended, parsed).map_err(sorted)?;
        Ok(extended)
    }
}

/// A name of a file or its URL without what differs between them.
fn path_of(file: &str) -> &str {
    file.strip_prefix("file://").unwrap_or(file).trim_start_matches('/')
}

fn is_member(name: &str) -> bool {
    name.starts_with(FOLDER) && [".yaml", ".yml"].iter().any(|end| name.ends_with(end))
}

/// Reads the form of all files.
fn parse<'f>(files: impl IntoIterator<Item = (&'f str, &'f str)>) -> Result<Vec<Parsed>, Vec<Refusal>> {
    let (mut parsed, mut refusals): (Vec<Parsed>, Vec<Refusal>) = (Vec::new(), Vec::new());
    let mut names: HashMap<String, String> = HashMap::new();
    for (file, text) in files {
        if text.len() > MOST_BYTES {
            let message = format!("A type file may have {MOST_BYTES} bytes, but this has {}.", text.len());
            refusals.push(of_file(file, Refusal::new("too-large", &Path::root(), message)));
            continue;
        }
        let document = match kiln_yaml::parse(text) {
            Ok(document) => document,
            Err(error) => {
                let mut refusal = of_file(file, Refusal::new("not-yaml", &Path::root(), error.message));
                refusal.span = error.position.map(|start| Span { start, end: start });
                refusals.push(refusal);
                continue;
            }
        };
        match format::read(file, &document.value) {
            Ok(this) => {
                if let Some(other) = names.insert(this.name.clone(), file.to_owned()) {
                    let at = Path::root().key(super::NAME);
                    let message = format!("{other} defines the type {} too.", this.name);
                    refusals.push(Refusal::new("duplicate-id", &at, message).placed(file, &document));
                }
                parsed.push((this, document));
            }
            Err(found) => refusals.extend(found.into_iter().map(|refusal| refusal.placed(file, &document))),
        }
    }
    if refusals.is_empty() { Ok(parsed) } else { Err(sorted(refusals)) }
}

/// By file and position.
fn sorted(mut refusals: Vec<Refusal>) -> Vec<Refusal> {
    refusals.sort_by_cached_key(|refusal| (refusal.file.clone(), refusal.span.map(|span| span.start)));
    refusals
}

fn of_file(file: &str, mut refusal: Refusal) -> Refusal {
    refusal.file = Some(file.to_owned());
    refusal
}
