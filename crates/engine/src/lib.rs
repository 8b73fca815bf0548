//! Runs plans: stack actors, leases, timers, housekeeping.
