//! Durations as users write them: `90m`, `6h`, `2d`.

use std::time::Duration;

use jiff::{Span, SpanRelativeTo};

/// Reads a duration, in which a day has 24 hours. `None`: it is none, or it is negative.
pub(crate) fn parse(text: &str) -> Option<Duration> {
    let span: Span = text.parse().ok()?;
    let duration = span.to_duration(SpanRelativeTo::days_are_24_hours()).ok()?;
    duration.try_into().ok()
}

/// A duration in the largest units that are whole: `1d`, `90m`.
pub(crate) fn words(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let units = [(86_400, "d"), (3_600, "h"), (60, "m")];
    match units.into_iter().find(|(unit, _)| seconds > 0 && seconds.is_multiple_of(*unit)) {
        Some((unit, name)) => format!("{}{name}", seconds / unit),
        None => format!("{seconds}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_and_written() {
        for (text, seconds, written) in [
            ("90m", 5_400, "90m"),
            ("2d", 172_800, "2d"),
            ("24 hours", 86_400, "1d"),
            ("1h 1s", 3_601, "3601s"),
            ("0s", 0, "0s"),
        ] {
            let read = parse(text).unwrap();
            assert_eq!((read.as_secs(), words(read).as_str()), (seconds, written), "{text}");
        }
        for text in ["", "10", "-1h", "soon", "1mo"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
