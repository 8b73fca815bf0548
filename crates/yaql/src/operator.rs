//! The operator table.

/// Symbol and precedence of an operator. A lower level binds tighter.
#[derive(Debug)]
pub(crate) struct Operator {
    /// The symbol.
    pub symbol: &'static str,
    /// The level as a prefix operator, and its function.
    pub prefix: Option<(u8, &'static str)>,
    /// Level, associativity and function as an infix operator.
    pub infix: Option<(u8, Side, &'static str)>,
}

/// The associativity of the operators of a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Left,
    Right,
}

/// The level of `value[index]`.
pub(crate) const INDEX_LEVEL: u8 = 2;

/// A level above all others.
pub(crate) const LOOSEST: u8 = 12;

const fn infix(symbol: &'static str, level: u8, function: &'static str) -> Operator {
    Operator { symbol, prefix: None, infix: Some((level, Side::Left, function)) }
}

const fn sign(symbol: &'static str, unary: &'static str, binary: &'static str) -> Operator {
    Operator { symbol, prefix: Some((3, unary)), infix: Some((6, Side::Left, binary)) }
}

/// Longer symbols precede their prefixes.
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
    // Never parsed as an operator: `=>` separates names from values.
    Operator { symbol: "=>", prefix: None, infix: None },
];

/// An operator that is a word.
pub(crate) fn word(text: &str) -> Option<&'static Operator> {
    OPERATORS.iter().find(|op| op.symbol == text)
}

/// The operator at the start of a text, except for words.
pub(crate) fn symbol(text: &str) -> Option<&'static Operator> {
    OPERATORS.iter().find(|op| !op.symbol.starts_with(char::is_alphabetic) && text.starts_with(op.symbol))
}
