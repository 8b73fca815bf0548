//! The parsed expression.

use std::sync::Arc;

use kiln_value::Value;
use num_bigint::BigInt;

use crate::context::Context;
use crate::convert;
use crate::engine::Engine;
use crate::library::{self, Overloads};
use crate::{Error, Limits, parser};

/// Reads an expression.
///
/// Errors: `YaqlGrammarException` and `YaqlLexicalException` with the place in characters from the start; a
/// `RecursionError` if the expression is nested far deeper than anything that could be evaluated.
pub fn parse(expression: &str) -> Result<Expression, Error> {
    Ok(Expression { source: expression.into(), root: parser::parse(expression)? })
}

/// An expression ready to be evaluated, any number of times and from any thread.
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

    /// The value of the expression where `$` is `data`.
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

/// A part of an expression.
#[derive(Debug)]
pub(crate) enum Node {
    /// A literal.
    Constant(Literal),
    /// A bare word: a text, or the name of a key.
    Keyword(Arc<str>),
    /// `$name`, without the sign; `$` is `1`.
    Variable(Arc<str>),
    /// A function, method or operator.
    Call(Invocation),
    /// A part in parentheses.
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

/// A call before its arguments are known.
#[derive(Debug)]
pub(crate) struct Invocation {
    pub name: Arc<str>,
    /// `None` stands for an argument that was left out: `f(a,,c)`.
    pub args: Vec<Option<Arc<Node>>>,
    /// Whether this is written `name(…)` and so can be called on a receiver.
    pub takes_receiver: bool,
    /// What the library has under that name.
    pub overloads: Overloads,
}

impl Node {
    /// A call of a function by its name.
    pub(crate) fn call(name: &str, args: Vec<Option<Arc<Node>>>, takes_receiver: bool) -> Self {
        let overloads = library::find(name);
        Self::Call(Invocation { name: name.into(), args, takes_receiver, overloads })
    }

    /// Whether the part is a literal or bare word, which functions may look at without evaluating it.
    pub(crate) fn is_constant(&self) -> bool {
        matches!(self, Self::Constant(_) | Self::Keyword(_))
    }

    /// Whether the part can be called on a receiver.
    pub(crate) fn takes_receiver(&self) -> bool {
        matches!(self, Self::Call(Invocation { takes_receiver: true, .. }))
    }
}
