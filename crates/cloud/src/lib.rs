//! OpenStack over HTTP: sessions, catalog, trusts, limits, retries.
