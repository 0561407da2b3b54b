//! Streams and listeners over an in-memory wire, as a program uses them. Every test ends with a
//! look for what leaked.

#![allow(clippy::unwrap_used, reason = "a test that fails says so by panicking")]

mod cancel;
mod congestion;
mod edges;
mod errors;
mod fast;
mod keys;
mod many;
#[path = "../../../../tests/harness/needs.rs"]
mod needs;
mod rules;
mod same;
#[path = "../../../../tests/harness/scratch.rs"]
mod scratch;
mod shards;
mod storm;
mod streams;
mod tun;
mod world;
