//! Tests of `address`.
