//! Removes the lines that make an incomplete text invalid.

use kiln_value::Position;

use crate::Page;

/// Number of lines above an error that may cause it: an unclosed bracket is detected later.
const BLAMED: u32 = 3;
/// Maximum number of removed lines.
const MOST: usize = 6;
/// Maximum number of removed lines at the end, if nothing else helps.
const TAIL: u32 = 12;
/// Longer texts are parsed only a few times.
const LONG: usize = 200_000;

/// The text as a template; if it is invalid, without the line of `at`, which is being written, or without a few other
/// lines. Positions do not change.
pub(super) fn readable(text: &str, at: Position) -> Option<Page> {
    Page::read(text).or_else(|_| Page::read(without(text, at.line))).ok().or_else(|| repaired(text))
}

/// The text as a template; if it is invalid, without a few lines around the error. Positions do not change.
pub fn repaired(text: &str) -> Option<Page> {
    let mut broken = match read(text) {
        Ok(page) => return Some(page),
        Err(broken) => broken,
    };
    let mut rest = text.to_owned();
    for _ in 0..if text.len() > LONG { 1 } else { MOST } {
        // The line whose removal moves the error furthest down.
        let mut best: Option<(Broken, String)> = None;
        for line in broken.suspects() {
            let candidate = without(&rest, line);
            match read(&candidate) {
                Ok(page) => return Some(page),
                Err(next) if candidate != rest && best.as_ref().is_none_or(|(best, _)| next.line > best.line) => {
                    best = Some((next, candidate));
                }
                Err(_) => {}
            }
        }
        let Some(next) = best.filter(|(next, _)| next.line > broken.line) else { break };
        (broken, rest) = next;
    }
    let lines: Vec<&str> = rest.split('\n').collect();
    let before = |line: u32| lines.get(..usize::try_from(line).ok()?.min(lines.len())).map(|lines| lines.join("\n"));
    (broken.line.saturating_sub(TAIL)..broken.line).rev().find_map(|end| Page::read(before(end)?).ok())
}

/// The position of an error.
struct Broken {
    /// The line where the parser stops.
    line: u32,
    /// Other lines in its message: the start of an unclosed construct.
    named: Vec<u32>,
}

impl Broken {
    /// The lines that may cause the error.
    fn suspects(&self) -> Vec<u32> {
        let mut lines: Vec<u32> = (self.line.saturating_sub(BLAMED).max(1)..=self.line).rev().collect();
        for line in &self.named {
            if !lines.contains(line) {
                lines.push(*line);
            }
        }
        lines
    }
}

fn read(text: &str) -> Result<Page, Broken> {
    Page::read(text).map_err(|error| {
        let number = |part: &str| part.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok();
        let named = error.text.split("line ").skip(1).filter_map(number).collect();
        Broken { line: error.span.map_or(1, |span| span.start.line), named }
    })
}

/// Replaces a line of a text by an empty one.
fn without(text: &str, line: u32) -> String {
    let numbered = (1_u32..).zip(text.split('\n'));
    let lines: Vec<&str> = numbered.map(|(number, content)| if number == line { "" } else { content }).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_around_an_invalid_line_are_read() {
        let head = "heat_template_version: 2021-04-16\nresources:\n  a:\n    type: OS::Heat::None\n";
        let tail = "  b:\n    type: OS::Heat::Value\noutputs:\n  o: {value: 1}\n";
        for broken in
            ["    properties: {value: {get_\n", "    - x\n", "    x: 'y\n", "  \tx\n", "    a: b: c\n", ": :\n"]
        {
            let text = format!("{head}{broken}{tail}");
            assert!(Page::read(text.as_str()).is_err(), "{broken}");
            let page = repaired(&text).unwrap_or_else(|| panic!("{broken}"));
            assert!(page.type_of("a").is_some(), "{broken}");
            assert_eq!(page.type_of("b"), Some("OS::Heat::Value"), "{broken}");
            let path = kiln_value::Path::root().key("resources").key("b");
            assert_eq!(page.span(&path).start.line, 6, "{broken}");
        }
        assert!(repaired("a: [").is_none());
    }
}
