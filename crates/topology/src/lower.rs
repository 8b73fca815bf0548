//! Lowering: from a graph to a HOT template, deterministically, with the places that its resources are from.
//!
//! What the types become is data (`topology-types/tosca/hot.yaml`); software, policies and functions have code. What
//! depends on the cloud, such as the flavor of a server, becomes a parameter with a [`Question`].

mod balancer;
mod cloud_init;
mod connection;
mod function;
mod level;
mod parameter;
mod policy;
mod rule;
mod rules;
mod scaling;
mod security;
mod server_software;
mod state;

use std::collections::BTreeMap;

use kiln_value::{Path, Value};

use crate::question::Question;

pub use cloud_init::by_cloud_init;
pub(crate) use rules::Rules;
pub(crate) use server_software::{CONTENT, IMAGE};
pub use state::lower;

/// A HOT template and what belongs to it.
#[derive(Clone, Debug, Default)]
pub struct Lowered {
    /// The template.
    pub template: Value,
    /// Nested templates by the name that the template uses.
    pub nested: BTreeMap<String, Value>,
    /// The files that templates read.
    pub files: Vec<File>,
    /// What only the cloud can answer; each is a parameter without a default.
    pub questions: Vec<Question>,
    /// The parts of the template that stand for a part of the original, by resource or output.
    pub sources: BTreeMap<String, Source>,
    /// What has no effect, and why.
    pub notes: Vec<Note>,
    /// Scripts that do at the first boot what other hooks than scripts do with an agent: by the nested template, if it is
    /// in one, and the configuration.
    pub at_boot: BTreeMap<(Option<String>, String), String>,
}

/// A file that templates read with `get_file`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// The name that templates use.
    pub name: String,
    /// The file, from the root of the package or folder, or a URL.
    pub from: String,
    /// Whether the content is encoded in base64, as it need not be a text.
    pub is_base64: bool,
}

/// Where a part of a template is from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The file, if it is not the one that was given.
    pub file: Option<String>,
    /// The path in it.
    pub at: Path,
}

/// A part of the original that has no effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The place.
    pub source: Source,
    /// What and why.
    pub message: String,
}
