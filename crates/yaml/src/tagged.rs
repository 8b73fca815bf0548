//! Tags that are directly followed by a comma, as in `[!!str, a]`.

use std::collections::HashSet;

use libyaml_safer::{Scanner, TokenData};

/// Inserts a blank before the comma of each such tag; `None` if there is none. libyaml accepts this comma, but its
/// translation to Rust panics (libyaml-safer 0.3). Columns later on the line are shifted by one.
pub(crate) fn set_apart(text: &str) -> Option<String> {
    // The scanner does not count a byte order mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let commas = commas(text);
    if commas.is_empty() {
        return None;
    }
    // With a blank at every candidate, the scanner determines which of them are tags and which are parts of strings. A
    // text that it refuses is refused regardless of its commas.
    let spaced = with_blanks(text, commas.iter().copied());
    let Some(tags) = ends_of_tags(&spaced) else { return Some(spaced) };
    let is_tag = |(blanks, comma): &(usize, usize)| tags.contains(&(comma + blanks));
    let of_tags: Vec<usize> = commas.into_iter().enumerate().filter(is_tag).map(|(_, comma)| comma).collect();
    (!of_tags.is_empty()).then(|| with_blanks(text, of_tags.into_iter()))
}

/// The byte positions of all commas that could follow a tag: `!word,` and `!<word>,`.
fn commas(text: &str) -> Vec<usize> {
    let is_of_tag = |c: char| c.is_ascii_alphanumeric() || "-_;/?:@&=+$.%!~*'()".contains(c);
    let follows_tag = |comma: &usize| {
        let before = text.get(..*comma).unwrap_or_default();
        let head = before.trim_end_matches(is_of_tag);
        let word = before.get(head.len()..).unwrap_or_default();
        // `!<a,b>` contains its comma; a quote means that `!<` was the end of a string: `'!<'!word,`.
        let is_within = head.ends_with("!<") && !word.contains('\'');
        before.ends_with('>') || (word.contains('!') && !is_within)
    };
    text.match_indices(',').map(|(at, _)| at).filter(follows_tag).collect()
}

fn with_blanks(text: &str, places: impl Iterator<Item = usize>) -> String {
    let mut spaced = String::with_capacity(text.len() + 16);
    let mut from = 0;
    for place in places {
        spaced.push_str(text.get(from..place).unwrap_or_default());
        spaced.push(' ');
        from = place;
    }
    spaced.push_str(text.get(from..).unwrap_or_default());
    spaced
}

/// The byte positions of the ends of tags; `None` for a text that the scanner refuses.
fn ends_of_tags(text: &str) -> Option<HashSet<usize>> {
    // The scanner requires a line break at the end of a block scalar.
    let ended = format!("{text}\n");
    let mut input = ended.as_bytes();
    let mut scanner = Scanner::new();
    scanner.set_input_string(&mut input);
    let mut ends = HashSet::new();
    for token in scanner {
        let token = token.ok()?;
        if matches!(token.data, TokenData::Tag { .. }) {
            ends.insert(usize::try_from(token.end_mark.index).ok()?);
        }
    }
    Some(ends)
}
