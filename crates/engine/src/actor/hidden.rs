//! Masks the values of hidden parameters in the reasons of failures and in events, before they are stored.

use kiln_plan::hidden::HiddenValues;
use kiln_plan::{Decision, Event, Outcome};
use kiln_store::Error;

use super::Work;
use crate::load;

impl Work {
    /// Masks an event for the planner. A nested stack also masks the hidden values of the stacks above it.
    pub(super) async fn mask(&mut self, event: &mut Event) -> Result<(), Error> {
        let text = match event {
            Event::Decided { decision: Decision::Refuse { failure } | Decision::Restrict { failure }, .. } => {
                &mut failure.message
            }
            Event::Finished { outcome: Outcome::Failed(blame), .. } => &mut blame.message,
            _ => return Ok(()),
        };
        if self.hidden.is_none() {
            self.hidden = Some(self.hidden_values().await?);
        }
        if let Some(hidden) = &self.hidden {
            hidden.mask_text(text);
        }
        Ok(())
    }

    /// Reads which values the events of the stack must not show: those of its own hidden parameters, now and before an
    /// update. The values of the stacks above it are masked when an event is shown.
    pub(super) async fn read_own_hidden(&mut self) -> Result<(), Error> {
        if self.own_hidden.is_some() {
            return Ok(());
        }
        let mut sources = Vec::new();
        for desired in std::iter::once(&self.stack.desired).chain(&self.stack.previous) {
            match load::stored(&self.actor.backends, desired).await {
                Ok(read) => sources.push(read),
                // A stack must be deleted even if its template cannot be read.
                Err(Error::Damaged(_)) => {}
                Err(error) => return Err(error),
            }
        }
        self.own_hidden = Some(HiddenValues::of_own(&sources));
        Ok(())
    }

    async fn hidden_values(&self) -> Result<HiddenValues, Error> {
        let backends = &self.actor.backends;
        let mut above = self.stack.parent.clone();
        let mut sources = vec![load::stored(backends, &self.stack.desired).await?];
        while let Some(parent) = above {
            let Some(stack) = backends.store.stack(parent.stack).await? else { break };
            sources.push(load::stored(backends, &stack.desired).await?);
            above = stack.parent;
        }
        Ok(HiddenValues::of(&sources.iter().collect::<Vec<_>>()))
    }
}
