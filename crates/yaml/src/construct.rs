//! Converts nodes to values, like PyYAML's safe constructor with Heat's changes.

use std::collections::HashSet;

use kiln_value::{Map, Span, Spans, Value, text};

use crate::mark::Mark;
use crate::node::{Content, Node, NodeId, Piece, Tag, Tree};
use crate::{Document, Error, MAX_DEPTH, scalar};

/// Limit on the size that aliases add to the content of the text, in bytes of strings and [`NODE_COST`] for each node.
/// PyYAML shares nodes. Here values are copied, so a few hundred characters could exhaust the memory.
const ALIAS_BUDGET: usize = 16 << 20;
/// The approximate size of a value and its spans.
const NODE_COST: usize = 128;

/// Constructs the value of a tree; `text` is used in messages.
pub(crate) fn construct(tree: &Tree, text: &str) -> Result<Document, Error> {
    let Some(root) = tree.root else { return Ok(Document::default()) };
    let (nodes, texts) = tree.size();
    let budget = nodes * NODE_COST + texts + ALIAS_BUDGET;
    let mut constructor = Constructor { tree, text, budget, open: Vec::new() };
    let (value, spans) = constructor.value(root, 0)?;
    Ok(Document { value, spans })
}

struct Constructor<'a> {
    tree: &'a Tree,
    text: &'a str,
    budget: usize,
    /// The nodes under construction: one that occurs again contains itself.
    open: Vec<NodeId>,
}

type Entries = Vec<(NodeId, NodeId)>;

impl<'a> Constructor<'a> {
    fn error<T>(&self, problem: impl Into<String>, mark: Mark) -> Result<T, Error> {
        Err(Error::at(self.text, problem, mark))
    }

    fn spend(&mut self, cost: usize, mark: Mark) -> Result<(), Error> {
        match self.budget.checked_sub(cost) {
            Some(rest) => {
                self.budget = rest;
                Ok(())
            }
            None => self.error("aliases expand to too much data", mark),
        }
    }

    /// Runs a closure on a node, which must not occur again within itself.
    fn within<T>(
        &mut self,
        id: NodeId,
        depth: usize,
        make: impl FnOnce(&mut Self) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let start = self.tree.at(id).start;
        if depth > MAX_DEPTH {
            return self.error(format!("nested deeper than {MAX_DEPTH} levels"), start);
        }
        let (target, node) = self.tree.target(id);
        // A scalar contains no nodes.
        if matches!(node.content, Content::Scalar(_)) {
            return make(self);
        }
        if self.open.contains(&target) {
            return self.error("found unconstructable recursive node", start);
        }
        self.open.push(target);
        let result = make(self);
        self.open.pop();
        result
    }

    fn value(&mut self, id: NodeId, depth: usize) -> Result<(Value, Spans), Error> {
        let (at, (_, node)) = (self.tree.at(id), self.tree.target(id));
        let text = if let Content::Scalar(text) = node.content { self.tree.text(text).len() } else { 0 };
        self.spend(NODE_COST + text, at.start)?;
        let (value, children) = self.within(id, depth, |this| match node.tag {
            Tag::Null => this.scalar(node).map(|_| leaf(Value::Null)),
            Tag::Str | Tag::Timestamp => this.scalar(node).map(|text| leaf(Value::Str(text.to_owned()))),
            Tag::Bool => {
                let text = this.scalar(node)?;
                let word = text.to_lowercase();
                scalar::bool(text).map(leaf).ok_or_else(|| Error::value(text::quote(&word), node.at.start))
            }
            Tag::Int => of_type(scalar::int(this.scalar(node)?), node),
            Tag::Float => of_type(scalar::float(this.scalar(node)?), node),
            Tag::Binary => this.binary(node),
            Tag::Seq => this.list(node, depth),
            Tag::Map => this.map(id, depth),
            Tag::Set => this.set(id, depth),
            Tag::Omap | Tag::Pairs => this.pairs(node, depth),
            Tag::Merge | Tag::Value | Tag::Yaml | Tag::Other(_) => {
                let name = text::quote(&this.tree.unknown_name(node.tag));
                this.error(format!("could not determine a constructor for the tag {name}"), node.at.start)
            }
        })?;
        Ok((value, Spans { key: None, value: at.span(), children }))
    }

    fn scalar(&self, node: &Node) -> Result<&'a str, Error> {
        match node.content {
            Content::Scalar(text) => Ok(self.tree.text(text)),
            other => self.error(format!("expected a scalar node, but found {}", other.kind()), node.at.start),
        }
    }

    /// Values cannot contain bytes, so invalid UTF-8 is refused.
    fn binary(&self, node: &Node) -> Result<(Value, Vec<Spans>), Error> {
        match scalar::binary(self.scalar(node)?).map(String::from_utf8) {
            Some(Ok(text)) => Ok(leaf(Value::Str(text))),
            Some(Err(_)) => self.error("failed to read binary data as text", node.at.start),
            None => self.error("failed to decode base64 data", node.at.start),
        }
    }

    fn list(&mut self, node: &Node, depth: usize) -> Result<(Value, Vec<Spans>), Error> {
        let Content::Sequence(items) = node.content else {
            let kind = node.content.kind();
            return self.error(format!("expected a sequence node, but found {kind}"), node.at.start);
        };
        let items = self.tree.items(items);
        let (mut values, mut spans) = (Vec::with_capacity(items.len()), Vec::with_capacity(items.len()));
        for item in items {
            let (value, at) = self.value(*item, depth + 1)?;
            values.push(value);
            spans.push(at);
        }
        Ok((Value::List(values), spans))
    }

    fn map(&mut self, id: NodeId, depth: usize) -> Result<(Value, Vec<Spans>), Error> {
        let (tree, (_, node)) = (self.tree, self.tree.target(id));
        let Content::Mapping(own) = node.content else {
            let kind = node.content.kind();
            return self.error(format!("expected a mapping node, but found {kind}"), node.at.start);
        };
        let entries = self.entries(own, id, depth)?;
        let (mut map, mut children) = (Map::with_capacity(entries.len()), Vec::with_capacity(entries.len()));
        for (key, value) in entries {
            let key_text = match self.key(key, node, depth)? {
                Value::Str(text) => text,
                other => text::json(&other),
            };
            let (value, mut spans) = self.value(value, depth + 1)?;
            spans.key = Some(tree.at(key).span());
            // Of equal keys the first determines the order, as in Python.
            let (index, _) = map.insert_full(key_text, value);
            match children.get_mut(index) {
                Some(former) => *former = spans,
                None => children.push(spans),
            }
        }
        Ok((Value::Map(map), children))
    }

    /// The entries of a mapping, after those from its merge keys.
    fn entries(&mut self, own: Piece, id: NodeId, depth: usize) -> Result<Entries, Error> {
        let tree = self.tree;
        let mut entries = self.merged(own, id, depth)?;
        entries.extend(tree.entries(own).filter(|(key, _)| !tree.is_merge(*key)));
        Ok(entries)
    }

    /// The value of a key. Values that Python refuses as keys are refused.
    fn key(&mut self, key: NodeId, within: &Node, depth: usize) -> Result<Value, Error> {
        let (_, node) = self.tree.target(key);
        // `=` as a key is a string.
        if let (Tag::Value, Content::Scalar(text)) = (node.tag, node.content) {
            return Ok(self.tree.text(text).into());
        }
        match self.value(key, depth + 1)?.0 {
            Value::List(_) | Value::Map(_) => {
                let context = Some(("while constructing a mapping", within.at.start));
                Err(Error::in_context(self.text, context, "found unhashable key", self.tree.at(key).start))
            }
            scalar => Ok(scalar),
        }
    }

    /// The entries from the merge keys of a mapping. Its own entries take precedence; in a list of mappings the first
    /// one takes precedence.
    fn merged(&mut self, own: Piece, into: NodeId, depth: usize) -> Result<Entries, Error> {
        let tree = self.tree;
        let mut merged = Entries::new();
        for (_, value) in tree.entries(own).filter(|(key, _)| tree.is_merge(*key)) {
            let (_, node) = tree.target(value);
            match node.content {
                Content::Mapping(_) => merged.extend(self.flattened(value, into, depth + 1)?),
                Content::Sequence(items) => {
                    for item in tree.items(items).iter().rev() {
                        merged.extend(self.flattened(*item, into, depth + 1)?);
                    }
                }
                Content::Scalar(_) | Content::Alias(_) => {
                    return self.merge_error("expected a mapping or list of mappings for merging", into, node);
                }
            }
        }
        Ok(merged)
    }

    /// All entries of a mapping that is merged into another one.
    fn flattened(&mut self, value: NodeId, into: NodeId, depth: usize) -> Result<Entries, Error> {
        let (tree, (_, node)) = (self.tree, self.tree.target(value));
        let Content::Mapping(own) = node.content else {
            return self.merge_error("expected a mapping for merging", into, node);
        };
        let mut entries = self.within(value, depth, |this| this.merged(own, value, depth))?;
        self.spend((entries.len() + tree.items(own).len() / 2) * NODE_COST, tree.at(value).start)?;
        entries.extend(tree.entries(own).filter(|(key, _)| !tree.is_merge(*key)));
        Ok(entries)
    }

    fn merge_error<T>(&self, expected: &str, into: NodeId, found: &Node) -> Result<T, Error> {
        let context = Some(("while constructing a mapping", self.tree.at(into).start));
        let problem = format!("{expected}, but found {}", found.content.kind());
        Err(Error::in_context(self.text, context, &problem, found.at.start))
    }

    /// A `!!set`: the list of its members.
    fn set(&mut self, id: NodeId, depth: usize) -> Result<(Value, Vec<Spans>), Error> {
        // Refuses what is no mapping, and the values that a mapping refuses.
        self.map(id, depth)?;
        let (tree, (_, node)) = (self.tree, self.tree.target(id));
        let (mut seen, mut members, mut spans) = (HashSet::new(), Vec::new(), Vec::new());
        if let Content::Mapping(own) = node.content {
            for (key, _) in self.entries(own, id, depth)? {
                let member = self.key(key, node, depth)?;
                if seen.insert(text::repr(&member)) {
                    members.push(member);
                    spans.push(only(tree.at(key).span()));
                }
            }
        }
        Ok((Value::List(members), spans))
    }

    /// An `!!omap` or `!!pairs`: a list of lists of two.
    fn pairs(&mut self, node: &Node, depth: usize) -> Result<(Value, Vec<Spans>), Error> {
        let Content::Sequence(items) = node.content else {
            let problem = format!("expected a sequence, but found {}", node.content.kind());
            let context = Some(("while constructing an ordered map", node.at.start));
            return Err(Error::in_context(self.text, context, &problem, node.at.start));
        };
        let (mut values, mut spans) = (Vec::new(), Vec::new());
        for item in self.tree.items(items) {
            let (at, (_, pair)) = (self.tree.at(*item), self.tree.target(*item));
            let Content::Mapping(entries) = pair.content else {
                let problem = format!("expected a mapping of length 1, but found {}", pair.content.kind());
                return self.error(problem, at.start);
            };
            let &[key, value] = self.tree.items(entries) else {
                let count = self.tree.items(entries).len() / 2;
                return self.error(format!("expected a single mapping item, but found {count} items"), at.start);
            };
            let (key, value) = (self.value(key, depth + 2)?, self.value(value, depth + 2)?);
            values.push(Value::List(vec![key.0, value.0]));
            spans.push(Spans { key: None, value: at.span(), children: vec![key.1, value.1] });
        }
        Ok((Value::List(values), spans))
    }
}

fn leaf(value: Value) -> (Value, Vec<Spans>) {
    (value, Vec::new())
}

fn only(span: Span) -> Spans {
    Spans { key: None, value: span, children: Vec::new() }
}

fn of_type(read: Result<Value, String>, node: &Node) -> Result<(Value, Vec<Spans>), Error> {
    read.map(leaf).map_err(|message| Error::value(message, node.at.start))
}
