//! The tests of the whole house; there is nothing to link.
