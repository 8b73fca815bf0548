//! "Did you mean …": suggests the known word that is most similar to a misspelled one.

use kiln_value::Diagnostic;

/// The comparison takes the product of both lengths.
const MAX_LENGTH: usize = 64;

/// The candidate with the fewest changes, if they are few enough to be a typing error.
///
/// Words of more than 64 bytes have none. A change is an inserted, omitted or replaced character, or two swapped
/// neighbors; case is ignored. Of equally similar candidates the first is returned.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > MAX_LENGTH {
        return None;
    }
    let word = word.to_lowercase();
    let length = word.chars().count();
    let limit = (length / 3).max(usize::from(length > 1));
    candidates
        .into_iter()
        .filter(|candidate| candidate.len() <= MAX_LENGTH)
        .filter_map(|candidate| {
            let other = candidate.to_lowercase();
            let may_be = length.abs_diff(other.chars().count()) <= limit;
            let changes = may_be.then(|| strsim::osa_distance(&word, &other))?;
            (changes <= limit).then_some((changes, candidate))
        })
        .min_by_key(|(changes, _)| *changes)
        .map(|(_, candidate)| candidate)
}

/// Adds a hint with the most similar known word to the error, if there is one.
pub(crate) fn hinted<'a>(error: Diagnostic, word: &str, known: impl IntoIterator<Item = &'a str>) -> Diagnostic {
    match nearest(word, known) {
        Some(near) => error.hint(format!("did you mean {near}?")),
        None => error,
    }
}

/// The same for a word of the language. `known` are the words of all versions.
pub(crate) fn hinted_word(error: Diagnostic, word: &str, known: &[&str]) -> Diagnostic {
    if known.contains(&word) {
        error.hint(format!("a newer version of templates has {word}"))
    } else {
        hinted(error, word, known.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_typing_errors_only() {
        let known = ["properties", "metadata", "depends_on", "type"];
        assert_eq!(nearest("propertys", known), Some("properties"));
        assert_eq!(nearest("Type", known), Some("type"));
        assert_eq!(nearest("tyep", known), Some("type"));
        assert_eq!(nearest("depend_on", known), Some("depends_on"));
        assert_eq!(nearest("x", known), None);
        assert_eq!(nearest("prt", ["net", "port"]), Some("port"));
        assert_eq!(nearest("prt", ["net"]), None);
        assert_eq!(nearest("resources", known), None);
    }
}
