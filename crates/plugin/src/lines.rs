//! Lines of a stream, with a limit of their length.

use tokio::io::{AsyncBufRead, AsyncBufReadExt as _};

/// A line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// The bytes without the line break.
    Whole(Vec<u8>),
    /// The first bytes of a line that is longer than the limit. What follows of it is skipped by the next call.
    TooLong(Vec<u8>),
}

/// Reads lines of at most `limit` bytes.
pub(crate) struct Lines<R> {
    source: R,
    limit: usize,
    skipping: bool,
}

impl<R: AsyncBufRead + Unpin> Lines<R> {
    pub(crate) fn new(source: R, limit: usize) -> Self {
        Self { source, limit, skipping: false }
    }

    /// The next line; `None` at the end, and if the stream cannot be read.
    pub(crate) async fn next(&mut self) -> Option<Line> {
        let mut line = Vec::new();
        loop {
            let part = self.source.fill_buf().await.ok()?;
            if part.is_empty() {
                return (!line.is_empty()).then_some(Line::Whole(line));
            }
            let end = part.iter().position(|byte| *byte == b'\n');
            let content = part.get(..end.unwrap_or(part.len())).unwrap_or_default();
            let used = end.map_or(part.len(), |end| end + 1);
            if self.skipping {
                self.skipping = end.is_none();
                self.source.consume(used);
                continue;
            }
            let room = self.limit - line.len();
            line.extend_from_slice(content.get(..room).unwrap_or(content));
            let is_too_long = content.len() > room;
            self.source.consume(used);
            if is_too_long {
                self.skipping = end.is_none();
                return Some(Line::TooLong(line));
            }
            if end.is_some() {
                return Some(Line::Whole(line));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::BufReader;

    use super::*;

    #[tokio::test]
    async fn long_lines_are_cut_and_the_next_ones_are_read() {
        let text = b"ab\n\nabcdefgh\nabcd\nlast".as_slice();
        for capacity in [1, 3, 100] {
            let mut lines = Lines::new(BufReader::with_capacity(capacity, text), 4);
            let whole = |text: &str| Some(Line::Whole(text.into()));
            assert_eq!(lines.next().await, whole("ab"));
            assert_eq!(lines.next().await, whole(""));
            assert_eq!(lines.next().await, Some(Line::TooLong("abcd".into())));
            assert_eq!(lines.next().await, whole("abcd"));
            assert_eq!(lines.next().await, whole("last"));
            assert_eq!(lines.next().await, None);
        }
    }
}
