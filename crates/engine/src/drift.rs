//! Compares the resources of a stack with their objects, without changing anything.

use std::sync::Arc;

use futures::StreamExt as _;
use futures::future::{BoxFuture, FutureExt as _};
use kiln_plan::facts;
use kiln_plan::hidden::{HiddenValues, Masked};
use kiln_resource::drift::drift;
use kiln_resource::names::{self, Kept};
use kiln_resource::translation::Answers;
use kiln_resource::{Context, OperationState, Resource};
use kiln_store::Error;
use kiln_value::Value;

use crate::actor::stack_facts;
use crate::meaning::{NewMeaning, new_meanings};
use crate::view::View;

/// Resources of a stack that are compared at the same time.
const AT_ONCE: usize = 8;

/// The result of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub enum Drift {
    /// The object has the properties of the resource.
    InSync,
    /// Others have changed the object, or a resource of the nested stack.
    Modified(Vec<PropertyDrift>),
    /// The object does not exist any more.
    Deleted,
    /// It was not compared, for this reason.
    NotChecked(String),
}

/// A property with another value in the object.
#[derive(Clone, Debug, PartialEq)]
pub struct PropertyDrift {
    /// Its name.
    pub name: String,
    /// The value of the resource.
    pub expected: Value,
    /// The value in the object; null if it has none.
    pub actual: Value,
}

/// A resource, compared with its object.
#[derive(Clone, Debug)]
pub struct ResourceDrift {
    /// The row of the resource.
    pub row: Resource,
    /// The result.
    pub drift: Drift,
    /// The names in its properties that mean other objects than at its last change. This is no drift: the object has what
    /// the names meant.
    pub meanings: Vec<NewMeaning>,
    /// The resources of its nested stack.
    pub nested: Option<StackDrift>,
}

/// The resources of a stack, compared with their objects.
#[derive(Clone, Debug)]
pub struct StackDrift {
    /// The stack.
    pub stack: kiln_store::Stack,
    /// Its resources.
    pub resources: Vec<ResourceDrift>,
}

impl StackDrift {
    /// Whether others have changed or deleted an object of the stack or its nested stacks.
    pub fn has_drifted(&self) -> bool {
        self.resources.iter().any(|one| matches!(one.drift, Drift::Modified(_) | Drift::Deleted))
    }
}

impl Masked for StackDrift {
    fn mask(&mut self, hidden: &HiddenValues) {
        for one in &mut self.resources {
            match &mut one.drift {
                Drift::Modified(properties) => properties.iter_mut().for_each(|property| {
                    property.expected.mask(hidden);
                    property.actual.mask(hidden);
                }),
                Drift::NotChecked(reason) => reason.mask(hidden),
                Drift::InSync | Drift::Deleted => {}
            }
            for meaning in &mut one.meanings {
                for text in [&mut meaning.name, &mut meaning.kept, &mut meaning.current] {
                    text.mask(hidden);
                }
            }
            if let Some(definition) = &mut one.row.definition {
                Arc::make_mut(definition).properties.mask(hidden);
            }
            one.nested.mask(hidden);
        }
    }
}

impl View {
    /// Compares resources with their objects; an empty list of names means all.
    ///
    /// # Errors Those of the store, for nested stacks.
    pub fn drift<'a>(&'a self, names: &'a [String]) -> BoxFuture<'a, Result<StackDrift, Error>> {
        async move {
            let rows = self.resources().filter(|row| names.is_empty() || names.contains(&row.name));
            let compared: Vec<BoxFuture<'_, _>> = rows.cloned().map(|row| self.compared(row).boxed()).collect();
            let compared = futures::stream::iter(compared).buffered(AT_ONCE);
            let compared: Vec<Result<ResourceDrift, Error>> = compared.collect().await;
            let resources = compared.into_iter().collect::<Result<_, _>>()?;
            Ok(StackDrift { stack: self.stack.clone(), resources })
        }
        .boxed()
    }

    async fn compared(&self, row: Resource) -> Result<ResourceDrift, Error> {
        if let Some(child) = row.child
            && let Some(view) = Self::load(self.backends(), child).await?
        {
            let nested = view.drift(&[]).await?;
            let drift = if nested.has_drifted() { Drift::Modified(Vec::new()) } else { Drift::InSync };
            return Ok(ResourceDrift { row, drift, meanings: Vec::new(), nested: Some(nested) });
        }
        let drift = self.object(&row).await.unwrap_or_else(|reason| Drift::NotChecked(reason.into_owned()));
        let meanings = self.meanings(&row).await;
        Ok(ResourceDrift { row, drift, meanings, nested: None })
    }

    /// The names of a resource that mean other objects today, as far as they can be looked up.
    async fn meanings(&self, row: &Resource) -> Vec<NewMeaning> {
        let (Some(kind), Some(definition)) = (self.kind(row), &row.definition) else { return Vec::new() };
        let rules = &kind.resource_type().translation;
        let names = names::kept(rules, definition, definition.given(), &Answers::new());
        let Ok(cloud) = self.backends().cloud(self.root(), !names.is_empty(), None).await else { return Vec::new() };
        let mut today = Answers::new();
        for Kept { lookup, .. } in names.values() {
            if let Ok(id) = cloud.find(&lookup.finder, &lookup.value).await {
                today.insert(lookup.clone(), id);
            }
        }
        new_meanings(names, &today)
    }

    /// Compares a resource with its object; the error is the reason why it cannot be compared.
    async fn object(&self, row: &Resource) -> Result<Drift, std::borrow::Cow<'static, str>> {
        if row.operation != OperationState::Idle {
            return Err("an operation of the resource is not complete".into());
        }
        let kind = self.kind(row).ok_or("its type does not exist any more")?;
        let entry = kind.entry().ok_or("it has no nested stack")?;
        if !entry.driver.has_object() {
            return Err("its type has no objects in the cloud".into());
        }
        if row.physical_id.is_none() {
            return Err("it has no object".into());
        }
        let found = async {
            let cloud = self.backends().cloud(self.root(), true, None).await?;
            let facts = facts(row, &kind, &stack_facts(&self.stack));
            let software = self.backends().software(&self.stack.project);
            let cx = Context { cloud: &*cloud, software: &software, facts: &facts, now: 0.0, seed: [0; 32], polls: 0 };
            entry.driver.live(&cx).await
        };
        let live = match found.await {
            Ok(live) => live,
            Err(failure) if failure.is_not_found() => return Ok(Drift::Deleted),
            Err(failure) => return Err(format!("its object cannot be read: {failure}").into()),
        };
        if live.is_empty() {
            return Err("its object exists, but the type does not say which properties it has".into());
        }
        let stored = row.properties();
        let differing = drift(&entry.resource_type, stored, &live);
        if differing.is_empty() {
            return Ok(Drift::InSync);
        }
        let differing = differing.into_iter().map(|(name, actual)| {
            let expected = stored.get(&name).cloned().unwrap_or_default();
            PropertyDrift { name, expected, actual }
        });
        Ok(Drift::Modified(differing.collect()))
    }
}
