//! An object of the cloud.

use kiln_value::{Value, value};

use crate::template_model::Plain;

/// The phase of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// It is being created or updated until a time; `None`: forever.
    Building {
        /// The end of the build.
        until: Option<u64>,
        /// Whether it ends in an error.
        fails: bool,
    },
    /// Ready.
    Active,
    /// In error.
    Error,
    /// Being deleted until a time.
    Deleting {
        /// The end of the delete.
        until: u64,
    },
}

/// An object. The service returns only a part of it; the rest is for the checks.
#[derive(Clone, Debug)]
pub(crate) struct Object {
    /// Its id.
    pub id: String,
    /// Its service.
    pub kind: Plain,
    /// The token of the attempt that created it.
    pub token: String,
    /// The stack that it was created for.
    pub stack: String,
    /// The resource that it was created for.
    pub resource: String,
    /// The row that it was created for.
    pub row: String,
    /// When it was created, in milliseconds.
    pub created_ms: u64,
    /// Updated in place.
    pub word: String,
    /// Immutable.
    pub size: i64,
    /// What it is made from.
    pub base: String,
    /// Objects that it depends on.
    pub needs: Vec<String>,
    /// A unique name.
    pub holds: Option<String>,
    /// Whether it is kept when its resource is deleted.
    pub keep: bool,
    /// Whether it is suspended.
    pub asleep: bool,
    /// Whether the second call of a pair is done.
    pub whole: bool,
    /// The phase.
    pub phase: Phase,
    /// The time from which it is listed.
    pub listed_ms: u64,
}

/// The stack of an object that somebody else has created.
const FOREIGN: &str = "somebody else";

impl Object {
    /// An object that somebody else has created, with the same word.
    pub(super) fn twin(&self, id: String, size: i64) -> Self {
        let stack = FOREIGN.to_owned();
        Self {
            id,
            stack,
            size,
            token: String::new(),
            row: String::new(),
            needs: Vec::new(),
            holds: None,
            ..self.clone()
        }
    }

    /// Whether somebody else has created it.
    pub(crate) fn is_foreign(&self) -> bool {
        self.stack == FOREIGN
    }

    /// Updates it to a time; returns false if it is deleted by then.
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

    /// The representation of the service.
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
            "created": (i64::try_from(self.created_ms / 1_000).unwrap_or_default()),
        })
    }
}
