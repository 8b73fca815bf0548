//! What functions take: types, parameters, overloads.

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
    /// An integer or truth value.
    Int,
    /// An integer, no truth value.
    Integer,
    /// An integer or float, no truth value.
    Number,
    Text,
    /// A tuple or list.
    Sequence,
    /// Anything to walk over but texts and dictionaries; walking is limited.
    Iterable,
    /// [`Type::Iterable`] without sets.
    Ordered,
    /// Something to walk over once; not limited.
    Iterator,
    Dict,
    Set,
    DateTime,
    TimeSpan,
    Regex,
    /// What `orderBy` gives.
    Ordering,
    Context,
    /// `a => b`, evaluated.
    Rule,
    /// A bare word.
    Keyword,
    /// An expression that the function evaluates as often as it likes.
    Lambda,
    /// A lambda that is called on a receiver.
    MethodLambda,
    /// `a => b` whose sides the function evaluates.
    LazyRule,
    /// An expression that is passed on.
    Expression,
}

impl Type {
    /// Whether arguments are not evaluated before the call.
    pub(crate) fn is_lazy(self) -> bool {
        matches!(self, Self::Lambda | Self::MethodLambda | Self::LazyRule | Self::Expression)
    }

    /// Whether a value that is not null is of this type.
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

    /// Whether every value of this type is one of the other, but not the other way round.
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

/// What a parameter is if the call does not give it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Default {
    Null,
    /// The function can tell that it was not given.
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

/// A parameter that must be given. Null is only accepted for [`Type::Any`], [`Type::Null`] and lambdas.
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

    /// The parameter may be left out.
    pub(crate) const fn or(self, default: Default) -> Self {
        Self { default: Some(default), ..self }
    }

    /// Whether the parameter takes an argument, as far as can be told before it is evaluated.
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

/// How a function is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// `name(…)`.
    Function,
    /// `receiver.name(…)`.
    Method,
    /// Either way.
    Both,
}

/// What a function makes of `name => value`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keywords {
    /// The argument of that name.
    Named,
    /// The same, and any name is welcome.
    Any,
    /// A value of its own: a rule.
    Rules,
}

/// A library function of one name and signature.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Overload {
    pub name: &'static str,
    pub params: &'static [Param],
    /// The type of further positional arguments.
    pub rest: Option<Param>,
    pub keywords: Keywords,
    pub shape: Shape,
    /// Whether the function writes to its own context.
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
    /// Takes any number of further arguments.
    pub(crate) const fn rest(self, kind: Type) -> Self {
        Self { rest: Some(p("*", kind)), ..self }
    }

    /// Takes any keyword arguments.
    pub(crate) const fn keywords(self) -> Self {
        Self { keywords: Keywords::Any, ..self }
    }

    /// Takes `a => b` as a value.
    pub(crate) const fn rules(self) -> Self {
        Self { keywords: Keywords::Rules, ..self }
    }

    /// Writes to its own context.
    pub(crate) const fn scoped(self) -> Self {
        Self { scoped: true, ..self }
    }

    /// Whether this is called on a receiver, or without one.
    pub(crate) fn suits(&self, receiver: bool) -> bool {
        self.shape != if receiver { Shape::Function } else { Shape::Method }
    }

    /// The parameter that takes the positional argument of an index.
    pub(crate) fn param(&self, index: usize) -> Option<&Param> {
        self.params.get(index).or(self.rest.as_ref())
    }

    /// Whether this takes narrower types than the other in at least one of so many positions and wider in none.
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
