//! One host on one core.
//!
//! A [`Shard`] takes frames in and hands frames out; between them it is a whole TCP/IP host:
//! addresses, routes, IPv4 and IPv6, ICMP, and every connection. It has no clock, no entropy and
//! no system call: whoever drives it tells it the time and gives it its secrets, so the same code
//! runs over a device and in a simulated world, and the same inputs give the same bytes.
//!
//! ```text
//! in    device -> rx: parse all, hash all, touch slots, touch records, process each
//! out   dirty connections, replies -> tx: IP and TCP headers in front -> device
//! ```
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod batch;
pub mod config;
mod connections;
mod error;
pub mod event;
pub mod frame;
pub mod handle;
mod host;
pub mod ip;
pub mod link;
mod markings;
pub mod profile;
mod records;
mod replies;
pub mod shard;
mod timers;
pub mod wheel;

pub use batch::TxBatch;
pub use config::{
    Capabilities, InterfaceAddress, Medium, Route, ShardConfig, Steering, queue_between,
};
pub use event::{Event, Recv};
pub use frame::RxFrame;
pub use handle::Handle;
pub use profile::{PROFILES, Profile};
pub use shard::Shard;
pub use whimbrel_tcp::conn::RouteMetrics;
pub use whimbrel_tcp::table::ListenerId;
