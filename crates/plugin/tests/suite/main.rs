//! Plug-ins that answer and plug-ins that do not, as drivers see them.

mod faults;
mod plain;
mod world;
