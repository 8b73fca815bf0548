//! The YAQL query language.
