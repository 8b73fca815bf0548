//! One event of the log, and its forms.

use std::fmt::{self, Write as _};

use anstyle::{AnsiColor, Style};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata};

use crate::spans::{self, Ids};

/// An event.
pub(super) struct Record {
    time: Timestamp,
    pub(super) about: &'static Metadata<'static>,
    pub(super) message: String,
    pub(super) fields: Vec<(&'static str, Shown)>,
    pub(super) ids: Ids,
}

/// The value of a field.
pub(super) enum Shown {
    /// A text, in quotes.
    Text(String),
    /// What a value writes of itself.
    Plain(String),
    /// A number or boolean.
    Json(Value),
}

impl Shown {
    /// The value as it is.
    pub(super) fn plain(&self) -> String {
        match self {
            Self::Text(text) | Self::Plain(text) => text.clone(),
            Self::Json(value) => value.to_string(),
        }
    }
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => write!(f, "{text:?}"),
            Self::Plain(text) => one_line(text, f),
            Self::Json(value) => write!(f, "{value}"),
        }
    }
}

/// Writes a text without control characters, which could be from a user and change the terminal or fake lines.
fn one_line(text: &str, f: &mut impl fmt::Write) -> fmt::Result {
    text.chars().try_for_each(|c| if c.is_control() { write!(f, "{}", c.escape_default()) } else { f.write_char(c) })
}

impl Visit for Record {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        match field.name() {
            "message" => self.message = format!("{value:?}"),
            name => self.fields.push((name, Shown::Plain(format!("{value:?}")))),
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "message" => value.clone_into(&mut self.message),
            name => self.fields.push((name, Shown::Text(value.to_owned()))),
        }
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.fields.push((field.name(), Shown::Json(value.into())));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.fields.push((field.name(), Shown::Json(value.into())));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.fields.push((field.name(), Shown::Json(value.into())));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.fields.push((field.name(), Shown::Json(value.into())));
    }
}

impl Record {
    /// An event in the present span.
    pub(super) fn of(event: &Event<'_>) -> Self {
        let mut record = Self {
            time: crate::now(),
            about: event.metadata(),
            message: String::new(),
            fields: Vec::new(),
            ids: spans::ids(),
        };
        event.record(&mut record);
        record
    }

    /// The request, the operation and the resource, unless the event has them itself.
    pub(super) fn ids(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let Ids { request, operation, resource, .. } = &self.ids;
        let all = [("request", request), ("operation", operation), ("resource", resource)];
        let is_new = |name: &str| !self.fields.iter().any(|(given, _)| *given == name);
        all.into_iter().filter_map(move |(name, id)| Some((name, id.as_deref()?)).filter(|(name, _)| is_new(name)))
    }

    /// `2026-01-01T00:00:00.000000Z  INFO message field="text" operation=…`.
    pub(super) fn text(&self, has_colour: bool, with_target: bool) -> String {
        let style = |style: Style| if has_colour { style } else { Style::new() };
        let dim = style(Style::new().dimmed());
        let level = *self.about.level();
        let colour = style(AnsiColor::from(Colour(level)).on_default());
        let mut line = format!("{dim}{:.6}{dim:#} {colour}{:>5}{colour:#} ", self.time, level.as_str());
        if with_target {
            _ = write!(line, "{dim}{}:{dim:#} ", self.about.target());
        }
        _ = one_line(&self.message, &mut line);
        for (name, value) in &self.fields {
            _ = write!(line, " {dim}{name}={dim:#}{value}");
        }
        for (name, id) in self.ids() {
            _ = write!(line, " {dim}{name}={id}{dim:#}");
        }
        line.push('\n');
        line
    }

    /// `{"timestamp": …, "level": …, "fields": {"message": …}, "target": …, "operation": …}`.
    pub(super) fn json(&self) -> String {
        let mut fields = Map::new();
        fields.insert("message".to_owned(), self.message.clone().into());
        for (name, value) in &self.fields {
            let value = match value {
                Shown::Text(text) | Shown::Plain(text) => text.clone().into(),
                Shown::Json(value) => value.clone(),
            };
            fields.insert((*name).to_owned(), value);
        }
        let mut line = Map::new();
        line.insert("timestamp".to_owned(), format!("{:.6}", self.time).into());
        line.insert("level".to_owned(), self.about.level().as_str().into());
        line.insert("fields".to_owned(), fields.into());
        line.insert("target".to_owned(), self.about.target().into());
        for (name, id) in self.ids() {
            line.insert(name.to_owned(), id.into());
        }
        format!("{}\n", Value::Object(line))
    }

    /// As oslo.log with its default `logging_context_format_string`, in local time:
    /// `2026-01-01 00:00:00.000 PID INFO kiln [req-… USER PROJECT - - -] message`, or `[-]` without a request.
    pub(super) fn oslo(&self) -> String {
        let time = self.time.to_zoned(TimeZone::system());
        let (pid, name) = (std::process::id(), self.about.target().replace("::", "."));
        let mut line = format!("{} {pid} {} {name} ", time.strftime("%Y-%m-%d %H:%M:%S%.3f"), oslo_level(self.about));
        let Ids { request, user, project, .. } = &self.ids;
        match request {
            Some(request) => {
                let or_none = |id: &Option<String>| id.clone().unwrap_or_else(|| "-".to_owned());
                _ = write!(line, "[{request} {} {} - - -] ", or_none(user), or_none(project));
            }
            None => line.push_str("[-] "),
        }
        _ = one_line(&self.message, &mut line);
        for (name, value) in &self.fields {
            _ = write!(line, " {name}={value}");
        }
        for (name, id) in self.ids().filter(|(name, _)| *name != "request") {
            _ = write!(line, " {name}={id}");
        }
        line.push('\n');
        line
    }
}

/// The level by its name in Python.
pub(super) fn oslo_level(about: &Metadata<'_>) -> &'static str {
    match *about.level() {
        Level::WARN => "WARNING",
        _ => about.level().as_str(),
    }
}

/// The colour of a level.
struct Colour(Level);

impl From<Colour> for AnsiColor {
    fn from(Colour(level): Colour) -> Self {
        match level {
            Level::ERROR => Self::Red,
            Level::WARN => Self::Yellow,
            Level::INFO => Self::Green,
            Level::DEBUG => Self::Blue,
            Level::TRACE => Self::Magenta,
        }
    }
}
