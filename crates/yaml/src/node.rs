//! A text as a graph of nodes without resolved types.

use std::ops::Range;

use kiln_value::Span;

use crate::mark::Mark;

/// The index of a node in its [`Tree`].
pub(crate) type NodeId = u32;

/// All nodes of a document in a few long allocations. The size is limited by that of the text, since an alias only
/// refers to the node of its anchor.
#[derive(Default)]
pub(crate) struct Tree {
    nodes: Vec<Node>,
    /// The strings of all scalars.
    texts: String,
    /// The members of all collections.
    members: Vec<NodeId>,
    /// Tags that are not types of PyYAML.
    tags: Vec<String>,
    pub(crate) root: Option<NodeId>,
}

/// A range of a [`Tree`]'s strings or members.
#[derive(Clone, Copy)]
pub(crate) struct Piece {
    start: u32,
    end: u32,
}

impl Piece {
    fn new(start: usize, end: usize) -> Self {
        Self { start: short(start), end: short(end) }
    }

    fn range(self) -> Range<usize> {
        long(self.start)..long(self.end)
    }
}

/// The composer refuses texts for which this conversion would not be exact.
fn short(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

fn long(n: u32) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}

impl Tree {
    pub(crate) fn add(&mut self, node: Node) -> NodeId {
        self.nodes.push(node);
        short(self.nodes.len() - 1)
    }

    /// Sets the members of a collection, and its end.
    pub(crate) fn close(&mut self, id: NodeId, members: impl Iterator<Item = NodeId>, end: Mark) {
        let start = self.members.len();
        self.members.extend(members);
        let members = Piece::new(start, self.members.len());
        if let Some(node) = self.nodes.get_mut(long(id)) {
            node.at.end = end;
            if let Content::Sequence(piece) | Content::Mapping(piece) = &mut node.content {
                *piece = members;
            }
        }
    }

    pub(crate) fn scalar_content(&mut self, text: &str) -> Content {
        let start = self.texts.len();
        self.texts.push_str(text);
        Content::Scalar(Piece::new(start, self.texts.len()))
    }

    /// The type for a complete tag.
    pub(crate) fn tag(&mut self, name: String) -> Tag {
        Tag::known(&name).unwrap_or_else(|| {
            self.tags.push(name);
            Tag::Other(short(self.tags.len() - 1))
        })
    }

    /// The number of nodes, and the total length of their strings.
    pub(crate) fn size(&self) -> (usize, usize) {
        (self.nodes.len(), self.texts.len())
    }

    /// The position of a node. The position of an alias is not that of the node it refers to.
    pub(crate) fn at(&self, id: NodeId) -> Extent {
        self.nodes[long(id)].at
    }

    /// The node; for an alias, the node that it refers to.
    pub(crate) fn target(&self, id: NodeId) -> (NodeId, &Node) {
        match &self.nodes[long(id)] {
            Node { content: Content::Alias(target), .. } => (*target, &self.nodes[long(*target)]),
            node => (id, node),
        }
    }

    /// The string of a scalar.
    pub(crate) fn text(&self, piece: Piece) -> &str {
        &self.texts[piece.range()]
    }

    /// The items of a sequence.
    pub(crate) fn items(&self, piece: Piece) -> &[NodeId] {
        &self.members[piece.range()]
    }

    /// The keys and values of a mapping.
    pub(crate) fn entries(&self, piece: Piece) -> impl Iterator<Item = (NodeId, NodeId)> + Clone {
        self.items(piece).chunks_exact(2).map(|entry| (entry[0], entry[1]))
    }

    /// Whether a key merges the entries of another mapping.
    pub(crate) fn is_merge(&self, key: NodeId) -> bool {
        self.target(key).1.tag == Tag::Merge
    }

    /// The complete tag of a type that cannot be constructed.
    pub(crate) fn unknown_name(&self, tag: Tag) -> String {
        match tag {
            Tag::Other(index) => self.tags.get(long(index)).cloned().unwrap_or_default(),
            other => format!("{PREFIX}{other:?}").to_lowercase(),
        }
    }
}

/// From the first character to the position after the last.
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

#[derive(Clone, Copy)]
pub(crate) enum Content {
    Scalar(Piece),
    Sequence(Piece),
    Mapping(Piece),
    Alias(NodeId),
}

impl Content {
    pub(crate) const EMPTY_SEQUENCE: Self = Self::Sequence(Piece { start: 0, end: 0 });
    pub(crate) const EMPTY_MAPPING: Self = Self::Mapping(Piece { start: 0, end: 0 });

    /// PyYAML's name of the kind.
    pub(crate) fn kind(self) -> &'static str {
        match self {
            Self::Scalar(_) => "scalar",
            Self::Sequence(_) => "sequence",
            Self::Mapping(_) => "mapping",
            Self::Alias(_) => "alias",
        }
    }
}

/// The type of a node, from its tag or derived from its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// Never an implicit type, but PyYAML looks for its constructor.
    Yaml,
    /// Any other, by its index in the tags of the tree.
    Other(u32),
}

const PREFIX: &str = "tag:yaml.org,2002:";

impl Tag {
    /// The type of a complete tag; `None` if the tag is unknown.
    fn known(tag: &str) -> Option<Self> {
        Some(match tag.strip_prefix(PREFIX)? {
            "null" => Self::Null,
            "bool" => Self::Bool,
            "int" => Self::Int,
            "float" => Self::Float,
            "str" => Self::Str,
            "binary" => Self::Binary,
            "timestamp" => Self::Timestamp,
            "merge" => Self::Merge,
            "value" => Self::Value,
            "seq" => Self::Seq,
            "map" => Self::Map,
            "set" => Self::Set,
            "omap" => Self::Omap,
            "pairs" => Self::Pairs,
            _ => return None,
        })
    }
}
