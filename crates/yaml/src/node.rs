//! A text as a graph of nodes, before their types are known.

use kiln_value::Span;

use crate::mark::Mark;

/// The place of a node in its [`Tree`].
pub(crate) type NodeId = usize;

/// All nodes of a document. An alias is its anchor's id once more, so the size is bounded by that of the text.
#[derive(Default)]
pub(crate) struct Tree {
    pub(crate) nodes: Vec<Node>,
    pub(crate) root: Option<Link>,
}

impl Tree {
    /// Whether a key brings in the entries of another mapping.
    pub(crate) fn is_merge(&self, key: Link) -> bool {
        self.nodes.get(key.node).is_some_and(|node| node.tag == Tag::Merge)
    }
}

/// A node as its parent refers to it.
#[derive(Clone, Copy)]
pub(crate) struct Link {
    pub(crate) node: NodeId,
    /// Where the reference stands: for an alias not where the node does.
    pub(crate) at: Extent,
}

/// From a first character to behind the last.
#[derive(Clone, Copy)]
pub(crate) struct Extent {
    pub(crate) start: Mark,
    pub(crate) end: Mark,
}

impl Extent {
    pub(crate) fn span(self) -> Span {
        Span { start: self.start.into(), end: self.end.into() }
    }
}

pub(crate) struct Node {
    pub(crate) tag: Tag,
    pub(crate) content: Content,
    pub(crate) at: Extent,
}

pub(crate) enum Content {
    Scalar(String),
    Sequence(Vec<Link>),
    Mapping(Vec<(Link, Link)>),
}

impl Content {
    /// PyYAML's name of the kind.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Scalar(_) => "scalar",
            Self::Sequence(_) => "sequence",
            Self::Mapping(_) => "mapping",
        }
    }
}

/// The type of a node, written or found by its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Tag {
    Null,
    Bool,
    Int,
    Float,
    Str,
    Binary,
    Timestamp,
    Merge,
    /// `=`
    Value,
    Seq,
    Map,
    Set,
    Omap,
    Pairs,
    /// Any other, whole.
    Other(String),
}

const PREFIX: &str = "tag:yaml.org,2002:";

impl Tag {
    /// From a whole tag.
    pub(crate) fn new(tag: String) -> Self {
        match tag.strip_prefix(PREFIX) {
            Some("null") => Self::Null,
            Some("bool") => Self::Bool,
            Some("int") => Self::Int,
            Some("float") => Self::Float,
            Some("str") => Self::Str,
            Some("binary") => Self::Binary,
            Some("timestamp") => Self::Timestamp,
            Some("merge") => Self::Merge,
            Some("value") => Self::Value,
            Some("seq") => Self::Seq,
            Some("map") => Self::Map,
            Some("set") => Self::Set,
            Some("omap") => Self::Omap,
            Some("pairs") => Self::Pairs,
            _ => Self::Other(tag),
        }
    }

    /// The whole tag of a type that cannot be constructed.
    pub(crate) fn unknown_name(&self) -> String {
        match self {
            Self::Merge => format!("{PREFIX}merge"),
            Self::Value => format!("{PREFIX}value"),
            Self::Other(tag) => tag.clone(),
            other => format!("{PREFIX}{other:?}").to_lowercase(),
        }
    }
}
