//! The parameters of a template and of its nested templates.

use indexmap::IndexMap;
use kiln_resource::{Facts, NestedStack, RegisteredType, properties};
use kiln_template::{Definition, Expr};
use kiln_value::{Class, Diagnostic, Map, Value};

use crate::ResourceTypes;
use crate::blueprint::{Blueprint, Nesting, Sources};
use crate::kind::{Kind, Provider};
use crate::stack_scope::Draft;

/// The parameters of a template, for validate calls.
#[derive(Debug)]
pub struct TemplateSummary {
    /// The description.
    pub description: String,
    /// The parameters.
    pub parameters: Map,
    /// The parameter groups, if any.
    pub parameter_groups: Option<Value>,
    /// The templates of nested stacks and groups, by the name of their resource.
    pub nested: IndexMap<String, NestedTemplate>,
}

/// A nested template, or the template of a group.
#[derive(Debug)]
pub struct NestedTemplate {
    /// The type.
    pub resource_type: String,
    /// The parameters of the template.
    pub summary: TemplateSummary,
}

impl TemplateSummary {
    /// The summary as the response body of the validate call.
    pub fn to_map(&self) -> Map {
        let mut about = Map::new();
        about.insert("Description".to_owned(), self.description.as_str().into());
        about.insert("Parameters".to_owned(), self.parameters.clone().into());
        about.extend(self.parameter_groups.clone().map(|groups| ("ParameterGroups".to_owned(), groups)));
        let nested = self.nested.iter().map(|(name, template)| {
            let mut entry = Map::from([("Type".to_owned(), template.resource_type.as_str().into())]);
            entry.extend(template.summary.to_map());
            (name.clone(), Value::Map(entry))
        });
        let nested: Map = nested.collect();
        if !nested.is_empty() {
            about.insert("NestedParameters".to_owned(), nested.into());
        }
        about
    }
}

impl Blueprint {
    /// The parameters of the template and, with `max_depth`, those of its nested templates down to this depth.
    ///
    /// # Errors
    /// Errors of nested templates, and unknown values that the template of a group requires.
    pub fn summary(&self, catalog: &ResourceTypes, max_depth: Option<u32>) -> Result<TemplateSummary, Diagnostic> {
        let template = self.bound().template();
        let has_groups = !template.parameter_groups()?.is_empty();
        let groups = || template.as_value().get("parameter_groups").cloned().unwrap_or_default();
        Ok(TemplateSummary {
            description: template.description(),
            parameters: self.parameters().validate_view(),
            parameter_groups: has_groups.then(groups),
            nested: match max_depth {
                Some(max_depth) => self.nested_summaries(catalog, max_depth)?,
                None => IndexMap::new(),
            },
        })
    }

    fn nested_summaries(
        &self,
        catalog: &ResourceTypes,
        max_depth: u32,
    ) -> Result<IndexMap<String, NestedTemplate>, Diagnostic> {
        let mut all = IndexMap::new();
        let place = Nesting { facade: None, depth: self.place.depth + 1 };
        if place.depth > max_depth {
            return Ok(all);
        }
        for definition in self.definitions().values() {
            let Some(sources) = self.shown_sources(definition)? else { continue };
            // As for a template alone, what a condition decides may be unknown.
            let nested = Self::build(sources, catalog, None, place.clone())?;
            let summary = nested.summary(catalog, Some(max_depth))?;
            let resource_type = definition.resource_type.clone();
            all.insert(definition.name.clone(), NestedTemplate { resource_type, summary });
        }
        Ok(all)
    }

    /// The sources of a resource's nested stack, as far as they are known; for a group with one member, like in Heat.
    /// `None` for a resource without a nested stack.
    ///
    /// # Errors
    /// Errors of the driver, and `ValueError` for a value that the template of a group requires.
    pub fn shown_sources(&self, definition: &Definition) -> Result<Option<Sources>, Diagnostic> {
        match self.kind(&definition.name).filter(|kind| kind.is_nested()) {
            None => Ok(None),
            Some(Kind::Template(provider)) => {
                let properties = self.known_properties(definition, provider);
                self.provider_sources(definition, provider, &properties).map(Some)
            }
            Some(Kind::Type(entry)) => match entry.driver.nested_stack() {
                Some(described) => self.shown_group(definition, entry, described),
                None => Ok(None),
            },
        }
    }

    /// The properties of a template resource; values that are not known yet are [`Value::Unknown`]. Like in Heat, invalid
    /// values are the empty value of the type.
    fn known_properties(&self, definition: &Definition, provider: &Provider) -> Map {
        let planned = self.planned().iter().map(|(name, planned)| (name.clone(), planned.without_id())).collect();
        let draft = Draft::new(self.bound(), &planned, self.place.facade.clone());
        let known = |expr: &Expr| expr.partial(&draft).map(|partial| partial.or_unknown(&definition.name));
        let given: Map = match definition.properties.entries() {
            Some(entries) => {
                let known = |expr| known(&expr).unwrap_or(Some(Value::Null));
                entries.filter_map(|(name, expr)| Some((name.to_owned(), known(expr)?))).collect()
            }
            None => match known(&definition.properties) {
                Ok(Some(Value::Map(given))) => given,
                _ => Map::new(),
            },
        };
        let schema = &provider.resource_type.properties;
        let fitting = schema.iter().map(|(name, property)| {
            let empty = || properties::value(name, property, &Map::from([(name.clone(), Value::Null)]));
            // A required property without a value has none, and is not empty.
            let value = match properties::value(name, property, &given) {
                Err(_) if given.contains_key(name) => empty(),
                value => value,
            };
            (name.clone(), value.unwrap_or_default())
        });
        fitting.collect()
    }

    fn shown_group(
        &self,
        definition: &Definition,
        entry: &RegisteredType,
        described: &dyn NestedStack,
    ) -> Result<Option<Sources>, Diagnostic> {
        let draft = Draft::of(self);
        // Heat returns Python's own class for errors of properties here.
        let as_value_error = |error: Diagnostic| Diagnostic::new(Class::ValueError, error.to_string());
        let needs = described.draft_needs();
        for (_, expr) in definition.properties.entries().into_iter().flatten().filter(|(name, _)| needs.contains(name))
        {
            expr.resolve(&draft).map_err(as_value_error)?;
        }
        let (given, _) = self.draft_properties(definition, &draft).map_err(as_value_error)?;
        let schema = &entry.resource_type.properties;
        let mut resolved = Map::new();
        for (name, property) in schema {
            let value = match properties::value(name, property, &given) {
                Err(error) if needs.contains(&name.as_str()) => return Err(as_value_error(error)),
                value => value.unwrap_or_default(),
            };
            resolved.insert(name.clone(), value);
        }
        if let Some(count) = resolved.get_mut("count") {
            *count = Value::Int(1);
        }
        let facts = Facts {
            name: definition.name.clone(),
            resource_type: entry.resource_type.name.clone(),
            properties: resolved,
            given: given.keys().cloned().collect(),
            ..Facts::default()
        };
        let nested = described.draft(&facts, &self.wanted_paths(&definition.name)).transpose()?;
        nested.map(|nested| self.group_sources(definition, nested)).transpose()
    }
}
