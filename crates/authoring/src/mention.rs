//! Declarations and uses of parameters, resources and conditions in a template.

use kiln_template::functions;
use kiln_value::{Path, Span, Spans, Value};

use crate::Page;

/// The kind of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// A parameter, a pseudo parameter included.
    Parameter,
    /// A resource.
    Resource,
    /// A condition.
    Condition,
    /// An attribute of this resource.
    Attribute(String),
}

/// How a name is mentioned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// It is declared: a key of a section.
    Declared,
    /// Its value is used.
    Used,
    /// It is listed for display: an entry of a parameter group.
    Listed,
    /// It is in `depends_on`.
    Awaited,
}

/// A name in a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mention {
    /// The kind of the name.
    pub role: Role,
    /// How it is mentioned.
    pub manner: Manner,
    /// The name.
    pub name: String,
    /// The path of the value (or key) that contains the name.
    pub path: Path,
    /// The range in the text, including quotes.
    pub span: Span,
}

/// All mentions, in the order of the document.
///
/// Read from the template as written, so that every branch of an `if` counts, regardless of the parameters.
pub fn mentions(page: &Page) -> Vec<Mention> {
    let words = page.template.words();
    let calls = functions(page.release(), true).iter().map(|function| function.name).collect();
    let mut reader = Reader { page, calls, found: Vec::new() };
    let Value::Map(sections) = page.value() else { return Vec::new() };
    for ((name, section), spans) in sections.iter().zip(&page.spans.children) {
        let node = Node { value: section, spans, path: Path::root().key(name.as_str()) };
        if name == words.parameters {
            reader.declared(&Role::Parameter, &node);
        } else if name == words.conditions && page.release().has_conditions() {
            reader.declared(&Role::Condition, &node);
            node.children().iter().for_each(|condition| reader.condition(condition));
        } else if name == words.resources {
            reader.declared(&Role::Resource, &node);
            node.children().iter().for_each(|resource| reader.resource(resource));
        } else if name == words.outputs {
            node.children().iter().for_each(|output| reader.output(output));
        } else if name == words.moved {
            reader.moves(&node);
        } else if name == "parameter_groups" {
            reader.groups(&node);
        }
    }
    reader.found
}

/// A part of the document with its positions.
struct Node<'p> {
    value: &'p Value,
    spans: &'p Spans,
    path: Path,
}

impl<'p> Node<'p> {
    fn children(&self) -> Vec<Node<'p>> {
        let node = |path, value, spans| Node { value, spans, path };
        match self.value {
            Value::Map(map) => {
                let entries = map.iter().zip(&self.spans.children);
                entries.map(|((key, value), spans)| node(self.path.key(key.as_str()), value, spans)).collect()
            }
            Value::List(list) => {
                let items = list.iter().enumerate().zip(&self.spans.children);
                items.map(|((i, value), spans)| node(self.path.index(i), value, spans)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The entry of a map.
    fn entry(&self, key: &str) -> Option<Node<'p>> {
        let (index, _, value) = self.value.as_map()?.get_full(key)?;
        Some(Node { value, spans: self.spans.children.get(index)?, path: self.path.key(key) })
    }

    /// The name and argument of a map with one entry.
    fn only(&self) -> Option<(&'p str, Node<'p>)> {
        let map = self.value.as_map().filter(|map| map.len() == 1)?;
        let (name, value) = map.first()?;
        Some((name, Node { value, spans: self.spans.children.first()?, path: self.path.key(name.as_str()) }))
    }
}

struct Reader<'p> {
    page: &'p Page,
    calls: Vec<&'static str>,
    found: Vec<Mention>,
}

impl Reader<'_> {
    fn declared(&mut self, role: &Role, section: &Node) {
        let Value::Map(map) = section.value else { return };
        for ((name, _), spans) in map.iter().zip(&section.spans.children) {
            self.found.push(Mention {
                role: role.clone(),
                manner: Manner::Declared,
                name: name.clone(),
                path: section.path.key(name.as_str()),
                span: spans.key.unwrap_or(spans.value),
            });
        }
    }

    fn name(&mut self, role: Role, manner: Manner, node: &Node) {
        let Some(name) = node.value.as_str() else { return };
        let (path, span) = (node.path.clone(), node.spans.value);
        self.found.push(Mention { role, manner, name: name.to_owned(), path, span });
    }

    fn resource(&mut self, resource: &Node) {
        let words = self.page.template.words();
        if let Some(awaited) = resource.entry(words.depends_on) {
            match awaited.value {
                Value::List(_) => {
                    awaited.children().iter().for_each(|item| self.name(Role::Resource, Manner::Awaited, item));
                }
                _ => self.name(Role::Resource, Manner::Awaited, &awaited),
            }
        }
        self.conditioned(resource);
        for key in [words.properties, words.metadata, words.update_policy, words.deletion_policy, "external_id"] {
            if let Some(part) = resource.entry(key) {
                self.value(&part);
            }
        }
    }

    fn output(&mut self, output: &Node) {
        self.conditioned(output);
        if let Some(value) = output.entry(self.page.template.words().value) {
            self.value(&value);
        }
    }

    fn conditioned(&mut self, node: &Node) {
        if let Some(condition) = node.entry(self.page.template.words().condition) {
            self.condition(&condition);
        }
    }

    fn groups(&mut self, groups: &Node) {
        for parameters in groups.children().iter().filter_map(|group| group.entry("parameters")) {
            parameters.children().iter().for_each(|name| self.name(Role::Parameter, Manner::Listed, name));
        }
    }

    fn moves(&mut self, moves: &Node) {
        for to in moves.children().iter().filter_map(|one| one.entry("to")) {
            self.name(Role::Resource, Manner::Listed, &to);
        }
    }

    /// A condition: a name, or a call whose arguments may be conditions.
    fn condition(&mut self, node: &Node) {
        if node.value.as_str().is_some() {
            return self.name(Role::Condition, Manner::Used, node);
        }
        match node.only() {
            Some(("not" | "and" | "or" | "Fn::Not" | "Fn::And" | "Fn::Or", args)) => match args.value {
                Value::List(_) => args.children().iter().for_each(|arg| self.condition(arg)),
                _ => self.condition(&args),
            },
            _ => self.value(node),
        }
    }

    fn value(&mut self, node: &Node) {
        let call = node.only().filter(|(name, _)| self.calls.contains(name));
        let Some((function, args)) = call else {
            return node.children().iter().for_each(|child| self.value(child));
        };
        let first = args.children().into_iter().next();
        match (function, args.value) {
            ("get_resource", Value::Str(_)) => self.name(Role::Resource, Manner::Used, &args),
            ("get_param", Value::Str(_)) => self.name(Role::Parameter, Manner::Used, &args),
            ("get_param", Value::List(_)) => {
                if let Some(first) = first {
                    self.name(Role::Parameter, Manner::Used, &first);
                }
                args.children().iter().skip(1).for_each(|step| self.value(step));
            }
            ("Ref", Value::Str(name)) => {
                let words = self.page.template.words();
                let is_resource = self.page.value().get(words.resources).is_some_and(|r| r.get(name).is_some());
                let role = if is_resource { Role::Resource } else { Role::Parameter };
                self.name(role, Manner::Used, &args);
            }
            ("get_attr" | "Fn::GetAtt", Value::List(_)) => self.attribute(&args),
            ("if" | "Fn::If", Value::List(_)) => {
                if let Some(first) = first {
                    self.condition(&first);
                }
                args.children().iter().skip(1).for_each(|branch| self.value(branch));
            }
            _ => self.value(&args),
        }
    }

    fn attribute(&mut self, args: &Node) {
        let children = args.children();
        let Some(resource) = children.first() else { return };
        self.name(Role::Resource, Manner::Used, resource);
        if let (Some(of), Some(attribute)) = (resource.value.as_str(), children.get(1)) {
            self.name(Role::Attribute(of.to_owned()), Manner::Used, attribute);
        }
        for step in &children {
            self.value(step);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_branch_counts() {
        let page = Page::read(
            "heat_template_version: wallaby
parameters:
  p: {type: string}
  q: {type: string}
conditions:
  c: {equals: [{get_param: p}, x]}
  d: {not: c}
resources:
  r: {type: OS::Heat::Value, condition: d}
  s:
    type: OS::Heat::Value
    depends_on: [r]
    properties: {value: {if: [c, {get_attr: [r, value, {get_param: q}]}, {get_resource: r}]}}
",
        )
        .unwrap();
        let used: Vec<String> = mentions(&page)
            .iter()
            .filter(|mention| mention.manner != Manner::Declared)
            .map(|mention| format!("{} at {}", mention.name, mention.path))
            .collect();
        assert_eq!(
            used,
            [
                "p at conditions.c.equals[0].get_param",
                "c at conditions.d.not",
                "d at resources.r.condition",
                "r at resources.s.depends_on[0]",
                "c at resources.s.properties.value.if[0]",
                "r at resources.s.properties.value.if[1].get_attr[0]",
                "value at resources.s.properties.value.if[1].get_attr[1]",
                "q at resources.s.properties.value.if[1].get_attr[2].get_param",
                "r at resources.s.properties.value.if[2].get_resource",
            ]
        );
    }
}
