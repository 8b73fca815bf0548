//! Resource types that need code, one module per service.
