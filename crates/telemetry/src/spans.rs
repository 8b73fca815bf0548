//! The spans of requests, operations, steps and calls ([`kiln_trace`]): what the lines of a log belong to, and
//! what traces show.

use std::fmt;
use std::sync::OnceLock;

use jiff::Timestamp;
use kiln_stack::Chance;
use kiln_trace::Origin;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Metadata, Subscriber};
use tracing_subscriber::Registry;
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::LookupSpan;

use crate::traces;

/// What a line of the log belongs to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ids {
    /// The request of a user: `req-5f…`.
    pub(crate) request: Option<String>,
    /// The ID of the user.
    pub(crate) user: Option<String>,
    /// The ID of the project.
    pub(crate) project: Option<String>,
    /// The address of the client.
    pub(crate) client: Option<String>,
    /// The ID of the stack.
    pub(crate) stack: Option<String>,
    /// The operation of a stack.
    pub(crate) operation: Option<String>,
    /// The resource that is worked on.
    pub(crate) resource: Option<String>,
}

/// The place of a span in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The ID of the trace.
    pub(crate) trace: u128,
    /// The ID of the span.
    pub(crate) span: u64,
    /// The span around it.
    pub(crate) parent: Option<u64>,
    /// Whether the trace is sent.
    pub(crate) is_sampled: bool,
}

impl Place {
    /// The place of the children of the span that the header `traceparent` names (W3C Trace Context, 3.2).
    fn of_header(text: &str) -> Option<(u128, u64, bool)> {
        let mut parts = text.split('-');
        let (version, trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let is_hex = |part: &str, length| {
            part.len() == length && part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        };
        if !(is_hex(version, 2) && is_hex(trace, 32) && is_hex(span, 16) && is_hex(flags, 2)) {
            return None;
        }
        // Later versions may have more parts; ff is not a version.
        if version == "ff" || (version == "00" && parts.next().is_some()) {
            return None;
        }
        let trace = u128::from_str_radix(trace, 16).ok().filter(|trace| *trace != 0)?;
        let span = u64::from_str_radix(span, 16).ok().filter(|span| *span != 0)?;
        Some((trace, span, u8::from_str_radix(flags, 16).ok()? & 1 == 1))
    }

    fn header(&self) -> String {
        format!("00-{:032x}-{:016x}-{:02x}", self.trace, self.span, u8::from(self.is_sampled))
    }
}

/// The kind of a span in a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Work inside of Kiln.
    #[default]
    Internal,
    /// A request of a client.
    Server,
    /// A request to another service.
    Client,
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Attribute {
    /// Text.
    Text(String),
    /// A number.
    Number(i64),
    /// A boolean.
    Flag(bool),
}

/// A span.
#[derive(Clone, Debug)]
pub(crate) struct SpanData {
    name: &'static str,
    title: Option<String>,
    pub(crate) kind: Kind,
    ids: Ids,
    pub(crate) place: Option<Place>,
    pub(crate) begun: Timestamp,
    pub(crate) attributes: Vec<(&'static str, Attribute)>,
    pub(crate) error: Option<String>,
    is_left: bool,
    /// As given, until the place is known.
    traceparent: Option<String>,
    span_id: Option<u64>,
}

impl SpanData {
    /// Its name in a trace.
    pub(crate) fn title(&self) -> &str {
        self.title.as_deref().unwrap_or(self.name)
    }

    /// The IDs, as attributes.
    pub(crate) fn ids(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let Ids { request, user, project, client, stack, operation, resource } = &self.ids;
        let named = [
            ("kiln.request", request),
            ("user.id", user),
            ("kiln.project", project),
            ("client.address", client),
            ("kiln.stack", stack),
            ("kiln.operation", operation),
            ("kiln.resource", resource),
        ];
        named.into_iter().filter_map(|(name, value)| Some((name, value.as_deref()?)))
    }
}

impl Visit for SpanData {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Titles and attributes are for traces only.
        if self.place.is_some() || is_for_logs(field) {
            self.record_str(field, &format!("{value:?}"));
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        let text = || Some(value.to_owned());
        match field.name() {
            "title" => self.title = text(),
            "kind" => {
                self.kind = match value {
                    "server" => Kind::Server,
                    "client" => Kind::Client,
                    _ => Kind::Internal,
                }
            }
            "request" => self.ids.request = text(),
            "user" => self.ids.user = text(),
            "project" => self.ids.project = text(),
            "client" => self.ids.client = text(),
            "stack" => self.ids.stack = text(),
            "operation" => self.ids.operation = text(),
            "resource" => self.ids.resource = text(),
            "traceparent" => self.traceparent = text(),
            "span_id" => self.span_id = u64::from_str_radix(value, 16).ok().filter(|id| *id != 0),
            "error" => self.error = text(),
            name => self.attribute(name, || Attribute::Text(value.to_owned())),
        }
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        match field.name() {
            "since_ms" => self.begun = Timestamp::from_millisecond(value).unwrap_or(self.begun),
            name => self.attribute(name, || Attribute::Number(value)),
        }
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.record_i64(field, i64::try_from(value).unwrap_or(i64::MAX));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        match field.name() {
            "left" => self.is_left = value,
            name => self.attribute(name, || Attribute::Flag(value)),
        }
    }
}

impl SpanData {
    fn attribute(&mut self, name: &'static str, value: impl FnOnce() -> Attribute) {
        if self.place.is_some() {
            self.attributes.push((name, value()));
        }
    }
}

/// Whether a field is needed without traces.
fn is_for_logs(field: &Field) -> bool {
    matches!(field.name(), "request" | "user" | "project" | "client" | "stack" | "operation" | "resource")
}

/// The random numbers of IDs.
static CHANCE: OnceLock<Chance> = OnceLock::new();

/// Random IDs of a trace and a span.
fn random() -> (u128, u64) {
    // Not of UUIDs: some of their bits are always the same, and the sampler reads the lower half of a trace's ID.
    let bytes = CHANCE.get_or_init(Chance::from_os).seed();
    let number = |bytes: &[u8]| bytes.iter().fold(0, |number, byte| number << 8 | u128::from(*byte));
    let (trace, span) = (number(&bytes[..16]), number(&bytes[16..24]));
    (trace.max(1), u64::try_from(span.max(1)).unwrap_or(u64::MAX))
}

/// Keeps the data of spans, and hands those that end to the exporter.
pub(crate) struct Spans;

/// Whether a span is for [`Spans`]: those for logs always, all others while traces are sent.
pub(crate) fn is_kept(span: &Metadata<'_>) -> bool {
    span.is_span() && span.target() == kiln_trace::TARGET && (*span.level() <= tracing::Level::INFO || traces::are_on())
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Spans {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let around = span.scope().skip(1).find_map(|span| {
            let extensions = span.extensions();
            let data = extensions.get::<SpanData>()?;
            Some((data.ids.clone(), data.place))
        });
        let (ids, around) = around.unwrap_or_default();
        let mut data = SpanData {
            name: attributes.metadata().name(),
            title: None,
            kind: Kind::Internal,
            ids,
            // The first guess; it says whether attributes are wanted.
            place: traces::are_on().then_some(Place { trace: 0, span: 0, parent: None, is_sampled: false }),
            begun: crate::now(),
            attributes: Vec::new(),
            error: None,
            is_left: false,
            traceparent: None,
            span_id: None,
        };
        attributes.record(&mut data);
        if data.place.is_some() {
            let given = data.traceparent.as_deref().and_then(Place::of_header);
            let given = given.or_else(|| around.map(|place| (place.trace, place.span, place.is_sampled)));
            let (new_trace, new_span) = random();
            let span = data.span_id.unwrap_or(new_span);
            data.place = Some(match given {
                Some((trace, parent, is_sampled)) => Place { trace, span, parent: Some(parent), is_sampled },
                None => Place { trace: new_trace, span, parent: None, is_sampled: traces::samples(new_trace) },
            });
        }
        span.extensions_mut().insert(data);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        if let Some(data) = span.extensions_mut().get_mut::<SpanData>() {
            values.record(data);
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let Some(span) = context.span(&id) else { return };
        let data = span.extensions_mut().remove::<SpanData>();
        if let Some(data) = data.filter(|data| !data.is_left && data.place.is_some_and(|place| place.is_sampled)) {
            traces::ended(data);
        }
    }
}

/// Reads the data of the present span.
fn with_present<R>(read: impl FnOnce(&SpanData) -> R) -> Option<R> {
    let mut read = Some(read);
    tracing::dispatcher::get_default(|dispatch| {
        let registry = dispatch.downcast_ref::<Registry>()?;
        let present = registry.current_span();
        // Spans of libraries have no data.
        let mut scope = registry.span(present.id()?)?.scope();
        let span = scope.find(|span| span.extensions().get::<SpanData>().is_some())?;
        let (extensions, read) = (span.extensions(), read.take()?);
        extensions.get::<SpanData>().map(read)
    })
}

/// What the present work belongs to, and the ID of its trace if that is sent.
pub(crate) fn ids() -> (Ids, Option<String>) {
    let trace = |data: &SpanData| Some(data.place.filter(|place| place.is_sampled)?.trace);
    with_present(|data| (data.ids.clone(), trace(data).map(|trace| format!("{trace:032x}")))).unwrap_or_default()
}

/// The ID of the trace of the present work, if that is sent.
pub(crate) fn trace() -> Option<u128> {
    with_present(|data| Some(data.place.filter(|place| place.is_sampled)?.trace)).flatten()
}

/// The origin of the present work.
pub(crate) fn origin() -> Option<Origin> {
    with_present(|data| Origin {
        request: data.ids.request.clone().unwrap_or_default(),
        traceparent: data.place.map(|place| place.header()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_random_traces_is_sampled() {
        let sampled = (0..2000).filter(|_| traces::is_within(random().0, 1 << 63)).count();
        assert!((800..1200).contains(&sampled), "{sampled}");
        assert_ne!(random().1, random().1);
    }

    #[test]
    fn headers_are_read_as_the_specification_says() {
        let header = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let (trace, span, is_sampled) = Place::of_header(header).unwrap();
        assert_eq!((span, is_sampled), (0x00f0_67aa_0ba9_02b7, true));
        assert_eq!(Place { trace, span, parent: None, is_sampled }.header(), header);
        for wrong in [
            "",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        ] {
            assert_eq!(Place::of_header(wrong), None, "{wrong}");
        }
        assert!(Place::of_header(&format!("01{}-more", &header[2..])).is_some());
    }
}
