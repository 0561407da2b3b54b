//! Tests of `tokio_types` once more, on stacks whose shards have threads.

#![allow(clippy::unwrap_used, reason = "a test that fails says so by panicking")]

#[path = "../tokio_types/any.rs"]
mod any;
#[path = "../tokio_types/cancel.rs"]
mod cancel;
#[path = "../tokio_types/driver.rs"]
mod driver;
#[path = "../tokio_types/edges.rs"]
mod edges;
#[path = "../tokio_types/errors.rs"]
mod errors;
#[path = "../tokio_types/many.rs"]
mod many;
#[path = "../../../../tests/harness/namespace.rs"]
mod namespace;
#[path = "../../../../tests/harness/needs.rs"]
mod needs;
#[path = "../tokio_types/packets.rs"]
mod packets;
#[path = "../tokio_types/port_attack.rs"]
mod port_attack;
#[path = "../../../../tests/harness/scratch.rs"]
mod scratch;
#[path = "../tokio_types/shards.rs"]
mod shards;
#[path = "../tokio_types/storm.rs"]
mod storm;
#[path = "../tokio_types/streams.rs"]
mod streams;
#[path = "../tokio_types/tun.rs"]
mod tun;
#[path = "../tokio_types/udp.rs"]
mod udp;
#[path = "../tokio_types/udp_tun.rs"]
mod udp_tun;
#[path = "../tokio_types/wakers.rs"]
mod wakers;
#[path = "../tokio_types/world.rs"]
mod world;

const DRIVER: whimbrel::Driver = whimbrel::Driver::Thread;
