//! Who asked for what, and what came of it: audit events in CADF (DMTF DSP0262), as the audit filter of keystonemiddleware
//! writes them for Heat.
//!
//! A request makes two events with the same ID: `audit.http.request`, whose outcome is pending, before the work begins, and
//! `audit.http.response` after it. [`Auditor`] writes them to a [`Trail`] and the trail is delivered apart from requests, so
//! that a message bus that is down delays nobody and loses nothing.

mod auditor;
mod event;
mod map;
mod rules;
mod spool;

pub use auditor::{Auditor, Entry, OnFailure, Refused, Trail};
pub use event::{Attachment, Request, Requester};
pub use map::{AuditMap, MapError};
pub use rules::Rules;
pub use spool::{Destination, Notification, Spool, SpoolError};
