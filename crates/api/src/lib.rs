//! The REST API v1.
