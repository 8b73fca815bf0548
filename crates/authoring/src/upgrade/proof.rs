//! Whether two templates resolve alike.
//!
//! Both are bound to the same parameters and resolved in the same made-up stack, in which every reference and attribute
//! has a value that tells where it comes from. This is done with the defaults and with every value that conditions may
//! turn on, one parameter at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kiln_template::constraint::{DataType, Rule};
use kiln_template::parameter::ParameterSchema;
use kiln_template::{Bound, Definition, Facade, Files, Output, ResourceView, Scope};
use kiln_value::{Diagnostic, Map, Path, StackIdentity, Value, text, value};

use super::shape::{Shapes, shapes};
use crate::Page;
use crate::walk::{calls, visit};

/// By what two templates were found to be alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proof {
    /// Sets of parameter values with which both were resolved.
    pub bindings: usize,
    /// Definitions and outputs that were compared in all.
    pub compared: usize,
}

/// More sets than these are not tried.
const MAX_BINDINGS: usize = 200;

type Difference = (Path, String);

/// Compares two templates; `added` are parameters that only the new one has.
pub(super) fn compare(old: &Page, new: &Page, added: &BTreeMap<String, Value>) -> Result<Proof, Vec<Difference>> {
    let at_root = |error: &Diagnostic| vec![(error.path.clone(), error.message.clone())];
    let schemata = old.template.parameter_schemata().map_err(|error| at_root(&error))?;
    let mut renewed = new.template.parameter_schemata().map_err(|error| at_root(&error))?;
    renewed.retain(|name, _| !added.contains_key(name));
    let mut differences = Vec::new();
    let section = Path::root().key(old.template.words().parameters);
    for (name, schema) in &schemata {
        let path = section.key(name.as_str());
        match renewed.shift_remove(name) {
            Some(other) => differences.extend(parameter_difference(schema, &other).map(|what| (path, what))),
            None => differences.push((path, "the parameter would be gone".to_owned())),
        }
    }
    let shapes = Arc::new(shapes(old));
    let mut proof = Proof { bindings: 0, compared: 0 };
    let schemata: Vec<_> = schemata.iter().map(|(name, schema)| (name.as_str(), schema)).collect();
    for binding in bindings(old, &schemata) {
        if !differences.is_empty() {
            break;
        }
        // A made-up value that neither takes proves nothing, but the first set must do.
        let must_do = proof.bindings == 0;
        if let Some(compared) = compare_bound((old, new), &binding, &shapes, must_do, &mut differences) {
            proof = Proof { bindings: proof.bindings + 1, compared: proof.compared + compared };
        }
    }
    if differences.is_empty() { Ok(proof) } else { Err(differences) }
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
    (!same).then(|| "the parameter would take other values".to_owned())
}

/// The sets of values to try: one that fills what has no default, then one for each other value of each parameter.
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

/// The texts that conditions compare with.
fn compared_values(page: &Page) -> BTreeSet<String> {
    let mut texts = BTreeSet::new();
    for call in calls(page, &["equals", "Fn::Equals"]) {
        for side in call.args.as_list().unwrap_or_default() {
            texts.extend(side.as_str().map(str::to_owned));
        }
    }
    // The keys of mappings are what parameters choose from.
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

/// A value that a parameter may have.
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

/// A template in a made-up stack.
struct Stack {
    bound: Bound,
    definitions: Vec<Definition>,
    outputs: Vec<Output>,
    resources: BTreeMap<String, MadeUp>,
}

impl Stack {
    fn new(page: &Page, given: &Map, shapes: &Arc<Shapes>) -> Result<Self, Diagnostic> {
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
                (name.clone(), MadeUp { name, shapes: Arc::clone(shapes) })
            })
            .collect();
        Ok(Self { bound, definitions, outputs, resources })
    }

    /// What everything comes to, by its place.
    fn resolved(&self) -> Result<Vec<(Path, Value)>, Diagnostic> {
        let words = self.bound.template().words();
        let (resources, outputs) = (Path::root().key(words.resources), Path::root().key(words.outputs));
        let mut all = Vec::new();
        for one in &self.definitions {
            let path = resources.key(one.name.as_str());
            let in_place = |error: Diagnostic| if error.path.is_root() { error.at(path.clone()) } else { error };
            let or_empty = |value: Option<Value>| value.filter(Value::is_truthy).unwrap_or_else(|| Map::new().into());
            let mut waits: Vec<String> = one.requires(self).map_err(in_place)?.into_iter().collect();
            waits.sort();
            let id = one.external_id.as_ref().map(|id| id.value(self)).transpose().map_err(in_place)?;
            let resolved = value!({
                "type": (one.resource_type.as_str()),
                "properties": (or_empty(one.properties.resolve(self).map_err(in_place)?)),
                "metadata": (or_empty(one.metadata.resolve(self).map_err(in_place)?)),
                "update_policy": (or_empty(one.update_policy.resolve(self).map_err(in_place)?)),
                "deletion_policy": (one.deletion_policy().as_str()),
                "description": (one.description.as_str()),
                "depends_on": (one.depends_on.clone()),
                "requires": waits,
                "external_id": id,
            });
            all.push((path, resolved));
        }
        for one in &self.outputs {
            let path = outputs.key(one.name.as_str());
            let value = one.value.value(self).map_err(|error| error.at(path.clone()))?;
            let enabled = one.enabled;
            all.push((path, value!({"value": value, "description": (one.description.as_str()), "enabled": enabled})));
        }
        Ok(all)
    }
}

/// Compares with one set of values; gives how much was compared, or nothing if neither template takes the values.
fn compare_bound(
    (old, new): (&Page, &Page),
    binding: &Map,
    shapes: &Arc<Shapes>,
    must_do: bool,
    differences: &mut Vec<Difference>,
) -> Option<usize> {
    let resolve = |page: &Page| Stack::new(page, binding, shapes).and_then(|stack| stack.resolved());
    let (before, after) = match (resolve(old), resolve(new)) {
        (Ok(before), Ok(after)) => (before, after),
        (Err(_), Err(_)) if !must_do => return None,
        (Err(error), _) => {
            differences.push((error.path.clone(), format!("the template itself does not resolve: {}", error.message)));
            return None;
        }
        (_, Err(error)) => {
            differences.push((as_old(old, &error.path), format!("would not resolve: {}", error.message)));
            return None;
        }
    };
    if before.len() != after.len() {
        differences.push((Path::root(), "there would be other resources or outputs".to_owned()));
    }
    for ((path, before), (_, after)) in before.iter().zip(&after) {
        if text::repr(before) != text::repr(after) {
            let what = format!("would resolve to {} instead of {}", text::json(after), text::json(before));
            differences.push((path.clone(), what));
        }
    }
    Some(before.len())
}

/// A place of the new template in the old one.
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

/// A resource of which everything tells where it comes from.
struct MadeUp {
    name: String,
    shapes: Arc<Shapes>,
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
        // A path leads to the same whether the service follows it or the function, as it did at first.
        let known = self.shapes.get(&(self.name.clone(), name.to_owned()));
        let whole = known.cloned().unwrap_or_else(|| format!("{name} of {}", self.name).into());
        Some(kiln_template::select(whole, path))
    }

    fn attributes(&self) -> Map {
        [("of".to_owned(), Value::from(self.name.as_str()))].into_iter().collect()
    }
}
