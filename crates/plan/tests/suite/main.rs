//! The planner: tables of cases, and generated stacks.

mod simulation;
mod specification;
