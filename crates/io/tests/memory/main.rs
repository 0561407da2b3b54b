//! Memory that a shard allocates under any input: every allocation is counted.
#![allow(clippy::unwrap_used)] // the helpers of tests, as the tests themselves

#[path = "../../../../tests/harness/allocator.rs"]
mod allocator;
mod anywhere;
mod budget;
mod captures;
mod datagrams;
mod fragments;
mod holes;
mod neighbours;
mod openings;
mod traces;
