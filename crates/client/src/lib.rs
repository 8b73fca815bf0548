//! Typed client of the REST API.
