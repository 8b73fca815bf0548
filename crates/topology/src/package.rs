//! Templates in packages: the root file, and the files that it names.

use kiln_package::{Format, Package};
use kiln_value::Path;
use kiln_yaml::Document;

use crate::blueprint::{Blueprint, Component, Fulfilment, Library, Requirement};
use crate::{Refusal, blueprint, camp};

/// Why a package is refused.
#[derive(Clone, Debug)]
pub enum Error {
    /// The archive, its metadata, or a file that is missing; `at` is the place in the root file that names it.
    Package {
        /// The problem.
        refusal: kiln_package::Refusal,
        /// The place in the root file; the root if it is not about one.
        at: Path,
    },
    /// A file of it; the document is missing if it is not YAML.
    Document(Option<Document>, Vec<Refusal>),
}

impl From<kiln_package::Refusal> for Error {
    fn from(refusal: kiln_package::Refusal) -> Self {
        Self::Package { refusal, at: Path::root() }
    }
}

/// Reads a package with `heat.yaml` or `camp.yaml`.
///
/// Errors: those of the document; `unsafe-path` and `missing-file` for content that is no URL.
pub fn read_blueprint(package: &Package, library: &Library) -> Result<Blueprint, Error> {
    let text = text(package, &package.root)?;
    let read = if package.format == Format::Pdp { camp::read } else { blueprint::read };
    let blueprint = read(text, library).map_err(|(document, refusals)| Error::Document(document, refusals))?;
    for component in &blueprint.components {
        check_content(package, component)?;
    }
    Ok(blueprint)
}

/// The text of a file.
pub(crate) fn text<'p>(package: &'p Package, name: &str) -> Result<&'p str, Error> {
    let (_, content) = package.resolve("", name)?;
    std::str::from_utf8(content).map_err(|_| {
        let message = format!("{name} is not a text in UTF-8.");
        Error::Document(None, vec![Refusal::new("not-yaml", &Path::root(), message)])
    })
}

fn check_content(package: &Package, component: &Component) -> Result<(), Error> {
    if let Some(content) = component.content.as_deref().filter(|content| !content.contains("://")) {
        let at = component.at.key("content");
        package.resolve("", content).map_err(|refusal| Error::Package { refusal, at })?;
    }
    for (_, spec) in &component.specs {
        check_content(package, spec)?;
    }
    let inside = |requirement: &Requirement| {
        requirement.fulfilled_by.iter().try_for_each(|by| match by {
            Fulfilment::InLine(inline) => check_content(package, inline),
            _ => Ok(()),
        })
    };
    component.requires.iter().try_for_each(inside)
}
