//! What a command prints.
//!
//! [`output`] prints results as a table, JSON, YAML, CSV or shell variables; [`page`] writes reports for browsers;
//! [`progress`] shows an operation while it runs; [`plan`] shows what a request would change; [`resource_graph`] draws the
//! resources of a stack, [`timeline`] how long they took; [`picture`] shows an excerpt of a file with the place of an
//! error; [`mistakes`] finds the places of errors in the files of a stack.

pub mod mistakes;
pub mod natural_order;
pub mod note;
pub mod output;
pub mod page;
pub mod picture;
pub mod plan;
pub mod progress;
pub mod resource_graph;
pub mod timeline;
