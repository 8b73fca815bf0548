//! Completion, definition and hover in environments.

use std::collections::BTreeSet;

use kiln_plan::ResourceTypes;
use kiln_resource::Support;
use kiln_template::constraint::{DataType, Rule};
use kiln_template::environment::SECTIONS;
use kiln_template::parameter::ParameterSchema;
use kiln_value::{Path, Position, Span, text};

use super::STRATEGIES;
use super::sheet::{Sense, Sheet};
use crate::Page;
use crate::language::complete::{Sort, Suggestion, fitting};
use crate::language::cursor::{Cursor, Slot, keys};
use crate::language::hover::{self, Hover};
use crate::types::type_named;

/// The points at which a hook can be set.
const HOOKS: [&str; 6] = ["pre-create", "pre-update", "pre-delete", "post-create", "post-update", "post-delete"];

/// A template that an environment may belong to: one that is open, or in the same directory.
#[derive(Clone, Debug)]
pub struct Neighbour {
    /// Its URL.
    pub url: String,
    /// The template.
    pub page: Page,
}

/// A definition of a name in an environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// In the environment.
    Here(Span),
    /// In a template, with its URL.
    Template(String, Span),
    /// In a file, with its name in the environment.
    File(String),
}

pub(super) fn schemata(neighbours: &[Neighbour]) -> Vec<(String, ParameterSchema)> {
    let all = neighbours.iter().filter_map(|one| one.page.template.parameter_schemata().ok()).flatten();
    let mut seen = BTreeSet::new();
    all.filter(|(name, _)| seen.insert(name.clone())).collect()
}

/// Suggestions at a position of an environment, which may be invalid.
pub fn complete(text: &str, at: Position, catalog: &ResourceTypes, neighbours: &[Neighbour]) -> Vec<Suggestion> {
    let cursor = Cursor::at(text, at);
    let replace = cursor.replaced(at);
    let sheet = Sheet::read(text, Some(at));
    let mut writer = Writer { is_key: cursor.slot == Slot::Key, replace, catalog, found: Vec::new() };
    let path = cursor.path.0.as_slice();
    let keys = keys(path);
    match keys.as_slice() {
        [] => writer.words(Sort::Keyword, SECTIONS),
        ["parameters" | "parameter_defaults"] | ["encrypted_param_names", ..] => writer.parameters(neighbours),
        ["parameters" | "parameter_defaults", name] => writer.values(name, neighbours),
        ["parameter_merge_strategies"] => {
            writer.words(Sort::Keyword, ["default"]);
            writer.parameters(neighbours);
        }
        ["parameter_merge_strategies", _] => writer.words(Sort::Value, STRATEGIES),
        ["resource_registry"] if writer.is_key => {
            writer.words(Sort::Keyword, ["resources", "base_url"]);
            writer.types();
        }
        ["resource_registry", "resources"] => writer.resources(neighbours),
        ["resource_registry", "resources", _] if writer.is_key => {
            writer.words(Sort::Keyword, ["hooks", "restricted_actions"]);
            writer.types();
        }
        ["resource_registry", .., "hooks"] | ["resource_registry", .., "hooks", ""] => {
            writer.words(Sort::Value, HOOKS);
        }
        ["resource_registry", .., "restricted_actions"] | ["resource_registry", .., "restricted_actions", ""] => {
            writer.words(Sort::Value, ["update", "replace"]);
        }
        ["resource_registry", .., "base_url"] => {}
        ["resource_registry", ..] => writer.types(),
        _ => {}
    }
    let given = sheet.as_ref().map(|sheet| sheet.given(path)).unwrap_or_default();
    writer.found.retain(|suggestion| !writer.is_key || !given.contains(&suggestion.label.as_str()));
    fitting(writer.found, &cursor.word)
}

struct Writer<'c> {
    is_key: bool,
    replace: Span,
    catalog: &'c ResourceTypes,
    found: Vec<Suggestion>,
}

impl Writer<'_> {
    fn add(&mut self, sort: Sort, label: &str, detail: &str, documentation: String, deprecated: bool) {
        let insert = if self.is_key { format!("{label}: ") } else { label.to_owned() };
        let (label, detail) = (label.to_owned(), detail.to_owned());
        self.found.push(Suggestion { label, sort, detail, documentation, insert, replace: self.replace, deprecated });
    }

    fn words<'w>(&mut self, sort: Sort, words: impl IntoIterator<Item = &'w str>) {
        for word in words {
            self.add(sort, word, "", String::new(), false);
        }
    }

    fn parameters(&mut self, neighbours: &[Neighbour]) {
        for (name, schema) in schemata(neighbours) {
            self.add(Sort::Parameter, &name, schema.api_type(), hover::parameter(&name, &schema), false);
        }
    }

    fn values(&mut self, name: &str, neighbours: &[Neighbour]) {
        let Some((_, schema)) = schemata(neighbours).into_iter().find(|(known, _)| known == name) else { return };
        self.is_key = false;
        if schema.typed.data_type == DataType::Boolean {
            self.words(Sort::Value, ["true", "false"]);
        }
        for constraint in &schema.constraints {
            if let Rule::AllowedValues(allowed) = &constraint.rule {
                let allowed: Vec<String> = allowed.iter().map(text::str).collect();
                self.words(Sort::Value, allowed.iter().map(String::as_str));
            }
        }
    }

    fn resources(&mut self, neighbours: &[Neighbour]) {
        for one in neighbours {
            let section = one.page.template.words().resources;
            let names: Vec<&str> = one.page.section(section).map(|(name, _)| name.as_str()).collect();
            self.words(Sort::Resource, names);
        }
    }

    fn types(&mut self) {
        let shown = self.catalog.types.iter().filter(|entry| !entry.resource_type.support.is_hidden());
        for found in shown.map(|entry| &entry.resource_type) {
            let deprecated = found.support.status != Support::Supported;
            self.add(Sort::Type, &found.name, &found.summary, hover::of_type(found), deprecated);
        }
    }
}

/// The description of the parameter or type at a position.
pub fn hover(sheet: &Sheet, at: Position, catalog: &ResourceTypes, neighbours: &[Neighbour]) -> Option<Hover> {
    let name = sheet.name_at(at)?;
    let text = match name.sense {
        Sense::Parameter => {
            let (_, schema) = schemata(neighbours).into_iter().find(|(known, _)| *known == name.text)?;
            hover::parameter(&name.text, &schema)
        }
        Sense::Type => hover::of_type(type_named(catalog, &name.text)?),
        Sense::File => return None,
    };
    Some(Hover { span: name.span, text })
}

/// The definitions of the name at a position: the templates that declare a parameter, the file of a template, or the
/// entry of the registry.
pub fn definition(sheet: &Sheet, at: Position, neighbours: &[Neighbour]) -> Vec<Origin> {
    let Some(name) = sheet.name_at(at) else { return Vec::new() };
    match name.sense {
        Sense::File => vec![Origin::File(name.text)],
        Sense::Type => {
            let declared = sheet.references(at).into_iter().filter(|one| one.is_declaration && !name.is_declaration);
            declared.map(|one| Origin::Here(one.span)).collect()
        }
        Sense::Parameter => {
            let declared = |one: &Neighbour| {
                let path = Path::root().key(one.page.template.words().parameters).key(name.text.as_str());
                crate::walk::value_at(one.page.value(), &path)?;
                Some(Origin::Template(one.url.clone(), one.page.span(&path)))
            };
            neighbours.iter().filter_map(declared).collect()
        }
    }
}
