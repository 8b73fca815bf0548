//! One event of the log, and its forms.

use std::fmt::{self, Write as _};

use anstyle::{AnsiColor, Style};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata};

use crate::spans::{self, Ids};

/// The names of what a line belongs to.
const IDS: [&str; 8] = ["request_id", "trace_id", "user", "project", "client", "stack", "operation", "resource"];

/// An event.
pub(super) struct Record {
    time: Timestamp,
    pub(super) about: &'static Metadata<'static>,
    pub(super) message: String,
    pub(super) fields: Vec<(&'static str, Shown)>,
    pub(super) ids: Ids,
    trace: Option<String>,
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
    /// An event in the present span; before it, this number of events was left out.
    pub(super) fn of(event: &Event<'_>, left_out: u64) -> Self {
        let (ids, trace) = spans::ids();
        let mut record = Self {
            time: crate::now(),
            about: event.metadata(),
            message: String::new(),
            fields: Vec::new(),
            ids,
            trace,
        };
        event.record(&mut record);
        if left_out > 0 {
            record.fields.push(("left_out", Shown::Json(left_out.into())));
        }
        record
    }

    /// What the line belongs to, unless the event says it itself.
    pub(super) fn ids(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let Ids { request, user, project, client, stack, operation, resource } = &self.ids;
        let all = [
            ("request_id", request),
            ("trace_id", &self.trace),
            ("user", user),
            ("project", project),
            ("client", client),
            ("stack", stack),
            ("operation", operation),
            ("resource", resource),
        ];
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

    /// `{"timestamp": …, "level": …, "fields": {"message": …}, "target": …, "request_id": …, "stack": …}`. What the line
    /// belongs to is always outside of `fields`.
    pub(super) fn json(&self) -> String {
        let mut fields = Map::new();
        fields.insert("message".to_owned(), self.message.clone().into());
        let mut line = Map::new();
        let mut own = Map::new();
        for (name, value) in &self.fields {
            let value = match value {
                Shown::Text(text) | Shown::Plain(text) => text.clone().into(),
                Shown::Json(value) => value.clone(),
            };
            let place = if IDS.contains(name) { &mut own } else { &mut fields };
            place.insert((*name).to_owned(), value);
        }
        line.insert("timestamp".to_owned(), format!("{:.6}", self.time).into());
        line.insert("level".to_owned(), self.about.level().as_str().into());
        line.insert("fields".to_owned(), fields.into());
        line.insert("target".to_owned(), self.about.target().into());
        for (name, id) in self.ids() {
            line.insert(name.to_owned(), id.into());
        }
        line.append(&mut own);
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
        let is_before = |name: &str| matches!(name, "request_id" | "user" | "project");
        for (name, id) in self.ids().filter(|(name, _)| !is_before(name)) {
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
