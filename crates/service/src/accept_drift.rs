//! A plan that writes into the template what others have changed in the objects, and changes no object.

use std::collections::BTreeSet;
use std::sync::Arc;

use kiln_identity::Caller;
use kiln_plan::hidden::Masked;
use kiln_resource::Converge;
use kiln_stack::LoadedStack;
use kiln_store::Stack;
use kiln_template::version::Words;
use kiln_template::{Template, has_call, is_call};
use kiln_value::{Map, Value};
use kiln_view::stack_drift::{Drift, PropertyDrift};

use crate::repair_drift::paths;
use crate::{Door, Error, HiddenValues, PlannedRequest, SavedPlan, Service, Settings, StackContent};
use crate::{TemplateText, UpdateStack};

/// The plan that accepts drift.
pub struct AcceptedDrift {
    /// The plan: an update in which no object changes.
    pub plan: SavedPlan,
    /// What is written.
    pub values: Vec<AcceptedValue>,
}

/// A value of an object that becomes that of the template.
#[derive(Clone, Debug, PartialEq)]
pub struct AcceptedValue {
    /// The resource.
    pub resource: String,
    /// Its property.
    pub property: String,
    /// The parameter that gets the value, because the property is this parameter; else the value is written in the template.
    pub parameter: Option<String>,
    /// The value.
    pub value: Value,
}

impl Masked for AcceptedValue {
    fn mask(&mut self, hidden: &HiddenValues) {
        self.value.mask(hidden);
    }
}

impl Service {
    /// Saves a plan that accepts what others have changed. No names: all resources. `None`: nothing has drifted.
    ///
    /// # Errors
    /// [`Error::Drift`] for what cannot be written into the template: the values of nested stacks,
    /// computed and hidden values, objects that were deleted. Nothing is saved then.
    pub async fn accept_drift(
        &self,
        caller: &Caller,
        stack: Stack,
        names: &[String],
    ) -> Result<Option<AcceptedDrift>, Error> {
        let view = self.view(stack.clone()).await?;
        let compared = self.compared(&view, names).await?;
        let hidden = self.hidden_values_of_tree(&view.stack).await?;
        let drifted = compared.drifted();
        if drifted.is_empty() {
            return Ok(None);
        }
        let mut new = NewTemplate::of(&view, hidden)?;
        for (path, one) in &drifted {
            let Drift::Modified(properties) = &one.drift else {
                return Err(refused(
                    path,
                    "its object does not exist any more: repair it, or remove it from the template",
                ));
            };
            if path.contains('/') {
                return Err(refused(path, "it is in a nested stack: change the template of that stack"));
            }
            properties.iter().try_for_each(|property| new.accept(path, property))?;
        }
        let sections = Map::from_iter([("parameters".to_owned(), Value::Map(new.parameters))]);
        let update = UpdateStack {
            template: Some(TemplateText::stored(&Arc::new(new.template))),
            content: StackContent { sections, ..StackContent::default() },
            existing: true,
            settings: Settings { converge: Some(Converge::only(paths(&drifted))), ..Settings::default() },
            ..UpdateStack::default()
        };
        let request = PlannedRequest::Update(Box::new(stack), update, BTreeSet::new());
        let plan = self.save_plan(caller, request, "acceptance of drift".to_owned(), None, true).await?;
        if let Some(document) = self.plan_document(&plan).await?
            && let Some(changed) = document.resources.iter().find(|entry| !entry.decision.is_kept())
        {
            self.delete_plan(&plan).await?;
            let why = "its object would still be changed, because others read the value, or the service shows it in another form";
            return Err(refused(&changed.path, why));
        }
        let mut values = new.values;
        for value in &mut values {
            new.hidden.mask(Door::Drift, value);
        }
        Ok(Some(AcceptedDrift { plan, values }))
    }
}

/// A template into which values are written.
struct NewTemplate {
    template: Value,
    words: &'static Words,
    /// The parameters that get a value.
    parameters: Map,
    values: Vec<AcceptedValue>,
    hidden: HiddenValues,
    visible: Vec<String>,
}

impl NewTemplate {
    fn of(view: &LoadedStack, hidden: HiddenValues) -> Result<Self, Error> {
        let template = Arc::clone(&view.blueprint.sources().template);
        let read = Template::from_value(Arc::clone(&template))?;
        let schemata = read.parameter_schemata()?;
        let visible = schemata.into_iter().filter(|(_, schema)| !schema.hidden).map(|(name, _)| name).collect();
        Ok(Self {
            template: Value::clone(&template),
            words: read.words(),
            parameters: Map::new(),
            values: Vec::new(),
            hidden,
            visible,
        })
    }

    fn accept(&mut self, resource: &str, drifted: &PropertyDrift) -> Result<(), Error> {
        let PropertyDrift { name, actual, .. } = drifted;
        let place = format!("{resource}.{name}");
        let mut shown = actual.clone();
        self.hidden.mask(Door::Drift, &mut shown);
        if shown != *actual {
            return Err(refused(&place, "its value is hidden"));
        }
        let uses = |parameter: &str| uses(&self.template, parameter);
        let words = self.words;
        let given =
            self.template.get(words.resources).and_then(|all| all.get(resource)?.get(words.properties)?.get(name));
        let parameter = match given {
            Some(Value::Map(call)) if is_call(call) => match parameter_of(call) {
                Some(parameter) if self.visible.contains(&parameter) && uses(&parameter) == 1 => Some(parameter),
                Some(parameter) => {
                    let why = format!("it is the parameter {parameter}, which is used elsewhere or hidden");
                    return Err(refused(&place, &why));
                }
                None => return Err(refused(&place, "its value is computed by the template")),
            },
            Some(given) if has_call(given) => return Err(refused(&place, "its value is computed by the template")),
            _ => None,
        };
        if let Some(parameter) = &parameter {
            self.parameters.insert(parameter.clone(), actual.clone());
        } else {
            let set = words.set_property(&mut self.template, resource, name, actual.clone());
            set.ok_or_else(|| refused(&place, "the template has no such resource, or computes its properties"))?;
        }
        let (resource, property) = (resource.to_owned(), name.clone());
        self.values.push(AcceptedValue { resource, property, parameter, value: actual.clone() });
        Ok(())
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

fn refused(what: &str, why: &str) -> Error {
    Error::Drift(format!("{what} cannot be accepted: {why}."))
}
