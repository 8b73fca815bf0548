//! The evaluation and its resource limits.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use kiln_value::{Value, steps};

use crate::call::Argument;
use crate::context::{Context, Definition};
use crate::cursor::Iter;
use crate::data::Data;
use crate::expression::{Invocation, Node};
use crate::lambda::{Lambda, LazyRule, WHOLE};
use crate::library;
use crate::memory;
use crate::object::Object;
use crate::overload::{Arg, CallRequest};
use crate::parameter::{Default, Param, Type};
use crate::regex::SEARCH_A_STEP;
use crate::time::TimeSpan;
use crate::{Error, Limits};

/// Maximum nesting of calls, similar to the limit of Python's stack.
const MAX_CALLS: u32 = 140;

/// Maximum nesting of iterators.
const MAX_WALKS: u32 = 450;

/// The number of result bytes that count as one step.
const BYTES_A_STEP: usize = 32;

/// One evaluation.
pub(crate) struct Engine<'d> {
    data: Data<'d>,
    limits: Limits,
    steps: Cell<u64>,
    calls: Cell<u32>,
    walks: Cell<u32>,
    /// Contexts with function definitions: they form cycles, which are dropped at the end.
    defining: RefCell<Vec<Context>>,
}

impl Drop for Engine<'_> {
    fn drop(&mut self) {
        for context in self.defining.take() {
            context.forget_definitions();
        }
    }
}

impl<'d> Engine<'d> {
    pub(crate) fn new(limits: Limits, data: &'d Value) -> Self {
        Self {
            data: Data::new(data),
            limits,
            steps: Cell::new(0),
            calls: Cell::new(0),
            walks: Cell::new(0),
            defining: RefCell::default(),
        }
    }

    /// Counts steps.
    ///
    /// Errors: the limit is exceeded.
    pub(crate) fn step(&self, steps: usize) -> Result<(), Error> {
        steps::spend(steps.saturating_mul(SEARCH_A_STEP)).map_err(Error::exhausted)?;
        self.count(steps)
    }

    /// Counts steps that the account of the request already has.
    pub(crate) fn count(&self, steps: usize) -> Result<(), Error> {
        let total = self.steps.get().saturating_add(u64::try_from(steps).unwrap_or(u64::MAX));
        self.steps.set(total);
        if total > self.limits.steps { Err(Error::too_many_steps(self.limits.steps)) } else { Ok(()) }
    }

    /// Errors: the value exceeds the memory limit.
    pub(crate) fn charge(&self, value: &Object) -> Result<usize, Error> {
        let size = memory::size(value);
        self.charge_bytes(size).map(|()| size)
    }

    /// Errors: this number of bytes exceeds the memory limit.
    pub(crate) fn charge_bytes(&self, size: usize) -> Result<(), Error> {
        match self.limits.memory {
            Some(most) if size > most => Err(Error::too_much_memory()),
            _ => Ok(()),
        }
    }

    /// Errors: a collection exceeds the limit of iterations.
    pub(crate) fn limit(&self, len: usize) -> Result<(), Error> {
        match self.limits.iterations {
            Some(most) if len > most => Err(Error::collection_too_large(most)),
            _ => Ok(()),
        }
    }

    pub(crate) fn has_definitions(&self) -> bool {
        !self.defining.borrow().is_empty()
    }

    pub(crate) fn define(&self, context: &Context, name: String, body: Lambda) {
        context.define(Definition { name, body });
        self.defining.borrow_mut().push(context.clone());
    }

    fn variable(&self, name: &str, context: &Context) -> Result<Object, Error> {
        self.step(1)?;
        let value = match context.get(name) {
            Some(value) => value,
            None if name == WHOLE => self.data.whole()?,
            None => Object::Null,
        };
        self.charge(&value)?;
        Ok(value)
    }

    /// The part of the data at a path of keys.
    fn part(&self, node: &Node, context: &Context) -> Result<Object, Error> {
        self.step(1)?;
        let part = self.data.at(node, context).map_or(Ok(Object::Null), |part| self.data.object(part))?;
        self.charge(&part)?;
        Ok(part)
    }

    /// Evaluates a node.
    pub(crate) fn evaluate(&self, node: &Arc<Node>, context: &Context) -> Result<Object, Error> {
        match &**node {
            Node::Constant(literal) => Ok(literal.clone().into()),
            Node::Keyword(word) => Ok(Object::Str(word.clone())),
            Node::Variable(name) => self.variable(name, context),
            Node::Call(_) if !self.has_definitions() && self.data.at(node, context).is_some() => {
                self.part(node, context)
            }
            Node::Call(invocation) => self.invoke(invocation, None, context),
            Node::Wrap(inner) => self.nested(|| self.evaluate(inner, context)),
            Node::Rule(source, destination) => {
                let source = self.nested(|| self.evaluate(source, context))?;
                let destination = self.nested(|| self.evaluate(destination, context))?;
                Ok(Object::Rule(std::rc::Rc::new((source, destination))))
            }
        }
    }

    /// Calls a node on a receiver.
    pub(crate) fn evaluate_on(&self, node: &Arc<Node>, receiver: Object, context: &Context) -> Result<Object, Error> {
        match &**node {
            Node::Call(invocation) => self.invoke(invocation, Some(receiver), context),
            _ => self.evaluate(node, context),
        }
    }

    fn invoke(&self, invocation: &Invocation, receiver: Option<Object>, context: &Context) -> Result<Object, Error> {
        let args = invocation.args.iter().map(|arg| arg.as_ref().map_or(Arg::Omitted, Arg::Node)).collect();
        let overloads = invocation.overloads;
        self.run(CallRequest { name: &invocation.name, overloads, receiver, args, keywords: Vec::new() }, context)
    }

    /// A call from the library: overloads are chosen as for a call in an expression.
    pub(crate) fn call_by_name(
        &self,
        name: &str,
        receiver: Option<Object>,
        args: Vec<Arg<'_>>,
        context: &Context,
    ) -> Result<Object, Error> {
        self.run(CallRequest { name, overloads: library::find(name), receiver, args, keywords: Vec::new() }, context)
    }

    /// Calls the function of a request.
    pub(crate) fn run(&self, request: CallRequest<'_>, context: &Context) -> Result<Object, Error> {
        self.step(1)?;
        let result = self.nested(|| request.call(self, context))?;
        let size = self.charge(&result)?;
        self.step(size / BYTES_A_STEP)?;
        Ok(result)
    }

    /// Runs a closure one level deeper.
    pub(crate) fn nested<T>(&self, run: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
        deeper(&self.calls, MAX_CALLS, run)
    }

    /// Iterates over another iterator.
    pub(crate) fn walk<T>(&self, run: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
        deeper(&self.walks, MAX_WALKS, run)
    }

    /// Evaluates an argument, unless it is a literal or already a value.
    pub(crate) fn settle(&self, arg: &mut Arg<'_>, context: &Context) -> Result<(), Error> {
        if let Arg::Node(node) = arg
            && !node.is_constant()
        {
            *arg = Arg::Value(self.evaluate(node, context)?);
        }
        Ok(())
    }

    /// Converts an argument for a function.
    pub(crate) fn convert(&self, arg: Arg<'_>, param: &Param, context: &Context) -> Result<Argument, Error> {
        let value = match (arg, param.kind) {
            (Arg::Omitted, _) => match param.default {
                None | Some(Default::Missing) => return Ok(Argument::Missing),
                Some(Default::Null) => return Ok(Argument::Value(Object::Null)),
                Some(Default::Bool(b)) => Object::Bool(b),
                Some(Default::Int(i)) => Object::Int(i),
                Some(Default::Text(text)) => Object::text(text),
                Some(Default::NoTime) => Object::TimeSpan(TimeSpan::ZERO),
            },
            (Arg::Node(node), Type::Lambda | Type::MethodLambda) => {
                return Ok(Argument::Lambda(Lambda::new(node.clone(), context.clone())));
            }
            (Arg::Node(node), Type::LazyRule) => {
                let Node::Rule(source, destination) = &**node else { return Ok(Argument::Missing) };
                let lambda = |node: &Arc<Node>| Lambda::new(node.clone(), context.clone());
                let rule = LazyRule { source: lambda(source), destination: lambda(destination) };
                return Ok(Argument::Rule(rule));
            }
            (Arg::Node(node), Type::Expression | Type::Keyword) => return Ok(Argument::Node(node.clone())),
            (Arg::Node(node), _) => self.evaluate(node, context)?,
            (Arg::Value(value), Type::Lambda | Type::MethodLambda) => {
                return Ok(Argument::Lambda(Lambda::constant(value)));
            }
            (Arg::Value(value), _) => value,
        };
        self.charge(&value)?;
        if matches!(param.kind, Type::Iterable | Type::Ordered) {
            return self.limited(value).map(Argument::Value);
        }
        Ok(Argument::Value(value))
    }

    /// A collection with limited iteration: its size is checked now if known, else during the iteration.
    pub(crate) fn limited(&self, collection: Object) -> Result<Object, Error> {
        match &collection {
            Object::List(list) => self.limit(list.items().len())?,
            Object::Set(set) => self.limit(set.len())?,
            Object::Dict(dict) => self.limit(dict.len())?,
            Object::Iter(_) | Object::Ordering(_) | Object::Values(_) => {
                let Some(most) = self.limits.iterations else { return Ok(collection) };
                return Iter::limited(&collection, most);
            }
            _ => {}
        }
        Ok(collection)
    }
}

fn deeper<T>(count: &Cell<u32>, most: u32, run: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    let depth = count.get();
    if depth >= most {
        return Err(Error::recursion());
    }
    count.set(depth + 1);
    let result = run();
    count.set(depth);
    result
}
