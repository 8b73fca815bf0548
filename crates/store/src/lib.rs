//! Stacks, resources, events and leases in SQLite, PostgreSQL and MariaDB.
