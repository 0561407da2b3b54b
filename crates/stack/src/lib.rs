//! One host on one core.
//!
//! A [`Shard`] takes frames in and hands frames out; between them it is a whole TCP/IP host:
//! addresses, routes, IPv4 and IPv6, ICMP, every connection and every UDP socket. It has no clock, no entropy and
//! no system call: its driver tells it the time and gives it its secrets, so the same code
//! runs over a device and in a simulated world, and the same inputs give the same bytes.
//!
//! ```text
//! in    device -> rx: parse all, hash all, touch slots, touch records, process each
//! out   dirty connections, replies -> tx: IP and TCP headers in front -> device
//! ```
//!
//! Two hosts, and a wire that is a copy:
//!
//! ```
//! use whimbrel_stack::base::{Instant, Secrets};
//! use whimbrel_stack::bytes::Bytes;
//! use whimbrel_stack::base::packet::SegMeta;
//! use whimbrel_stack::tcp::Tunables;
//! use whimbrel_stack::wire::{Address, Endpoint};
//! use whimbrel_stack::{
//!     Capabilities, InterfaceAddress, Medium, Recv, RxFrame, Shard, ShardConfig, TxBatch,
//! };
//!
//! fn host(last: u8) -> Shard {
//!     let addr = Address::from_v4_bytes([10, 0, 0, last]);
//!     Shard::new(ShardConfig {
//!         tunables: Tunables::default(),
//!         secrets: Secrets::from_seed(last.into()),
//!         capabilities: Capabilities::plain(Medium::Ip, 1_500),
//!         addresses: vec![InterfaceAddress { addr, prefix_len: 24 }],
//!         routes: Vec::new(),
//!     })
//!     .expect("one address, and an MTU that IPv4 allows")
//! }
//!
//! /// Carries what one host has to send to the other; returns how many packets that were.
//! fn carry(from: &mut Shard, to: &mut Shard, now: Instant) -> usize {
//!     let mut batch = TxBatch::new(16);
//!     from.tx(&mut batch);
//!     let mut packet = [0; 1_500];
//!     batch.drain(|segment| {
//!         let len = segment.copy_to(&mut packet).expect("no packet exceeds the MTU");
//!         to.rx(now, &[RxFrame::new(&packet[..len], SegMeta::SINGLE)]);
//!     })
//! }
//!
//! let (mut client, mut server) = (host(1), host(2));
//! let at = Endpoint::new(Address::from_v4_bytes([10, 0, 0, 2]), 80);
//! let listener = server.listen(at, 16).expect("a free port");
//! let handle = client.connect(at, None).expect("a port is free");
//! client.send(handle, &mut Bytes::from_static(b"hello")).expect("it is open, or opening");
//!
//! // No clock: nothing here needs a timer, and all of it happens at one instant.
//! let now = Instant::ZERO;
//! while carry(&mut client, &mut server, now) + carry(&mut server, &mut client, now) > 0 {}
//! let accepted = server.accept(listener).expect("the handshake is complete");
//! assert_eq!(server.recv(accepted), Recv::Data(Bytes::from_static(b"hello")));
//! assert_eq!(server.counters().passive_opens, 1);
//! ```
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod batch;
pub mod config;
mod dial;
mod error;
pub mod event;
pub mod frame;
pub mod handle;
mod net;
mod packet_transports;
pub mod profile;
mod protocol;
pub mod shard;
mod tcp_host;
mod udp_error;
mod udp_host;
pub mod wheel;

pub use batch::TxBatch;
pub use config::{
    Capabilities, InterfaceAddress, Medium, Route, ShardConfig, Steering, queue_between,
};
pub use dial::{Answer, SynHandle, SynRequest, Withdrawal};
pub use event::{Event, Recv};
pub use frame::RxFrame;
pub use handle::Handle;
pub use net::{ip, link, ping};
pub use ping::{Ping, PingEnd, PingError, PingFailure, PingId, Pong};
pub use profile::{PROFILES, Profile};
pub use shard::{DatagramPath, DatagramPathsSeen, SendTo, Shard, judge_destination};
pub use udp_error::UdpError;
pub use whimbrel_base as base;
pub use whimbrel_tcp as tcp;
pub use whimbrel_tcp::bytes;
pub use whimbrel_tcp::conn::RouteMetrics;
pub use whimbrel_tcp::table::ListenerId;
pub use whimbrel_udp as udp;
pub use whimbrel_udp::UdpHandle;
pub use whimbrel_wire as wire;
