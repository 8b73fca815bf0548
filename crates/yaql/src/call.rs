//! Arguments of library functions.

use std::sync::Arc;

use num_bigint::BigInt;
use num_traits::{Signed, ToPrimitive};

use crate::Error;
use crate::context::Context;
use crate::cursor::{Cursor, Iter};
use crate::dict::Dict;
use crate::engine::Engine;
use crate::expression::Node;
use crate::lambda::{Lambda, LazyRule};
use crate::object::{List, Object};
use crate::regex::Regex;
use crate::set::Set;
use crate::time::{DateTime, TimeSpan};

/// An argument of a function.
#[derive(Clone, Debug)]
pub(crate) enum Argument {
    Value(Object),
    Lambda(Lambda),
    Rule(LazyRule),
    Node(Arc<Node>),
    /// Not given, and without a default.
    Missing,
}

impl Argument {
    /// The value; null if there is none.
    pub(crate) fn into_object(self) -> Object {
        match self {
            Self::Value(value) => value,
            _ => Object::Null,
        }
    }
}

/// A call: arguments in the order of the parameters, then additional ones.
pub(crate) struct Call<'e> {
    pub engine: &'e Engine<'e>,
    /// The context of the caller, or the function's own one if it is scoped.
    pub context: Context,
    pub args: Vec<Argument>,
    pub keywords: Vec<(String, Object)>,
}

/// Types are checked when the overload is chosen; this error is for bodies that unpack arguments.
fn mistyped() -> Error {
    Error::new("ArgumentValueException", "")
}

impl Call<'_> {
    /// Removes and returns a value; null if it is missing.
    pub(crate) fn take(&mut self, index: usize) -> Object {
        match self.args.get_mut(index) {
            Some(Argument::Value(value)) => std::mem::replace(value, Object::Null),
            _ => Object::Null,
        }
    }

    /// Removes and returns a value, if it was specified.
    pub(crate) fn given(&mut self, index: usize) -> Option<Object> {
        match self.args.get(index) {
            Some(Argument::Value(_)) => Some(self.take(index)),
            _ => None,
        }
    }

    /// The values from an index.
    pub(crate) fn rest(&mut self, index: usize) -> Vec<Object> {
        self.args.drain(index.min(self.args.len())..).map(Argument::into_object).collect()
    }

    fn value(&self, index: usize) -> &Object {
        match self.args.get(index) {
            Some(Argument::Value(value)) => value,
            _ => &Object::Null,
        }
    }

    /// A 64-bit integer.
    pub(crate) fn int(&self, index: usize) -> Result<i64, Error> {
        match self.value(index) {
            Object::Int(i) => Ok(*i),
            Object::Bool(b) => Ok(i64::from(*b)),
            Object::BigInt(_) => Err(Error::overflow()),
            _ => Err(mistyped()),
        }
    }

    /// A position or a length; values beyond 64 bits are clamped.
    pub(crate) fn position(&self, index: usize) -> Result<i64, Error> {
        match self.value(index) {
            Object::BigInt(i) => Ok(if i.is_negative() { i64::MIN } else { i64::MAX }),
            _ => self.int(index),
        }
    }

    /// An integer, or `None` for null.
    pub(crate) fn optional_int(&self, index: usize) -> Result<Option<i64>, Error> {
        match self.value(index) {
            Object::Null => Ok(None),
            _ => self.int(index).map(Some),
        }
    }

    /// An integer of any size.
    pub(crate) fn integer(&self, index: usize) -> Result<BigInt, Error> {
        self.value(index).as_int().ok_or_else(mistyped)
    }

    pub(crate) fn truth(&self, index: usize) -> bool {
        self.value(index).is_truthy()
    }

    pub(crate) fn text(&self, index: usize) -> Result<Arc<str>, Error> {
        self.optional_text(index)?.ok_or_else(mistyped)
    }

    /// A string, or `None` for null.
    pub(crate) fn optional_text(&self, index: usize) -> Result<Option<Arc<str>>, Error> {
        match self.value(index) {
            Object::Str(text) => Ok(Some(text.clone())),
            Object::Null => Ok(None),
            _ => Err(mistyped()),
        }
    }

    pub(crate) fn list(&self, index: usize) -> Result<List, Error> {
        match self.value(index) {
            Object::List(list) => Ok(list.clone()),
            _ => Err(mistyped()),
        }
    }

    pub(crate) fn dict(&self, index: usize) -> Result<Dict, Error> {
        match self.value(index) {
            Object::Dict(dict) => Ok(dict.clone()),
            _ => Err(mistyped()),
        }
    }

    pub(crate) fn set(&self, index: usize) -> Result<Set, Error> {
        match self.value(index) {
            Object::Set(set) => Ok(set.clone()),
            _ => Err(mistyped()),
        }
    }

    pub(crate) fn regex(&self, index: usize) -> Result<std::rc::Rc<Regex>, Error> {
        match self.value(index) {
            Object::Regex(regex) => Ok(regex.clone()),
            _ => Err(mistyped()),
        }
    }

    pub(crate) fn time(&self, index: usize) -> Result<DateTime, Error> {
        match self.value(index) {
            Object::DateTime(time) => Ok(*time),
            _ => Err(mistyped()),
        }
    }

    pub(crate) fn span(&self, index: usize) -> Result<TimeSpan, Error> {
        match self.value(index) {
            Object::TimeSpan(span) => Ok(*span),
            _ => Err(mistyped()),
        }
    }

    /// A cursor over a collection.
    pub(crate) fn cursor(&self, index: usize) -> Result<Cursor, Error> {
        Cursor::over(self.value(index)).ok_or_else(mistyped)
    }

    /// A lambda argument.
    pub(crate) fn lambda(&self, index: usize) -> Result<Lambda, Error> {
        self.optional_lambda(index).ok_or_else(mistyped)
    }

    pub(crate) fn optional_lambda(&self, index: usize) -> Option<Lambda> {
        match self.args.get(index) {
            Some(Argument::Lambda(lambda)) => Some(lambda.clone()),
            _ => None,
        }
    }

    /// The lambdas from an index.
    pub(crate) fn lambdas(&self, index: usize) -> Vec<Lambda> {
        (index..self.args.len()).filter_map(|index| self.optional_lambda(index)).collect()
    }

    pub(crate) fn node(&self, index: usize) -> Result<Arc<Node>, Error> {
        match self.args.get(index) {
            Some(Argument::Node(node)) => Ok(node.clone()),
            _ => Err(mistyped()),
        }
    }

    /// The text of a keyword.
    pub(crate) fn keyword(&self, index: usize) -> Result<Arc<str>, Error> {
        match &*self.node(index)? {
            Node::Keyword(word) => Ok(word.clone()),
            _ => Err(mistyped()),
        }
    }

    /// An iterator that the function returns; it may hold the arguments.
    pub(crate) fn iterator(
        &self,
        next: impl FnMut(&Engine) -> Result<Option<Object>, Error> + 'static,
    ) -> Result<Object, Error> {
        let depth = self.args.iter().map(|arg| match arg {
            Argument::Value(value) => value.measure().depth(),
            Argument::Lambda(lambda) => lambda.depth(),
            Argument::Rule(rule) => rule.source.depth().max(rule.destination.depth()),
            Argument::Node(_) | Argument::Missing => 0,
        });
        Iter::stream(depth.fold(self.context.depth(), u32::max), next)
    }

    /// A number of items: the start or the end.
    ///
    /// Errors: those of `itertools.islice` for negative and very large numbers.
    pub(crate) fn size(&self, index: usize, stop: bool) -> Result<usize, Error> {
        let size = self.integer(index)?;
        size.to_usize().ok_or_else(|| {
            let subject =
                if stop && (size.is_positive() || size == BigInt::from(-1)) { "Stop argument" } else { "Indices" };
            Error::value(format!("{subject} for islice() must be None or an integer: 0 <= x <= sys.maxsize."))
        })
    }
}
