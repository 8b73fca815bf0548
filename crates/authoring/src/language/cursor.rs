//! The context of a cursor, determined only from the lines: a text that is being edited is often invalid.

use kiln_value::{Path, Position, Segment, Span};

/// Whether a key or a value is being written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// A key of the map at the path, or if it is empty, the value at the path itself.
    Key,
    /// The value at the path.
    Value,
}

/// The context of a cursor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// The map or value that is being written.
    pub path: Path,
    /// The part that is being written.
    pub slot: Slot,
    /// The word so far.
    pub word: String,
    /// The earlier items of the innermost list.
    pub before: Vec<String>,
}

/// A map or list that is open at the current line.
struct Frame {
    /// The indentation; inside brackets that of the line.
    indent: usize,
    segment: Segment,
    items: Vec<String>,
}

impl Cursor {
    /// Reads the lines up to a position.
    pub fn at(text: &str, position: Position) -> Self {
        let last = usize::try_from(position.line.saturating_sub(1)).unwrap_or(usize::MAX);
        let column = usize::try_from(position.column.saturating_sub(1)).unwrap_or(usize::MAX);
        let mut reader = Reader::default();
        for line in text.split('\n').take(last) {
            reader.line(line);
        }
        let line = text.split('\n').nth(last).unwrap_or_default();
        let end = line.char_indices().nth(column).map_or(line.len(), |(at, _)| at);
        reader.cursor(line.get(..end).unwrap_or_default())
    }

    /// The range of the word so far, if the cursor is at `at`.
    pub fn replaced(&self, at: Position) -> Span {
        let width = u32::try_from(self.word.chars().count()).unwrap_or(u32::MAX);
        Span { start: Position { line: at.line, column: at.column.saturating_sub(width) }, end: at }
    }
}

#[derive(Default)]
struct Reader {
    frames: Vec<Frame>,
    /// The indentation of the key of the current block scalar.
    scalar: Option<usize>,
    /// Brackets that were opened on an earlier line, with their content so far.
    flow: Option<String>,
}

/// The content of a line after its dashes.
struct Content<'l> {
    /// The column of the content.
    indent: usize,
    text: &'l str,
}

impl Reader {
    fn line(&mut self, line: &str) {
        let line = line.trim_end();
        if let Some(flow) = &mut self.flow {
            flow.push(' ');
            flow.push_str(without_comment(line).trim());
            if is_closed(flow) {
                self.flow = None;
            }
            return;
        }
        let indent = line.len() - line.trim_start().len();
        if line.trim().is_empty() || self.scalar.is_some_and(|outer| indent > outer) {
            return;
        }
        self.scalar = None;
        let line = without_comment(line).trim_end();
        if line.trim().is_empty() || line == "---" {
            return;
        }
        let content = self.enter(line);
        let Some((key, value)) = key_and_value(content.text) else {
            self.note(content.text);
            return;
        };
        self.frames.push(Frame { indent: content.indent, segment: Segment::Key(key), items: Vec::new() });
        if value.starts_with(['|', '>']) {
            self.scalar = Some(content.indent);
        } else if value.starts_with(['{', '[']) && !is_closed(value) {
            self.flow = Some(value.to_owned());
        }
    }

    /// Leaves the levels that end before this line and enters the list items that begin on it.
    fn enter<'l>(&mut self, line: &'l str) -> Content<'l> {
        let mut text = line.trim_start();
        let mut indent = line.len() - text.len();
        loop {
            let is_item = text == "-" || text.starts_with("- ");
            // A list may have the same indentation as its key.
            while let Some(frame) = self.frames.last() {
                let stays = frame.indent < indent || (is_item && frame.indent == indent);
                if stays {
                    break;
                }
                self.frames.pop();
            }
            if !is_item {
                return Content { indent, text };
            }
            match self.frames.last_mut() {
                Some(Frame { indent: at, segment: Segment::Index(index), .. }) if *at == indent => *index += 1,
                _ => self.frames.push(Frame { indent, segment: Segment::Index(0), items: Vec::new() }),
            }
            let rest = text.get(1..).unwrap_or_default();
            let inner = rest.trim_start();
            indent += 1 + rest.len() - inner.len();
            text = inner;
        }
    }

    /// Records an item of a list.
    fn note(&mut self, text: &str) {
        if let Some(Frame { segment: Segment::Index(_), items, .. }) = self.frames.last_mut() {
            items.push(unquoted(text));
        }
    }

    fn cursor(mut self, line: &str) -> Cursor {
        if let Some(mut flow) = self.flow.take() {
            flow.push(' ');
            flow.push_str(line.trim_start());
            return self.in_flow(&flow);
        }
        // After spaces only, the column of the cursor is that of a new key.
        let content = self.enter(line);
        match key_and_value(content.text) {
            Some((key, value)) => {
                self.frames.push(Frame { indent: content.indent, segment: Segment::Key(key), items: Vec::new() });
                if value.starts_with(['{', '[']) {
                    return self.in_flow(value);
                }
                self.found(Slot::Value, value)
            }
            None if content.text.starts_with(['{', '[']) => self.in_flow(content.text),
            None => self.found(Slot::Key, content.text),
        }
    }

    fn found(self, slot: Slot, word: &str) -> Cursor {
        let before = match self.frames.last() {
            Some(Frame { segment: Segment::Index(_), items, .. }) => items.clone(),
            _ => Vec::new(),
        };
        let path = Path(self.frames.into_iter().map(|frame| frame.segment).collect());
        Cursor { path, slot, word: word.trim_start_matches(['"', '\'']).to_owned(), before }
    }

    /// Processes brackets up to the cursor.
    fn in_flow(mut self, flow: &str) -> Cursor {
        /// The level that a bracket has added to the path.
        enum Open {
            List,
            /// Whether the path contains the key of the current value.
            Map(bool),
        }
        let mut open: Vec<Open> = Vec::new();
        let mut word = String::new();
        let mut quote = None;
        let mut characters = flow.chars().peekable();
        while let Some(c) = characters.next() {
            if let Some(end) = quote {
                if c == end {
                    quote = None;
                } else {
                    word.push(c);
                }
                continue;
            }
            match c {
                '"' | '\'' if word.trim().is_empty() => quote = Some(c),
                '[' => {
                    open.push(Open::List);
                    self.frames.push(Frame { indent: 0, segment: Segment::Index(0), items: Vec::new() });
                    word.clear();
                }
                '{' => {
                    open.push(Open::Map(false));
                    word.clear();
                }
                ':' if matches!(open.last(), Some(Open::Map(false)))
                    && characters.peek().is_none_or(|next| *next == ' ') =>
                {
                    let key = Segment::Key(word.trim().to_owned());
                    self.frames.push(Frame { indent: 0, segment: key, items: Vec::new() });
                    if let Some(Open::Map(has_key)) = open.last_mut() {
                        *has_key = true;
                    }
                    word.clear();
                }
                ',' => {
                    match open.last_mut() {
                        Some(Open::List) => {
                            if let Some(Frame { segment: Segment::Index(index), items, .. }) = self.frames.last_mut() {
                                items.push(word.trim().to_owned());
                                *index += 1;
                            }
                        }
                        Some(Open::Map(has_key)) if *has_key => {
                            self.frames.pop();
                            *has_key = false;
                        }
                        _ => {}
                    }
                    word.clear();
                }
                ']' | '}' => {
                    if matches!(open.pop(), Some(Open::List | Open::Map(true))) {
                        self.frames.pop();
                    }
                    word.clear();
                }
                c => word.push(c),
            }
        }
        let slot = if matches!(open.last(), Some(Open::Map(false))) { Slot::Key } else { Slot::Value };
        let word = word.trim_start().to_owned();
        self.found(slot, &word)
    }
}

/// `key: value` of a line, without spaces before the value.
fn key_and_value(text: &str) -> Option<(String, &str)> {
    if text.starts_with(['{', '[']) {
        return None;
    }
    let after_quotes = match text.chars().next() {
        Some(quote @ ('"' | '\'')) => text.get(1..)?.find(quote)? + 2,
        _ => 0,
    };
    let rest = text.get(after_quotes..)?;
    let colon = rest.match_indices(':').map(|(at, _)| at + after_quotes).find(|at| {
        let behind = text.get(at + 1..).unwrap_or_default();
        behind.is_empty() || behind.starts_with(' ')
    })?;
    Some((unquoted(text.get(..colon)?), text.get(colon + 1..)?.trim_start()))
}

fn unquoted(text: &str) -> String {
    text.trim().trim_matches(['"', '\'']).to_owned()
}

/// A line without its comment. Quotes are treated roughly: a space and a hash within them are rare.
fn without_comment(line: &str) -> &str {
    if line.trim_start().starts_with('#') {
        return "";
    }
    match line.find(" #") {
        Some(at) if !line.get(..at).unwrap_or_default().contains(['"', '\'']) => line.get(..at).unwrap_or(line),
        _ => line,
    }
}

/// Whether every bracket in a text is closed.
fn is_closed(text: &str) -> bool {
    let mut depth = 0_i64;
    let mut quote = None;
    for c in text.chars() {
        match (quote, c) {
            (Some(end), c) if c == end => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, '[' | '{') => depth += 1,
            (None, ']' | '}') => depth -= 1,
            _ => {}
        }
    }
    depth <= 0
}

/// The keys of a path, with an empty string for each index.
pub(super) fn keys(path: &[Segment]) -> Vec<&str> {
    path.iter()
        .map(|segment| match segment {
            Segment::Key(key) => key.as_str(),
            Segment::Index(_) => "",
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The context of the `^` in a text.
    fn cursor(text: &str) -> (String, Slot, String) {
        let (before, after) = text.split_once('^').unwrap();
        let line = u32::try_from(before.matches('\n').count() + 1).unwrap();
        let column = u32::try_from(before.rsplit('\n').next().unwrap().chars().count() + 1).unwrap();
        let cursor = Cursor::at(&format!("{before}{after}"), Position { line, column });
        (cursor.path.to_string(), cursor.slot, cursor.word)
    }

    #[test]
    fn lines_lead_to_a_path() {
        let at = |path: &str, slot, word: &str| (path.to_owned(), slot, word.to_owned());
        for (text, expected) in [
            ("^", at("", Slot::Key, "")),
            ("res^", at("", Slot::Key, "res")),
            ("resources:\n  a:\n    type: OS::N^", at("resources.a.type", Slot::Value, "OS::N")),
            ("resources:\n  a:\n    ^\noutputs: 1", at("resources.a", Slot::Key, "")),
            ("a:\n  b:\n    - x\n    - y^", at("a.b[1]", Slot::Key, "y")),
            ("a:\n  b:\n  - x: 1\n    y^", at("a.b[0]", Slot::Key, "y")),
            ("a:\n  b:\n  - x: 1\n  - z: 2\n  c^", at("a", Slot::Key, "c")),
            ("a:\n  b: |\n    c: d\n   e\n  f: g^", at("a.f", Slot::Value, "g")),
            ("a: {get_param: p^", at("a.get_param", Slot::Value, "p")),
            ("a: {x: 1, g^", at("a", Slot::Key, "g")),
            ("a: [{get_attr: [s, f^", at("a[0].get_attr[1]", Slot::Value, "f")),
            ("a: [1,\n    {b: ^", at("a[1].b", Slot::Value, "")),
            ("a: [1,\n  2]\nb: c^", at("b", Slot::Value, "c")),
            ("a: # say\n  b^", at("a", Slot::Key, "b")),
            ("\"a b\": c^", at("a b", Slot::Value, "c")),
        ] {
            assert_eq!(cursor(text), expected, "{text}");
        }
    }
}
