//! Streams and listeners over an in-memory wire, as a program uses them. Every test ends with a
//! look for what leaked. Here the runtime drives the stacks; in `on_threads` the same tests have threads do it.

#![allow(clippy::unwrap_used, reason = "a test that fails says so by panicking")]

#[macro_use]
mod signatures;

mod any;
mod any_tun;
mod any_udp;
mod cancel;
mod congestion;
mod driver;
mod edges;
mod errors;
mod fast;
mod kernel_errors;
mod keys;
mod living;
mod many;
#[path = "../../../../tests/harness/namespace.rs"]
mod namespace;
mod narrow_tun;
#[path = "../../../../tests/harness/needs.rs"]
mod needs;
mod operate;
mod packets;
mod paused_clock;
mod ping_tun;
mod port_attack;
mod rules;
mod same;
mod same_udp;
#[path = "../../../../tests/harness/scratch.rs"]
mod scratch;
mod shards;
mod storm;
mod streams;
#[path = "../../../../tests/harness/test_file.rs"]
mod test_file;
mod tun;
mod udp;
mod udp_kernel;
mod udp_tun;
mod wakers;
mod wire_changes;
mod world;

const DRIVER: whimbrel::Driver = whimbrel::Driver::Runtime;
