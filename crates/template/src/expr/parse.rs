//! Parses values into expressions.

use std::fmt::Write as _;

use kiln_value::{Diagnostic, Map, Path, Segment, Value};

use super::node::{Call, Context, Node};
use crate::function::{Callable, Function, condition, fault, lookup, resource};
use crate::{Bound, Unbuilt};

/// Only malicious templates nest deeper; Python's own limit is similar.
const MAX_DEPTH: usize = 200;

/// The functions that a snippet may call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// All functions of the version.
    Value,
    /// Only functions of conditions; the others are errors.
    Condition,
}

/// Parses snippets of one template.
pub(crate) struct Parser<'a> {
    bound: &'a Bound,
    mode: Mode,
}

/// A location in a snippet, as a linked list on the stack: most locations are never shown.
struct ParsePath<'a> {
    step: Step<'a>,
    outer: Option<&'a ParsePath<'a>>,
    depth: usize,
}

enum Step<'a> {
    Root(&'a Path),
    Key(&'a str),
    Index(usize),
}

impl<'a> ParsePath<'a> {
    fn root(path: &'a Path) -> Self {
        Self { step: Step::Root(path), outer: None, depth: 0 }
    }

    fn below(&'a self, step: Step<'a>) -> Self {
        ParsePath { step, outer: Some(self), depth: self.depth + 1 }
    }

    fn path(&self) -> Path {
        let mut path = self.outer.map(Self::path).unwrap_or_default();
        match self.step {
            Step::Root(root) => path.0.extend(root.0.iter().cloned()),
            Step::Key(key) => path.0.push(Segment::Key(key.to_owned())),
            Step::Index(index) => path.0.push(Segment::Index(index)),
        }
        path
    }

    /// The path as Heat shows it: without a path of its own, a snippet begins with a dot.
    fn text(&self) -> String {
        let mut text = self.outer.map(Self::text).unwrap_or_default();
        match self.step {
            Step::Root(root) => text.push_str(&root.to_string()),
            Step::Key(key) => {
                text.push('.');
                text.push_str(key);
            }
            Step::Index(index) => _ = write!(text, "[{index}]"),
        }
        text
    }
}

impl<'a> Parser<'a> {
    pub(crate) fn new(bound: &'a Bound, mode: Mode) -> Self {
        Self { bound, mode }
    }

    pub(crate) fn parse(&self, value: &Value, path: &Path) -> Result<Node, Diagnostic> {
        self.node(value, &ParsePath::root(path))
    }

    fn node(&self, value: &Value, place: &ParsePath) -> Result<Node, Diagnostic> {
        if place.depth > MAX_DEPTH {
            return Err(Diagnostic::invalid("nested too deeply").showing(place.text()).at(place.path()));
        }
        match value {
            Value::List(items) => {
                let mut list = Vec::with_capacity(items.len());
                for (index, item) in items.iter().enumerate() {
                    list.push(self.node(item, &place.below(Step::Index(index)))?);
                }
                Ok(Node::List(list))
            }
            Value::Map(map) => {
                if let (1, Some((name, args))) = (map.len(), map.first())
                    && let Some((name, entry)) = lookup(self.bound.release(), self.mode, name)
                {
                    let place = place.below(Step::Key(name));
                    return self.call(name, entry, args, &place).map_err(|error| wrap(error, &place));
                }
                let mut entries = Map::with_capacity(map.len());
                for (key, value) in map {
                    entries.insert(key.clone(), self.node(value, &place.below(Step::Key(key)))?);
                }
                Ok(Node::Map(entries))
            }
            scalar => Ok(Node::Scalar(scalar.clone())),
        }
    }

    fn call(&self, name: &'static str, entry: Callable, args: &Value, place: &ParsePath) -> Result<Node, Diagnostic> {
        let (function, args): (&'static dyn Function, Node) = match entry {
            Callable::Function(function) => (function, self.node(args, place)?),
            Callable::If { nullable } => self.branch(name, nullable, args, place)?,
            Callable::Ref => {
                let args = self.node(args, place)?;
                (self.referred(&args)?, args)
            }
            Callable::Invalid => {
                // Arguments are parsed first: an invalid call in them is reported.
                self.node(args, place)?;
                return Err(fault::value_error(format!("The function \"{name}\" is invalid in this context")));
            }
        };
        function.check(name, &args)?;
        function.check_values(name, &args, self.bound)?;
        Ok(Node::Call(Box::new(Call { name, function, args, path: place.path() })))
    }

    /// Decides an `if` and parses the branch taken; if it depends on an unknown value, both branches.
    fn branch(
        &self,
        name: &'static str,
        nullable: bool,
        args: &Value,
        place: &ParsePath,
    ) -> Result<(&'static dyn Function, Node), Diagnostic> {
        let (condition, then, otherwise) = match args.as_list() {
            Some([condition, then, otherwise]) => (condition, then, Some(otherwise)),
            Some([condition, then]) if nullable => (condition, then, None),
            _ => {
                return Err(fault::value_error(format!(
                    "Arguments to \"{name}\" must be of the form: [condition_name, value_if_true, value_if_false]"
                )));
            }
        };
        let path = Path::root().key(name);
        // Heat's message contains only the name of the `if`.
        let condition =
            Parser::new(self.bound, Mode::Condition).parse(condition, &path).map_err(|error| error.at(place.path()))?;
        let scope = Unbuilt::empty(self.bound);
        let context = Context::new(&scope);
        let then = || self.node(then, place);
        let otherwise = || otherwise.map_or(Ok(Node::Absent), |otherwise| self.node(otherwise, place));
        match condition::judge(&condition.resolve(&context)?, &context)? {
            unknown @ Value::Unknown(_) => {
                Ok((&condition::UndecidedIf, Node::List(vec![Node::Scalar(unknown), then()?, otherwise()?])))
            }
            truth if truth.is_truthy() => Ok((&condition::If, then()?)),
            _ => Ok((&condition::If, otherwise()?)),
        }
    }

    /// Whether a CFN `Ref` refers to a resource or a parameter: resources take precedence.
    fn referred(&self, args: &Node) -> Result<&'static dyn Function, Diagnostic> {
        match args {
            Node::Scalar(Value::Str(name)) if self.bound.has_resource(name) => Ok(&resource::GetResource),
            Node::Scalar(_) => Ok(&crate::function::parameter::ParamRef),
            Node::List(_) => Err(fault::type_error("unhashable type: 'list'")),
            Node::Map(_) => Err(fault::type_error("unhashable type: 'dict'")),
            Node::Call(_) | Node::Absent => Err(fault::type_error("unhashable type: a function call")),
        }
    }
}

/// Plain Python errors become validation errors with the path of the call; Heat's own errors are not changed.
fn wrap(error: Diagnostic, place: &ParsePath) -> Diagnostic {
    if fault::is_plain(&error) { fault::to_validation(error, place.text(), place.path()) } else { error }
}
