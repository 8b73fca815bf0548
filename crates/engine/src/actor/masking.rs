//! Masks hidden values in the reasons of failures and in events, before they are stored.

use kiln_plan::hidden::{Door, HiddenValues};
use kiln_plan::{Decision, Event, Outcome};
use kiln_stack::hidden_values::{above, derive, hidden_values, sources_of};
use kiln_store::Error;
use kiln_value::Value;

use super::Work;

/// What the events of a stack must not show.
#[derive(Default)]
pub(super) struct HiddenTexts {
    /// The values of its own hidden parameters and what functions have made of them; read when they are needed.
    values: Option<HiddenValues>,
    /// Whether the values of the stacks above it, and of nested templates, are among them.
    all: bool,
}

impl Work {
    /// Masks an event for the planner. A nested stack also masks the hidden values of the stacks above it.
    pub(super) async fn mask(&mut self, event: &mut Event) -> Result<(), Error> {
        let name_of = |row| self.model.row(row).map(|row| row.name.clone()).unwrap_or_default();
        let (name, text) = match event {
            Event::Decided {
                name, decision: Decision::Refuse { failure } | Decision::Restrict { failure }, ..
            } => (name.clone(), &mut failure.message),
            Event::Finished { row, outcome: Outcome::Failed(blame), .. } => (name_of(*row), &mut blame.message),
            Event::Waits { row, reason: Some(reason) } => (name_of(*row), reason),
            _ => return Ok(()),
        };
        if !self.request.hidden.all {
            let all = hidden_values(&self.actor.backends, &self.stack).await?;
            self.request.hidden.values.get_or_insert_default().extend(all);
            self.request.hidden.all = true;
        }
        if let (Some(hidden), Some(scope)) = (&mut self.request.hidden.values, &self.request.scope)
            && !hidden.is_empty()
            && let Some(definition) = scope.blueprint().definitions().get(&name)
            && let Ok(properties) = definition.properties.value(scope)
        {
            hidden.derive(&definition.properties, scope, &properties);
        }
        if let Some(hidden) = &self.request.hidden.values {
            hidden.mask(Door::Reason, text);
        }
        Ok(())
    }

    /// Masks the properties in an event of a resource.
    pub(super) fn mask_properties(&mut self, name: &str, properties: &mut Value) {
        let Some(hidden) = &mut self.request.hidden.values else { return };
        if let Some(scope) = &self.request.scope
            && let Some(definition) = scope.blueprint().definitions().get(name)
        {
            hidden.derive(&definition.properties, scope, properties);
        }
        hidden.mask(Door::Event, properties);
    }

    /// Reads which values the events of the stack must not show: those of its own hidden parameters, now and before an
    /// update. The values of the stacks above it are masked when an event is shown, and here if events are sent to sinks.
    pub(super) async fn read_hidden(&mut self) -> Result<(), Error> {
        if self.request.hidden.values.is_some() {
            return Ok(());
        }
        let backends = &self.actor.backends;
        let mut sources = sources_of(backends, &self.stack).await?;
        let above = if self.stack.desired.sinks { above(backends, &self.stack).await? } else { Vec::new() };
        for above in &above {
            sources.extend(sources_of(backends, above).await?);
        }
        let mut hidden = HiddenValues::of_own(&sources);
        for stack in above.iter().rev().chain([&self.stack]) {
            derive(backends, stack, &mut hidden).await?;
        }
        self.request.hidden.values = Some(hidden);
        Ok(())
    }
}
