//! A policy rule: a boolean expression about the caller and the target, in the language of oslo.policy.

use std::collections::HashMap;

use crate::Caller;

/// A parsed rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Check {
    /// `@` or an empty text.
    Always,
    /// `!`.
    Never,
    /// `rule:name`.
    Rule(String),
    /// `role:name`.
    Role(String),
    /// `left:right`: an attribute of the caller, or a literal, equals a value.
    Equals {
        left: String,
        right: String,
    },
    Not(Box<Check>),
    All(Vec<Check>),
    Any(Vec<Check>),
}

/// Why a rule is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CheckError {
    /// The expression is incomplete.
    #[error("the rule ends where a check was expected")]
    Incomplete,
    /// There is an unexpected token.
    #[error("unexpected {0:?}")]
    Unexpected(String),
    /// An unsupported kind of check.
    #[error("checks of kind {0:?} are not supported")]
    Unsupported(String),
    /// It is nested too deeply.
    #[error("the rule is nested too deeply")]
    TooDeep,
}

/// Maximum depth of parentheses, `not` and references between rules.
const MAX_DEPTH: usize = 64;

impl Check {
    /// Parses a rule. `not` has a higher precedence than `and`, and `and` than `or`.
    pub(crate) fn parse(text: &str) -> Result<Self, CheckError> {
        if text.trim().is_empty() {
            return Ok(Self::Always);
        }
        let mut parser = Parser { tokens: tokens(text), at: 0 };
        let check = parser.any(0)?;
        match parser.next() {
            None => Ok(check),
            Some(token) => Err(CheckError::Unexpected(token)),
        }
    }

    /// The names of the rules that it refers to.
    pub(crate) fn rules(&self) -> Vec<&str> {
        match self {
            Self::Rule(name) => vec![name],
            Self::Not(check) => check.rules(),
            Self::All(checks) | Self::Any(checks) => checks.iter().flat_map(Self::rules).collect(),
            Self::Always | Self::Never | Self::Role(_) | Self::Equals { .. } => Vec::new(),
        }
    }

    /// Whether the rule is true for a caller and a target.
    pub(crate) fn holds(&self, facts: &Facts<'_>) -> bool {
        self.holds_at(facts, 0)
    }

    fn holds_at(&self, facts: &Facts<'_>, depth: usize) -> bool {
        if depth > MAX_DEPTH {
            return false;
        }
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Rule(name) => facts.rules.get(name).is_some_and(|rule| rule.holds_at(facts, depth + 1)),
            Self::Role(role) => facts.fill(role).is_some_and(|role| facts.caller.has_role(&role)),
            Self::Equals { left, right } => facts.fill(right).is_some_and(|right| match literal(left) {
                Some(literal) => literal == right,
                None => facts.caller.attribute(left).is_some_and(|have| have == right),
            }),
            Self::Not(check) => !check.holds_at(facts, depth + 1),
            Self::All(checks) => checks.iter().all(|check| check.holds_at(facts, depth + 1)),
            Self::Any(checks) => checks.iter().any(|check| check.holds_at(facts, depth + 1)),
        }
    }
}

/// The input of a rule.
pub(crate) struct Facts<'a> {
    pub(crate) caller: &'a Caller,
    /// The attributes of the target, for `%(name)s`.
    pub(crate) target: &'a [(&'a str, &'a str)],
    pub(crate) rules: &'a HashMap<String, Check>,
}

impl Facts<'_> {
    /// Replaces `%(name)s` with the attributes of the target; `None` if an attribute is missing.
    fn fill(&self, pattern: &str) -> Option<String> {
        let mut filled = String::with_capacity(pattern.len());
        let mut rest = pattern;
        while let Some((before, after)) = rest.split_once("%(") {
            let (name, behind) = after.split_once(")s")?;
            let (_, value) = self.target.iter().find(|(key, _)| *key == name)?;
            filled.push_str(before);
            filled.push_str(value);
            rest = behind;
        }
        filled.push_str(rest);
        Some(filled)
    }
}

/// The value of a Python literal (`'text'`, `True`, `None`, a number), as `str()` prints it.
fn literal(text: &str) -> Option<&str> {
    for quote in ['\'', '"'] {
        if let Some(inner) = text.strip_prefix(quote).and_then(|t| t.strip_suffix(quote)) {
            return Some(inner);
        }
    }
    let is_number = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    (matches!(text, "True" | "False" | "None") || is_number).then_some(text)
}

/// Splits into words and enclosing parentheses. A word may contain parentheses: `project_id:%(project_id)s`.
fn tokens(text: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    for word in text.split_whitespace() {
        let inner = word.trim_start_matches('(');
        tokens.extend(std::iter::repeat_n("(".to_owned(), word.len() - inner.len()));
        let core = inner.trim_end_matches(')');
        if !core.is_empty() {
            tokens.push(core.to_owned());
        }
        tokens.extend(std::iter::repeat_n(")".to_owned(), inner.len() - core.len()));
    }
    tokens
}

struct Parser {
    tokens: Vec<String>,
    at: usize,
}

impl Parser {
    fn next(&mut self) -> Option<String> {
        let token = self.tokens.get(self.at).cloned();
        self.at += usize::from(token.is_some());
        token
    }

    /// Consumes a keyword, in any case, if it is the next token.
    fn takes(&mut self, keyword: &str) -> bool {
        let is = self.tokens.get(self.at).is_some_and(|token| token.eq_ignore_ascii_case(keyword));
        self.at += usize::from(is);
        is
    }

    fn any(&mut self, depth: usize) -> Result<Check, CheckError> {
        let mut checks = vec![self.all(depth)?];
        while self.takes("or") {
            checks.push(self.all(depth)?);
        }
        Ok(one_or(checks, Check::Any))
    }

    fn all(&mut self, depth: usize) -> Result<Check, CheckError> {
        let mut checks = vec![self.single(depth)?];
        while self.takes("and") {
            checks.push(self.single(depth)?);
        }
        Ok(one_or(checks, Check::All))
    }

    fn single(&mut self, depth: usize) -> Result<Check, CheckError> {
        if depth > MAX_DEPTH {
            return Err(CheckError::TooDeep);
        }
        if self.takes("not") {
            return self.single(depth + 1).map(|check| Check::Not(Box::new(check)));
        }
        let token = self.next().ok_or(CheckError::Incomplete)?;
        match token.as_str() {
            "(" => {
                let check = self.any(depth + 1)?;
                match self.next() {
                    Some(token) if token == ")" => Ok(check),
                    Some(token) => Err(CheckError::Unexpected(token)),
                    None => Err(CheckError::Incomplete),
                }
            }
            "@" => Ok(Check::Always),
            "!" => Ok(Check::Never),
            _ => leaf(&token),
        }
    }
}

fn one_or(mut checks: Vec<Check>, many: fn(Vec<Check>) -> Check) -> Check {
    match checks.pop() {
        Some(only) if checks.is_empty() => only,
        Some(last) => {
            checks.push(last);
            many(checks)
        }
        None => Check::Always,
    }
}

fn leaf(token: &str) -> Result<Check, CheckError> {
    let (kind, right) = token.split_once(':').ok_or_else(|| CheckError::Unexpected(token.to_owned()))?;
    match kind {
        "rule" => Ok(Check::Rule(right.to_owned())),
        "role" => Ok(Check::Role(right.to_owned())),
        "http" | "https" => Err(CheckError::Unsupported(kind.to_owned())),
        _ => Ok(Check::Equals { left: kind.to_owned(), right: right.to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn role(name: &str) -> Check {
        Check::Role(name.into())
    }

    #[test]
    fn and_has_a_higher_precedence_than_or() {
        let check = Check::parse("role:a or role:b and not role:c").unwrap();
        let tail = Check::All(vec![role("b"), Check::Not(Box::new(role("c")))]);
        assert_eq!(check, Check::Any(vec![role("a"), tail]));
    }

    #[test]
    fn parentheses_group_and_are_kept_in_patterns() {
        let check = Check::parse("(role:a or role:b) and (project_id:%(project_id)s)").unwrap();
        let equals = Check::Equals { left: "project_id".into(), right: "%(project_id)s".into() };
        assert_eq!(check, Check::All(vec![Check::Any(vec![role("a"), role("b")]), equals]));
    }

    #[test]
    fn invalid_rules_have_a_reason() {
        let bad = |text| Check::parse(text).unwrap_err();
        assert_eq!(bad("role:a and"), CheckError::Incomplete);
        assert_eq!(bad("(role:a"), CheckError::Incomplete);
        assert_eq!(bad("role:a role:b"), CheckError::Unexpected("role:b".into()));
        assert_eq!(bad("admin"), CheckError::Unexpected("admin".into()));
        assert_eq!(bad("http://host/check"), CheckError::Unsupported("http".into()));
        assert_eq!(bad(&"not ".repeat(1000)), CheckError::TooDeep);
    }
}
