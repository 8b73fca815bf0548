//! Executes plans: an actor for each stack with work, under a lease, with every step stored.
//!
//! An [`Engine`] claims stacks. All dependencies are behind traits, passed in [`kiln_stack::Backends`].

mod actor;
mod baseline;
mod breakdown;
mod courier;
pub mod engine;
mod fence;
mod heartbeat;
pub mod housekeeping;
mod imported_object;
mod lifecycle;
pub mod observer;
mod options;
mod planned_object;
mod preflight;
#[cfg(test)]
mod protocol;
mod room;
mod step;
pub mod unmarked;

pub use courier::{Message, MessageBus, ReceiverAnswer, SignedEvent, WebhookSender, Webhooks};
pub use engine::Engine;
pub use lifecycle::LifecyclePlugin;
pub use options::Options;
pub use preflight::{Check, Preflight};
