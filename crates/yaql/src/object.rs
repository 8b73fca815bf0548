//! The values of an evaluation: Python's values, as far as yaql distinguishes them.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;
use std::sync::Arc;

use num_bigint::BigInt;
use num_traits::ToPrimitive;

use crate::Error;
use crate::context::Context;
use crate::cursor::Iter;
use crate::dict::Dict;
use crate::expression::Literal;
use crate::ordering::Ordering;
use crate::regex::Regex;
use crate::set::Set;
use crate::time::{DateTime, TimeSpan};

/// Maximum nesting of values, so that traversals do not overflow the stack.
pub(crate) const MAX_DEPTH: u32 = 400;

/// Maximum number of parts of a value, counting shared parts repeatedly, so that traversals end.
const MAX_WEIGHT: u64 = 10_000_000;

/// A value. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) enum Object {
    Null,
    Bool(bool),
    Int(i64),
    BigInt(Arc<BigInt>),
    Float(f64),
    Str(Arc<str>),
    List(List),
    Dict(Dict),
    Set(Set),
    /// The values of a dictionary: iterable, but without index and length.
    Values(Dict),
    Iter(Rc<Iter>),
    Ordering(Rc<Ordering>),
    DateTime(DateTime),
    TimeSpan(TimeSpan),
    Regex(Rc<Regex>),
    Context(Context),
    /// `source => destination`, evaluated.
    Rule(Rc<(Object, Object)>),
}

/// An immutable sequence.
#[derive(Clone, Debug)]
pub(crate) struct List {
    pub kind: ListKind,
    items: Rc<Items>,
}

/// The Python type of a sequence: different types are never equal, and only tuples are hashable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListKind {
    Tuple,
    List,
}

impl ListKind {
    /// The name of Python's type.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Tuple => "tuple",
            Self::List => "list",
        }
    }
}

#[derive(Debug)]
struct Items {
    values: Vec<Object>,
    measure: Measure,
}

/// The size of a value as a tree.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Measure {
    weight: u64,
    depth: u32,
}

impl Measure {
    /// The size of a value that contains these values.
    ///
    /// Errors: too deep or too large.
    pub(crate) fn around<'a>(values: impl IntoIterator<Item = &'a Object>) -> Result<Self, Error> {
        let mut sum = Self { weight: 1, depth: 0 };
        for value in values {
            let part = value.measure();
            sum.weight = sum.weight.saturating_add(part.weight);
            sum.depth = sum.depth.max(part.depth);
        }
        sum.depth += 1;
        if sum.weight > MAX_WEIGHT {
            return Err(Error::too_much_memory());
        }
        if sum.depth > MAX_DEPTH { Err(Error::recursion()) } else { Ok(sum) }
    }

    /// Maximum nesting.
    pub(crate) fn depth(self) -> u32 {
        self.depth
    }
}

impl List {
    pub(crate) fn items(&self) -> &[Object] {
        &self.items.values
    }

    pub(crate) fn same(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.items, &other.items)
    }

    /// The item at an index.
    pub(crate) fn get(&self, index: usize) -> Option<&Object> {
        self.items.values.get(index)
    }

    /// A slice of the list.
    pub(crate) fn slice(&self, start: usize, end: usize) -> Result<Object, Error> {
        let items = self.items().get(start..end).unwrap_or_default().to_vec();
        Object::sequence(self.kind, items)
    }
}

impl Object {
    /// A sequence of a type.
    pub(crate) fn sequence(kind: ListKind, values: Vec<Self>) -> Result<Self, Error> {
        let measure = Measure::around(&values)?;
        Ok(Self::List(List { kind, items: Rc::new(Items { values, measure }) }))
    }

    /// Python's `tuple`.
    pub(crate) fn tuple(values: Vec<Self>) -> Result<Self, Error> {
        Self::sequence(ListKind::Tuple, values)
    }

    /// Python's `list`.
    pub(crate) fn list(values: Vec<Self>) -> Result<Self, Error> {
        Self::sequence(ListKind::List, values)
    }

    pub(crate) fn text(text: impl Into<Arc<str>>) -> Self {
        Self::Str(text.into())
    }

    /// A count or position.
    pub(crate) fn count(count: usize) -> Self {
        match i64::try_from(count) {
            Ok(count) => Self::Int(count),
            Err(_) => Self::BigInt(Arc::new(count.into())),
        }
    }

    pub(crate) fn measure(&self) -> Measure {
        match self {
            Self::List(list) => list.items.measure,
            Self::Dict(dict) | Self::Values(dict) => dict.measure(),
            Self::Set(set) => set.measure(),
            Self::Iter(iter) => Measure { weight: 1, depth: iter.depth() },
            Self::Ordering(ordering) => Measure { weight: 1, depth: ordering.depth() },
            Self::Context(context) => Measure { weight: 1, depth: context.depth() },
            Self::Rule(rule) => {
                let (a, b) = (rule.0.measure(), rule.1.measure());
                Measure { weight: a.weight.saturating_add(b.weight), depth: a.depth.max(b.depth) + 1 }
            }
            _ => Measure { weight: 1, depth: 0 },
        }
    }

    /// The name of the Python type, for messages.
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "NoneType",
            Self::Bool(_) => "bool",
            Self::Int(_) | Self::BigInt(_) => "int",
            Self::Float(_) => "float",
            Self::Str(_) => "str",
            Self::List(list) => list.kind.name(),
            Self::Dict(dict) if dict.is_frozen() => "yaql.language.utils.FrozenDict",
            Self::Dict(_) => "dict",
            Self::Set(set) => set.view_name().unwrap_or("frozenset"),
            Self::Values(_) => "ValuesView",
            Self::Iter(_) => "generator",
            Self::Ordering(_) => "OrderingIterable",
            Self::DateTime(_) => "datetime.datetime",
            Self::TimeSpan(_) => "datetime.timedelta",
            Self::Regex(_) => "re.Pattern",
            Self::Context(_) => "Context",
            Self::Rule(_) => "MappingRule",
        }
    }

    /// Python's truth value.
    pub(crate) fn is_truthy(&self) -> bool {
        match self {
            Self::Null => false,
            Self::Bool(b) => *b,
            Self::Int(i) => *i != 0,
            Self::Float(f) => *f != 0.0,
            Self::Str(s) => !s.is_empty(),
            Self::List(list) => !list.items().is_empty(),
            Self::Dict(dict) | Self::Values(dict) => dict.len() > 0,
            Self::Set(set) => set.len() > 0,
            Self::TimeSpan(span) => span.microseconds() != 0,
            _ => true,
        }
    }

    /// The integer, with booleans as 0 or 1.
    pub(crate) fn as_int(&self) -> Option<BigInt> {
        match self {
            Self::Bool(b) => Some(BigInt::from(u8::from(*b))),
            Self::Int(i) => Some(BigInt::from(*i)),
            Self::BigInt(i) => Some((**i).clone()),
            _ => None,
        }
    }

    /// Whether the value can be a key or a member of a set.
    ///
    /// Errors: Python's `TypeError` with the type.
    pub(crate) fn check_hashable(&self) -> Result<(), Error> {
        let unhashable = |name: &str| Err(Error::type_error(format!("unhashable type: '{name}'")));
        match self {
            Self::List(list) if list.kind == ListKind::List => unhashable("list"),
            Self::List(list) => list.items().iter().try_for_each(Self::check_hashable),
            Self::Dict(dict) if !dict.is_frozen() => unhashable("dict"),
            Self::Dict(dict) => dict.iter().try_for_each(|(_, value)| value.check_hashable()),
            Self::Set(set) => match set.view_name() {
                Some(name) => unhashable(name),
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }

    /// The identity of values that are equal only to themselves.
    fn address(&self) -> usize {
        match self {
            Self::Iter(iter) => Rc::as_ptr(iter).addr(),
            Self::Ordering(ordering) => Rc::as_ptr(ordering).addr(),
            Self::Context(context) => context.address(),
            Self::Rule(rule) => Rc::as_ptr(rule).addr(),
            Self::Values(dict) => dict.address(),
            _ => 0,
        }
    }
}

impl From<Literal> for Object {
    fn from(literal: Literal) -> Self {
        match literal {
            Literal::Null => Self::Null,
            Literal::Bool(b) => Self::Bool(b),
            Literal::Int(i) => Self::Int(i),
            Literal::BigInt(i) => Self::BigInt(i),
            Literal::Float(f) => Self::Float(f),
            Literal::Text(text) => Self::Str(text),
        }
    }
}

impl From<BigInt> for Object {
    fn from(i: BigInt) -> Self {
        i.to_i64().map_or_else(|| Self::BigInt(Arc::new(i)), Self::Int)
    }
}

impl From<bool> for Object {
    fn from(b: bool) -> Self {
        Self::Bool(b)
    }
}

/// Python's `==`.
impl PartialEq for Object {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Int(a), Self::Int(b)) => a == b,
            (Self::Str(a), Self::Str(b)) => a == b,
            (Self::List(a), Self::List(b)) => a.same(b) || (a.kind == b.kind && a.items() == b.items()),
            (Self::Dict(a), Self::Dict(b)) => a == b,
            (Self::Set(a), Self::Set(b)) => a == b,
            (Self::DateTime(a), Self::DateTime(b)) => a.instant() == b.instant(),
            (Self::TimeSpan(a), Self::TimeSpan(b)) => a == b,
            (Self::Regex(a), Self::Regex(b)) => a == b,
            (
                Self::Bool(_) | Self::Int(_) | Self::BigInt(_) | Self::Float(_),
                Self::Bool(_) | Self::Int(_) | Self::BigInt(_) | Self::Float(_),
            ) => crate::number::compare(self, other) == Some(std::cmp::Ordering::Equal),
            _ => {
                let address = self.address();
                address != 0
                    && std::mem::discriminant(self) == std::mem::discriminant(other)
                    && address == other.address()
            }
        }
    }
}

/// A key of a dictionary or a member of a set: hashable, with Python's equality.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Key(Object);

impl Eq for Key {}

impl Key {
    /// Errors: the value is unhashable.
    pub(crate) fn new(object: Object) -> Result<Self, Error> {
        object.check_hashable()?;
        Ok(Self(object))
    }

    pub(crate) fn object(&self) -> &Object {
        &self.0
    }
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        hash(&self.0, state);
    }
}

/// Equal numbers of all types have equal hashes.
fn hash<H: Hasher>(object: &Object, state: &mut H) {
    match object {
        Object::Null => 0u8.hash(state),
        Object::Bool(b) => i64::from(*b).hash(state),
        Object::Int(i) => i.hash(state),
        Object::BigInt(_) => 1u8.hash(state),
        Object::Float(f) => match crate::number::exact_i64(*f) {
            Some(i) => i.hash(state),
            None if f.abs() < 1e18 => f.to_bits().hash(state),
            None => 1u8.hash(state),
        },
        Object::Str(s) => s.hash(state),
        Object::List(list) => {
            2u8.hash(state);
            for item in list.items() {
                hash(item, state);
            }
        }
        // The order does not matter.
        Object::Dict(dict) => (3u8, sum(dict.iter().flat_map(|(key, value)| [key, value]))).hash(state),
        Object::Set(set) => (4u8, sum(set.to_vec().unwrap_or_default().iter())).hash(state),
        Object::DateTime(time) => time.instant().hash(state),
        Object::TimeSpan(span) => span.microseconds().hash(state),
        Object::Regex(regex) => regex.source().hash(state),
        other => other.address().hash(state),
    }
}

/// A hash that is independent of the order.
fn sum<'a>(values: impl Iterator<Item = &'a Object>) -> u64 {
    let hashes = values.map(|value| {
        let mut state = DefaultHasher::new();
        hash(value, &mut state);
        state.finish()
    });
    hashes.fold(0, u64::wrapping_add)
}
