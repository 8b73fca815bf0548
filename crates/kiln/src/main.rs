//! Kiln: OpenStack Orchestration in one binary.
fn main() {}
