//! Expressions as arguments.

use std::sync::Arc;

use crate::Error;
use crate::context::Context;
use crate::engine::Engine;
use crate::expression::Node;
use crate::object::Object;

/// An expression with the context that it is evaluated in.
#[derive(Clone, Debug)]
pub(crate) struct Lambda(Body);

#[derive(Clone, Debug)]
enum Body {
    Expression(Arc<Node>, Context),
    /// A value given where a lambda is expected.
    Constant(Object),
}

/// `source => destination` before either side is evaluated.
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

    /// The value where `$` and `$1` are the first argument, `$2` the second and so on.
    pub(crate) fn call(&self, engine: &Engine, args: &[Object]) -> Result<Object, Error> {
        self.call_named(engine, args, Vec::new())
    }

    /// [`Lambda::call`] with further variables by name.
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

    /// The truth of [`Lambda::call`].
    pub(crate) fn test(&self, engine: &Engine, args: &[Object]) -> Result<bool, Error> {
        Ok(self.call(engine, args)?.is_truthy())
    }

    /// The value of a method call on a receiver.
    pub(crate) fn call_on(&self, engine: &Engine, receiver: Object) -> Result<Object, Error> {
        match &self.0 {
            Body::Constant(value) => Ok(value.clone()),
            Body::Expression(node, context) => engine.evaluate_on(node, receiver, context),
        }
    }

    /// The value in a context that the function chose.
    pub(crate) fn call_in(&self, engine: &Engine, context: &Context) -> Result<Object, Error> {
        match &self.0 {
            Body::Constant(value) => Ok(value.clone()),
            Body::Expression(node, _) => engine.evaluate(node, context),
        }
    }
}

/// The name of `$`: outside of lambdas the whole data.
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
