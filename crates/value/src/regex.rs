//! Python's regular expressions (`re`).
//!
//! A separate implementation, because the results must be exactly those of Python: which strings match, what each group
//! captures, and which patterns are invalid. It backtracks like Python, but stops after a number of steps.

mod class;
mod flags;
mod machine;
mod node;
mod parse;
mod program;
mod reader;
mod set;

use std::ops::Range;
use std::sync::Arc;

use flags::Flags;
use machine::Machine;
use program::Program;

use crate::steps;

/// Maximum number of steps, about 50 ms: patterns come from templates and may be malicious.
pub const MOST_STEPS: usize = 5_000_000;

/// A regular expression in Python's syntax. Clones share it.
#[derive(Clone, Debug)]
pub struct Pattern(Arc<Compiled>);

#[derive(Debug)]
struct Compiled {
    source: String,
    names: Vec<Option<String>>,
    flags: Flags,
    program: Program,
}

/// The error of an invalid pattern, with Python's text if there is one, or of a search that exceeded the limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatternError(pub String);

impl std::fmt::Display for PatternError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for PatternError {}

/// The byte ranges of the whole match and of the groups; `None` for groups that did not participate.
pub type Groups = Vec<Option<Range<usize>>>;

impl Pattern {
    /// Compiles a pattern.
    pub fn new(source: &str) -> Result<Self, PatternError> {
        let parsed = parse::parse(source)?;
        let program = Program::new(&parsed.node)?;
        Ok(Self(Arc::new(Compiled { source: source.to_owned(), names: parsed.names, flags: parsed.flags, program })))
    }

    /// The source of the pattern.
    pub fn as_str(&self) -> &str {
        &self.0.source
    }

    /// The name of each group, if it has one; the whole match is the first.
    pub fn names(&self) -> &[Option<String>] {
        &self.0.names
    }

    /// The names of the global flags, in Python's order.
    pub fn flags(&self) -> impl Iterator<Item = &'static str> {
        self.0.flags.names()
    }

    /// `re.match(text).end()` in bytes; `None` if the pattern does not match.
    ///
    /// Errors: the search exceeded the limit.
    pub fn match_end(&self, text: &str) -> Result<Option<usize>, PatternError> {
        counted(&mut MOST_STEPS.clone(), |fuel| self.machine(text, fuel).run(0))
    }

    /// Whether [`Pattern::match_end`] is the end of the text, as `allowed_pattern` requires. A search that exceeded the
    /// limit does not match.
    pub fn matches_all(&self, text: &str) -> bool {
        self.match_end(text) == Ok(Some(text.len()))
    }

    /// `re.search`: the first match at or after a position. With `not_empty`, an empty match at that position is not
    /// accepted. `fuel` is the number of remaining steps, which is updated.
    ///
    /// Errors: the search exceeded the limit.
    pub fn search(
        &self,
        text: &str,
        from: usize,
        not_empty: bool,
        fuel: &mut usize,
    ) -> Result<Option<Groups>, PatternError> {
        counted(fuel, |fuel| self.searched(text, from, not_empty, fuel))
    }

    fn searched(
        &self,
        text: &str,
        from: usize,
        not_empty: bool,
        fuel: &mut usize,
    ) -> Result<Option<Groups>, PatternError> {
        let first = self.0.program.first();
        let mut machine = self.machine(text, fuel);
        machine.forbid(not_empty.then_some(from));
        let rest = text.get(from..).unwrap_or_default();
        let starts = rest.char_indices().map(|(at, c)| (from + at, Some(c)));
        for (start, c) in starts.chain([(text.len(), None)]) {
            if first.is_some_and(|first| !c.is_some_and(|c| first.takes(c))) {
                continue;
            }
            if let Some(end) = machine.run(start)? {
                return Ok(Some(machine.groups(start, end)));
            }
            machine.forbid(None);
        }
        Ok(None)
    }

    fn machine<'r>(&'r self, text: &'r str, fuel: &'r mut usize) -> Machine<'r> {
        Machine::new(&self.0.program, self.0.names.len(), text, fuel)
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

/// Takes the steps of a search from `fuel` and from the account of the request.
fn counted<T>(fuel: &mut usize, search: impl FnOnce(&mut usize) -> Result<T, PatternError>) -> Result<T, PatternError> {
    let most = steps::left().min(*fuel);
    let mut left = most;
    let found = search(&mut left);
    // A search that failed wanted more than was left.
    let spent = if found.is_ok() { most - left } else { most };
    *fuel -= spent;
    steps::spend(spent).map_err(|exhausted| PatternError(exhausted.to_string()))?;
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(pattern: &str, text: &str) -> Option<usize> {
        Pattern::new(pattern).unwrap().match_end(text).unwrap()
    }

    #[test]
    fn matches_from_the_start() {
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

    /// The text of the first match and of its groups, in brackets; `-` for groups that did not participate.
    fn search(pattern: &str, text: &str) -> Option<String> {
        let groups = Pattern::new(pattern).unwrap().search(text, 0, false, &mut MOST_STEPS.clone()).unwrap()?;
        Some(groups.into_iter().map(|group| group.map_or("-".to_owned(), |at| format!("[{}]", &text[at]))).collect())
    }

    #[test]
    fn groups_and_positions_match_python() {
        for (pattern, text, found) in [
            ("(.){0}", "q", "[]-"),
            ("(?:(a)|b)*", "ab", "[ab][a]"),
            ("(?:(a)|(b))*", "ab", "[ab][a][b]"),
            ("(a|)*", "aab", "[aa][]"),
            ("(a?)*?b", "aab", "[aab][a]"),
            ("(?:$){,2}", "a\n", "[]"),
            ("((?(1)x|y))", "xy", "[y][y]"),
            ("(?(1)é|b)()", "éb", "[b][]"),
            ("(a)?(?(1)b|c)", "ab", "[ab][a]"),
            ("(?P<n>a)?(?(n)b|c)", "c", "[c]-"),
            (r"(?>a|ab)c|.", "abc", "[a]"),
            ("a++b|a{1,2}+a", "aaa", "[aaa]"),
            ("(?:a|ab){2}+", "abaa", "[aa]"),
            (r"(?<=(?<!x)a)(b)\1", "xabbabb", "[bb][b]"),
            ("(?!(a)b)a", "aca", "[a]-"),
            (r"(?i)(ß)\1 K", "ßẞ \u{212a}", "[ßẞ \u{212a}][ß]"),
            ("(?i)[à-ü]+i", "ÀÜİ", "[ÀÜİ]"),
            ("(?i)a(?-i:b)c", "ABC AbC", "[AbC]"),
            ("(?x) a b # c\n [ #]", "ab#", "[ab#]"),
            ("(?s:.)$", "a\n", "[a]"),
            ("(?m)^b$", "a\nb\n", "[b]"),
            (r"\w+", "\u{903}é²Ⅰ٣", "[é²Ⅰ٣]"),
            (r"[^\W\d_]+", "1é_", "[é]"),
            (r"(?a)\b\w", "éa", "[a]"),
            ("[]a-]+|[^]]", "a]-", "[a]-]"),
            ("a{,}b{}", "aab{}", "[aab{}]"),
            (r"\08\1010", "\08A0", "[\08A0]"),
        ] {
            assert_eq!(search(pattern, text).as_deref(), Some(found), "{pattern} on {text}");
        }
        assert_eq!(search(r"\B", ""), None);
        assert_eq!(search(r"\ud800", "\u{fffd}"), None);
        assert_eq!(search(r"(a)?\1b", "b"), None);
    }

    #[test]
    fn an_empty_match_can_be_forbidden() {
        let next = |from, not_empty| Pattern::new("|a").unwrap().search("ab", from, not_empty, &mut MOST_STEPS.clone());
        assert_eq!(next(0, false), Ok(Some(vec![Some(0..0)])));
        assert_eq!(next(0, true), Ok(Some(vec![Some(0..1)])));
        assert_eq!(next(1, true), Ok(Some(vec![Some(2..2)])));
    }

    #[test]
    fn patterns_that_python_refuses() {
        for (pattern, message) in [
            ("(", "missing ), unterminated subpattern at position 0"),
            ("a\n)", "unbalanced parenthesis at position 2 (line 2, column 1)"),
            ("*", "nothing to repeat at position 0"),
            ("a|+", "nothing to repeat at position 2"),
            ("^*", "nothing to repeat at position 1"),
            ("a**", "multiple repeat at position 2"),
            ("a{2,1}", "min repeat greater than max repeat at position 2"),
            ("a{4294967295}", "the repetition number is too large"),
            ("[a", "unterminated character set at position 0"),
            ("[z-a]", "bad character range z-a at position 1"),
            (r"[\d-z]", r"bad character range \d-z at position 1"),
            (r"\q", r"bad escape \q at position 0"),
            ("\\", "bad escape (end of pattern) at position 0"),
            (r"\x4", r"incomplete escape \x4 at position 0"),
            (r"\U00110000", r"bad escape \U00110000 at position 0"),
            (r"\777", r"octal escape value \777 outside of range 0-0o377 at position 0"),
            (r"\1", "invalid group reference 1 at position 1"),
            (r"(\1)", "cannot refer to an open group at position 1"),
            (r"(?<=(a)\1)", "cannot refer to group defined in the same lookbehind subpattern at position 9"),
            ("(?<=a+)", "look-behind requires fixed-width pattern"),
            ("(?P<1>a)", "bad character in group name '1' at position 4"),
            ("(?P<n>)(?P<n>)", "redefinition of group name 'n' as group 2; was group 1 at position 11"),
            ("(?P=n)", "unknown group name 'n' at position 4"),
            ("(?Pn)", "unknown extension ?Pn at position 1"),
            ("(?<n>a)", "unknown extension ?<n at position 1"),
            ("(?(0)a)", "bad group number at position 3"),
            ("(?(2)a)()", "invalid group reference 2 at position 3"),
            ("(a)(?(1)a|b|c)", "conditional backref with more than two branches at position 11"),
            ("a(?i)b", "global flags not at the start of the expression at position 1"),
            ("(?i-i:a)", "bad inline flags: flag turned on and off at position 5"),
            ("(?-a:a)", "bad inline flags: cannot turn off flags 'a', 'u' and 'L' at position 4"),
            ("(?L)", "bad inline flags: cannot use 'L' flag with a str pattern at position 3"),
            ("(?iz)", "unknown flag at position 3"),
            ("(?a)(?u)", "ASCII and UNICODE flags are incompatible"),
            ("(?#", "missing ), unterminated comment at position 0"),
        ] {
            assert_eq!(Pattern::new(pattern).map_err(|error| error.0), Err(message.to_owned()), "{pattern}");
        }
    }

    #[test]
    fn hostile_patterns_terminate() {
        for bomb in
            ["(a|aa)+(?=b)$", "(a+)+b", "(a*)*b", "(a?){60}a{60}b", "(?:a|a)*?b", r"(.*)\1+(.*)\2b", "(?=(a+)+b)"]
        {
            let given_up = Pattern::new(bomb).unwrap().match_end(&"a".repeat(5000));
            assert_eq!(given_up, Err(PatternError("the search takes too many steps".to_owned())), "{bomb}");
        }
        assert!(Pattern::new(&"(".repeat(100_000)).is_err());
        let nested = Pattern::new("((a{1000}){1000}){1000}").unwrap();
        assert!(!nested.matches_all(&"a".repeat(100_000)));
    }
}
