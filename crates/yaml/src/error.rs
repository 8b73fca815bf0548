//! Errors with PyYAML's messages.

use std::fmt;

use kiln_value::Position;

use crate::mark::Mark;
use crate::refusal::{Refusal, refusal};

/// An error in a YAML text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// Whether the syntax or a value is invalid.
    pub kind: ErrorKind,
    /// The complete message of several lines, with a snippet of the source.
    pub message: String,
    /// The position, if there is one.
    pub position: Option<Position>,
}

/// The kind of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// A syntax error: a `YAMLError` of PyYAML.
    Syntax,
    /// A value that does not match its tag: `ValueError`, which Heat returns unchanged.
    Value,
}

/// The start of the message for a refused character: PyYAML checks characters before anything else.
const UNACCEPTABLE: &str = "unacceptable character";

/// Longer texts are not parsed a second time for the message.
const LONGEST_AGAIN: usize = 1 << 24;

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

impl Error {
    /// A problem at a position.
    pub(crate) fn at(text: &str, problem: impl Into<String>, mark: Mark) -> Self {
        Self::in_context(text, None, &problem.into(), mark)
    }

    /// A problem at a position, in the context of something that began at another position.
    pub(crate) fn in_context(text: &str, context: Option<(&str, Mark)>, problem: &str, mark: Mark) -> Self {
        let mut message = String::new();
        if let Some((context, began)) = context {
            message.push_str(context);
            message.push('\n');
            if (began.line, began.column) != (mark.line, mark.column) {
                message.push_str(&place(text, began));
                message.push('\n');
            }
        }
        message.push_str(problem);
        message.push('\n');
        message.push_str(&place(text, mark));
        Self { kind: ErrorKind::Syntax, message, position: Some(mark.into()) }
    }

    /// A value that does not match its type.
    pub(crate) fn value(message: impl Into<String>, mark: Mark) -> Self {
        Self { kind: ErrorKind::Value, message: message.into(), position: Some(mark.into()) }
    }

    /// A character that is not allowed in YAML.
    pub(crate) fn character(c: char, offset: usize) -> Self {
        let message = format!(
            "{UNACCEPTABLE} #x{:04x}: special characters are not allowed\n  in \"<unicode string>\", position \
             {offset}",
            u32::from(c)
        );
        Self { kind: ErrorKind::Syntax, message, position: None }
    }

    /// The same error, or the one that PyYAML's own scanner and parser report for the text: like Heat, which runs them
    /// whenever libyaml has refused a text.
    pub(crate) fn in_pyyamls_words(self, text: &str) -> Self {
        if self.kind != ErrorKind::Syntax || self.message.starts_with(UNACCEPTABLE) || text.len() > LONGEST_AGAIN {
            return self;
        }
        let Some(Refusal { context, problem, mark }) = refusal(text) else { return self };
        let context = context.as_ref().map(|(context, began)| (context.as_str(), *began));
        Self::in_context(text, context, &problem, mark)
    }

    /// An error of libyaml's scanner or parser.
    pub(crate) fn of_parser(error: &libyaml_safer::Error) -> Self {
        let Some(mark) = error.problem_mark().map(Mark::from) else {
            return Self { kind: ErrorKind::Syntax, message: error.to_string(), position: None };
        };
        let place = |mark: Mark| {
            let Position { line, column } = mark.into();
            format!("\n  in \"<unicode string>\", line {line}, column {column}")
        };
        let context = error.context().zip(error.context_mark().map(Mark::from));
        let context = context.map(|(context, began)| format!("{context}{}\n", place(began))).unwrap_or_default();
        let message = format!("{context}{}{}", error.problem(), place(mark));
        Self { kind: ErrorKind::Syntax, message, position: Some(mark.into()) }
    }
}

/// The content of a line, without its line break.
fn line_of(text: &str, mark: Mark) -> &str {
    let mut rest = text;
    for _ in 0..mark.line {
        let end = rest.find(is_break).unwrap_or(rest.len());
        let behind = rest.get(end..).unwrap_or_default();
        let line_break = if behind.starts_with("\r\n") { 2 } else { behind.chars().next().map_or(0, char::len_utf8) };
        rest = behind.get(line_break..).unwrap_or_default();
    }
    rest.get(..rest.find(is_break).unwrap_or(rest.len())).unwrap_or_default()
}

/// `in "<unicode string>", line 1, column 5:` and the line with a mark below it, truncated as in PyYAML.
fn place(text: &str, mark: Mark) -> String {
    const MOST: usize = 75;
    let line = line_of(text, mark);
    // The byte order mark does not count as a column.
    let column =
        usize::try_from(mark.column).unwrap_or(0) + usize::from(mark.line == 0 && line.starts_with('\u{feff}'));
    let chars: Vec<char> = line.chars().collect();
    let column = column.min(chars.len());
    let (mut start, mut head) = (0, "");
    if column >= MOST / 2 {
        (start, head) = (column - MOST / 2 + 5, " ... ");
    }
    let (mut end, mut tail) = (chars.len(), "");
    if end - column >= MOST / 2 {
        (end, tail) = (column + MOST / 2 - 5, " ... ");
    }
    let snippet: String = chars.get(start..end).unwrap_or_default().iter().collect();
    let indent = " ".repeat(4 + column - start + head.len());
    let Position { line, column } = mark.into();
    format!("  in \"<unicode string>\", line {line}, column {column}:\n    {head}{snippet}{tail}\n{indent}^")
}

fn is_break(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}
