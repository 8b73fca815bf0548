//! Errors with the texts of PyYAML.

use std::fmt;

use kiln_value::Position;

use crate::mark::Mark;

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
        Self { kind: ErrorKind::Syntax, message, position: Some(mark.into()) }
    }

    /// A value that is not of its type.
    pub(crate) fn value(message: impl Into<String>, mark: Mark) -> Self {
        Self { kind: ErrorKind::Value, message: message.into(), position: Some(mark.into()) }
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
        let context = error.context().zip(error.context_mark().map(Mark::from));
        match error.problem_mark().map(Mark::from) {
            Some(mark) => Self::in_context(text, context, &in_pyyamls_words(error.problem(), text, mark), mark),
            None => Self { kind: ErrorKind::Syntax, message: error.to_string(), position: None },
        }
    }
}

/// The problem as PyYAML's own parser words it, which is the one that Heat asks for its messages.
fn in_pyyamls_words(problem: &str, text: &str, mark: Mark) -> String {
    let rest = rest_of_line(text, mark);
    let found = found_token(rest);
    let char = rest.chars().next().map(|c| kiln_value::text::quote(&c.to_string())).unwrap_or_default();
    match problem {
        "mapping values are not allowed in this context" => "mapping values are not allowed here".to_owned(),
        "mapping keys are not allowed in this context" => "mapping keys are not allowed here".to_owned(),
        "block sequence entries are not allowed in this context" => "sequence entries are not allowed here".to_owned(),
        "found character that cannot start any token" => format!("found character {char} that cannot start any token"),
        "did not find expected alphabetic or numeric character" if !char.is_empty() => {
            format!("expected alphabetic or numeric character, but found {char}")
        }
        "did not find expected ',' or ']'" => format!("expected ',' or ']', but got '{found}'"),
        "did not find expected ',' or '}'" => format!("expected ',' or '}}', but got '{found}'"),
        "did not find expected <document start>" => format!("expected '<document start>', but found '{found}'"),
        "did not find expected node content" => format!("expected the node content, but found '{found}'"),
        "did not find expected key" | "did not find expected '-' indicator" => {
            format!("expected <block end>, but found '{found}'")
        }
        problem => problem.to_owned(),
    }
}

/// PyYAML's name of the token that a text begins with.
fn found_token(text: &str) -> &'static str {
    let before_blank =
        |token: &str| text.strip_prefix(token).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '));
    match text.chars().next() {
        None => "<stream end>",
        Some('[') => "[",
        Some(']') => "]",
        Some('{') => "{",
        Some('}') => "}",
        Some(',') => ",",
        Some('*') => "<alias>",
        Some('&') => "<anchor>",
        Some('!') => "<tag>",
        Some(_) if before_blank("---") => "<document start>",
        Some(_) if before_blank("...") => "<document end>",
        Some(_) if before_blank("-") => "-",
        Some(_) if before_blank("?") => "?",
        Some(_) if before_blank(":") => ":",
        Some(_) => "<scalar>",
    }
}

/// The line from a mark on.
fn rest_of_line(text: &str, mark: Mark) -> &str {
    let line = line_of(text, mark);
    let column = usize::try_from(mark.column).unwrap_or(usize::MAX);
    line.char_indices().nth(column).and_then(|(start, _)| line.get(start..)).unwrap_or_default()
}

/// The text of a line, without its break.
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

/// `in "<unicode string>", line 1, column 5:` and the line with a mark below it, as PyYAML cuts it.
fn place(text: &str, mark: Mark) -> String {
    const MOST: usize = 75;
    let line = line_of(text, mark);
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
    let Position { line, column } = mark.into();
    format!("  in \"<unicode string>\", line {line}, column {column}:\n    {head}{snippet}{tail}\n{indent}^")
}

fn is_break(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}
