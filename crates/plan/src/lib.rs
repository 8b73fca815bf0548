//! Desired and actual in, what happens next out: update or replace, roll back, order.
