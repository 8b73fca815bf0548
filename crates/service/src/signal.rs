//! Signals a resource.

use kiln_plan::hook::waits_at;
use kiln_plan::{Hook, Model};
use kiln_resource::{Action, MessageId, Resource, ResourceId, size_limit};
use kiln_stack::LoadedStack;
use kiln_store::{HookClearing, MessageBody, RefusedSignal, Stack};
use kiln_value::{Value, text};

use crate::{Error, Service};

/// Most messages of a stack that are not handled yet …
const MOST_MESSAGES: u64 = 10_000;
/// … and the most bytes of them, for signals of more than [`SMALL`].
const MOST_BYTES: u64 = 32 << 20;
/// The size of a signal up to which only the messages are counted.
const SMALL: usize = 4 << 10;

/// A signal to a resource.
#[derive(Clone, Debug)]
pub struct Signal {
    /// Logical name of the resource.
    pub resource: String,
    /// The body of the request; null if it had none.
    pub details: Value,
}

/// A signal that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signalled {
    /// The message, which the engine of the stack handles.
    pub message: MessageId,
    /// The row of the resource.
    pub row: ResourceId,
}

impl Service {
    /// Sends a signal to a resource (docs/heat-behaviour.md §16). As in Heat, the caller learns immediately if the
    /// resource does not accept signals, or not in its state. What the resource makes of the signal is not reported:
    /// the engine of the stack delivers it, settled or not.
    pub async fn signal(&self, stack: Stack, signal: &Signal) -> Result<Signalled, Error> {
        self.refuse_frozen(&stack, true).await?;
        let mut model = self.rows_named(&stack, &signal.resource).await?;
        let mut name = signal.resource.clone();
        if model.rows().next().is_none() {
            // A URL of before the resource got its present name.
            let all = Model::new(self.backends.store.resources(stack.id).await?);
            if let Some(row) = all.current_or_moved(&name) {
                name.clone_from(&row.name);
                model = all;
            }
        }
        let name = &name;
        let Some(row) = shown(&model, &stack, name) else { return Err(self.no_row(stack, name).await?) };
        if let Some(given) = signal.details.get("unset_hook") {
            let hook = given.as_str().and_then(|hook| hook.parse::<Hook>().ok());
            if !hook.is_some_and(|hook| model.rows_of(name).filter_map(waits_at).any(|waits| waits == hook)) {
                return Err(hook_error(&self.view(stack).await?, row, given));
            }
            let clearing = HookClearing { hook: text::str(given) };
            let message = self.send_signal(&stack, name, MessageBody::ClearHook(clearing)).await?;
            return Ok(Signalled { message, row: row.id });
        }
        let entry = self.backends.resource_types.types.get(&row.implementation);
        let always = entry.is_some_and(|entry| entry.driver.receives_during_operations());
        if let (Action::Suspend | Action::Delete, false) = (row.state.action, always) {
            self.check_backlog(&stack, &Value::Null).await?;
            // Only the engine writes events.
            let refused = RefusedSignal { action: row.state.action.to_string() };
            self.send_signal(&stack, name, MessageBody::RefusedSignal(refused)).await?;
            return Err(Error::NotSupported(format!("Signal resource during {}", row.state.action)));
        }
        if !entry.is_some_and(|entry| entry.resource_type.signals) {
            return Err(Error::ActionNotSupported("signal".to_owned()));
        }
        size_limit::check_metadata(row.metadata.size().saturating_add(signal.details.size())).map_err(Error::Limit)?;
        self.check_backlog(&stack, &signal.details).await?;
        let message = self.send_signal(&stack, name, MessageBody::Signal(signal.details.clone())).await?;
        Ok(Signalled { message, row: row.id })
    }

    /// The rows of a name, without the others of the stack.
    pub(crate) async fn rows_named(&self, stack: &Stack, name: &str) -> Result<Model, Error> {
        Ok(Model::new(self.backends.store.resources_named(stack.id, name).await?))
    }

    /// Why there is no row of a name.
    pub(crate) async fn no_row(&self, stack: Stack, name: &str) -> Result<Error, Error> {
        let view = self.view(stack).await?;
        let (resource, stack) = (name.to_owned(), view.stack.name.clone());
        let is_defined = view.blueprint.definitions().contains_key(name);
        Ok(if is_defined { Error::ResourceNotAvailable(resource) } else { Error::NoResource { resource, stack } })
    }

    /// Refuses a signal to a stack that has not handled many: an engine reads all of them at once.
    async fn check_backlog(&self, stack: &Stack, details: &Value) -> Result<(), Error> {
        let size = details.size();
        let backlog = self.backends.store.backlog(stack.id, size > SMALL).await?;
        if backlog.messages >= MOST_MESSAGES {
            let text = "The stack has too many signals that are not handled yet: send it again later.";
            return Err(Error::Limit(text.to_owned()));
        }
        if size > SMALL && backlog.bytes.saturating_add(size as u64) > MOST_BYTES {
            let text = format!(
                "The stack has signals of {} bytes that are not handled yet: send it again later.",
                backlog.bytes
            );
            return Err(Error::Limit(text));
        }
        Ok(())
    }

    async fn send_signal(&self, stack: &Stack, name: &str, body: MessageBody) -> Result<MessageId, Error> {
        let message = self.backends.message(stack.id, Some(name.to_owned()), body);
        self.backends.store.send(&message).await?;
        Ok(message.id)
    }
}

/// The row of a name that is shown to users.
pub(crate) fn shown<'a>(model: &'a Model, stack: &Stack, name: &str) -> Option<&'a Resource> {
    model.shown(stack.rollback()).remove(name)
}

/// As in Heat, a hook is defined on a resource that waits at it.
fn hook_error(view: &LoadedStack, row: &Resource, hook: &Value) -> Error {
    let what = what_it_is(view, row);
    let hook = text::str(hook);
    Error::Hook(if hook.parse::<Hook>().is_ok() {
        format!("The \"{hook}\" hook is not defined on {what}")
    } else {
        format!("Invalid hook type \"{hook}\" for {what}")
    })
}

/// A resource as Heat names it in some texts: `Server "web" [<physical ID>] Stack "app" [<ID>]`.
fn what_it_is(view: &LoadedStack, row: &Resource) -> String {
    let kind = view.kind(row);
    let class = kind.as_ref().map_or(row.resource_type.as_str(), |kind| &kind.resource_type().class);
    let id = row.physical_id.as_ref().map(|id| format!(" [{id}]")).unwrap_or_default();
    format!("{class} \"{}\"{id} Stack \"{}\" [{}]", row.name, view.stack.name, view.stack.id)
}
