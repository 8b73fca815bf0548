//! Shell wildcards as in Python's `fnmatch.fnmatchcase`.

/// Whether a name matches a pattern with `*`, `?`, `[abc]`, `[a-z]` and `[!a]`; case-sensitive.
pub fn matches(pattern: &str, name: &str) -> bool {
    let pattern = tokens(pattern);
    let name: Vec<char> = name.chars().collect();
    // Where to continue after a mismatch: behind the last star, which then matches one more character.
    let mut retry: Option<(usize, usize)> = None;
    let (mut p, mut n) = (0, 0);
    loop {
        match (pattern.get(p), name.get(n)) {
            (None, None) => return true,
            (Some(Token::Star), _) => {
                p += 1;
                retry = Some((p, n));
                continue;
            }
            (Some(token), Some(c)) if token.accepts(*c) => {
                (p, n) = (p + 1, n + 1);
                continue;
            }
            _ => {}
        }
        match retry {
            Some((after_star, from)) if from < name.len() => {
                retry = Some((after_star, from + 1));
                (p, n) = (after_star, from + 1);
            }
            _ => return false,
        }
    }
}

enum Token {
    Star,
    Any,
    One(char),
    Set { ranges: Vec<(char, char)>, negated: bool },
}

impl Token {
    fn accepts(&self, c: char) -> bool {
        match self {
            Self::Star => false,
            Self::Any => true,
            Self::One(one) => *one == c,
            Self::Set { ranges, negated } => ranges.iter().any(|(low, high)| (*low..=*high).contains(&c)) != *negated,
        }
    }
}

fn tokens(pattern: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = pattern;
    while let Some(c) = rest.chars().next() {
        rest = rest.get(c.len_utf8()..).unwrap_or_default();
        tokens.push(match c {
            '*' => Token::Star,
            '?' => Token::Any,
            '[' => match set(rest) {
                Some((token, after)) => {
                    rest = after;
                    token
                }
                // An unterminated set is a literal bracket.
                None => Token::One('['),
            },
            c => Token::One(c),
        });
    }
    tokens
}

fn set(rest: &str) -> Option<(Token, &str)> {
    let (negated, body) = match rest.strip_prefix('!') {
        Some(body) => (true, body),
        None => (false, rest),
    };
    // A leading bracket is a member of the set.
    let first = body.chars().next()?.len_utf8();
    let end = first + body.get(first..)?.find(']')?;
    let members: Vec<char> = body.get(..end)?.chars().collect();
    let mut ranges = Vec::new();
    let mut members = members.as_slice();
    loop {
        members = match members {
            [] => return Some((Token::Set { ranges, negated }, body.get(end + 1..)?)),
            [low, '-', high, rest @ ..] => {
                ranges.push((*low, *high));
                rest
            }
            [one, rest @ ..] => {
                ranges.push((*one, *one));
                rest
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn matches_as_python_does() {
        for (pattern, name, wanted) in [
            ("*", "", true),
            ("a*b*c", "aXbYbZc", true),
            ("a*b*c", "aXbYbZ", false),
            ("?", "é", true),
            ("?", "", false),
            ("[a-c]x", "bx", true),
            ("[!a-c]x", "bx", false),
            ("[]a]", "]", true),
            ("[", "[", true),
            ("[a", "[a", true),
            ("A", "a", false),
            ("srv_[0-9]", "srv_7", true),
        ] {
            assert_eq!(matches(pattern, name), wanted, "{pattern} {name}");
        }
    }

    #[test]
    fn many_stars_are_fast() {
        assert!(!matches(&"*a".repeat(500), &"a".repeat(499)));
    }
}
