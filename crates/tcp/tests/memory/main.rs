//! Allocations of a receive buffer, whatever a peer sends.
#![allow(clippy::disallowed_macros, reason = "an allocator counts for each thread apart")]

#[path = "../../../../tests/harness/allocator.rs"]
mod allocator;
mod feed;
#[path = "../../../../tests/harness/orders.rs"]
mod orders;
mod tests;
