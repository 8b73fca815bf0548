//! Semantic tokens for syntax highlighting.

use kiln_template::functions;
use kiln_value::{Path, Position, Segment, Span, Value};

use super::navigate::unquoted;
use crate::Page;
use crate::mention::{Manner, Role, mentions};
use crate::types::{below_properties, is_type};
use crate::walk::visit;

/// The kind of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// A section or another keyword of the language.
    Keyword,
    /// A resource type.
    Type,
    /// A function.
    Function,
    /// A parameter.
    Parameter,
    /// A resource.
    Resource,
    /// A condition.
    Condition,
    /// A property or an attribute.
    Property,
}

/// A name with its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// Its range, on one line.
    pub span: Span,
    /// Its kind.
    pub kind: TokenKind,
    /// Whether it is declared here.
    pub is_declaration: bool,
}

/// All names with a meaning, in the order of the text. They do not overlap.
pub fn tokens(page: &Page) -> Vec<Token> {
    let mut found = Vec::new();
    let mut add = |span: Span, kind, is_declaration| {
        let span = unquoted(span, page.slice(span));
        if span.start.line == span.end.line && span.start.column < span.end.column {
            found.push(Token { span, kind, is_declaration });
        }
    };
    for mention in mentions(page) {
        let kind = match mention.role {
            Role::Parameter => TokenKind::Parameter,
            Role::Resource => TokenKind::Resource,
            Role::Condition => TokenKind::Condition,
            Role::Attribute(_) => TokenKind::Property,
        };
        add(mention.span, kind, mention.manner == Manner::Declared);
    }
    let functions = functions(page.release(), true);
    visit(page.value(), &Path::root(), &mut |value, path| {
        if value.as_str().is_some() && is_type(page, path) {
            add(page.value_span(path), TokenKind::Type, false);
        }
        let Value::Map(map) = value else { return };
        let is_call = |name: &String| map.len() == 1 && functions.iter().any(|function| function.name == name);
        for key in map.keys() {
            let inner = path.key(key.as_str());
            let kind = match inner.0.len() {
                1 => TokenKind::Keyword,
                2 => continue,
                _ if is_call(key) => TokenKind::Function,
                3 => TokenKind::Keyword,
                _ if is_property(page, &inner) => TokenKind::Property,
                _ => continue,
            };
            let span = page.spans.find(page.value(), &inner).key;
            if let Some(span) = span {
                add(span, kind, false);
            }
        }
    });
    found.sort_by_key(|token| (token.span.start, token.span.end));
    let mut end = Position { line: 0, column: 0 };
    found.retain(|token| {
        let is_free = end <= token.span.start;
        if is_free {
            end = token.span.end;
        }
        is_free
    });
    found
}

/// Whether a path is that of a property, rather than of data in it.
fn is_property(page: &Page, path: &Path) -> bool {
    below_properties(page, path).is_some_and(|definition| matches!(definition.rest, [Segment::Key(_)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_kinds() {
        let page = Page::read(
            "heat_template_version: 2021-04-16
parameters:
  size: {type: string}
resources:
  'a b':
    type: OS::Heat::ResourceGroup
    properties:
      resource_def: {type: inner.yaml, properties: {n: {get_param: size}}}
outputs:
  o: {value: {get_attr: ['a b', refs]}}
",
        )
        .unwrap();
        let found = tokens(&page);
        let of_kind = |kind| -> Vec<&str> {
            found.iter().filter(|token| token.kind == kind).map(|token| page.slice(token.span)).collect()
        };
        assert_eq!(
            of_kind(TokenKind::Keyword),
            ["heat_template_version", "parameters", "type", "resources", "type", "properties", "outputs", "value"]
        );
        assert_eq!(of_kind(TokenKind::Parameter), ["size", "size"]);
        assert_eq!(of_kind(TokenKind::Resource), ["a b", "a b"]);
        assert_eq!(of_kind(TokenKind::Type), ["OS::Heat::ResourceGroup", "inner.yaml"]);
        assert_eq!(of_kind(TokenKind::Property), ["resource_def", "n", "refs"]);
        assert_eq!(of_kind(TokenKind::Function), ["get_param", "get_attr"]);
        assert_eq!(found.iter().filter(|token| token.is_declaration).count(), 2);
        assert!(found.windows(2).all(|pair| pair[0].span.end <= pair[1].span.start));
    }
}
