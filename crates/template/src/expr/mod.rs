//! Parsed snippets: literals with function calls.

mod node;
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

/// A parsed snippet of a template. Parsed once, resolved often; cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Expr {
    node: Arc<Node>,
}

impl Expr {
    /// Parses a snippet.
    ///
    /// `path` is where it stands: errors show it, as `resources.server.properties.name.list_join`. An `if` is decided
    /// here, and only the branch it takes is parsed, as Heat does. Fails with `StackValidationFailed`, or with what
    /// deciding a condition raises.
    pub fn parse(bound: &Bound, value: &Value, path: &Path) -> Result<Self, Diagnostic> {
        Parser::new(bound, Mode::Value).parse(value, path).map(Self::from)
    }

    /// Parses a snippet in which only the functions of conditions are allowed.
    pub fn parse_condition(bound: &Bound, value: &Value, path: &Path) -> Result<Self, Diagnostic> {
        Parser::new(bound, Mode::Condition).parse(value, path).map(Self::from)
    }

    /// A value without any call.
    pub fn literal(value: &Value) -> Self {
        Node::literal(value).into()
    }

    /// The value; `None` if it is absent: an `if` without an else whose condition is false.
    ///
    /// Fails with the class and text of what the function raises: `TypeError`, `InvalidTemplateReference` …
    pub fn resolve(&self, scope: &dyn Scope) -> Result<Option<Value>, Diagnostic> {
        self.node.resolve_nullable(&Context::new(scope))
    }

    /// The value, null if absent.
    pub fn value(&self, scope: &dyn Scope) -> Result<Value, Diagnostic> {
        self.node.resolve(&Context::new(scope))
    }

    /// Checks the calls without resolving them: removed functions, unknown resources and attributes, wrong arguments.
    ///
    /// `path` is where it stands and begins the path that the error shows. Fails with `StackValidationFailed`.
    pub fn validate(&self, scope: &dyn Scope, path: &Path) -> Result<(), Diagnostic> {
        validate::validate(&self.node, &Context::new(scope), path)
    }

    /// The names of the resources it refers to, in their order.
    ///
    /// `path` is what the error shows: `InvalidTemplateReference` if there is no such resource.
    pub fn requires(&self, scope: &dyn Scope, path: &str) -> Result<IndexSet<String>, Diagnostic> {
        let mut names = IndexSet::new();
        reference::requires(&self.node, &Context::new(scope), path, &mut names)?;
        Ok(names)
    }

    /// The attributes of resources it reads. What cannot be told yet is left out.
    pub fn attributes(&self, scope: &dyn Scope) -> Vec<AttributeUse> {
        let mut uses = Vec::new();
        reference::attributes(&self.node, &Context::new(scope), &mut uses);
        uses
    }

    /// The value as far as it is known while some resources do not exist yet; see [`Partial`].
    pub fn partial(&self, scope: &dyn Scope) -> Result<Partial, Diagnostic> {
        partial::partial(&self.node, &Context::new(scope))
    }

    /// Whether this is the literal null.
    pub fn is_null(&self) -> bool {
        matches!(*self.node, Node::Scalar(Value::Null))
    }

    /// Whether this is a single call.
    pub fn is_call(&self) -> bool {
        matches!(*self.node, Node::Call(_))
    }

    /// Whether there is no call in it.
    pub fn is_literal(&self) -> bool {
        self.node.is_literal()
    }

    /// The text, if it is a literal text.
    pub fn as_str(&self) -> Option<&str> {
        self.node.as_str()
    }

    /// The entries of a literal map, each an expression of its own.
    pub fn entries(&self) -> Option<impl Iterator<Item = (&str, Self)>> {
        Some(self.node.as_map()?.iter().map(|(key, node)| (key.as_str(), node.clone().into())))
    }

    /// The entry of a literal map.
    pub fn entry(&self, key: &str) -> Option<Self> {
        self.node.as_map()?.get(key).map(|node| node.clone().into())
    }

    /// The snippet as it was written, but for every `if`, of which the taken branch is left.
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
