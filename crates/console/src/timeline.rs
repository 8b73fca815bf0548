//! The resources of an operation on an axis of time, from the events of a stack.

use std::collections::HashMap;
use std::fmt::Write as _;

use jiff::Timestamp;
use kiln_client::{Event, EventPaths};
use serde::Serialize;

use crate::output::{markup, visible};

/// Width of names in a terminal.
const LONGEST_NAME: usize = 40;
/// Width of the bars without a terminal.
const BARS: usize = 60;

/// What happened in the latest operation of a stack.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Timeline {
    /// `CREATE_COMPLETE`.
    pub status: String,
    /// From its first event to its last one, or to now, in seconds.
    pub seconds: f64,
    /// The resources by their first event.
    pub resources: Vec<Bar>,
}

/// What was done with a resource.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Bar {
    /// The path through nested stacks: `group.0.server`.
    pub path: String,
    /// The latest status.
    pub status: String,
    /// In order.
    pub spans: Vec<Span>,
}

/// A part of the time, in seconds since the begin of the operation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Span {
    /// `CREATE`.
    pub action: String,
    /// Begin.
    pub from: f64,
    /// End; `None`: it has not ended.
    pub to: Option<f64>,
    /// Whether it has failed.
    pub failed: bool,
}

impl Timeline {
    /// The latest operation in the events of a stack and its nested stacks, oldest first. `None` without an operation.
    pub fn of(stack: &str, events: &[Event], now: Timestamp) -> Option<Self> {
        let is_own = |event: &Event| event.is_of_stack() && event.physical_id() == stack;
        let begins = |event: &Event| is_own(event) && event.status().ends_with("_IN_PROGRESS");
        let begin = events.iter().rposition(begins)?;
        // The paths of nested stacks are known from the events that created them.
        let mut paths = EventPaths::default();
        for event in events.get(..begin)? {
            paths.of(event);
        }
        let events = events.get(begin..)?;
        let first = events.first()?;
        // A request has its time in seconds, what follows in milliseconds.
        let start = events.iter().find(|event| !is_own(event)).map_or_else(|| millis(first), millis).max(millis(first));
        let start = if start - millis(first) < 1000 { start } else { millis(first) };
        #[expect(clippy::cast_precision_loss, reason = "milliseconds of an operation")]
        let since = |at: i64| (at - start).max(0) as f64 / 1000.0;
        let mut timeline = Self { status: String::new(), seconds: 0.0, resources: Vec::new() };
        let mut bars: HashMap<String, usize> = HashMap::new();
        for event in events {
            let at = since(millis(event));
            timeline.seconds = timeline.seconds.max(at);
            if is_own(event) {
                event.status().clone_into(&mut timeline.status);
            }
            if event.is_of_stack() {
                paths.of(event);
                continue;
            }
            // Below the stack, whose name is first.
            let path = paths.of(event);
            let below = path.strip_prefix(first.resource_name()).and_then(|path| path.strip_prefix('.'));
            let path = below.unwrap_or(&path).to_owned();
            let index = *bars.entry(path.clone()).or_insert_with(|| {
                timeline.resources.push(Bar { path, status: String::new(), spans: Vec::new() });
                timeline.resources.len() - 1
            });
            if let Some(bar) = timeline.resources.get_mut(index) {
                bar.note(event.status(), at);
            }
        }
        if timeline.status.ends_with("_IN_PROGRESS") {
            // The clock of this host may be behind that of the service.
            timeline.seconds = timeline.seconds.max(since(now.as_millisecond()));
        }
        Some(timeline)
    }

    /// The lines for a terminal of this width.
    pub fn text(&self, width: Option<usize>) -> String {
        let paths: Vec<_> = self.resources.iter().map(|bar| visible(&bar.path)).collect();
        let names = paths.iter().map(|path| path.chars().count()).max().unwrap_or_default().min(LONGEST_NAME);
        let bars = width.map_or(BARS, |width| width.saturating_sub(names + 12)).max(10);
        let mut text = format!("{}, {}\n", words(&self.status), duration(self.seconds));
        for (bar, path) in self.resources.iter().zip(paths) {
            // The end of a path says more than its begin.
            let name: String = path.chars().skip(path.chars().count().saturating_sub(names)).collect();
            let mut cells = vec![' '; bars];
            for span in &bar.spans {
                let (from, to) = self.place(span, bars);
                cells.iter_mut().take(to).skip(from).for_each(|cell| *cell = span.look().0);
            }
            let line: String = cells.into_iter().collect();
            let line = format!("{name:names$} {:>9}  {line}", duration(self.took(bar)));
            _ = writeln!(text, "{}", line.trim_end());
        }
        text
    }

    /// The picture as one SVG file.
    pub fn svg(&self, title: &str) -> String {
        const ROW: usize = 22;
        const NAMES: usize = 260;
        const WIDTH: usize = 700;
        let height = ROW * (self.resources.len() + 1) + 10;
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {height}\" font-family=\"sans-serif\" \
             font-size=\"13\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
             <text x=\"8\" y=\"16\" font-weight=\"bold\">{}: {}, {}</text>\n",
            NAMES + WIDTH + 90,
            markup(title),
            words(&self.status),
            duration(self.seconds)
        );
        for (row, bar) in self.resources.iter().enumerate() {
            let top = ROW * (row + 1);
            _ = writeln!(svg, "<text x=\"8\" y=\"{}\">{}</text>", top + 15, markup(&bar.path));
            for span in &bar.spans {
                let (from, to) = self.place(span, WIDTH);
                let colour = span.look().1;
                let (x, wide) = (NAMES + from, (to - from).max(2));
                _ = writeln!(
                    svg,
                    "<rect x=\"{x}\" y=\"{}\" width=\"{wide}\" height=\"14\" fill=\"{colour}\"><title>{} {}</title></rect>",
                    top + 4,
                    words(&span.action),
                    duration(span.to.unwrap_or(self.seconds) - span.from)
                );
            }
            let x = NAMES + WIDTH + 8;
            _ = writeln!(svg, "<text x=\"{x}\" y=\"{}\">{}</text>", top + 15, duration(self.took(bar)));
        }
        svg + "</svg>\n"
    }

    /// The cells of a span: at least one.
    fn place(&self, span: &Span, cells: usize) -> (usize, usize) {
        #[expect(clippy::cast_precision_loss, reason = "a width in cells")]
        let scale = cells as f64 / self.seconds.max(0.001);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "not negative, and small")]
        let cell = |at: f64| ((at * scale) as usize).min(cells);
        let from = cell(span.from).min(cells.saturating_sub(1));
        (from, cell(span.to.unwrap_or(self.seconds)).max(from + 1))
    }

    fn took(&self, bar: &Bar) -> f64 {
        let from = bar.spans.first().map_or(0.0, |span| span.from);
        bar.spans.last().map_or(0.0, |span| span.to.unwrap_or(self.seconds)) - from
    }
}

impl Span {
    /// The sign of its cells in a terminal, and its colour in SVG.
    fn look(&self) -> (char, &'static str) {
        match (self.failed, self.to) {
            (true, _) => ('×', "#b3171f"),
            (false, None) => ('░', "#1f5fa8"),
            (false, Some(_)) => ('█', "#1d6f42"),
        }
    }
}

impl Bar {
    fn note(&mut self, status: &str, at: f64) {
        status.clone_into(&mut self.status);
        let (action, state) = status.split_once('_').unwrap_or((status, ""));
        let open = self.spans.last_mut().filter(|span| span.to.is_none());
        match (state, open) {
            ("IN_PROGRESS", Some(span)) if span.action == action => {}
            ("IN_PROGRESS", open) => {
                if let Some(span) = open {
                    span.to = Some(at);
                }
                self.spans.push(Span { action: action.to_owned(), from: at, to: None, failed: false });
            }
            (state, Some(span)) => {
                span.to = Some(at);
                span.failed = state == "FAILED";
            }
            (state, None) => {
                let failed = state == "FAILED";
                self.spans.push(Span { action: action.to_owned(), from: at, to: Some(at), failed });
            }
        }
    }
}

/// The time of an event in milliseconds. Kiln's IDs (UUID version 7) have it; the event itself has it in seconds.
fn millis(event: &Event) -> i64 {
    let seconds = event.time().parse::<Timestamp>().map(Timestamp::as_millisecond).unwrap_or_default();
    let id = event.id();
    let hex = (id.as_bytes().get(14) == Some(&b'7')).then(|| Some([id.get(..8)?, id.get(9..13)?].concat())).flatten();
    let exact = hex.and_then(|hex| i64::from_str_radix(&hex, 16).ok());
    exact.filter(|exact| (exact - seconds).abs() < 2000).unwrap_or(seconds)
}

fn words(status: &str) -> String {
    status.replace('_', " ").to_lowercase()
}

/// `350 ms`, `4.2 s`, `3 m 05 s`.
/// A duration for people: `350 ms`, `12.3 s`, `2 m 05 s`.
pub(crate) fn duration(seconds: f64) -> String {
    if seconds < 1.0 {
        format!("{:.0} ms", seconds * 1000.0)
    } else if seconds < 60.0 {
        format!("{seconds:.1} s")
    } else {
        let minutes = (seconds / 60.0).floor();
        format!("{minutes:.0} m {:02.0} s", (seconds - minutes * 60.0).floor())
    }
}

#[cfg(test)]
mod tests {
    use kiln_value::value;

    use super::*;

    /// An event at a time in milliseconds.
    fn event(at: u32, name: &str, object: &str, status: &str) -> Event {
        let time = format!("2026-11-29T08:00:{:02}Z", at / 1000);
        let begin = time.parse::<Timestamp>().unwrap().as_millisecond() + i64::from(at % 1000);
        let hex = format!("{begin:012x}");
        let stack = if name.starts_with("in") { "inner" } else { "root" };
        Event(value!({
            "id": (format!("{}-{}-7000-8000-000000000000", &hex[..8], &hex[8..])),
            "event_time": time,
            "resource_name": name,
            "physical_resource_id": object,
            "resource_status": status,
            "links": [{ "rel": "stack", "href": (format!("http://h/v1/p/stacks/{stack}/{stack}")) }],
        }))
    }

    fn operation(end: &str) -> Vec<Event> {
        vec![
            event(0, "root", "root", "CREATE_IN_PROGRESS"),
            event(0, "old", "x", "CREATE_FAILED"),
            event(500, "root", "root", "CREATE_FAILED"),
            event(1000, "root", "root", "UPDATE_IN_PROGRESS"),
            event(1100, "a", "1", "CREATE_IN_PROGRESS"),
            event(2100, "a", "1", "CREATE_COMPLETE"),
            event(2100, "<b>", "2", "CREATE_IN_PROGRESS"),
            event(3100, "<b>", "2", end),
        ]
    }

    #[test]
    fn the_latest_operation_is_on_the_axis() {
        let now = "2026-11-29T08:00:05.100Z".parse().unwrap();
        let timeline = Timeline::of("root", &operation("CREATE_FAILED"), now).unwrap();
        assert_eq!(timeline.status, "UPDATE_IN_PROGRESS");
        let span = |from, to, failed| Span { action: "CREATE".to_owned(), from, to, failed };
        let spans: Vec<_> = timeline.resources.iter().map(|bar| (bar.path.as_str(), bar.spans.clone())).collect();
        assert_eq!(spans, [("a", vec![span(0.0, Some(1.0), false)]), ("<b>", vec![span(1.0, Some(2.0), true)])]);
        // It goes on: until now.
        assert!((timeline.seconds - 4.0).abs() < 0.001, "{}", timeline.seconds);
        assert_eq!(
            timeline.text(Some(35)),
            "update in progress, 4.0 s\n\
             a       1.0 s  █████\n\
             <b>     1.0 s       ×××××\n"
        );
        let svg = timeline.svg("root");
        assert!(svg.contains("&lt;b&gt;") && !svg.contains("<b>"), "{svg}");
        assert_eq!(Timeline::of("other", &operation("CREATE_COMPLETE"), now), None);
    }

    #[test]
    fn names_of_others_do_not_change_what_is_shown() {
        let mut events = operation("CREATE_COMPLETE");
        events.push(event(4000, "c\u{1b}[2J\"", "3", "CREATE_COMPLETE"));
        let timeline = Timeline::of("root", &events, "2026-11-29T08:00:05Z".parse().unwrap()).unwrap();
        for shown in [timeline.text(Some(80)), timeline.svg("\u{1b}")] {
            assert!(!shown.contains('\u{1b}') && shown.contains("\\u{1b}[2J"), "{shown}");
        }
    }

    #[test]
    fn what_has_not_ended_goes_to_the_end() {
        let mut events = operation("CREATE_COMPLETE");
        events.truncate(7);
        let timeline = Timeline::of("root", &events, "2026-11-29T08:00:03.100Z".parse().unwrap()).unwrap();
        assert!(timeline.text(Some(35)).contains("░░░░░░░░░░\n"), "{}", timeline.text(Some(35)));
    }
}
