//! Errors in the words of PyYAML.

use std::fmt;

use kiln_value::Position;
use libyaml_safer::Mark;

/// Why a text is no YAML.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// Whether the text or a value in it is wrong.
    pub kind: ErrorKind,
    /// The whole text, of several lines, with a snippet of the source.
    pub message: String,
    /// Where, if it is at one place.
    pub position: Option<Position>,
}

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The text: a `YAMLError` of PyYAML.
    Syntax,
    /// A value that is not of the type its tag says: `ValueError`, which Heat passes on as it is.
    Value,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

impl Error {
    /// A problem at a place.
    pub(crate) fn at(text: &str, problem: impl Into<String>, mark: Mark) -> Self {
        Self::in_context(text, None, &problem.into(), mark)
    }

    /// A problem at a place while something else was going on that began at another.
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
        Self { kind: ErrorKind::Syntax, message, position: Some(position(mark)) }
    }

    /// A value that is not of its type.
    pub(crate) fn value(message: impl Into<String>, mark: Mark) -> Self {
        Self { kind: ErrorKind::Value, message: message.into(), position: Some(position(mark)) }
    }

    /// A character that no YAML text may hold.
    pub(crate) fn character(c: char, offset: usize) -> Self {
        let message = format!(
            "unacceptable character #x{:04x}: special characters are not allowed\n  in \"<unicode string>\", position \
             {offset}",
            u32::from(c)
        );
        Self { kind: ErrorKind::Syntax, message, position: None }
    }

    /// What the scanner or parser found.
    pub(crate) fn of_parser(text: &str, error: &libyaml_safer::Error) -> Self {
        let context = error.context().zip(error.context_mark());
        match error.problem_mark() {
            Some(mark) => Self::in_context(text, context, error.problem(), mark),
            None => Self { kind: ErrorKind::Syntax, message: error.to_string(), position: None },
        }
    }
}

/// A mark as people count.
pub(crate) fn position(mark: Mark) -> Position {
    let from_one = |n: u64| u32::try_from(n).unwrap_or(u32::MAX).saturating_add(1);
    Position { line: from_one(mark.line), column: from_one(mark.column) }
}

/// `in "<unicode string>", line 1, column 5:` and the line with a mark below it, as PyYAML cuts it.
fn place(text: &str, mark: Mark) -> String {
    const MOST: usize = 75;
    let line = usize::try_from(mark.line).ok().and_then(|n| text.split(is_break).nth(n)).unwrap_or_default();
    let column = usize::try_from(mark.column).unwrap_or(0);
    let chars: Vec<char> = line.chars().collect();
    let column = column.min(chars.len());
    let (mut start, mut head) = (0, "");
    if column > MOST / 2 {
        (start, head) = (column - MOST / 2 + 5, " ... ");
    }
    let (mut end, mut tail) = (chars.len(), "");
    if end - column > MOST / 2 {
        (end, tail) = (column + MOST / 2 - 5, " ... ");
    }
    let snippet: String = chars.get(start..end).unwrap_or_default().iter().collect();
    let indent = " ".repeat(4 + column - start + head.len());
    let (line, column) = (mark.line + 1, mark.column + 1);
    format!("  in \"<unicode string>\", line {line}, column {column}:\n    {head}{snippet}{tail}\n{indent}^")
}

fn is_break(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}
