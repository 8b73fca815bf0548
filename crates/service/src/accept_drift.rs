//! A plan that writes into the template what others have changed in the objects, and changes no object.

mod place;
mod templates;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use kiln_identity::Caller;
use kiln_plan::hidden::Masked;
use kiln_plan_document::{Decision, Entry, PlanDocument};
use kiln_resource::Converge;
use kiln_store::Stack;
use kiln_value::{Map, Value};
use kiln_view::stack_drift::Drift;

use self::place::Places;
use self::templates::Templates;
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
    /// The path of the resource: `app/server` is a resource of the nested stack `app`.
    pub resource: String,
    /// Its property.
    pub property: String,
    /// Where the value is written.
    pub written: Written,
    /// The value.
    pub value: Value,
}

/// Where an accepted value is written.
#[derive(Clone, Debug, PartialEq)]
pub enum Written {
    /// In this parameter of the stack, because the property is this parameter.
    Parameter(String),
    /// In a template.
    Template {
        /// Its name in the files of the stack; `None`: the template of the stack.
        file: Option<String>,
        /// The keys from its root to the value.
        keys: Vec<String>,
    },
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
    /// [`Error::Drift`] for what cannot be written into a template: computed and hidden values, values that other resources
    /// use too, objects that were deleted. Nothing is saved then.
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
        let mut templates = Templates::of(&view, hidden)?;
        let mut views = HashMap::new();
        for (path, one) in &drifted {
            let Drift::Modified(properties) = &one.drift else {
                return Err(refused(
                    path,
                    "its object does not exist any more: repair it, or remove it from the template",
                ));
            };
            if properties.is_empty() {
                // A nested stack: its resources are in the list.
                continue;
            }
            let places = Places::of(self, &mut views, &view, &compared, path).await?;
            properties.iter().try_for_each(|property| templates.accept(path, &places, property))?;
        }
        let (template, files) = templates.texts();
        let sections = Map::from_iter([("parameters".to_owned(), Value::Map(templates.parameters))]);
        let update = UpdateStack {
            template: Some(TemplateText::stored(&Arc::new(template))),
            content: StackContent { sections, files, ..StackContent::default() },
            existing: true,
            settings: Settings { converge: Some(Converge::only(paths(&drifted))), ..Settings::default() },
            ..UpdateStack::default()
        };
        let request = PlannedRequest::Update(Box::new(stack), update, BTreeSet::new());
        let plan = self.save_plan(caller, request, "acceptance of drift".to_owned(), None, true).await?;
        if let Some(document) = self.plan_document(&plan).await?
            && let Some(changed) = changed(&document)
        {
            self.delete_plan(&plan).await?;
            let why = "its object would still be changed, because others read the value or have the same template, or the service shows \
                       it in another form";
            return Err(refused(&changed.path, why));
        }
        let mut values = templates.values;
        for value in &mut values {
            templates.hidden.mask(Door::Drift, value);
        }
        Ok(Some(AcceptedDrift { plan, values }))
    }
}

/// A resource whose object would change. A nested stack gets its new template; its resources are in the list.
fn changed(document: &PlanDocument) -> Option<&Entry> {
    let owners: BTreeSet<&String> = document.resources.iter().filter_map(|entry| entry.parent.as_ref()).collect();
    let is_renewed = |entry: &Entry| owners.contains(&entry.path) && entry.decision.at_most == Decision::Update;
    document.resources.iter().find(|entry| !entry.decision.is_kept() && !is_renewed(entry))
}

fn refused(what: &str, why: &str) -> Error {
    Error::Drift(format!("{what} cannot be accepted: {why}."))
}
