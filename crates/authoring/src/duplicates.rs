//! Duplicate keys: YAML and JSON keep only the last one.

use std::collections::HashMap;

use kiln_value::{Position, Span};
use libyaml_safer::{Event, EventData, Mark, Parser};

/// A key that its map has already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Duplicate {
    /// The key.
    pub key: String,
    /// Range of the later one.
    pub span: Span,
    /// The line of the earlier one, from 1.
    pub first: u64,
}

impl Duplicate {
    /// What is wrong.
    pub fn message(&self) -> String {
        format!("duplicate key \"{}\": only the last one is used", self.key)
    }

    /// Where the earlier one is.
    pub fn hint(&self) -> String {
        format!("the first one is on line {}", self.first)
    }
}

/// The duplicate keys in a text, which is read up to its first error.
pub fn duplicates(text: &str) -> Vec<Duplicate> {
    let text = format!("{text}\n");
    let mut input = text.as_bytes();
    let mut parser = Parser::new();
    parser.set_input_string(&mut input);
    let mut open: Vec<Open> = Vec::new();
    let mut found = Vec::new();
    // JSON has a different parser, but this one reads its keys as well.
    while let Ok(event) = parser.parse() {
        match &event.data {
            EventData::StreamEnd => break,
            EventData::MappingStart { .. } => {
                began(&mut open);
                open.push(Open::Map { keys: HashMap::new(), next_is_key: true });
            }
            EventData::SequenceStart { .. } => {
                began(&mut open);
                open.push(Open::List);
            }
            EventData::MappingEnd | EventData::SequenceEnd => _ = open.pop(),
            EventData::Alias { .. } => _ = began(&mut open),
            EventData::Scalar { value, .. } => {
                if let Some(keys) = began(&mut open)
                    && let Some(first) = keys.insert(value.clone(), event.start_mark)
                    && value != "<<"
                {
                    found.push(Duplicate { key: value.clone(), span: span(&event), first: first.line + 1 });
                }
            }
            _ => {}
        }
    }
    found
}

/// A collection that is being parsed.
enum Open {
    Map { keys: HashMap<String, Mark>, next_is_key: bool },
    List,
}

/// Records the start of a node; returns the keys so far, if the node is a key.
fn began(open: &mut [Open]) -> Option<&mut HashMap<String, Mark>> {
    let Some(Open::Map { keys, next_is_key }) = open.last_mut() else { return None };
    let is_key = *next_is_key;
    *next_is_key = !is_key;
    is_key.then_some(keys)
}

fn span(event: &Event) -> Span {
    let number = |n: u64| u32::try_from(n).unwrap_or(u32::MAX).saturating_add(1);
    let position = |mark: Mark| Position { line: number(mark.line), column: number(mark.column) };
    Span { start: position(event.start_mark), end: position(event.end_mark) }
}
