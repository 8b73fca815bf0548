//! Masks the values of hidden parameters in the reasons of failures and in events, before they are stored.

use kiln_plan::Sources;
use kiln_plan::hidden::{Door, HiddenValues};
use kiln_plan::{Decision, Event, Outcome};
use kiln_stack::load;
use kiln_store::{Error, Stack};

use super::Work;

impl Work {
    /// Masks an event for the planner. A nested stack also masks the hidden values of the stacks above it.
    pub(super) async fn mask(&mut self, event: &mut Event) -> Result<(), Error> {
        let text = match event {
            Event::Decided { decision: Decision::Refuse { failure } | Decision::Restrict { failure }, .. } => {
                &mut failure.message
            }
            Event::Finished { outcome: Outcome::Failed(blame), .. } => &mut blame.message,
            Event::Waits { reason: Some(reason), .. } => reason,
            _ => return Ok(()),
        };
        if self.request.hidden.is_none() {
            self.request.hidden = Some(self.hidden_values().await?);
        }
        if let Some(hidden) = &self.request.hidden {
            hidden.mask(Door::Reason, text);
        }
        Ok(())
    }

    /// Reads which values the events of the stack must not show: those of its own hidden parameters, now and before an
    /// update. The values of the stacks above it are masked when an event is shown, and here if events are sent to sinks.
    pub(super) async fn read_own_hidden(&mut self) -> Result<(), Error> {
        if self.request.own_hidden.is_some() {
            return Ok(());
        }
        let mut sources = self.sources_of(&self.stack).await?;
        if self.stack.desired.sinks {
            for above in self.above().await? {
                sources.extend(self.sources_of(&above).await?);
            }
        }
        self.request.own_hidden = Some(HiddenValues::of_own(&sources));
        Ok(())
    }

    async fn hidden_values(&self) -> Result<HiddenValues, Error> {
        let mut sources = self.sources_of(&self.stack).await?;
        for above in self.above().await? {
            sources.extend(self.sources_of(&above).await?);
        }
        Ok(HiddenValues::of(&sources.iter().collect::<Vec<_>>()))
    }

    /// The sources of a stack, now and before an update. Those that cannot be read are left out: a stack must be deleted
    /// even if its template is damaged.
    async fn sources_of(&self, stack: &Stack) -> Result<Vec<Sources>, Error> {
        let mut sources = Vec::new();
        for desired in std::iter::once(&stack.desired).chain(&stack.previous) {
            match load::stored(&self.actor.backends, desired).await {
                Ok(read) => sources.push(read),
                Err(Error::Damaged(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(sources)
    }

    /// The stacks that the stack is nested in, the nearest first.
    async fn above(&self) -> Result<Vec<Stack>, Error> {
        let (mut above, mut parent) = (Vec::new(), self.stack.parent.clone());
        while let Some(stack) = match &parent {
            Some(parent) => self.actor.backends.store.stack(parent.stack).await?,
            None => None,
        } {
            parent.clone_from(&stack.parent);
            above.push(stack);
        }
        Ok(above)
    }
}
