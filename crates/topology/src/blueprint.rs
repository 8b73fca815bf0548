//! The blueprint language: components and requirements.
//!
//! Source of the behaviour: the proposal "Heat/Blueprints" and, where it is silent, the rules in `docs/topology.md`.
//! [`read`] finds all errors of a document at once.

mod component;
mod existing;
mod form;
mod graph;
mod library;
mod library_types;
mod model;
mod provider;
mod reader;
mod reading;
mod requirement;
mod typed;
mod typing;

pub use graph::Notes;
pub(crate) use library::ComponentTypeId;
pub use library::Library;
pub use model::{Application, Component, Fulfilment, Requirement, TypeFrom};

use kiln_value::Path;
use kiln_yaml::Document;

use crate::Refusal;
use crate::refusal::sort;

/// Reads the text of a blueprint, YAML or JSON.
///
/// Errors: all that the document contains, in the order of their positions, with the document if it is YAML.
pub fn read(text: &str, library: &Library) -> Result<Application, (Option<Document>, Vec<Refusal>)> {
    let document =
        kiln_yaml::parse(text).map_err(|error| (None, vec![Refusal::new("not-yaml", &Path::root(), error.message)]))?;
    read_document(&document, library).map_err(|mut refusals| {
        sort(&mut refusals, &document);
        (Some(document), refusals)
    })
}

/// Reads a parsed blueprint. Errors: all that it contains.
pub fn read_document(document: &Document, library: &Library) -> Result<Application, Vec<Refusal>> {
    reader::Reader::new(library).read(&document.value)
}
