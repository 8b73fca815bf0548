//! Parsed expressions.

use std::sync::Arc;

use kiln_value::Value;
use num_bigint::BigInt;

use crate::context::Context;
use crate::convert;
use crate::engine::Engine;
use crate::library::{self, Overloads};
use crate::{Error, Limits, parser};

/// Parses an expression.
///
/// Errors: `YaqlGrammarException` and `YaqlLexicalException` with the position in characters; a `RecursionError` if the
/// expression is nested too deeply to be evaluated.
pub fn parse(expression: &str) -> Result<Expression, Error> {
    Ok(Expression { source: expression.into(), root: parser::parse(expression)? })
}

/// A parsed expression that can be evaluated repeatedly and from any thread.
#[derive(Clone, Debug)]
pub struct Expression {
    source: Arc<str>,
    root: Arc<Node>,
}

impl Expression {
    /// The text that was parsed.
    pub fn as_str(&self) -> &str {
        &self.source
    }

    /// Evaluates the expression with `data` as `$`.
    ///
    /// Sequences of all kinds and sets become lists, times their ISO 8601 text, timespans their seconds, keys of maps
    /// their JSON text.
    ///
    /// Errors: those of the reference implementation, see [`Error`].
    pub fn evaluate(&self, data: &Value, limits: &Limits) -> Result<Value, Error> {
        let engine = Engine::new(*limits, data);
        let result = engine.evaluate(&self.root, &Context::root())?;
        engine.charge(&result)?;
        convert::output(&engine, &result)
    }
}

/// A node of an expression.
#[derive(Debug)]
pub(crate) enum Node {
    /// A literal.
    Constant(Literal),
    /// A keyword: a string, or the name of a key.
    Keyword(Arc<str>),
    /// `$name`, without the `$`; the name of `$` is `1`.
    Variable(Arc<str>),
    /// A function, method or operator.
    Call(Invocation),
    /// A parenthesized expression.
    Wrap(Arc<Node>),
    /// `source => destination`.
    Rule(Arc<Node>, Arc<Node>),
}

/// The value of a literal.
#[derive(Clone, Debug)]
pub(crate) enum Literal {
    Null,
    Bool(bool),
    Int(i64),
    BigInt(Arc<BigInt>),
    Float(f64),
    Text(Arc<str>),
}

/// A call with unevaluated arguments.
#[derive(Debug)]
pub(crate) struct Invocation {
    pub name: Arc<str>,
    /// `None` is an omitted argument: `f(a,,c)`.
    pub args: Vec<Option<Arc<Node>>>,
    /// Whether it has the form `name(…)` and so can be called on a receiver.
    pub takes_receiver: bool,
    /// The overloads of that name in the library.
    pub overloads: Overloads,
}

impl Node {
    /// A call of a function by its name.
    pub(crate) fn call(name: &str, args: Vec<Option<Arc<Node>>>, takes_receiver: bool) -> Self {
        let overloads = library::find(name);
        Self::Call(Invocation { name: name.into(), args, takes_receiver, overloads })
    }

    /// Whether the node is a literal or keyword, which functions can inspect without evaluation.
    pub(crate) fn is_constant(&self) -> bool {
        matches!(self, Self::Constant(_) | Self::Keyword(_))
    }

    /// Whether the node can be called on a receiver.
    pub(crate) fn takes_receiver(&self) -> bool {
        matches!(self, Self::Call(Invocation { takes_receiver: true, .. }))
    }
}
