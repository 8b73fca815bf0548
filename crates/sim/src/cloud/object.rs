//! An object of the cloud.

use kiln_value::{Value, value};

use crate::template_model::Plain;

/// What is under way with an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// It is being made or changed until a time; `None`: for ever.
    Building {
        /// When it is ready.
        until: Option<u64>,
        /// Whether it ends in error.
        fails: bool,
    },
    /// Ready.
    Active,
    /// Broken.
    Error,
    /// Gone at a time.
    Deleting {
        /// When.
        until: u64,
    },
}

/// An object. The service shows only part of it; the rest is known to the checks.
#[derive(Clone, Debug)]
pub(crate) struct Object {
    /// Its id.
    pub id: String,
    /// Its service.
    pub kind: Plain,
    /// The token of the attempt that made it.
    pub token: String,
    /// The stack that it was made for.
    pub stack: String,
    /// The resource that it was made for.
    pub resource: String,
    /// The row that it was made for.
    pub row: String,
    /// Changes in place.
    pub word: String,
    /// Does not change.
    pub size: i64,
    /// Objects that it needs.
    pub needs: Vec<String>,
    /// A name that only one object may have.
    pub holds: Option<String>,
    /// Whether it stays when its resource goes.
    pub keep: bool,
    /// Whether it sleeps.
    pub asleep: bool,
    /// Whether the second call of a pair has been made.
    pub whole: bool,
    /// What is under way.
    pub phase: Phase,
    /// From when on it is listed.
    pub listed_ms: u64,
}

impl Object {
    /// Goes on to a time; false if it is gone then.
    pub(super) fn pass_time(&mut self, now_ms: u64) -> bool {
        match self.phase {
            Phase::Building { until: Some(until), fails } if until <= now_ms => {
                self.phase = if fails { Phase::Error } else { Phase::Active };
                true
            }
            Phase::Deleting { until } => until > now_ms,
            _ => true,
        }
    }

    /// What the service shows.
    pub(super) fn view(&self) -> Value {
        let state = match self.phase {
            Phase::Building { .. } => "BUILDING",
            Phase::Active => "ACTIVE",
            Phase::Error => "ERROR",
            Phase::Deleting { .. } => "DELETING",
        };
        value!({
            "id": (self.id.as_str()),
            "state": state,
            "word": (self.word.as_str()),
            "size": (self.size),
            "whole": (self.whole),
        })
    }
}
