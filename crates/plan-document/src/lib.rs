//! The plan of a change to a stack as a document. The service makes it, the API returns it, commands print it.
//! Its JSON is described in `docs/plan.schema.json`.

mod check;
mod decision;
mod difference;
mod document;
mod element;
mod entry;
mod estimate;
mod observed_object;
mod outside_change;
mod property;
mod risk;
mod stack_part;

pub use check::{Check, Verdict};
pub use decision::{Bounds, Decision};
pub use difference::differences;
pub use document::{Action, DeletedSnapshot, FORMAT, Output, PlanDocument, Renamed, Totals};
pub use element::{Element, Part, Step};
pub use entry::{Awaited, Entry, Ignored, Loss, NewMeaning, Place};
pub use estimate::Estimate;
pub use observed_object::{Moved, ObservedObject};
pub use outside_change::{OutsideChange, Then};
pub use property::{Property, Side};
pub use risk::{Downtime, Risk};
pub use stack_part::{HiddenProperty, StackPart};
