//! Parsed snippets: literals with function calls.

mod derived;
mod node;
mod outermost;
mod parse;
mod partial;
mod reference;
mod validate;

use std::sync::Arc;

use indexmap::IndexSet;
use kiln_value::{Diagnostic, Path, Value};

pub(crate) use node::{Call, Context, Deciding, Node};
pub(crate) use parse::{Mode, Parser};
pub use partial::Partial;
pub use reference::{AttributeUse, Wanted};
pub(crate) use validate::validate_args;

use crate::{Bound, Scope};

/// A parsed snippet of a template. Parsed once, evaluated repeatedly; cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Expr {
    node: Arc<Node>,
}

impl Expr {
    /// Parses a snippet.
    ///
    /// `path` is its location, as errors show it: `resources.server.properties.name.list_join`. As in Heat, an `if` is
    /// decided here, and only the branch taken is parsed. Fails with `StackValidationFailed`, or with the error of a
    /// condition.
    pub fn parse(bound: &Bound, value: &Value, path: &Path) -> Result<Self, Diagnostic> {
        Parser::new(bound, Mode::Value).parse(value, path).map(Self::from)
    }

    /// Parses a snippet in which only the functions of conditions are allowed.
    pub fn parse_condition(bound: &Bound, value: &Value, path: &Path) -> Result<Self, Diagnostic> {
        Parser::new(bound, Mode::Condition).parse(value, path).map(Self::from)
    }

    /// A value without calls.
    pub fn literal(value: &Value) -> Self {
        Node::literal(value).into()
    }

    /// The value; `None` if it is absent: an `if` without an else whose condition is false.
    ///
    /// Fails with the class and message of the function's error: `TypeError`, `InvalidTemplateReference` …
    pub fn resolve(&self, scope: &dyn Scope) -> Result<Option<Value>, Diagnostic> {
        self.node.resolve_nullable(&Context::new(scope))
    }

    /// The value, null if absent.
    pub fn value(&self, scope: &dyn Scope) -> Result<Value, Diagnostic> {
        self.node.resolve(&Context::new(scope))
    }

    /// Validates the calls without resolving them: removed functions, unknown resources and attributes, invalid
    /// arguments.
    ///
    /// `path` is its location, the start of the path in errors. Fails with `StackValidationFailed`.
    pub fn validate(&self, scope: &dyn Scope, path: &Path) -> Result<(), Diagnostic> {
        validate::validate(&self.node, &Context::new(scope), path)
    }

    /// The names of the resources that it refers to, in order.
    ///
    /// `path` is shown in errors: `InvalidTemplateReference` if the resource does not exist.
    pub fn requires(&self, scope: &dyn Scope, path: &str) -> Result<IndexSet<String>, Diagnostic> {
        let mut names = IndexSet::new();
        reference::requires(&self.node, &Context::new(scope), path, &mut names)?;
        Ok(names)
    }

    /// The attributes of resources that it reads. Those that cannot be determined yet are omitted.
    pub fn attributes(&self, scope: &dyn Scope) -> Vec<AttributeUse> {
        let mut uses = Vec::new();
        reference::attributes(&self.node, &Context::new(scope), &mut uses);
        uses
    }

    /// Where its value has the ID or an attribute of a resource, and which: `resource` or `resource.attribute`.
    pub fn sources(&self, value: &Value, scope: &dyn Scope) -> Vec<(Path, String)> {
        reference::sources(&self.node, value, &Context::new(scope))
    }

    /// The value as far as it is known while some resources do not exist yet; see [`Partial`].
    pub fn partial(&self, scope: &dyn Scope) -> Result<Partial, Diagnostic> {
        partial::partial(&self.node, &Context::new(scope))
    }

    /// The texts in its value that functions have made of hidden texts, which are read in the stack.
    pub fn derived(&self, value: &Value, scope: &dyn Scope, is_hidden: &dyn Fn(&str) -> bool) -> Vec<String> {
        derived::derived(&self.node, value, &Context::new(scope), is_hidden)
    }

    /// Whether this is the literal null.
    pub fn is_null(&self) -> bool {
        matches!(*self.node, Node::Scalar(Value::Null))
    }

    /// Whether this is a single call.
    pub fn is_call(&self) -> bool {
        matches!(*self.node, Node::Call(_))
    }

    /// Whether it contains no calls.
    pub fn is_literal(&self) -> bool {
        self.node.is_literal()
    }

    /// The string, if this is a literal string.
    pub fn as_str(&self) -> Option<&str> {
        self.node.as_str()
    }

    /// The entries of a literal map, each as an expression.
    pub fn entries(&self) -> Option<impl Iterator<Item = (&str, Self)>> {
        Some(self.node.as_map()?.iter().map(|(key, node)| (key.as_str(), node.clone().into())))
    }

    /// The entry of a literal map.
    pub fn entry(&self, key: &str) -> Option<Self> {
        self.node.as_map()?.get(key).map(|node| node.clone().into())
    }

    /// The snippet as written, except that every `if` is replaced by the branch taken.
    pub fn source(&self) -> Value {
        self.node.source()
    }

    pub(crate) fn node(&self) -> &Node {
        &self.node
    }
}

impl From<Node> for Expr {
    fn from(node: Node) -> Self {
        Self { node: Arc::new(node) }
    }
}

impl From<Value> for Expr {
    fn from(value: Value) -> Self {
        Self::literal(&value)
    }
}
