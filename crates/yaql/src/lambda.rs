//! Lambda arguments.

use std::sync::Arc;

use crate::Error;
use crate::context::Context;
use crate::engine::Engine;
use crate::expression::Node;
use crate::object::Object;

/// An expression with the context for its evaluation.
#[derive(Clone, Debug)]
pub(crate) struct Lambda(Body);

#[derive(Clone, Debug)]
enum Body {
    Expression(Arc<Node>, Context),
    /// A value in place of a lambda.
    Constant(Object),
}

/// `source => destination` with unevaluated sides.
#[derive(Clone, Debug)]
pub(crate) struct LazyRule {
    pub source: Lambda,
    pub destination: Lambda,
}

impl Lambda {
    pub(crate) fn new(node: Arc<Node>, context: Context) -> Self {
        Self(Body::Expression(node, context))
    }

    pub(crate) fn constant(value: Object) -> Self {
        Self(Body::Constant(value))
    }

    pub(crate) fn depth(&self) -> u32 {
        match &self.0 {
            Body::Expression(_, context) => context.depth(),
            Body::Constant(value) => value.measure().depth(),
        }
    }

    /// Evaluates the lambda with the first argument as `$` and `$1`, the second as `$2` and so on.
    pub(crate) fn call(&self, engine: &Engine, args: &[Object]) -> Result<Object, Error> {
        self.call_named(engine, args, Vec::new())
    }

    /// [`Lambda::call`] with additional named variables.
    pub(crate) fn call_named(
        &self,
        engine: &Engine,
        args: &[Object],
        named: Vec<(String, Object)>,
    ) -> Result<Object, Error> {
        match &self.0 {
            Body::Constant(value) => Ok(value.clone()),
            Body::Expression(node, context) => {
                let scope = context.child()?;
                for (i, arg) in args.iter().enumerate() {
                    scope.set(position(i + 1), arg.clone())?;
                }
                for (name, value) in named {
                    scope.set(name.into(), value)?;
                }
                engine.evaluate(node, &scope)
            }
        }
    }

    /// The truth value of [`Lambda::call`].
    pub(crate) fn test(&self, engine: &Engine, args: &[Object]) -> Result<bool, Error> {
        Ok(self.call(engine, args)?.is_truthy())
    }

    /// Evaluates a method call on a receiver.
    pub(crate) fn call_on(&self, engine: &Engine, receiver: Object) -> Result<Object, Error> {
        match &self.0 {
            Body::Constant(value) => Ok(value.clone()),
            Body::Expression(node, context) => engine.evaluate_on(node, receiver, context),
        }
    }

    /// Evaluates the lambda in a given context.
    pub(crate) fn call_in(&self, engine: &Engine, context: &Context) -> Result<Object, Error> {
        match &self.0 {
            Body::Constant(value) => Ok(value.clone()),
            Body::Expression(node, _) => engine.evaluate(node, context),
        }
    }
}

/// The name of `$`; outside of lambdas it is the input data.
pub(crate) const WHOLE: &str = "1";

/// The name of a positional variable.
pub(crate) fn position(index: usize) -> Arc<str> {
    thread_local! {
        static NAMES: [Arc<str>; 4] = ["1".into(), "2".into(), "3".into(), "4".into()];
    }
    NAMES
        .try_with(|names| index.checked_sub(1).and_then(|at| names.get(at)).cloned())
        .ok()
        .flatten()
        .unwrap_or_else(|| index.to_string().into())
}
