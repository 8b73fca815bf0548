//! The readers of topologies, and what topologies become.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod any_input;
mod blueprint;
mod existing;
mod guest;
mod nfv;
mod package;
mod run;
mod scaling;
mod sol001;
mod type_file;
mod versions;
