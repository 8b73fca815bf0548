//! A simulated OpenStack with latency and faults, for trial runs and tests.
