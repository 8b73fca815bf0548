//! The tree of a parsed snippet and its evaluation.

use std::borrow::{Borrow, Cow};
use std::cell::{Cell, RefCell};

use kiln_value::steps::{self, Exhausted};
use kiln_value::{Diagnostic, Map, Path, Unknown, Value};

use crate::function::{Function, fault};
use crate::{Bound, Scope};

/// A part of a parsed snippet.
#[derive(Clone, Debug)]
pub(crate) enum Node {
    /// Any value except lists and maps.
    Scalar(Value),
    List(Vec<Node>),
    Map(Map<Node>),
    Call(Box<Call>),
    /// No value: the missing else of an `if`.
    Absent,
}

impl Default for Node {
    fn default() -> Self {
        Self::Scalar(Value::Null)
    }
}

/// A function with its arguments.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// The name used in the template: one implementation may have several.
    pub(crate) name: &'static str,
    pub(crate) function: &'static dyn Function,
    /// The parsed arguments; for an `if` the branch taken.
    pub(crate) args: Node,
    /// The location in the template.
    pub(crate) path: Path,
}

/// Limit on the size of the values that one resolution creates, in bytes.
const BUDGET: usize = 32 << 20;

/// Bytes that are copied in a step of [`steps`].
const BYTES_A_STEP: usize = 64;

/// The context in which a call is resolved.
pub(crate) struct Context<'a> {
    pub(crate) scope: &'a dyn Scope,
    /// The remaining size of strings and values that calls may create or copy.
    budget: Cell<usize>,
    /// An unknown value that was found since the innermost call began.
    unknown: RefCell<Option<Unknown>>,
    /// The conditions that are being evaluated, innermost first: used to detect cycles.
    pub(crate) deciding: Option<&'a Deciding<'a>>,
}

/// A condition that is being evaluated.
pub(crate) struct Deciding<'a> {
    pub(crate) name: &'a str,
    pub(crate) outer: Option<&'a Deciding<'a>>,
    /// Total nesting of the definitions in the chain.
    pub(crate) depth: usize,
}

impl<'a> Context<'a> {
    pub(crate) fn new(scope: &'a dyn Scope) -> Self {
        Self { scope, budget: Cell::new(BUDGET), unknown: RefCell::default(), deciding: None }
    }

    /// The context in which a condition is evaluated on behalf of this one.
    pub(crate) fn deciding<'b>(&self, deciding: &'b Deciding<'b>) -> Context<'b>
    where
        'a: 'b,
    {
        let unknown = RefCell::default();
        Context { scope: self.scope, budget: self.budget.clone(), unknown, deciding: Some(deciding) }
    }

    /// Records an unknown value.
    fn meet(&self, unknown: Option<&Unknown>) {
        if let Some(unknown) = unknown {
            self.unknown.borrow_mut().get_or_insert_with(|| unknown.clone());
        }
    }

    /// The result of a call; unknown if its arguments are unknown.
    fn known<T: Borrow<Value>>(
        &self,
        call: &Call,
        wrap: fn(Value) -> T,
        resolve: impl FnOnce() -> Result<Option<T>, Diagnostic>,
    ) -> Result<Option<T>, Diagnostic> {
        if !self.scope.has_unknown() {
            return resolve();
        }
        let before = self.unknown.take();
        let mut result = resolve();
        if let Some(met) = self.unknown.take().filter(|_| !call.function.is_macro()) {
            result = Ok(Some(wrap(Value::Unknown(met))));
        }
        self.unknown.replace(before);
        if let Ok(Some(value)) = &result {
            self.meet(value.borrow().unknown());
        }
        result
    }

    /// Reserves the size of the value that a call has copied or is about to create.
    ///
    /// Fails with `ValueError`: a few nested calls, or a long list of calls that read the same large value, could exhaust
    /// the memory.
    pub(crate) fn spend(&self, call: &Call, size: usize) -> Result<(), Diagnostic> {
        steps::spend(1 + size / BYTES_A_STEP).map_err(Exhausted::report)?;
        match self.budget.get().checked_sub(size) {
            Some(rest) => {
                self.budget.set(rest);
                Ok(())
            }
            None => Err(fault::value_error(format!("The result of \"{}\" is too large", call.name))),
        }
    }

    /// Reserves the size of the result of a call.
    fn take(&self, call: &Call, value: Option<&Value>) -> Result<(), Diagnostic> {
        match value {
            Some(value) => self.spend(call, value.size()).map_err(|error| call.locate(error)),
            None => Ok(()),
        }
    }

    pub(crate) fn bound(&self) -> &'a Bound {
        self.scope.bound()
    }
}

impl Node {
    pub(crate) fn literal(value: &Value) -> Self {
        match value {
            Value::List(items) => Self::List(items.iter().map(Self::literal).collect()),
            Value::Map(map) => Self::Map(map.iter().map(|(key, value)| (key.clone(), Self::literal(value))).collect()),
            scalar => Self::Scalar(scalar.clone()),
        }
    }

    pub(crate) fn as_str(&self) -> Option<&str> {
        match self {
            Self::Scalar(Value::Str(text)) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn as_list(&self) -> Option<&[Self]> {
        match self {
            Self::List(items) => Some(items),
            _ => None,
        }
    }

    pub(crate) fn as_map(&self) -> Option<&Map<Self>> {
        match self {
            Self::Map(map) => Some(map),
            _ => None,
        }
    }

    pub(crate) fn is_null(&self) -> bool {
        matches!(self, Self::Scalar(Value::Null))
    }

    /// Whether it has no value: the missing else of an `if`.
    pub(crate) fn is_absent(&self) -> bool {
        match self {
            Self::Absent => true,
            Self::Call(call) => call.function.is_macro() && call.args.is_absent(),
            Self::Scalar(_) | Self::List(_) | Self::Map(_) => false,
        }
    }

    pub(crate) fn is_literal(&self) -> bool {
        match self {
            Self::Scalar(_) => true,
            Self::List(items) => items.iter().all(Self::is_literal),
            Self::Map(map) => map.values().all(Self::is_literal),
            Self::Call(_) | Self::Absent => false,
        }
    }

    /// Python's truth value; a call is an object and therefore always true.
    pub(crate) fn is_truthy(&self) -> bool {
        match self {
            Self::Scalar(value) => value.is_truthy(),
            Self::List(items) => !items.is_empty(),
            Self::Map(map) => !map.is_empty(),
            Self::Call(_) | Self::Absent => true,
        }
    }

    /// Depth of nesting.
    pub(crate) fn depth(&self) -> usize {
        1 + match self {
            Self::Scalar(_) | Self::Absent => 0,
            Self::List(items) => items.iter().map(Self::depth).max().unwrap_or(0),
            Self::Map(map) => map.values().map(Self::depth).max().unwrap_or(0),
            Self::Call(call) => call.args.depth(),
        }
    }

    /// The snippet as written, except that every `if` is replaced by the branch taken.
    pub(crate) fn source(&self) -> Value {
        match self {
            Self::Scalar(value) => value.clone(),
            Self::List(items) => Value::List(items.iter().map(Self::source).collect()),
            Self::Map(map) => Value::Map(map.iter().map(|(key, node)| (key.clone(), node.source())).collect()),
            Self::Call(call) if call.function.is_macro() => call.args.source(),
            Self::Call(call) => Value::Map(Map::from([(call.name.to_owned(), call.args.source())])),
            Self::Absent => Value::Null,
        }
    }

    /// The value, null if absent.
    pub(crate) fn resolve(&self, context: &Context) -> Result<Value, Diagnostic> {
        self.resolve_nullable(context).map(Option::unwrap_or_default)
    }

    /// The value; `None` if absent. Absent members of lists and maps are omitted.
    pub(crate) fn resolve_nullable(&self, context: &Context) -> Result<Option<Value>, Diagnostic> {
        Ok(Some(match self {
            Self::Scalar(value) => {
                context.meet(value.unknown());
                value.clone()
            }
            Self::List(items) => {
                let mut list = Vec::with_capacity(items.len());
                for item in items {
                    list.extend(item.resolve_nullable(context)?);
                }
                Value::List(list)
            }
            Self::Map(map) => {
                let mut resolved = Map::with_capacity(map.len());
                for (key, node) in map {
                    if let Some(value) = node.resolve_nullable(context)? {
                        resolved.insert(key.clone(), value);
                    }
                }
                Value::Map(resolved)
            }
            Self::Call(call) => {
                let resolve = || call.function.resolve(call, context).map_err(|error| call.locate(error));
                let value = context.known(call, |value| value, resolve)?;
                context.take(call, value.as_ref())?;
                return Ok(value);
            }
            Self::Absent => return Ok(None),
        }))
    }

    /// As [`Node::resolve_nullable`], without copies of existing values: for functions that only read.
    pub(crate) fn view<'a>(&'a self, context: &Context<'a>) -> Result<Option<Cow<'a, Value>>, Diagnostic> {
        match self {
            Self::Scalar(value) => {
                context.meet(value.unknown());
                Ok(Some(Cow::Borrowed(value)))
            }
            Self::Call(call) => {
                let view = || call.function.view(call, context).map_err(|error| call.locate(error));
                let value = context.known(call, Cow::Owned, view)?;
                if let Some(Cow::Owned(copied)) = &value {
                    context.take(call, Some(copied))?;
                }
                Ok(value)
            }
            other => Ok(other.resolve_nullable(context)?.map(Cow::Owned)),
        }
    }

    /// The members into which Python would unpack this for `N` names: items, keys or characters.
    pub(crate) fn unpack<const N: usize>(&self) -> Result<[Cow<'_, Self>; N], Diagnostic> {
        let text = |text: &str| Cow::Owned(Self::Scalar(text.into()));
        let members: Vec<Cow<'_, Self>> = match self {
            Self::List(items) => items.iter().map(Cow::Borrowed).collect(),
            Self::Map(map) => map.keys().map(|key| text(key)).collect(),
            Self::Scalar(Value::Str(s)) => s.chars().map(|c| text(c.encode_utf8(&mut [0; 4]))).collect(),
            Self::Scalar(value) => {
                return Err(fault::type_error(format!(
                    "cannot unpack non-iterable {} object",
                    fault::type_name(value)
                )));
            }
            Self::Call(call) => {
                return Err(fault::type_error(format!("cannot unpack non-iterable {} call", call.name)));
            }
            Self::Absent => return Err(fault::type_error("cannot unpack non-iterable ellipsis object")),
        };
        <[Cow<'_, Self>; N]>::try_from(members).map_err(|members| {
            fault::value_error(if members.len() < N {
                format!("not enough values to unpack (expected {N}, got {})", members.len())
            } else {
                format!("too many values to unpack (expected {N})")
            })
        })
    }
}

impl Call {
    /// Adds the location of the call to the error, unless an inner call has added its own.
    pub(crate) fn locate(&self, error: Diagnostic) -> Diagnostic {
        if error.path.is_root() { error.at(self.path.clone()) } else { error }
    }

    /// The arguments, resolved; null if absent.
    pub(crate) fn resolved_args(&self, context: &Context) -> Result<Value, Diagnostic> {
        self.args.resolve(context)
    }
}
