//! The templates of a stack, into which the values of objects are written.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use kiln_stack::LoadedStack;
use kiln_template::property_place::{set_value_at, value_at};
use kiln_template::version::Words;
use kiln_template::{Files, PropertyPlace, Template, has_call, is_call, source};
use kiln_value::{Map, Value, text};
use kiln_view::stack_drift::PropertyDrift;

use super::place::Places;
use super::{AcceptedValue, Written, refused};
use crate::{Door, Error, HiddenValues};

/// The placeholder for the name of a member, unless the group has another one.
const INDEX: &str = "%index%";

const OTHERS: &str = "other resources with the same definition have other values";

/// The templates of a stack with its nested stacks.
pub(super) struct Templates {
    /// By their names in the files; `None`: the template of the stack.
    edited: BTreeMap<Option<String>, Edited>,
    files: Arc<Files>,
    /// The parameters of the stack that get a value.
    pub(super) parameters: Map,
    pub(super) values: Vec<AcceptedValue>,
    pub(super) hidden: HiddenValues,
    /// What is written, and at which keys of the template: a place has one value.
    written: HashMap<(Option<String>, PropertyPlace), (Value, Vec<String>)>,
}

/// A template that may have changed.
struct Edited {
    template: Value,
    words: &'static Words,
    /// The parameters that are not hidden.
    visible: Vec<String>,
    is_changed: bool,
}

impl Edited {
    fn of(template: &Arc<Value>) -> Result<Self, Error> {
        let read = Template::from_value(Arc::clone(template))?;
        let schemata = read.parameter_schemata()?;
        let visible = schemata.into_iter().filter(|(_, schema)| !schema.hidden).map(|(name, _)| name).collect();
        Ok(Self { template: Value::clone(template), words: read.words(), visible, is_changed: false })
    }

    /// The placeholder of a group for the names of its members.
    fn index_of(&self, group: &str) -> &str {
        let place = PropertyPlace { resource: group.to_owned(), within: None, property: "index_var".to_owned() };
        value_at(&self.template, &place.keys(self.words)).and_then(Value::as_str).unwrap_or(INDEX)
    }
}

impl Templates {
    pub(super) fn of(view: &LoadedStack, hidden: HiddenValues) -> Result<Self, Error> {
        let sources = view.blueprint.sources();
        let root = Edited::of(&sources.template)?;
        Ok(Self {
            edited: BTreeMap::from([(None, root)]),
            files: Arc::clone(&sources.files),
            parameters: Map::new(),
            values: Vec::new(),
            hidden,
            written: HashMap::new(),
        })
    }

    /// The template of the stack, and the files that have changed.
    pub(super) fn texts(&mut self) -> (Value, Files) {
        let (mut template, mut files) = (Value::Null, Files::default());
        for (name, edited) in std::mem::take(&mut self.edited) {
            match name {
                None => template = edited.template,
                Some(name) if edited.is_changed => drop(files.0.insert(name, text::json(&edited.template))),
                Some(_) => {}
            }
        }
        (template, files)
    }

    /// Writes the value of an object where the template has that of the property. `path`: that of the resource.
    pub(super) fn accept(&mut self, path: &str, places: &Places, drifted: &PropertyDrift) -> Result<(), Error> {
        let PropertyDrift { name, actual, .. } = drifted;
        let mut shown = actual.clone();
        self.hidden.mask(Door::Drift, &mut shown);
        if shown != *actual {
            return Err(refused(&format!("{path}.{name}"), "its value is hidden"));
        }
        let last = places.0.len() - 1;
        let written = self.write(&format!("{path}.{name}"), places, last, name, actual)?;
        self.values.push(AcceptedValue {
            resource: path.to_owned(),
            property: name.clone(),
            written,
            value: actual.clone(),
        });
        Ok(())
    }

    /// Writes a value of the definition at a place. A property that is a parameter of a nested stack is written where the
    /// nested stack gets the parameter.
    fn write(
        &mut self,
        what: &str,
        places: &Places,
        at: usize,
        property: &str,
        value: &Value,
    ) -> Result<Written, Error> {
        let place = &places.0[at];
        let at = (place.file.clone(), place.property(property));
        if let Some((other, keys)) = self.written.get(&at) {
            let (file, keys) = (at.0, keys.clone());
            return if other == value { Ok(Written::Template { file, keys }) } else { Err(refused(what, OTHERS)) };
        }
        let edited = self.template(what, place.file.as_ref())?;
        let keys = at.1.keys(edited.words);
        let given = value_at(&edited.template, &keys);
        let parameter = match given {
            Some(Value::Map(call)) if is_call(call) => match parameter_of(call) {
                Some(parameter) if edited.visible.contains(&parameter) && uses(&edited.template, &parameter) == 1 => {
                    Some(parameter)
                }
                Some(parameter) => {
                    let why = format!("it is the parameter {parameter}, which is used elsewhere or hidden");
                    return Err(refused(what, &why));
                }
                None => return Err(refused(what, "its value is computed by the template")),
            },
            Some(given) if has_call(given) => return Err(refused(what, "its value is computed by the template")),
            Some(given) if place.within.is_some() && text::json(given).contains(edited.index_of(&place.resource)) => {
                return Err(refused(what, "its value is computed for each member of the group"));
            }
            _ => None,
        };
        let Some(parameter) = parameter else {
            let missing = "the template has no such resource, or computes its properties";
            set_value_at(&mut edited.template, &keys, value.clone()).ok_or_else(|| refused(what, missing))?;
            edited.is_changed = true;
            let file = at.0.clone();
            self.written.insert(at, (value.clone(), keys.clone()));
            return Ok(Written::Template { file, keys });
        };
        if let Some(from) = place.from {
            return self.write(what, places, from, &parameter, value);
        }
        let other = self.parameters.insert(parameter.clone(), value.clone());
        if other.is_some_and(|other| other != *value) {
            return Err(refused(what, OTHERS));
        }
        Ok(Written::Parameter(parameter))
    }

    fn template(&mut self, what: &str, file: Option<&String>) -> Result<&mut Edited, Error> {
        let name = file.cloned();
        if let (Some(file), false) = (file, self.edited.contains_key(&name)) {
            let text =
                self.files.get(file).ok_or_else(|| refused(what, "its template is none of the stack's files"))?;
            let document = source::parse(text, file, usize::MAX)
                .map_err(|_| refused(what, "the template of its nested stack cannot be read"))?;
            self.edited.insert(name.clone(), Edited::of(&Arc::new(document.value))?);
        }
        self.edited.get_mut(&name).ok_or_else(|| refused(what, "its template is not known"))
    }
}

/// The parameter that a call returns as it is.
fn parameter_of(call: &Map) -> Option<String> {
    let (name, argument) = call.first()?;
    matches!(name.as_str(), "get_param" | "Ref").then(|| argument.as_str().map(str::to_owned))?
}

/// How often a template reads a parameter.
fn uses(value: &Value, parameter: &str) -> usize {
    match value {
        Value::Map(map) => map
            .iter()
            .map(|(name, argument)| {
                let reads = matches!(name.as_str(), "get_param" | "Ref")
                    && (argument.as_str() == Some(parameter)
                        || argument.at(0).and_then(Value::as_str) == Some(parameter));
                usize::from(reads) + uses(argument, parameter)
            })
            .sum(),
        Value::List(items) => items.iter().map(|item| uses(item, parameter)).sum(),
        // Fn::Sub reads in texts.
        Value::Str(text) => usize::from(text.contains(&format!("${{{parameter}}}"))),
        _ => 0,
    }
}
