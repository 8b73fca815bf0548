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
    let word: Vec<char> = word.chars().flat_map(char::to_lowercase).collect();
    let limit = (word.len() / 3).max(usize::from(word.len() > 1));
    candidates
        .into_iter()
        .filter(|candidate| candidate.len() <= MAX_LENGTH)
        .filter_map(|candidate| {
            let other: Vec<char> = candidate.chars().flat_map(char::to_lowercase).collect();
            let changes = (word.len().abs_diff(other.len()) <= limit).then(|| distance(&word, &other))?;
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

/// The number of changes from one word to the other (optimal string alignment).
fn distance(a: &[char], b: &[char]) -> usize {
    let mut two_ago: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut row = Vec::with_capacity(b.len() + 1);
        row.push(i + 1);
        let pairs = above.iter().zip(above.iter().skip(1));
        for (j, (y, (diagonal, up))) in b.iter().zip(pairs).enumerate() {
            let left = row.last().copied().unwrap_or(i + 1);
            let mut least = (diagonal + usize::from(x != y)).min(up + 1).min(left + 1);
            let is_swap = i > 0 && j > 0 && a.get(i - 1) == Some(y) && b.get(j - 1) == Some(x);
            if let Some(swapped) = two_ago.get(j.wrapping_sub(1)).filter(|_| is_swap) {
                least = least.min(swapped + 1);
            }
            row.push(least);
        }
        two_ago = std::mem::replace(&mut above, row);
    }
    above.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_changes() {
        let distance = |a: &str, b: &str| {
            let (a, b): (Vec<_>, Vec<_>) = (a.chars().collect(), b.chars().collect());
            assert_eq!(distance(&a, &b), distance(&b, &a));
            distance(&a, &b)
        };
        for (a, b, changes) in [
            ("", "", 0),
            ("", "ab", 2),
            ("server", "server", 0),
            ("sever", "server", 1),
            ("abcd", "acbd", 1),
            ("ca", "abc", 3),
        ] {
            assert_eq!(distance(a, b), changes, "{a} {b}");
        }
    }

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
