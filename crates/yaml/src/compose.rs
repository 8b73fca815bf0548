//! Converts events to nodes, like PyYAML's composer.

use std::borrow::Cow;
use std::collections::HashMap;

use libyaml_safer::{Event, EventData, Parser, ScalarStyle};

use crate::mark::Mark;
use crate::node::{Content, Extent, Node, NodeId, Tag, Tree};
use crate::{Error, MAX_DEPTH, scalar, tagged};

/// Parses the single document in a text.
pub(crate) fn compose(text: &str) -> Result<Tree, Error> {
    if let Some((offset, c)) = text.chars().enumerate().find(|(_, c)| !is_allowed(*c)) {
        return Err(Error::character(c, offset));
    }
    if text.len() > MAX_LENGTH {
        return Err(Error::at(text, format!("longer than {MAX_LENGTH} bytes"), Mark { line: 0, column: 0 }));
    }
    let apart = tagged::set_apart(text);
    let text = apart.as_deref().unwrap_or(text);
    let ended = EndedText::new(text);
    let mut input = ended.text.as_bytes();
    let mut parser = Parser::new();
    parser.set_input_string(&mut input);
    let (tree, open, anchors) = (Tree::default(), Vec::new(), HashMap::new());
    let mut composer = Composer { text, ended: &ended, parser, tree, open, anchors };
    composer.stream()?;
    Ok(composer.tree)
}

/// Indexes in a tree have 32 bits, and a few escapes are shorter than the characters they represent.
const MAX_LENGTH: usize = 1 << 30;

/// PyYAML's printable characters, and the byte order mark that its reader removes.
fn is_allowed(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='~' | '\u{85}' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}')
        || c >= '\u{10000}'
}

const BREAKS: [char; 5] = ['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}'];

/// A text that ends in a line break. Without one, the scanner panics at the end of block scalars (libyaml-safer 0.3);
/// with an added one, these contain a line break that the text does not have.
struct EndedText<'t> {
    text: Cow<'t, str>,
    /// The number of the last line from 0, if a line break was added to it; otherwise no repair is required.
    last_line: Option<u32>,
    last_line_is_blank: bool,
}

impl<'t> EndedText<'t> {
    fn new(text: &'t str) -> Self {
        if text.is_empty() || text.ends_with(BREAKS) {
            return Self { text: Cow::Borrowed(text), last_line: None, last_line_is_blank: false };
        }
        let breaks = text.matches(BREAKS).count() - text.matches("\r\n").count();
        let last_line = text.rsplit(BREAKS).next().unwrap_or_default();
        Self {
            text: Cow::Owned(format!("{text}\n")),
            last_line: u32::try_from(breaks).ok(),
            last_line_is_blank: last_line.chars().all(|c| c == ' '),
        }
    }

    /// Removes the added line break from a block scalar that contains it.
    fn mend(&self, value: &mut String, end: Mark) {
        if self.last_line.is_none_or(|last| end.line <= last) || !value.ends_with('\n') {
            return;
        }
        let last = value.trim_end_matches('\n').rsplit('\n').next().unwrap_or_default();
        // A blank line may be a kept line break, spaces beyond the indentation, or not part of the scalar.
        let holds_last_line = !self.last_line_is_blank
            || value.len() == 1
            || value.ends_with("\n\n")
            || (!last.is_empty() && last.chars().all(|c| c == ' '));
        if holds_last_line {
            value.pop();
        }
    }
}

struct Composer<'t, 'p> {
    text: &'t str,
    ended: &'t EndedText<'t>,
    parser: Parser<&'p mut &'p [u8]>,
    tree: Tree,
    /// The members so far of the incomplete collections, outer collections first.
    open: Vec<NodeId>,
    anchors: HashMap<String, NodeId>,
}

impl Composer<'_, '_> {
    fn next(&mut self) -> Result<Event, Error> {
        self.parser.parse().map_err(|error| Error::of_parser(&error))
    }

    fn stream(&mut self) -> Result<(), Error> {
        self.next()?;
        let start = self.next()?;
        if matches!(start.data, EventData::StreamEnd) {
            return Ok(());
        }
        let first = self.next()?;
        let began = first.start_mark.into();
        self.tree.root = Some(self.node(first, 0)?);
        self.next()?;
        let after = self.next()?;
        if matches!(after.data, EventData::StreamEnd) {
            return Ok(());
        }
        let context = Some(("expected a single document in the stream", began));
        Err(Error::in_context(self.text, context, "but found another document", after.start_mark.into()))
    }

    fn node(&mut self, event: Event, depth: usize) -> Result<NodeId, Error> {
        let (start, end) = (Mark::from(event.start_mark), Mark::from(event.end_mark));
        if depth > MAX_DEPTH {
            return Err(Error::at(self.text, format!("nested deeper than {MAX_DEPTH} levels"), start));
        }
        let (tag, anchor, content) = match event.data {
            EventData::Alias { anchor } => match self.anchors.get(&anchor) {
                Some(node) => (Tag::Null, None, Content::Alias(*node)),
                None => return Err(Error::at(self.text, format!("found undefined alias '{anchor}'"), start)),
            },
            EventData::Scalar { anchor, tag, mut value, plain_implicit, style, .. } => {
                if matches!(style, ScalarStyle::Literal | ScalarStyle::Folded) {
                    self.ended.mend(&mut value, end);
                }
                let implicit = if plain_implicit { scalar::tag(&value) } else { Tag::Str };
                (self.tag(tag, implicit), anchor, self.tree.scalar_content(&value))
            }
            EventData::SequenceStart { anchor, tag, .. } => (self.tag(tag, Tag::Seq), anchor, Content::EMPTY_SEQUENCE),
            EventData::MappingStart { anchor, tag, .. } => (self.tag(tag, Tag::Map), anchor, Content::EMPTY_MAPPING),
            _ => return Err(Error::at(self.text, "expected the node content", start)),
        };
        let node = self.tree.add(Node { tag, content, at: Extent { start, end } });
        // An anchor is valid before its node is complete: a node may refer to itself, which is refused when values are
        // constructed.
        if let Some(anchor) = anchor {
            self.anchor(anchor, node, start)?;
        }
        if matches!(content, Content::Sequence(_) | Content::Mapping(_)) {
            let first = self.open.len();
            let end = self.members(depth)?;
            self.tree.close(node, self.open.drain(first..), end);
        }
        Ok(node)
    }

    /// The type from the tag of a node, or the implicit type.
    fn tag(&mut self, tag: Option<String>, implicit: Tag) -> Tag {
        tag.filter(|tag| tag != "!").map_or(implicit, |tag| self.tree.tag(tag))
    }

    fn anchor(&mut self, anchor: String, node: NodeId, start: Mark) -> Result<(), Error> {
        let name = kiln_value::text::quote(&anchor);
        let Some(first) = self.anchors.insert(anchor, node) else { return Ok(()) };
        let context = format!("found duplicate anchor {name}; first occurrence");
        let context = Some((context.as_str(), self.tree.at(first).start));
        Err(Error::in_context(self.text, context, "second occurrence", start))
    }

    /// Reads items, or keys and values alternately, up to the end of their collection; returns the position of the end.
    fn members(&mut self, depth: usize) -> Result<Mark, Error> {
        loop {
            let event = self.next()?;
            if matches!(event.data, EventData::SequenceEnd | EventData::MappingEnd) {
                return Ok(event.end_mark.into());
            }
            let member = self.node(event, depth + 1)?;
            self.open.push(member);
        }
    }
}
