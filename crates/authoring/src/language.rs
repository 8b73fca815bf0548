//! What an editor asks of a template: functions of its text and a position.
//!
//! A language server is these answers behind a protocol. Everything also works on a text that is being written and does
//! not parse at the moment, as far as that can be.

mod complete;
mod cursor;
mod diagnose;
pub mod environment;
mod hover;
mod navigate;

pub use complete::{Sort, Suggestion, complete};
pub use diagnose::{Level, Trouble, diagnose};
pub use hover::{Hover, hover};
pub use navigate::{Edit, RenameError, Symbol, Target, definition, files, outline, references, rename};

use crate::Page;
use crate::mention::{Mention, mentions};

/// The mention that a position touches.
fn mention_at(page: &Page, at: kiln_value::Position) -> Option<Mention> {
    mentions(page).into_iter().find(|mention| mention.span.start <= at && at <= mention.span.end)
}
