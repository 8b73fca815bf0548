//! Functions of a language server: results for a text and a position.
//!
//! A language server combines these functions with a protocol. As far as possible, they also work with a text that is
//! being edited and is currently invalid.

mod child;
mod complete;
mod cursor;
mod diagnose;
pub mod environment;
mod fix;
mod fold;
mod hover;
mod links;
mod navigate;
mod repair;
mod signature;
mod suggest;
mod surroundings;
mod tokens;

pub use child::{ChildPart, child_part};
pub use complete::{Sort, Suggestion, complete, fitting};
pub use cursor::{Cursor, Slot};
pub use diagnose::{Level, Trouble, diagnose};
pub use fix::{Fix, fixes};
pub use fold::{Fold, folds};
pub use hover::{Hover, hover};
pub use links::{Link, files, links, with_links};
pub use navigate::{Edit, Occurrence, RenameError, Symbol, Target, definition, outline, references, rename, renamed};
pub use repair::repaired;
pub use signature::{Signature, signature};
pub use suggest::suggest;
pub use surroundings::Surroundings;
pub use tokens::{Token, TokenKind, tokens};

use crate::Page;
use crate::mention::{Mention, mentions};

/// The mention at a position.
fn mention_at(page: &Page, at: kiln_value::Position) -> Option<Mention> {
    mentions(page).into_iter().find(|mention| mention.span.start <= at && at <= mention.span.end)
}
