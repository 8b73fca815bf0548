//! Finds the reason why a text is not valid YAML, with the messages of PyYAML's own parser.
//!
//! Heat parses with libyaml, and on failure again in Python, only for the message. The two differ in messages,
//! positions and in the order in which they find errors. This parser therefore follows PyYAML; it only runs for refused
//! texts and does not construct values.

mod scanner;
mod token;

use std::collections::HashMap;

use scanner::Scanner;
use token::{Kind, Token};

use crate::MAX_DEPTH;
use crate::mark::Mark;

/// An error with its context.
#[derive(Debug)]
pub(crate) struct Refusal {
    /// The construct that was being parsed, and where it began.
    pub(crate) context: Option<(String, Mark)>,
    pub(crate) problem: String,
    pub(crate) mark: Mark,
}

/// The first error in a text; `None` if there is none.
pub(crate) fn refusal(text: &str) -> Option<Refusal> {
    let mut grammar = Grammar { tokens: Scanner::new(text), handles: Vec::new(), anchors: HashMap::new(), depth: 0 };
    match grammar.stream() {
        Err(Stop::Refused(refusal)) => Some(*refusal),
        Ok(()) | Err(Stop::GivenUp) => None,
    }
}

/// The reason why parsing stops early.
#[derive(Debug)]
enum Stop {
    Refused(Box<Refusal>),
    /// Nested too deeply, or an error whose message only Python can produce.
    GivenUp,
}

type Outcome<T = ()> = Result<T, Stop>;

fn refuse<T>(problem: impl Into<String>, mark: Mark) -> Outcome<T> {
    Err(Stop::Refused(Box::new(Refusal { context: None, problem: problem.into(), mark })))
}

fn refuse_in<T>(context: impl Into<String>, began: Mark, problem: impl Into<String>, mark: Mark) -> Outcome<T> {
    let context = Some((context.into(), began));
    Err(Stop::Refused(Box::new(Refusal { context, problem: problem.into(), mark })))
}

/// A string as Python prints it.
fn quote(text: &str) -> String {
    kiln_value::text::quote(text)
}

struct Grammar {
    tokens: Scanner,
    /// The tag handles declared by directives of the document.
    handles: Vec<String>,
    /// Where the nodes with anchors begin.
    anchors: HashMap<String, Mark>,
    depth: usize,
}

impl Grammar {
    fn next_is(&mut self, kinds: &[Kind]) -> Outcome<bool> {
        Ok(kinds.contains(&self.tokens.peek()?.kind))
    }

    /// Consumes the next token if it is of this kind.
    fn take(&mut self, kind: Kind) -> Outcome<Option<Token>> {
        if self.tokens.peek()?.kind == kind { self.tokens.take().map(Some) } else { Ok(None) }
    }

    fn unexpected<T>(&mut self, context: &str, began: Mark, expected: &str) -> Outcome<T> {
        let token = self.tokens.peek()?;
        refuse_in(context, began, format!("{expected} {}", quote(token.kind.name())), token.start)
    }

    fn stream(&mut self) -> Outcome {
        use Kind::{Directive, DocumentEnd, DocumentStart, StreamEnd};
        self.handles = vec!["!".to_owned(), "!!".to_owned()];
        if self.next_is(&[StreamEnd])? {
            return Ok(());
        }
        let began = if self.next_is(&[Directive, DocumentStart])? {
            if !self.document_start()? {
                return Ok(());
            }
            let began = self.tokens.peek()?.start;
            if !self.next_is(&[Directive, DocumentStart, DocumentEnd, StreamEnd])? {
                self.node(true, false)?;
            }
            began
        } else {
            let began = self.tokens.peek()?.start;
            self.node(true, false)?;
            began
        };
        self.take(DocumentEnd)?;
        let after = self.tokens.peek()?.start;
        if self.document_start()? {
            return refuse_in("expected a single document in the stream", began, "but found another document", after);
        }
        Ok(())
    }

    /// The start of a document; false at the end of the stream.
    fn document_start(&mut self) -> Outcome<bool> {
        while self.take(Kind::DocumentEnd)?.is_some() {}
        if self.next_is(&[Kind::StreamEnd])? {
            return Ok(false);
        }
        self.directives()?;
        if self.take(Kind::DocumentStart)?.is_none() {
            let token = self.tokens.peek()?;
            let found = quote(token.kind.name());
            return refuse(format!("expected '<document start>', but found {found}"), token.start);
        }
        Ok(true)
    }

    fn directives(&mut self) -> Outcome {
        let mut has_version = false;
        let mut declared: Vec<String> = Vec::new();
        while let Some(token) = self.take(Kind::Directive)? {
            match token.text.split_once(' ') {
                Some(("YAML", _)) if has_version => return refuse("found duplicate YAML directive", token.start),
                Some(("YAML", "1")) => has_version = true,
                Some(("YAML", _)) => {
                    return refuse("found incompatible YAML document (version 1.* is required)", token.start);
                }
                Some(("TAG", handle)) if declared.iter().any(|known| known == handle) => {
                    return refuse(format!("duplicate tag handle {}", quote(handle)), token.start);
                }
                Some(("TAG", handle)) => declared.push(handle.to_owned()),
                _ => {}
            }
        }
        self.handles.extend(declared);
        Ok(())
    }

    /// A node; with `indentless`, a sequence may have the indentation of the mapping that contains it.
    fn node(&mut self, block: bool, indentless: bool) -> Outcome {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Stop::GivenUp);
        }
        let outcome = self.deep_node(block, indentless);
        self.depth -= 1;
        outcome
    }

    fn deep_node(&mut self, block: bool, indentless: bool) -> Outcome {
        if let Some(alias) = self.take(Kind::Alias)? {
            let is_known = self.anchors.contains_key(&alias.text);
            let problem = || format!("found undefined alias {}", quote(&alias.text));
            return if is_known { Ok(()) } else { refuse(problem(), alias.start) };
        }
        let began = self.tokens.peek()?.start;
        let mut anchor = self.take(Kind::Anchor)?;
        let mut has_properties = anchor.is_some();
        if let Some(tag) = self.take(Kind::Tag)? {
            if anchor.is_none() {
                anchor = self.take(Kind::Anchor)?;
            }
            has_properties = true;
            if !tag.text.is_empty() && !self.handles.contains(&tag.text) {
                let problem = format!("found undefined tag handle {}", quote(&tag.text));
                return refuse_in("while parsing a node", began, problem, tag.start);
            }
        }
        let kind = self.tokens.peek()?.kind;
        // With an anchor, there is a node, if only an empty one.
        if let Some(anchor) = anchor {
            self.know(anchor.text, began)?;
        }
        match kind {
            Kind::BlockEntry if indentless => self.indentless_sequence(),
            Kind::Scalar => self.tokens.take().map(|_| ()),
            Kind::FlowSequenceStart => self.flow_sequence(),
            Kind::FlowMappingStart => self.flow_mapping(),
            Kind::BlockSequenceStart if block => self.block_sequence(),
            Kind::BlockMappingStart if block => self.block_mapping(),
            _ if has_properties => Ok(()),
            _ => {
                let context = if block { "while parsing a block node" } else { "while parsing a flow node" };
                self.unexpected(context, began, "expected the node content, but found")
            }
        }
    }

    /// A node with an anchor begins.
    fn know(&mut self, anchor: String, began: Mark) -> Outcome {
        let context = format!("found duplicate anchor {}; first occurrence", quote(&anchor));
        match self.anchors.insert(anchor, began) {
            Some(first) => refuse_in(context, first, "second occurrence", began),
            None => Ok(()),
        }
    }

    /// A node, or an empty one if one of these tokens follows.
    fn node_unless(&mut self, kinds: &[Kind], block: bool) -> Outcome {
        if self.next_is(kinds)? { Ok(()) } else { self.node(block, block) }
    }

    fn indentless_sequence(&mut self) -> Outcome {
        while self.take(Kind::BlockEntry)?.is_some() {
            if !self.next_is(&[Kind::BlockEntry, Kind::Key, Kind::Value, Kind::BlockEnd])? {
                self.node(true, false)?;
            }
        }
        Ok(())
    }

    fn block_sequence(&mut self) -> Outcome {
        let began = self.tokens.take()?.start;
        while self.take(Kind::BlockEntry)?.is_some() {
            if !self.next_is(&[Kind::BlockEntry, Kind::BlockEnd])? {
                self.node(true, false)?;
            }
        }
        match self.take(Kind::BlockEnd)? {
            Some(_) => Ok(()),
            None => self.unexpected("while parsing a block collection", began, "expected <block end>, but found"),
        }
    }

    fn block_mapping(&mut self) -> Outcome {
        let ends = [Kind::Key, Kind::Value, Kind::BlockEnd];
        let began = self.tokens.take()?.start;
        while self.take(Kind::Key)?.is_some() {
            self.node_unless(&ends, true)?;
            if self.take(Kind::Value)?.is_some() {
                self.node_unless(&ends, true)?;
            }
        }
        match self.take(Kind::BlockEnd)? {
            Some(_) => Ok(()),
            None => self.unexpected("while parsing a block mapping", began, "expected <block end>, but found"),
        }
    }

    fn flow_sequence(&mut self) -> Outcome {
        let began = self.tokens.take()?.start;
        let mut is_first = true;
        while self.take(Kind::FlowSequenceEnd)?.is_none() {
            if !is_first && self.take(Kind::FlowEntry)?.is_none() {
                return self.unexpected("while parsing a flow sequence", began, "expected ',' or ']', but got");
            }
            is_first = false;
            self.flow_member(Kind::FlowSequenceEnd)?;
        }
        Ok(())
    }

    fn flow_mapping(&mut self) -> Outcome {
        let began = self.tokens.take()?.start;
        let mut is_first = true;
        while self.take(Kind::FlowMappingEnd)?.is_none() {
            if !is_first && self.take(Kind::FlowEntry)?.is_none() {
                return self.unexpected("while parsing a flow mapping", began, "expected ',' or '}', but got");
            }
            is_first = false;
            self.flow_member(Kind::FlowMappingEnd)?;
        }
        Ok(())
    }

    /// An item, or a key with its value.
    fn flow_member(&mut self, end: Kind) -> Outcome {
        if self.take(Kind::Key)?.is_none() {
            return self.node_unless(&[end], false);
        }
        self.node_unless(&[Kind::Value, Kind::FlowEntry, end], false)?;
        if self.take(Kind::Value)?.is_some() {
            self.node_unless(&[Kind::FlowEntry, end], false)?;
        }
        Ok(())
    }
}
