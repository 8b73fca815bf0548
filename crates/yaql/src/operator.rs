//! The operator table.

/// How an operator is written and how tightly it binds. A smaller level binds tighter.
#[derive(Debug)]
pub(crate) struct Operator {
    /// What is written.
    pub symbol: &'static str,
    /// The level before one operand, and the function that is called.
    pub prefix: Option<(u8, &'static str)>,
    /// Level, side and function between two operands.
    pub infix: Option<(u8, Side, &'static str)>,
}

/// To which side operators of one level group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Left,
    Right,
}

/// The level of `value[index]`.
pub(crate) const INDEX_LEVEL: u8 = 2;

/// A level looser than all.
pub(crate) const LOOSEST: u8 = 12;

const fn infix(symbol: &'static str, level: u8, function: &'static str) -> Operator {
    Operator { symbol, prefix: None, infix: Some((level, Side::Left, function)) }
}

const fn sign(symbol: &'static str, unary: &'static str, binary: &'static str) -> Operator {
    Operator { symbol, prefix: Some((3, unary)), infix: Some((6, Side::Left, binary)) }
}

/// Longer symbols stand before those they begin with.
pub(crate) static OPERATORS: [Operator; 21] = [
    infix("?.", 1, "#operator_?."),
    infix("=~", 4, "#operator_=~"),
    infix("!~", 4, "#operator_!~"),
    infix(">=", 7, "#operator_>="),
    infix("<=", 7, "#operator_<="),
    infix("!=", 7, "*not_equal"),
    Operator { symbol: "->", prefix: None, infix: Some((11, Side::Right, "#operator_->")) },
    infix(".", 1, "#operator_."),
    sign("+", "#unary_operator_+", "#operator_+"),
    sign("-", "#unary_operator_-", "#operator_-"),
    infix("*", 5, "#operator_*"),
    infix("/", 5, "#operator_/"),
    infix(">", 7, "#operator_>"),
    infix("<", 7, "#operator_<"),
    infix("=", 7, "*equal"),
    infix("mod", 5, "#operator_mod"),
    infix("in", 7, "#operator_in"),
    Operator { symbol: "not", prefix: Some((8, "#unary_operator_not")), infix: None },
    infix("and", 9, "#operator_and"),
    infix("or", 10, "#operator_or"),
    // Never read: `=>` separates names from values and is no operator of a value.
    Operator { symbol: "=>", prefix: None, infix: None },
];

/// The operator that is a word.
pub(crate) fn word(text: &str) -> Option<&'static Operator> {
    OPERATORS.iter().find(|op| op.symbol == text)
}

/// The operator that a text begins with, words left aside.
pub(crate) fn symbol(text: &str) -> Option<&'static Operator> {
    OPERATORS.iter().find(|op| !op.symbol.starts_with(char::is_alphabetic) && text.starts_with(op.symbol))
}
