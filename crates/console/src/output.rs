//! Prints results to standard output in the formats of the `openstack` client (cliff's formatters).

mod csv;
mod json;
mod table;
mod yaml;

pub use table::terminal_width;

use std::borrow::Cow;
use std::io::{self, Write};

use clap::{Args, ValueEnum};
use kiln_value::{Map, Value, text};

pub use self::table::Table;
pub use self::yaml::dump as yaml_text;

/// JSON with line breaks.
pub fn json_text(value: &Value) -> String {
    json::indented(value, json::Charset::Unicode)
}

/// Output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A table with borders.
    Table,
    /// JSON.
    Json,
    /// YAML.
    Yaml,
    /// Only values: one row per line for lists, else one value per line.
    Value,
    /// `name="value"` lines for shells; single objects only.
    Shell,
    /// Comma-separated values; lists only.
    Csv,
    /// One line of text per event; lists of events only.
    Log,
    /// Graphviz graph; lists of resources only.
    Dot,
}

/// The heading of output options, for each of them: one for all would be that of the arguments behind them too.
const HEADING: &str = "Output";

/// Output options.
#[derive(Args, Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub struct OutputArgs {
    /// Output format
    #[arg(short = 'f', long, value_enum, value_name = "FORMAT", help_heading = HEADING)]
    pub format: Option<Format>,
    /// Column to print; may be repeated
    #[arg(short = 'c', long = "column", value_name = "COLUMN", help_heading = HEADING)]
    pub columns: Vec<String>,
    /// Column to sort lists by; may be repeated
    #[arg(long = "sort-column", value_name = "COLUMN", help_heading = HEADING)]
    pub sort_column: Vec<String>,
    /// Sort in descending order
    #[arg(long, help_heading = HEADING)]
    pub sort_descending: bool,
    /// Sort in ascending order (the default of --sort-column)
    #[arg(long, hide = true, help_heading = HEADING)]
    pub sort_ascending: bool,
    /// Print JSON in one line
    #[arg(long, help_heading = HEADING)]
    pub noindent: bool,
    /// Prefix for the names of shell variables
    #[arg(long, value_name = "PREFIX", default_value = "", hide_default_value = true, help_heading = HEADING)]
    pub prefix: String,
    /// Maximum table width; longer cells are wrapped
    #[arg(long, value_name = "COLUMNS", env = "CLIFF_MAX_TERM_WIDTH", hide_env = true, help_heading = HEADING)]
    pub max_width: Option<u16>,
    /// Fit tables to the width of the terminal
    #[arg(long, help_heading = HEADING)]
    pub fit_width: bool,
    /// Print an empty table if there are no rows
    #[arg(long, hide = true, help_heading = HEADING)]
    pub print_empty: bool,
    /// CSV values to quote
    #[arg(long = "quote", value_enum, value_name = "MODE", default_value = "nonnumeric", hide = true, help_heading = HEADING)]
    pub quote: csv::Quote,
}

/// How a table shows a list or a map; other formats print its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// As Python prints it.
    Plain,
    /// As indented JSON.
    Json,
    /// As YAML.
    Yaml,
    /// As `href (rel)` lines.
    Links,
    /// As text wrapped at 55 characters.
    Wrapped,
}

/// A value and how a table shows it.
#[derive(Clone, Debug)]
pub struct Cell {
    value: Value,
    look: Look,
}

impl Cell {
    /// A cell with the given look.
    pub fn with(value: impl Into<Value>, look: Look) -> Self {
        Self { value: value.into(), look }
    }

    /// The text in a table.
    pub(crate) fn shown(&self) -> String {
        let shown = match self.look {
            Look::Plain => text::str(&self.value),
            Look::Json => json::indented(&self.value, json::Charset::Unicode),
            Look::Yaml => yaml::dump(&self.value),
            Look::Links => links(&self.value),
            Look::Wrapped => wrapped(self.value.as_str().unwrap_or_default(), 55, "").join("\n"),
        };
        visible(&shown.replace("\r\n", "\n").replace('\r', " ")).into_owned()
    }
}

impl<T: Into<Value>> From<T> for Cell {
    fn from(value: T) -> Self {
        Self { value: value.into(), look: Look::Plain }
    }
}

/// A text of others for a terminal: control characters, which could change what else is shown, and marks of direction are
/// escaped. Lines and tabs stay.
pub fn visible(text: &str) -> Cow<'_, str> {
    let is_hidden = |c: char| {
        (c.is_control() && !matches!(c, '\n' | '\t')) || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    if !text.contains(is_hidden) {
        return Cow::Borrowed(text);
    }
    let escaped = |c: char| if is_hidden(c) { c.escape_default().to_string() } else { c.to_string() };
    Cow::Owned(text.chars().map(escaped).collect())
}

/// A text of others for HTML or SVG: nothing in it is a tag or ends an attribute, and control characters are [`visible`].
pub(crate) fn markup(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in visible(text).chars() {
        match character {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\'' => out += "&#39;",
            other => out.push(other),
        }
    }
    out
}

fn links(value: &Value) -> String {
    let lines = value.as_list().unwrap_or_default().iter().map(|link| {
        let href = link.str_at("href").unwrap_or_default();
        link.str_at("rel").map_or_else(|| href.to_owned(), |rel| format!("{href} ({rel})"))
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Lines of at most `width` characters, or one longer word; those after the first begin with `indent`.
pub fn wrapped(text: &str, width: usize, indent: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            Some(_) => lines.push(format!("{indent}{word}")),
            None => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Rows and column names.
#[derive(Clone, Debug, Default)]
pub struct List {
    /// Names of the columns.
    pub columns: Vec<String>,
    /// The rows, with one cell per column.
    pub rows: Vec<Vec<Cell>>,
}

impl List {
    /// One row for each object: the values of these keys below these names.
    pub fn of<'a>(objects: impl IntoIterator<Item = &'a Value>, columns: &[(&str, &str)]) -> Self {
        let row = |object: &Value| columns.iter().map(|(_, key)| Cell::from(object.get(key).cloned())).collect();
        Self {
            columns: columns.iter().map(|(name, _)| (*name).to_owned()).collect(),
            rows: objects.into_iter().map(row).collect(),
        }
    }

    /// The same list with empty cells instead of null.
    #[must_use]
    pub fn with_empty_cells(mut self) -> Self {
        for cell in self.rows.iter_mut().flatten().filter(|cell| cell.value.is_null()) {
            cell.value = "".into();
        }
        self
    }
}

/// Names and values of one object.
pub type One = Vec<(String, Cell)>;

/// An output error.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    /// `-c` matches none of the columns.
    #[error("No recognized column names in {asked:?}. Recognized columns are {known:?}.")]
    NoColumns {
        /// The requested columns.
        asked: Vec<String>,
        /// The available columns.
        known: Vec<String>,
    },
    /// This command does not support the format.
    #[error("This command does not support {0}")]
    Format(&'static str),
    /// Standard output is closed or full.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Prints a text as it is.
pub fn print(text: &str) -> Result<(), OutputError> {
    print_bytes(text.as_bytes())
}

/// Prints what may be no text.
pub fn print_bytes(bytes: &[u8]) -> Result<(), OutputError> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    Ok(out.flush()?)
}

impl OutputArgs {
    /// Prints a list.
    pub fn list(&self, mut list: List, default: Format) -> Result<(), OutputError> {
        self.sort_rows(&mut list);
        if let Some(keep) = self.kept(&list.columns)? {
            list.rows = list.rows.into_iter().map(|row| pick(row, &keep)).collect();
            list.columns = pick(list.columns, &keep);
        }
        let out = &mut io::stdout().lock();
        match self.format.unwrap_or(default) {
            Format::Table => write!(out, "{}", Table::of_list(&list, self.print_empty).drawn(self.width()))?,
            Format::Json => writeln!(out, "{}", self.json(&rows_as_maps(&list)))?,
            Format::Yaml => write!(out, "{}", yaml::dump(&rows_as_maps(&list)))?,
            Format::Value => {
                for row in &list.rows {
                    let values: Vec<String> = row.iter().map(|cell| text::str(&cell.value)).collect();
                    writeln!(out, "{}", values.join(" "))?;
                }
            }
            Format::Csv => write!(out, "{}", csv::written(&list, self.quote))?,
            Format::Shell => return Err(OutputError::Format("the shell format for lists; use -f value")),
            Format::Log => return Err(OutputError::Format("the log format; it is for events only")),
            Format::Dot => return Err(OutputError::Format("the dot format; it is for resource lists only")),
        }
        Ok(())
    }

    /// Prints one object.
    pub fn one(&self, mut one: One, default: Format) -> Result<(), OutputError> {
        let names: Vec<String> = one.iter().map(|(name, _)| name.clone()).collect();
        if let Some(keep) = self.kept(&names)? {
            one = pick(one, &keep);
        }
        let out = &mut io::stdout().lock();
        match self.format.unwrap_or(default) {
            Format::Table => write!(out, "{}", Table::of_one(&one).drawn(self.width()))?,
            Format::Json => {
                let map: Map = one.into_iter().map(|(name, cell)| (name, cell.value)).collect();
                writeln!(out, "{}", self.json(&map.into()))?;
            }
            Format::Yaml => {
                for (name, cell) in one {
                    write!(out, "{}", yaml::dump(&[(name, cell.value)].into_iter().collect()))?;
                }
            }
            Format::Value => {
                for (_, cell) in &one {
                    writeln!(out, "{}", text::str(&cell.value))?;
                }
            }
            Format::Shell => {
                for (name, cell) in &one {
                    let name = name.to_lowercase().replace([' ', ':', '-'], "_");
                    let value = text::str(&cell.value);
                    writeln!(out, "{}{name}={}", self.prefix, quoted_for_shell(&value))?;
                }
            }
            Format::Csv => return Err(OutputError::Format("CSV for single objects; use -f shell or -f json")),
            Format::Log => return Err(OutputError::Format("the log format; it is for events only")),
            Format::Dot => return Err(OutputError::Format("the dot format; it is for resource lists only")),
        }
        Ok(())
    }

    fn json(&self, value: &Value) -> String {
        if self.noindent { text::json(value) } else { json::indented(value, json::Charset::Ascii) }
    }

    /// The indices of the requested columns, in the requested order; `None` means all.
    fn kept(&self, known: &[String]) -> Result<Option<Vec<usize>>, OutputError> {
        if self.columns.is_empty() {
            return Ok(None);
        }
        let same = |a: &str, b: &str| a.eq_ignore_ascii_case(b);
        let keep: Vec<usize> = (0..known.len())
            .filter(|&i| known.get(i).is_some_and(|name| self.columns.iter().any(|asked| same(asked, name))))
            .collect();
        if keep.is_empty() {
            return Err(OutputError::NoColumns { asked: self.columns.clone(), known: known.to_vec() });
        }
        Ok(Some(keep))
    }

    fn sort_rows(&self, list: &mut List) {
        for column in self.sort_column.iter().rev() {
            let Some(at) = list.columns.iter().position(|name| name.eq_ignore_ascii_case(column)) else { continue };
            let key = |row: &Vec<Cell>| row.get(at).map(|cell| text::str(&cell.value)).unwrap_or_default();
            list.rows.sort_by_cached_key(key);
        }
        if self.sort_descending && !self.sort_column.is_empty() {
            list.rows.reverse();
        }
    }

    fn width(&self) -> Option<u16> {
        match self.max_width {
            Some(width) if width > 0 => Some(width),
            _ if self.fit_width || io::IsTerminal::is_terminal(&io::stdout()) => table::terminal_width(),
            _ => None,
        }
    }
}

fn pick<T>(items: Vec<T>, keep: &[usize]) -> Vec<T> {
    items.into_iter().enumerate().filter(|(i, _)| keep.contains(i)).map(|(_, item)| item).collect()
}

fn rows_as_maps(list: &List) -> Value {
    let rows = list.rows.iter().map(|row| {
        let entries = list.columns.iter().cloned().zip(row.iter().map(|cell| cell.value.clone()));
        Value::Map(entries.collect())
    });
    rows.collect()
}

/// A text in double quotes that a shell takes as it is: it evaluates nothing in it.
fn quoted_for_shell(text: &str) -> String {
    let mut out = String::from('"');
    for c in text.chars() {
        if matches!(c, '"' | '\\' | '$' | '`') {
            out.push('\\');
        }
        out.push(c);
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_evaluates_no_value() {
        for text in ["plain", "a \"b\"", "$(echo run)", "`echo run`", "$HOME", "back\\slash\\", "two\nlines", "!x"] {
            let script = format!("value={}\nprintf %s \"$value\"", quoted_for_shell(text));
            let run = std::process::Command::new("sh").args(["-c", &script]).output().expect("a shell");
            assert_eq!(String::from_utf8_lossy(&run.stdout), text);
        }
    }

    #[test]
    fn texts_of_others_do_not_control_the_terminal() {
        let cell = Cell::from("red \u{1b}[31mtext\u{1b}]0;title\u{7}\u{9b}2J\u{202e}\tand\r\nlines, ümlauts");
        let shown = "red \\u{1b}[31mtext\\u{1b}]0;title\\u{7}\\u{9b}2J\\u{202e}\tand\nlines, ümlauts";
        assert_eq!(cell.shown(), shown);
    }
}
