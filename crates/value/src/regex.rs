//! Regular expressions as Python's `re` reads them.

mod class;
mod translate;

use std::sync::OnceLock;

use fancy_regex::Regex;

/// Steps after which a search gives up: patterns come from templates and may be hostile.
const BACKTRACK_LIMIT: usize = 200_000;

/// A regular expression in Python's syntax.
#[derive(Clone, Debug)]
pub struct Pattern {
    source: String,
    translated: String,
    anchored: Regex,
    free: OnceLock<Option<Regex>>,
}

/// Why a pattern is none, in the words of Python's `re` where it has some.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatternError(pub String);

impl std::fmt::Display for PatternError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for PatternError {}

impl Pattern {
    /// Reads a pattern.
    pub fn new(source: &str) -> Result<Self, PatternError> {
        let translated = translate::translate(source)?;
        let anchored = build(&format!(r"\A(?:{translated})"))?;
        Ok(Self { source: source.to_owned(), translated, anchored, free: OnceLock::new() })
    }

    /// The pattern as it was written.
    pub fn as_str(&self) -> &str {
        &self.source
    }

    /// `re.match(text).end()`, in bytes: how far the pattern matches from the start; `None` if it does not.
    ///
    /// Errors: the search was given up.
    pub fn match_end(&self, text: &str) -> Result<Option<usize>, PatternError> {
        match self.anchored.find(text) {
            Ok(found) => Ok(found.map(|m| m.end())),
            Err(e) => Err(PatternError(e.to_string())),
        }
    }

    /// Whether [`Pattern::match_end`] is the end of the text: what `allowed_pattern` asks. A search given up is no
    /// match.
    pub fn matches_all(&self, text: &str) -> bool {
        self.match_end(text) == Ok(Some(text.len()))
    }

    /// The expression to search with anywhere in a text (`re.search`, `re.findall`, `re.sub`).
    ///
    /// Errors: practically none, since the pattern was read already.
    pub fn searcher(&self) -> Result<&Regex, PatternError> {
        self.free
            .get_or_init(|| build(&self.translated).ok())
            .as_ref()
            .ok_or_else(|| PatternError("the pattern is too large".to_owned()))
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

fn build(translated: &str) -> Result<Regex, PatternError> {
    fancy_regex::RegexBuilder::new(translated)
        .backtrack_limit(BACKTRACK_LIMIT)
        .build()
        .map_err(|e| PatternError(e.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(pattern: &str, text: &str) -> Option<usize> {
        Pattern::new(pattern).unwrap().match_end(text).unwrap()
    }

    #[test]
    fn python_differs_from_the_engine() {
        assert_eq!(end("a$", "a\n"), Some(1));
        assert_eq!(end(r"a\Z", "a\n"), None);
        assert_eq!(end("[[]a", "[a"), Some(2));
        assert_eq!(end("[a&&b]+", "a&b"), Some(3));
        assert_eq!(end("[]a]+", "]a"), Some(2));
        assert_eq!(end(r"\101\x42\u0043", "ABC"), Some(3));
        assert_eq!(end("(?a)\\w+", "aé"), Some(1));
        assert_eq!(end(r"(a)\1{2}", "aaa"), Some(3));
        assert_eq!(end("a{,2}b{", "aab{"), Some(4));
        assert_eq!(end("a(?#note)b", "ab"), Some(2));
        assert_eq!(end(r"[\s\S]\S", "\x1ca"), Some(2));
        assert_eq!(end("(?i)ABC", "abc"), Some(3));
        assert_eq!(end("(?P<q>['\"]).*?(?P=q)", "'a'b'"), Some(3));
        assert_eq!(end("(?P<q>a)(?P=q){2}", "aaa"), Some(3));
        assert_eq!(end("(?<!x)a", "a"), Some(1));
        assert_eq!(end("(?=a)*a(?!b){2}()+", "a"), Some(1));
        assert_eq!(end("a|ab", "ab"), Some(1));
    }

    #[test]
    fn what_python_refuses() {
        for pattern in ["(", "a**", "*", "[a", "[z-a]", r"\q", "(?P<1>a)", "a(?i)b", r"\", "[\\d-z]", ")", "a{2,1}"] {
            assert!(Pattern::new(pattern).is_err(), "{pattern}");
        }
    }

    #[test]
    fn hostile_patterns_end() {
        let bomb = Pattern::new(r"(a|aa)+(?=b)$").unwrap();
        assert!(!bomb.matches_all(&"a".repeat(5000)));
        assert!(Pattern::new(&"(".repeat(100_000)).is_err());
        assert!(Pattern::new("((a{1000}){1000}){1000}").is_err());
    }
}
