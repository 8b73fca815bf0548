//! Lowering: from a graph to a HOT template, deterministically, with the places that its resources are from.
//!
//! What the types become is data (`topology-types/tosca/hot.yaml`); software, policies and functions have code. What
//! depends on the cloud, such as the flavor of a server, becomes a parameter with a [`Question`].

mod balancer;
mod cloud_init;
mod function;
mod parameter;
mod policy;
mod rule;
mod scaling;
mod software;
mod state;

use std::collections::BTreeMap;

use kiln_value::{Map, Path, Value};

pub use cloud_init::by_cloud_init;
pub(crate) use software::CONTENT;
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

/// A value that depends on the cloud.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// The parameter.
    pub parameter: String,
    /// The place that asks.
    pub source: Source,
    /// What is asked for.
    pub wanted: Wanted,
}

/// What a question asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Wanted {
    /// A flavor with at least so much; absent parts do not matter.
    Flavor {
        /// Virtual processors.
        cpus: Option<i64>,
        /// Memory in MiB.
        memory: Option<i64>,
        /// Disk in GiB.
        disk: Option<i64>,
    },
    /// An image with these properties, such as `os_distro`.
    Image(Map),
    /// A network.
    Network,
    /// A subnet.
    Subnet,
    /// A range of addresses for a new network.
    Addresses,
    /// A DNS zone that contains this name.
    Zone(String),
}

impl Wanted {
    /// What is asked for, as a sentence.
    pub fn text(&self) -> String {
        match self {
            Self::Flavor { cpus, memory, disk } => {
                let parts = [(cpus, "CPUs"), (memory, "MiB of memory"), (disk, "GiB of disk")];
                let parts: Vec<String> =
                    parts.iter().filter_map(|(size, unit)| size.map(|size| format!("{size} {unit}"))).collect();
                if parts.is_empty() {
                    "A flavor.".to_owned()
                } else {
                    format!("A flavor with at least {}.", parts.join(", "))
                }
            }
            Self::Image(wanted) if wanted.is_empty() => "An image.".to_owned(),
            Self::Image(wanted) => {
                let parts: Vec<String> =
                    wanted.iter().map(|(name, value)| format!("{name} {}", kiln_value::text::str(value))).collect();
                format!("An image with {}.", parts.join(", "))
            }
            Self::Network => "A network.".to_owned(),
            Self::Zone(name) => format!("A zone for the name {name}."),
            Self::Subnet => "A subnet.".to_owned(),
            Self::Addresses => "A range of addresses for a new network, such as 192.168.5.0/24.".to_owned(),
        }
    }
}
