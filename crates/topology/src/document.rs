//! Reads a document in any of the languages into a graph.

use std::sync::Arc;

use kiln_value::Map;
use kiln_yaml::Document;

use crate::blueprint::{Library, Notes};
use crate::graph::Graph;
use crate::tosca::{self, Files};
use crate::{Refusal, TypeFiles, blueprint, camp};

/// The graph of a document, and the parts without effect. `files` are those that it may import, with itself as `root`;
/// `given` are values for inputs; `types` are those of files.
pub(crate) fn graph(
    text: &str,
    document: &Document,
    root: &str,
    files: &dyn Files,
    given: &Map,
    types: &Arc<TypeFiles>,
) -> Result<(Graph, Notes), Vec<Refusal>> {
    if document.value.get("tosca_definitions_version").is_some() {
        let template = tosca::read_with(files, root, given, types).map_err(|(_, refusals)| refusals)?;
        return Ok((template.graph, Vec::new()));
    }
    let read = if document.value.get("camp_version").is_some() { camp::read } else { blueprint::read };
    read(text, &Library::of(types)?).map_err(|(_, refusals)| refusals)?.graph()
}
