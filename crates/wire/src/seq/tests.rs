//! Tests of `seq`.
