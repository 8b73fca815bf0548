//! Whether two templates have the same results.
//!
//! Both are resolved with the same parameters in the same simulated stack, in which every reference and attribute has a
//! value that identifies its source. This is repeated with the defaults and with every value that can enable a
//! condition, one parameter at a time. A part that does not accept strings is compared with numbers, lists and maps.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use indexmap::IndexMap;
use kiln_template::StackIdentity;
use kiln_template::constraint::{DataType, Rule};
use kiln_template::parameter::ParameterSchema;
use kiln_template::{Bound, Definition, Facade, Files, Output, ResourceView, Scope};
use kiln_value::{Diagnostic, Map, Path, Value, text, value};

use super::shape::{Shapes, shapes};
use crate::Page;
use crate::walk::{calls, visit};

/// The extent of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proof {
    /// Number of sets of parameter values with which both were resolved.
    pub bindings: usize,
    /// Number of compared definitions and outputs.
    pub compared: usize,
}

/// Maximum number of sets.
const MAX_BINDINGS: usize = 200;

type Difference = (Path, String);

/// Compares two templates; `added` are parameters of the new one only. Returns also what could not be compared, because
/// it resolves with no values that were made up.
pub(super) fn compare(
    old: &Page,
    new: &Page,
    added: &BTreeMap<String, Value>,
) -> Result<(Proof, Vec<Difference>), Vec<Difference>> {
    let at_root = |error: &Diagnostic| vec![(error.path.clone(), error.to_string())];
    let schemata = old.template.parameter_schemata().map_err(|error| at_root(&error))?;
    let mut renewed = new.template.parameter_schemata().map_err(|error| at_root(&error))?;
    renewed.retain(|name, _| !added.contains_key(name));
    let mut differences = Vec::new();
    let section = Path::root().key(old.template.words().parameters);
    for (name, schema) in &schemata {
        let path = section.key(name.as_str());
        match renewed.shift_remove(name) {
            Some(other) => differences.extend(parameter_difference(schema, &other).map(|what| (path, what))),
            None => differences.push((path, "the parameter would be removed".to_owned())),
        }
    }
    let shapes = shapes(old);
    let stand_ins = Kind::ALL.map(|kind| Arc::new(StandIns { kind, shapes: shapes.clone() }));
    let mut comparison = Comparison { pages: (old, new), compared: 0, differences };
    let mut proof = Proof { bindings: 0, compared: 0 };
    let mut open: Option<Unresolved> = None;
    let schemata: Vec<_> = schemata.iter().map(|(name, schema)| (name.as_str(), schema)).collect();
    for binding in bindings(old, &schemata) {
        let before = comparison.compared;
        let mut left: Option<Unresolved> = None;
        for stand_ins in &stand_ins {
            if left.as_ref().is_some_and(IndexMap::is_empty) || !comparison.differences.is_empty() {
                break;
            }
            left = Some(comparison.with(&stand_ins.kind.filled(&binding, &schemata), stand_ins, left.as_ref()));
        }
        if !comparison.differences.is_empty() {
            break;
        }
        let left = left.unwrap_or_default();
        proof.bindings += usize::from(comparison.compared > before || left.is_empty());
        // Every part must resolve with some values.
        match &mut open {
            None => open = Some(left),
            Some(open) => open.retain(|path, _| left.contains_key(path)),
        }
    }
    let differences = comparison.differences;
    let open = open.into_iter().flatten();
    let unresolved = open.map(|(path, error)| {
        let at = if error.path.is_root() { path } else { error.path.clone() };
        (at, format!("the template itself does not resolve: {error}"))
    });
    proof.compared = comparison.compared;
    if differences.is_empty() { Ok((proof, unresolved.collect())) } else { Err(differences) }
}

fn parameter_difference(old: &ParameterSchema, new: &ParameterSchema) -> Option<String> {
    let rules = |schema: &ParameterSchema| -> Vec<Value> {
        schema.constraints.iter().map(kiln_template::constraint::Constraint::to_value).collect()
    };
    let same = old.typed.data_type == new.typed.data_type
        && old.default == new.default
        && rules(old) == rules(new)
        && old.hidden == new.hidden
        && old.description == new.description
        && old.label == new.label;
    (!same).then(|| "the parameter would accept other values".to_owned())
}

/// The sets of values to compare: one with a value for every parameter without a default, then one for each other value
/// of each parameter.
fn bindings(page: &Page, schemata: &[(&str, &ParameterSchema)]) -> Vec<Map> {
    let mut first = Map::new();
    for (name, schema) in schemata.iter().filter(|(_, schema)| schema.default.is_none()) {
        first.insert((*name).to_owned(), made_up(name, schema));
    }
    let turned_on = compared_values(page);
    let mut bindings = vec![first.clone()];
    for (name, schema) in schemata {
        let allowed = schema.constraints.iter().find_map(|constraint| match &constraint.rule {
            Rule::AllowedValues(allowed) => Some(allowed.clone()),
            _ => None,
        });
        let values = match (allowed, schema.typed.data_type) {
            (Some(allowed), _) => allowed,
            (None, DataType::Boolean) => vec![Value::Bool(true), Value::Bool(false)],
            (None, DataType::String) => turned_on.iter().cloned().map(Value::Str).collect(),
            (None, _) => Vec::new(),
        };
        for value in values {
            let mut binding = first.clone();
            binding.insert((*name).to_owned(), value);
            if bindings.len() < MAX_BINDINGS {
                bindings.push(binding);
            }
        }
    }
    bindings
}

/// The strings that conditions compare with.
fn compared_values(page: &Page) -> BTreeSet<String> {
    let mut texts = BTreeSet::new();
    for call in calls(page, &["equals", "Fn::Equals"]) {
        for side in call.args.as_list().unwrap_or_default() {
            texts.extend(side.as_str().map(str::to_owned));
        }
    }
    // Parameters are often used as keys of mappings.
    if let Some(mappings) = page.value().get("Mappings") {
        visit(mappings, &Path::root(), &mut |value, path| {
            if let Value::Map(map) = value
                && path.0.len() == 1
            {
                texts.extend(map.keys().cloned());
            }
        });
    }
    texts
}

/// A possible value of a parameter.
fn made_up(name: &str, schema: &ParameterSchema) -> Value {
    for constraint in &schema.constraints {
        match &constraint.rule {
            Rule::AllowedValues(allowed) => return allowed.first().cloned().unwrap_or_default(),
            Rule::Range { min: Some(bound), .. } | Rule::Range { max: Some(bound), .. } => return bound.clone(),
            _ => {}
        }
    }
    match schema.typed.data_type {
        DataType::Integer | DataType::Number => 1.into(),
        DataType::Boolean => true.into(),
        DataType::Map => Map::new().into(),
        DataType::List => value!([(format!("{name} 0")), (format!("{name} 1"))]),
        _ => format!("the {name}").into(),
    }
}

/// The parts of a template that do not resolve, with the reason; the root if none does.
type Unresolved = IndexMap<Path, Diagnostic>;

/// The kind of a generated value, where only its use determines what is valid.
#[derive(Clone, Copy)]
enum Kind {
    Text,
    Number,
    List,
    Map,
}

impl Kind {
    const ALL: [Self; 4] = [Self::Text, Self::Number, Self::List, Self::Map];

    fn value(self, what: &str) -> Value {
        match self {
            Self::Text => what.into(),
            Self::Number => "1".into(),
            Self::List => value!([(format!("{what} 0")), (format!("{what} 1"))]),
            Self::Map => Map::from_iter([(what.to_owned(), format!("the value of {what}").into())]).into(),
        }
    }

    /// A set of values in which generated ones have this kind.
    fn filled(self, binding: &Map, schemata: &[(&str, &ParameterSchema)]) -> Map {
        let mut filled = binding.clone();
        for (name, schema) in schemata {
            let Some(value) = filled.get_mut(*name).filter(|value| **value == made_up(name, schema)) else { continue };
            match (self, schema.typed.data_type) {
                (Self::Number, DataType::String) if value.as_str() == Some(&format!("the {name}")) => {
                    *value = self.value(name);
                }
                (Self::Map, DataType::Map) => *value = self.value(name),
                _ => {}
            }
        }
        filled
    }
}

/// The generated values of attributes.
struct StandIns {
    kind: Kind,
    shapes: Shapes,
}

/// A template in a simulated stack.
struct Stack {
    bound: Bound,
    definitions: Vec<Definition>,
    outputs: Vec<Output>,
    resources: BTreeMap<String, MadeUp>,
}

impl Stack {
    fn new(page: &Page, given: &Map, stand_ins: &Arc<StandIns>) -> Result<Self, Diagnostic> {
        let identity = StackIdentity::new("project", "stack", "11111111-2222-3333-4444-555555555555")?;
        let parameters = page.template.parameters(Some(&identity), given, &Map::new())?;
        let files = calls(page, &["get_file"]).into_iter().filter_map(|call| call.args.as_str().map(str::to_owned));
        let files = Files(files.map(|name| (name.clone(), format!("the content of {name}"))).collect());
        let bound = Bound::new(Arc::new(page.template.clone()), Arc::new(parameters), Arc::new(files));
        let definitions: Vec<Definition> = bound.definitions()?.into_values().collect();
        let outputs = bound.outputs()?.into_values().collect();
        let resources = definitions
            .iter()
            .map(|one| {
                let name = one.name.clone();
                (name.clone(), MadeUp { name, stand_ins: Arc::clone(stand_ins) })
            })
            .collect();
        Ok(Self { bound, definitions, outputs, resources })
    }

    /// The results of everything, by path.
    fn resolved(&self) -> Vec<(Path, Result<Value, Diagnostic>)> {
        let words = self.bound.template().words();
        let (resources, outputs) = (Path::root().key(words.resources), Path::root().key(words.outputs));
        let definitions = self.definitions.iter().map(|one| {
            let path = resources.key(one.name.as_str());
            let in_place = |error: Diagnostic| if error.path.is_root() { error.at(path.clone()) } else { error };
            (path.clone(), self.definition(one).map_err(in_place))
        });
        let outputs = self.outputs.iter().map(|one| {
            let path = outputs.key(one.name.as_str());
            let (description, enabled) = (one.description.as_str(), one.enabled);
            let value = one.value.value(self).map_err(|error| error.at(path.clone()));
            (path, value.map(|value| value!({"value": value, "description": description, "enabled": enabled})))
        });
        definitions.chain(outputs).collect()
    }

    fn definition(&self, one: &Definition) -> Result<Value, Diagnostic> {
        let or_empty = |value: Option<Value>| value.filter(Value::is_truthy).unwrap_or_else(|| Map::new().into());
        let mut waits: Vec<String> = one.requires(self)?.into_iter().collect();
        waits.sort();
        let id = one.external_id.as_ref().map(|id| id.value(self)).transpose()?;
        Ok(value!({
            "type": (one.resource_type.as_str()),
            "properties": (or_empty(one.properties.resolve(self)?)),
            "metadata": (or_empty(one.metadata.resolve(self)?)),
            "update_policy": (or_empty(one.update_policy.resolve(self)?)),
            "deletion_policy": (one.deletion_policy().as_str()),
            "description": (one.description.as_str()),
            "depends_on": (one.depends_on.clone()),
            "requires": waits,
            "external_id": id,
        }))
    }
}

/// The state of a comparison.
struct Comparison<'p> {
    /// The old template and the new one.
    pages: (&'p Page, &'p Page),
    compared: usize,
    differences: Vec<Difference>,
}

impl Comparison<'_> {
    /// Compares with one set of values, restricted to the parts `only` if given; returns the parts that do not resolve
    /// in the old template and therefore prove nothing.
    fn with(&mut self, binding: &Map, stand_ins: &Arc<StandIns>, only: Option<&Unresolved>) -> Unresolved {
        let (old, new) = self.pages;
        let resolve = |page: &Page| Stack::new(page, binding, stand_ins).map(|stack| stack.resolved());
        let mut unresolved = Unresolved::new();
        let before = match resolve(old) {
            Ok(before) => before,
            Err(error) => {
                unresolved.insert(Path::root(), error);
                return unresolved;
            }
        };
        let after = match resolve(new) {
            Ok(after) => after,
            Err(error) => {
                self.would_fail(&error);
                return unresolved;
            }
        };
        if before.len() != after.len() {
            self.differences.push((Path::root(), "there would be other resources or outputs".to_owned()));
        }
        let only = only.filter(|only| !only.contains_key(&Path::root()));
        let pairs =
            before.into_iter().zip(after).filter(|((path, _), _)| only.is_none_or(|only| only.contains_key(path)));
        for ((path, before), (_, after)) in pairs {
            match (before, after) {
                (Err(error), _) => _ = unresolved.insert(path, error),
                (Ok(_), Err(error)) => self.would_fail(&error),
                (Ok(before), Ok(after)) => {
                    self.compared += 1;
                    if text::repr(&before) != text::repr(&after) {
                        let what =
                            format!("would resolve to {} instead of {}", text::json(&after), text::json(&before));
                        self.differences.push((path, what));
                    }
                }
            }
        }
        unresolved
    }

    fn would_fail(&mut self, error: &Diagnostic) {
        let path = as_old(self.pages.0, &error.path);
        self.differences.push((path, format!("would not resolve: {error}")));
    }
}

/// The path in the old template for one in the new template.
fn as_old(old: &Page, path: &Path) -> Path {
    let words = old.template.words();
    let mut path = path.clone();
    if let Some(kiln_value::Segment::Key(section)) = path.0.first_mut() {
        let known = [words.resources, words.outputs, words.parameters, words.conditions];
        if let Some(name) = known.into_iter().find(|name| name.eq_ignore_ascii_case(section)) {
            name.clone_into(section);
        }
    }
    path
}

/// A simulated resource whose values identify their source.
struct MadeUp {
    name: String,
    stand_ins: Arc<StandIns>,
}

impl Scope for Stack {
    fn bound(&self) -> &Bound {
        &self.bound
    }

    fn resource(&self, name: &str) -> Option<&dyn ResourceView> {
        self.resources.get(name).map(|resource| resource as &dyn ResourceView)
    }

    fn facade(&self) -> Option<Facade> {
        Some(Facade {
            metadata: value!({"of": "the parent"}),
            deletion_policy: "Retain".to_owned(),
            update_policy: value!({"policy": "of the parent"}),
        })
    }
}

impl ResourceView for MadeUp {
    fn reference_id(&self) -> Value {
        format!("id of {}", self.name).into()
    }

    fn action(&self) -> &'static str {
        "CREATE"
    }

    fn status(&self) -> &'static str {
        "COMPLETE"
    }

    fn has_attribute(&self, _name: &str) -> bool {
        true
    }

    fn attribute(&self, name: &str, path: &[Value]) -> Option<Value> {
        // The result of a path is the same whether the service or the function follows it, as in the first versions.
        let known = self.stand_ins.shapes.get(&(self.name.clone(), name.to_owned()));
        let whole = known.cloned().unwrap_or_else(|| self.stand_ins.kind.value(&format!("{name} of {}", self.name)));
        Some(kiln_template::select(whole, path))
    }

    fn attributes(&self) -> Map {
        [("of".to_owned(), Value::from(self.name.as_str()))].into_iter().collect()
    }
}
