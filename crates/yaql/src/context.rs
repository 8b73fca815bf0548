//! Contexts: variables and functions of expressions.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use crate::Error;
use crate::lambda::Lambda;
use crate::object::{MAX_DEPTH, Object};

/// A scope of variables and functions. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Context(Rc<Scope>);

struct Scope {
    parent: Option<Context>,
    variables: RefCell<Vec<(Arc<str>, Object)>>,
    functions: RefCell<Vec<Rc<Definition>>>,
    depth: Cell<u32>,
}

impl std::fmt::Debug for Scope {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scope").field("depth", &self.depth).finish_non_exhaustive()
    }
}

/// A function that the expression defined with `def(name, body)`.
#[derive(Debug)]
pub(crate) struct Definition {
    pub name: String,
    pub body: Lambda,
}

impl Context {
    pub(crate) fn root() -> Self {
        Self::new(None, 1)
    }

    fn new(parent: Option<Self>, depth: u32) -> Self {
        Self(Rc::new(Scope {
            parent,
            variables: RefCell::default(),
            functions: RefCell::default(),
            depth: Cell::new(depth),
        }))
    }

    /// A scope inside this one.
    ///
    /// Errors: too deep.
    pub(crate) fn child(&self) -> Result<Self, Error> {
        let depth = self.depth() + 1;
        if depth > 2 * MAX_DEPTH { Err(Error::recursion()) } else { Ok(Self::new(Some(self.clone()), depth)) }
    }

    pub(crate) fn depth(&self) -> u32 {
        self.0.depth.get()
    }

    pub(crate) fn address(&self) -> usize {
        Rc::as_ptr(&self.0).addr()
    }

    /// Sets a variable; names have no `$`.
    ///
    /// Errors: too deep.
    pub(crate) fn set(&self, name: Arc<str>, value: Object) -> Result<(), Error> {
        let depth = value.measure().depth() + 1;
        if depth > 2 * MAX_DEPTH {
            return Err(Error::recursion());
        }
        self.0.depth.set(self.depth().max(depth));
        let mut variables = self.0.variables.borrow_mut();
        match variables.iter_mut().find(|(known, _)| *known == name) {
            Some(entry) => entry.1 = value,
            None => variables.push((name, value)),
        }
        Ok(())
    }

    /// The variable in this or the nearest enclosing scope.
    pub(crate) fn get(&self, name: &str) -> Option<Object> {
        let mut context = self;
        loop {
            let variables = context.0.variables.borrow();
            if let Some((_, value)) = variables.iter().find(|(known, _)| &**known == name) {
                return Some(value.clone());
            }
            drop(variables);
            context = context.0.parent.as_ref()?;
        }
    }

    pub(crate) fn define(&self, definition: Definition) {
        self.0.functions.borrow_mut().push(Rc::new(definition));
    }

    /// Drops the definitions of the scope: they refer to the scope, and the cycle would leak memory.
    pub(crate) fn forget_definitions(&self) {
        self.0.functions.borrow_mut().clear();
    }

    /// Definitions of a name, from the innermost scope outwards.
    pub(crate) fn definitions(&self, name: &str) -> Vec<Vec<Rc<Definition>>> {
        let mut levels = Vec::new();
        let mut context = Some(self);
        while let Some(Self(scope)) = context {
            let functions = scope.functions.borrow();
            let level: Vec<_> = functions.iter().filter(|function| function.name == name).cloned().collect();
            if !level.is_empty() {
                levels.push(level);
            }
            context = scope.parent.as_ref();
        }
        levels
    }
}
