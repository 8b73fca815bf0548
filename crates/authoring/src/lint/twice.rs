//! Redundant definitions.

use std::collections::{HashMap, HashSet};

use kiln_value::{Path, Position, Segment, Span};
use libyaml_safer::{Event, EventData, Mark, Parser};

use super::{Findings, Subject};
use crate::mention::{Manner, Role};

/// Reads the text itself: the value contains only the last of equal keys.
pub(super) fn keys(subject: &Subject, findings: &mut Findings) {
    let page = subject.page;
    let mut text = page.text.clone();
    text.push('\n');
    let mut input = text.as_bytes();
    let mut parser = Parser::new();
    parser.set_input_string(&mut input);
    let mut open: Vec<Open> = Vec::new();
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
                    let span = span(&event);
                    let path = page.at(span.start).0;
                    let message = format!("duplicate key \"{value}\": only the last one is used");
                    let hint = format!("the first one is on line {}", first.line + 1);
                    findings.add(message, path, span, Some(hint));
                }
            }
            _ => {}
        }
    }
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

pub(super) fn depends_on(subject: &Subject, findings: &mut Findings) {
    // References by the entry that contains them; only those that do not depend on conditions.
    let not_counted = ["if", "Fn::If", "update_policy", "external_id"];
    let is_sure = |path: &Path| {
        !path.0.iter().any(|step| matches!(step, Segment::Key(key) if not_counted.contains(&key.as_str())))
    };
    let used: HashSet<(&[Segment], &str)> = subject
        .mentions
        .iter()
        .filter(|mention| mention.role == Role::Resource && mention.manner == Manner::Used && is_sure(&mention.path))
        .filter_map(|mention| Some((mention.path.0.get(..2)?, mention.name.as_str())))
        .collect();
    for awaited in subject.mentions.iter().filter(|mention| mention.manner == Manner::Awaited) {
        if awaited.path.0.get(..2).is_some_and(|entry| used.contains(&(entry, awaited.name.as_str()))) {
            let message = format!("depends_on is not needed: the resource refers to \"{}\"", awaited.name);
            findings.add(message, awaited.path.clone(), awaited.span, None);
        }
    }
}
