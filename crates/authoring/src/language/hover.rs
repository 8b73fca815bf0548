//! Hover texts in Markdown.

use std::borrow::Cow;
use std::fmt::Write as _;

use kiln_plan::ResourceTypes;
use kiln_resource::{AttributeSchema, PropertySchema, ResourceType, SupportStatus, property as schema};
use kiln_template::functions;
use kiln_template::parameter::ParameterSchema;
use kiln_value::{Path, Position, Segment, Span, Value, text};

use super::mention_at;
use super::surroundings::Surroundings;
use crate::Page;
use crate::mention::{Mention, Role};
use crate::types::{below_properties, is_type, property, type_or_child};
use crate::walk::value_at;

/// A hover text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hover {
    /// The range it describes.
    pub span: Span,
    /// Markdown.
    pub text: String,
}

/// The description of the name at a position: a parameter, resource, condition, attribute, type, property or function.
///
/// `around` contains the files of the template, by their names in the template.
pub fn hover(page: &Page, at: Position, catalog: &ResourceTypes, around: &Surroundings) -> Option<Hover> {
    let reader = Reader { page, catalog, around };
    if let Some(mention) = mention_at(page, at)
        && let Some(text) = reader.of_mention(&mention)
    {
        return Some(Hover { span: mention.span, text });
    }
    let (path, on_key) = page.at(at);
    let text = if on_key { reader.of_key(&path) } else { reader.of_value(&path) }?;
    let span = if on_key { page.span(&path) } else { page.value_span(&path) };
    Some(Hover { span, text })
}

struct Reader<'a> {
    page: &'a Page,
    catalog: &'a ResourceTypes,
    around: &'a Surroundings,
}

impl Reader<'_> {
    fn type_named(&self, name: &str) -> Option<Cow<'_, ResourceType>> {
        type_or_child(self.catalog, self.around, name)
    }

    fn of_mention(&self, mention: &Mention) -> Option<String> {
        let page = self.page;
        let words = page.template.words();
        match &mention.role {
            Role::Parameter => {
                let schemata = page.template.parameter_schemata().ok()?;
                Some(schemata.get(&mention.name).map_or_else(
                    || format!("**{}** · provided by the service", mention.name),
                    |schema| parameter(&mention.name, schema),
                ))
            }
            Role::Resource => {
                let written = page.type_of(&mention.name)?;
                let found = self.type_named(written);
                let summary = found.as_ref().map(|found| found.summary.as_str()).unwrap_or_default();
                Some(format!("**{}** · {written}\n\n{summary}", mention.name))
            }
            Role::Condition => {
                let definition = page.value().get(words.conditions)?.get(&mention.name)?;
                Some(format!("**{}** · condition\n\n```json\n{}\n```", mention.name, text::json(definition)))
            }
            Role::Attribute(resource) => {
                let found = self.type_named(page.type_of(resource)?)?;
                Some(attribute(&mention.name, found.attributes.get(&mention.name)?))
            }
        }
    }

    fn of_key(&self, path: &Path) -> Option<String> {
        let page = self.page;
        let Some(Segment::Key(key)) = path.0.last() else { return None };
        if let Some(definition) = below_properties(page, path)
            && let Some(found) = self.type_named(definition.type_name)
            && let Some(schema) = property(&found, definition.rest)
        {
            return Some(of_property(key, schema));
        }
        let all = functions(page.release(), true);
        let function = all.iter().find(|function| function.name == key).filter(|_| path.0.len() > 2)?;
        let mut out = format!("**{}** · function of {}\n\n", function.name, page.template.version());
        // Writing to a string cannot fail.
        _ = write!(out, "{} {}\n\n`{}`", function.summary, function.text, function.label());
        for example in function.examples {
            _ = write!(out, "\n\n`{}` gives `{}`", example.call, example.result);
        }
        Some(out)
    }

    fn of_value(&self, path: &Path) -> Option<String> {
        if !is_type(self.page, path) {
            return None;
        }
        let name = value_at(self.page.value(), path)?.as_str()?;
        Some(of_type(&*self.type_named(name)?))
    }
}

/// A parameter.
pub(super) fn parameter(name: &str, schema: &ParameterSchema) -> String {
    let mut out = format!("**{name}** · parameter: {}", schema.api_type());
    // Writing to a string cannot fail.
    if let Some(default) = &schema.default {
        let shown = if schema.hidden { "******".to_owned() } else { text::json(default) };
        _ = write!(out, ", default `{shown}`");
    }
    if schema.hidden {
        out.push_str(", hidden");
    }
    if let Some(description) = schema.description.as_ref().and_then(Value::as_str) {
        _ = write!(out, "\n\n{description}");
    }
    for constraint in &schema.constraints {
        _ = write!(out, "\n- {}: `{}`", constraint.rule.name(), text::json(&constraint.rule.arguments()));
    }
    out
}

/// A type.
pub(super) fn of_type(found: &ResourceType) -> String {
    let mut out = format!("**{}**\n\n{}", found.name, found.summary);
    support(&mut out, &found.support);
    let required: Vec<&str> =
        found.properties.iter().filter(|(_, s)| s.required).map(|(name, _)| name.as_str()).collect();
    if !required.is_empty() {
        _ = write!(out, "\n\nRequired: {}", required.join(", "));
    }
    out
}

/// A property.
pub(super) fn of_property(name: &str, property: &PropertySchema) -> String {
    let mut out = format!("**{name}** · {}", schema::type_name(property.kind));
    if property.required {
        out.push_str(", required");
    }
    out.push_str(if property.update_allowed { ", updated in place" } else { ", a change replaces the resource" });
    if let Some(default) = &property.default {
        _ = write!(out, ", default `{}`", text::json(default));
    }
    if let Some(description) = &property.description {
        _ = write!(out, "\n\n{description}");
    }
    for constraint in &property.constraints {
        _ = write!(out, "\n- {}: `{}`", constraint.rule.name(), text::json(&constraint.rule.arguments()));
    }
    support(&mut out, &property.support);
    out
}

/// An attribute.
pub(super) fn attribute(name: &str, attribute: &AttributeSchema) -> String {
    let kind = attribute.kind.map_or_else(|| "any".to_owned(), schema::type_name);
    let mut out = format!("**{name}** · attribute: {kind}");
    if let Some(description) = &attribute.description {
        _ = write!(out, "\n\n{description}");
    }
    support(&mut out, &attribute.support);
    out
}

fn support(out: &mut String, status: &SupportStatus) {
    if status.status != kiln_resource::Support::Supported {
        let word = status.status.name().to_lowercase();
        _ = write!(out, "\n\n*{word}* {}", status.message.as_deref().unwrap_or_default());
    }
}
