//! Completion.

use indexmap::IndexMap;
use kiln_plan::ResourceTypes;
use kiln_resource::{PropertySchema, Support};
use kiln_template::constraint::{DataType, Rule};
use kiln_template::version::Dialect;
use kiln_template::{Release, functions, parameter};
use kiln_value::{Position, Segment, Span, text};

use super::cursor::{Cursor, Slot, keys};
use super::hover;
use super::repair::readable;
use super::surroundings::Surroundings;
use crate::Page;
use crate::types::{Definition, below_properties, is_member_key, is_type, property, type_or_child};

/// The kind of a suggestion, for its icon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// A keyword of the template language.
    Keyword,
    /// A resource type.
    Type,
    /// A property.
    Property,
    /// A function.
    Function,
    /// A parameter.
    Parameter,
    /// A resource.
    Resource,
    /// A condition.
    Condition,
    /// An attribute.
    Attribute,
    /// A value.
    Value,
}

/// A suggestion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suggestion {
    /// The displayed text.
    pub label: String,
    /// Its kind.
    pub sort: Sort,
    /// A short description.
    pub detail: String,
    /// Markdown.
    pub documentation: String,
    /// The text that replaces `replace`.
    pub insert: String,
    /// The part that is already written.
    pub replace: Span,
    /// Whether it is deprecated.
    pub deprecated: bool,
}

/// Suggestions at a position of a text, which may be invalid: first those that begin with the word so far, then those
/// that contain it.
///
/// `around` contains the files of the template, by their names in the template.
pub fn complete(text: &str, at: Position, catalog: &ResourceTypes, around: &Surroundings) -> Vec<Suggestion> {
    let cursor = Cursor::at(text, at);
    let page = readable(text, at);
    let replace = cursor.replaced(at);
    let mut writer = Writer { cursor, page, catalog, around, replace, found: Vec::new() };
    writer.write();
    fitting(writer.found, &writer.cursor.word)
}

/// The suggestions that begin with a word, then those that contain it elsewhere.
pub fn fitting(mut found: Vec<Suggestion>, word: &str) -> Vec<Suggestion> {
    let word = word.to_lowercase();
    found.retain(|suggestion| suggestion.label.to_lowercase().contains(&word));
    found.sort_by_key(|suggestion| !suggestion.label.to_lowercase().starts_with(&word));
    found
}

struct Writer<'c> {
    cursor: Cursor,
    page: Option<Page>,
    catalog: &'c ResourceTypes,
    around: &'c Surroundings,
    replace: Span,
    found: Vec<Suggestion>,
}

const PARAMETER_TYPES: [&str; 5] = ["string", "number", "comma_delimited_list", "json", "boolean"];
const PARAMETER_KEYS: [&str; 8] =
    ["type", "label", "description", "default", "hidden", "constraints", "immutable", "tags"];
const CONSTRAINTS: [&str; 7] =
    ["length", "range", "modulo", "allowed_values", "allowed_pattern", "custom_constraint", "description"];

impl Writer<'_> {
    fn release(&self) -> Release {
        self.page.as_ref().map_or(Release::Hot20210416, Page::release)
    }

    fn add(&mut self, sort: Sort, label: &str, detail: &str, documentation: String) {
        self.found.push(Suggestion {
            label: label.to_owned(),
            sort,
            detail: detail.to_owned(),
            documentation,
            insert: label.to_owned(),
            replace: self.replace,
            deprecated: false,
        });
    }

    /// Words that are followed by a colon where keys are written.
    fn keys<'k>(&mut self, sort: Sort, keys: impl IntoIterator<Item = &'k str>) {
        for key in keys {
            self.add(sort, key, "", String::new());
            self.last_is_key();
        }
    }

    fn last_is_key(&mut self) {
        let is_key = self.cursor.slot == Slot::Key;
        if let Some(last) = self.found.last_mut().filter(|_| is_key) {
            last.insert.push_str(": ");
        }
    }

    fn words<'k>(&mut self, sort: Sort, words: impl IntoIterator<Item = &'k str>) {
        for word in words {
            self.add(sort, word, "", String::new());
        }
    }

    fn write(&mut self) {
        let words = self.release().dialect().words();
        let path = self.cursor.path.0.clone();
        let keys = keys(&path);
        if self.argument(&path) {
            return;
        }
        let is_key = self.cursor.slot == Slot::Key;
        match keys.as_slice() {
            [] => self.sections(),
            ["heat_template_version"] => self.versions(),
            [section, _] if *section == words.parameters && is_key => self.keys(Sort::Keyword, PARAMETER_KEYS),
            [section, _, "type"] if *section == words.parameters => self.words(Sort::Value, PARAMETER_TYPES),
            [section, _, "constraints", ""] if *section == words.parameters => self.keys(Sort::Keyword, CONSTRAINTS),
            [section, _] if *section == words.resources && is_key => self.resource_keys(),
            [section, _, key] if *section == words.resources && *key == words.resource_type => self.types(),
            [section, _, key, ..] if *section == words.resources && *key == words.depends_on => self.resources(),
            [section, _, key] if *section == words.resources && *key == words.deletion_policy => {
                self.words(Sort::Value, ["Delete", "Retain", "Snapshot"]);
            }
            [section, _, key]
                if (*section == words.resources || *section == words.outputs) && *key == words.condition =>
            {
                self.conditions();
            }
            [section, _, .., "type"] if *section == words.resources && self.is_type() => self.types(),
            [section, _, key, ..] if *section == words.resources && *key == words.properties => self.properties(),
            [section, _, ..] if *section == words.conditions => self.functions(true),
            [section, _] if *section == words.outputs && is_key => {
                let keys = [words.description, words.value].into_iter();
                let condition = self.release().has_conditions().then_some(words.condition);
                self.keys(Sort::Keyword, keys.chain(condition));
            }
            [section, _, key, ..] if *section == words.outputs && *key == words.value => self.functions(false),
            _ => {}
        }
    }

    /// The arguments of the innermost call, if they are known for the position of the cursor.
    fn argument(&mut self, path: &[Segment]) -> bool {
        let Some((call, rest)) = path.iter().enumerate().rev().find_map(|(at, segment)| match segment {
            Segment::Key(key) if at > 1 => Some((key.as_str(), path.get(at + 1..).unwrap_or_default())),
            _ => None,
        }) else {
            return false;
        };
        match (call, rest) {
            ("get_param", [] | [Segment::Index(0)]) => self.parameters(),
            ("Ref", []) => {
                self.parameters();
                self.resources();
            }
            ("get_resource", []) | ("get_attr" | "Fn::GetAtt", [] | [Segment::Index(0)]) => self.resources(),
            ("get_attr" | "Fn::GetAtt", [Segment::Index(1)]) => self.attributes(),
            ("if" | "Fn::If", [Segment::Index(0)]) => self.conditions(),
            _ => return false,
        }
        true
    }

    fn sections(&mut self) {
        let words = self.release().dialect().words();
        let version = self.release().dialect().version_key();
        let hot = (self.release().dialect() == Dialect::Hot).then_some("parameter_groups");
        let conditions = self.release().has_conditions().then_some(words.conditions);
        let sections = [version, words.description, words.parameters, words.resources, words.outputs, words.moved];
        let present: Vec<String> =
            self.page.iter().filter_map(|page| page.value().as_map()).flat_map(|map| map.keys().cloned()).collect();
        let missing = sections.into_iter().chain(hot).chain(conditions);
        self.keys(Sort::Keyword, missing.filter(|section| !present.iter().any(|there| there == section)));
    }

    fn versions(&mut self) {
        let hot = Release::ALL.into_iter().rev().filter(|release| release.dialect() == Dialect::Hot);
        for release in hot {
            self.add(Sort::Value, release.name(), release.alias().unwrap_or_default(), String::new());
        }
    }

    fn resource_keys(&mut self) {
        let (release, words) = (self.release(), self.release().dialect().words());
        let keys = [
            words.resource_type,
            words.properties,
            words.depends_on,
            words.metadata,
            words.deletion_policy,
            words.update_policy,
            words.description,
        ];
        let condition = release.has_conditions().then_some(words.condition);
        let external = release.has_external_id().then_some("external_id");
        self.keys(Sort::Keyword, keys.into_iter().chain(condition).chain(external));
    }

    fn types(&mut self) {
        let shown = self.catalog.types.iter().filter(|entry| !entry.resource_type.support.is_hidden());
        for found in shown.map(|entry| &entry.resource_type) {
            self.add(Sort::Type, &found.name, &found.summary, hover::of_type(found));
            if let Some(last) = self.found.last_mut() {
                last.deprecated = found.support.status != Support::Supported;
            }
        }
    }

    fn is_type(&self) -> bool {
        self.page.as_ref().is_some_and(|page| is_type(page, &self.cursor.path))
    }

    fn properties(&mut self) {
        let Some(page) = self.page.take() else { return };
        let path = self.cursor.path.clone();
        if let Some(definition) = below_properties(&page, &path) {
            self.properties_of(&page, &definition);
        }
        // The members of a group are resource definitions.
        if self.cursor.slot == Slot::Key && is_member_key(path.0.last()) {
            self.keys(Sort::Keyword, ["type", "properties", "metadata"]);
        }
        self.page = Some(page);
        if !path
            .0
            .last()
            .is_some_and(|last| matches!(last, Segment::Key(key) if key == "properties" || key == "Properties"))
        {
            self.functions(false);
        }
    }

    fn properties_of(&mut self, page: &Page, definition: &Definition) {
        let Some(found) = type_or_child(self.catalog, self.around, definition.type_name) else { return };
        if definition.rest.is_empty() {
            self.members(page, &found.properties, definition);
        } else if let Some(schema) = property(&found, definition.rest) {
            if let (Some(members), Slot::Key) = (schema.members(), self.cursor.slot) {
                self.members(page, members, definition);
            }
            self.values(schema);
        }
    }

    /// The members that are not set yet.
    fn members(&mut self, page: &Page, members: &IndexMap<String, PropertySchema>, definition: &Definition) {
        let mut path = definition.properties.clone();
        path.0.extend_from_slice(definition.rest);
        let given = crate::walk::value_at(page.value(), &path).and_then(|value| value.as_map().cloned());
        let given = given.unwrap_or_default();
        let mut missing: Vec<_> = members
            .iter()
            .filter(|(name, schema)| schema.implemented && !schema.support.is_hidden() && !given.contains_key(*name))
            .collect();
        missing.sort_by_key(|(_, schema)| !schema.required);
        for (name, schema) in missing {
            let kind = kiln_resource::property::type_name(schema.kind);
            let detail = if schema.required { format!("{kind}, required") } else { kind };
            self.add(Sort::Property, name, &detail, hover::of_property(name, schema));
            self.last_is_key();
            if let Some(last) = self.found.last_mut() {
                last.deprecated = schema.support.status != Support::Supported;
            }
        }
    }

    fn values(&mut self, schema: &PropertySchema) {
        if schema.kind == DataType::Boolean {
            self.words(Sort::Value, ["true", "false"]);
        }
        for constraint in &schema.constraints {
            if let Rule::AllowedValues(allowed) = &constraint.rule {
                let allowed: Vec<String> = allowed.iter().map(text::str).collect();
                self.words(Sort::Value, allowed.iter().map(String::as_str));
            }
        }
    }

    fn functions(&mut self, conditions: bool) {
        let release = self.release();
        let names: Vec<_> = functions(release, conditions);
        for function in names {
            self.add(Sort::Function, function.name, "function", function.summary.to_owned());
            let slot = self.cursor.slot;
            if let Some(last) = self.found.last_mut() {
                // A call is a map.
                last.insert = match slot {
                    Slot::Key => format!("{}: ", function.name),
                    Slot::Value => format!("{{{}: }}", function.name),
                };
            }
        }
    }

    fn parameters(&mut self) {
        let Some(page) = &self.page else { return };
        let schemata = page.template.parameter_schemata().unwrap_or_default();
        let names: Vec<String> = page.section(page.template.words().parameters).map(|(name, _)| name.clone()).collect();
        let dialect = match page.release().dialect() {
            Dialect::Hot => parameter::Dialect::Hot,
            Dialect::Cfn | Dialect::HeatCfn => parameter::Dialect::Cfn,
        };
        for name in names {
            let schema = schemata.get(&name);
            let detail = schema.map_or("", parameter::ParameterSchema::api_type);
            let documentation = schema.map(|schema| hover::parameter(&name, schema)).unwrap_or_default();
            self.add(Sort::Parameter, &name, detail, documentation);
        }
        for name in dialect.pseudo_names() {
            self.add(Sort::Parameter, name, "provided by the service", String::new());
        }
    }

    fn resources(&mut self) {
        let Some(page) = &self.page else { return };
        let words = page.template.words();
        let own = match self.cursor.path.0.as_slice() {
            [Segment::Key(section), Segment::Key(name), ..] if section == words.resources => name.clone(),
            _ => String::new(),
        };
        let others: Vec<(String, String)> = page
            .section(words.resources)
            .filter(|(name, _)| **name != own)
            .map(|(name, resource)| (name.clone(), resource.str_at(words.resource_type).unwrap_or_default().to_owned()))
            .collect();
        for (name, kind) in others {
            self.add(Sort::Resource, &name, &kind, String::new());
        }
    }

    fn conditions(&mut self) {
        let Some(page) = &self.page else { return };
        let names: Vec<String> = page.section(page.template.words().conditions).map(|(name, _)| name.clone()).collect();
        self.words(Sort::Condition, names.iter().map(String::as_str));
    }

    fn attributes(&mut self) {
        let Some(page) = &self.page else { return };
        let Some(resource) = self.cursor.before.first() else { return };
        let Some(name) = page.type_of(resource) else { return };
        let Some(found) = type_or_child(self.catalog, self.around, name) else { return };
        for (name, schema) in found.attributes.iter().filter(|(_, schema)| !schema.support.is_hidden()) {
            let kind = schema.kind.map(kiln_resource::property::type_name).unwrap_or_default();
            self.add(Sort::Attribute, name, &kind, hover::attribute(name, schema));
        }
        self.add(Sort::Attribute, "show", "map", "All data of the service about the object.".to_owned());
    }
}
