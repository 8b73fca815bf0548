//! Signatures: types, parameters, overloads.

use crate::Error;
use crate::call::Call;
use crate::expression::Node;
use crate::object::Object;
use crate::overload::Arg;

/// The type of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    /// Any value.
    Any,
    /// Only null.
    Null,
    Bool,
    /// An integer or boolean.
    Int,
    /// An integer, not a boolean.
    Integer,
    /// An integer or float, not a boolean.
    Number,
    Text,
    /// A tuple or list.
    Sequence,
    /// Anything iterable except strings and dictionaries; the iteration is limited.
    Iterable,
    /// [`Type::Iterable`] without sets.
    Ordered,
    /// An iterator that can be consumed once; not limited.
    Iterator,
    Dict,
    Set,
    DateTime,
    TimeSpan,
    Regex,
    /// The result of `orderBy`.
    Ordering,
    Context,
    /// `a => b`, evaluated.
    Rule,
    /// A keyword.
    Keyword,
    /// An expression that the function evaluates itself.
    Lambda,
    /// A lambda that is called on a receiver.
    MethodLambda,
    /// `a => b` with sides that the function evaluates itself.
    LazyRule,
    /// An expression that is passed on.
    Expression,
}

impl Type {
    /// Whether arguments are not evaluated before the call.
    pub(crate) fn is_lazy(self) -> bool {
        matches!(self, Self::Lambda | Self::MethodLambda | Self::LazyRule | Self::Expression)
    }

    /// Whether a non-null value is of this type.
    fn accepts(self, value: &Object) -> bool {
        match self {
            Self::Any | Self::Lambda | Self::MethodLambda => true,
            Self::Bool => matches!(value, Object::Bool(_)),
            Self::Int => matches!(value, Object::Bool(_) | Object::Int(_) | Object::BigInt(_)),
            Self::Integer => matches!(value, Object::Int(_) | Object::BigInt(_)),
            Self::Number => matches!(value, Object::Int(_) | Object::BigInt(_) | Object::Float(_)),
            Self::Text => matches!(value, Object::Str(_)),
            Self::Sequence => matches!(value, Object::List(_)),
            Self::Iterable => matches!(
                value,
                Object::List(_) | Object::Set(_) | Object::Values(_) | Object::Iter(_) | Object::Ordering(_)
            ),
            Self::Ordered => !matches!(value, Object::Set(_)) && Self::Iterable.accepts(value),
            Self::Iterator => matches!(value, Object::Iter(_)),
            Self::Dict => matches!(value, Object::Dict(_)),
            Self::Set => matches!(value, Object::Set(_)),
            Self::DateTime => matches!(value, Object::DateTime(_)),
            Self::TimeSpan => matches!(value, Object::TimeSpan(_)),
            Self::Regex => matches!(value, Object::Regex(_)),
            Self::Ordering => matches!(value, Object::Ordering(_)),
            Self::Context => matches!(value, Object::Context(_)),
            Self::Rule => matches!(value, Object::Rule(_)),
            Self::Null | Self::Keyword | Self::LazyRule | Self::Expression => false,
        }
    }

    /// Whether this type is strictly narrower than the other.
    fn specializes(self, other: Self) -> bool {
        let plain = |kind: Self| !kind.is_lazy() && kind != Self::Keyword && kind != Self::Number;
        match (self, other) {
            (a, b) if a == b || !plain(a) || !plain(b) => false,
            (_, Self::Any)
            | (
                Self::Sequence | Self::Set | Self::Iterator | Self::Ordering | Self::Dict | Self::Text,
                Self::Iterable | Self::Ordered,
            )
            | (Self::Text, Self::Sequence)
            | (Self::Bool, Self::Int | Self::Integer) => true,
            _ => false,
        }
    }
}

/// The default of a parameter.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Default {
    Null,
    /// The function can detect that it is missing.
    Missing,
    Bool(bool),
    Int(i64),
    Text(&'static str),
    /// A timespan of zero.
    NoTime,
}

/// A parameter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Param {
    pub name: &'static str,
    pub kind: Type,
    pub nullable: bool,
    pub default: Option<Default>,
}

/// A required parameter. Null is accepted only for [`Type::Any`], [`Type::Null`] and lambdas.
pub(crate) const fn p(name: &'static str, kind: Type) -> Param {
    let nullable = matches!(kind, Type::Any | Type::Null | Type::Lambda | Type::MethodLambda);
    Param { name, kind, nullable, default: None }
}

impl Param {
    /// Null is accepted.
    pub(crate) const fn nullable(self) -> Self {
        Self { nullable: true, ..self }
    }

    /// Null is not accepted.
    pub(crate) const fn not_null(self) -> Self {
        Self { nullable: false, ..self }
    }

    /// Makes the parameter optional.
    pub(crate) const fn or(self, default: Default) -> Self {
        Self { default: Some(default), ..self }
    }

    /// Whether the parameter accepts an argument, as far as known before its evaluation.
    pub(crate) fn accepts(&self, arg: &Arg<'_>) -> bool {
        match arg {
            Arg::Omitted => match self.default {
                None => false,
                Some(Default::Null) => self.nullable,
                Some(_) => true,
            },
            Arg::Value(value) => self.accepts_value(value),
            Arg::Node(node) => match (self.kind, &***node) {
                (Type::Keyword, node) => matches!(node, Node::Keyword(_)),
                (Type::LazyRule, node) => matches!(node, Node::Rule(..)),
                (Type::MethodLambda, node) => node.takes_receiver(),
                (Type::Expression | Type::Lambda, _) => true,
                (_, Node::Constant(literal)) => self.accepts_value(&literal.clone().into()),
                (_, Node::Keyword(word)) => self.accepts_value(&Object::Str(word.clone())),
                _ => true,
            },
        }
    }

    fn accepts_value(&self, value: &Object) -> bool {
        match value {
            Object::Null => self.nullable,
            value => self.kind.accepts(value),
        }
    }
}

/// The body of a library function.
pub(crate) type Body = fn(&mut Call<'_>) -> Result<Object, Error>;

/// The call syntax of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// `name(…)`.
    Function,
    /// `receiver.name(…)`.
    Method,
    /// Both.
    Both,
}

/// The meaning of `name => value` for a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keywords {
    /// A keyword argument.
    Named,
    /// A keyword argument with any name.
    Any,
    /// A value: a rule.
    Rules,
}

/// A library function with one signature.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Overload {
    pub name: &'static str,
    pub params: &'static [Param],
    /// The type of additional positional arguments.
    pub rest: Option<Param>,
    pub keywords: Keywords,
    pub shape: Shape,
    /// Whether the function changes its own context.
    pub scoped: bool,
    pub body: Body,
}

/// A function: `name(…)`.
pub(crate) const fn function(name: &'static str, params: &'static [Param], body: Body) -> Overload {
    Overload { name, params, rest: None, keywords: Keywords::Named, shape: Shape::Function, scoped: false, body }
}

/// A method: `receiver.name(…)`.
pub(crate) const fn method(name: &'static str, params: &'static [Param], body: Body) -> Overload {
    Overload { shape: Shape::Method, ..function(name, params, body) }
}

/// Both a function and a method.
pub(crate) const fn extension(name: &'static str, params: &'static [Param], body: Body) -> Overload {
    Overload { shape: Shape::Both, ..function(name, params, body) }
}

impl Overload {
    /// Accepts additional arguments.
    pub(crate) const fn rest(self, kind: Type) -> Self {
        Self { rest: Some(p("*", kind)), ..self }
    }

    /// Accepts any keyword arguments.
    pub(crate) const fn keywords(self) -> Self {
        Self { keywords: Keywords::Any, ..self }
    }

    /// Accepts `a => b` as a value.
    pub(crate) const fn rules(self) -> Self {
        Self { keywords: Keywords::Rules, ..self }
    }

    /// Changes its own context.
    pub(crate) const fn scoped(self) -> Self {
        Self { scoped: true, ..self }
    }

    /// Whether this can be called with or without a receiver.
    pub(crate) fn suits(&self, receiver: bool) -> bool {
        self.shape != if receiver { Shape::Function } else { Shape::Method }
    }

    /// The parameter for a positional argument.
    pub(crate) fn param(&self, index: usize) -> Option<&Param> {
        self.params.get(index).or(self.rest.as_ref())
    }

    /// Whether this has a narrower type than the other in at least one position and a wider type in none.
    pub(crate) fn specializes(&self, other: &Self, positions: usize) -> bool {
        let mut narrower = false;
        for index in 0..positions {
            let (Some(mine), Some(theirs)) = (self.param(index), other.param(index)) else { continue };
            if theirs.kind.specializes(mine.kind) {
                return false;
            }
            narrower |= mine.kind.specializes(theirs.kind);
        }
        narrower
    }
}
