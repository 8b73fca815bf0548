//! Who calls and what they may: Keystone tokens and policy.
