//! No certificate authorities.
//!
//! With its feature for rustls, sqlx trusts Mozilla's list of public authorities in addition to the configured one. A
//! server whose name is not checked (`sslmode=verify-ca`) could then show any public certificate. This crate takes the
//! place of that list (`[patch.crates-io]`), so that a connection trusts only what the configuration says.

use rustls_pki_types::TrustAnchor;

/// The authorities that every connection trusts: none.
pub const TLS_SERVER_ROOTS: &[TrustAnchor<'static>] = &[];
