//! The UDP protocol (RFC 768) of one host: who has which port, what waits to be received and to be
//! sent, and what was heard of what was sent.
//!
//! Here is no packet, no address of the host and no route: whoever has those hands in what arrived
//! for [`Sockets`], and takes out what is to leave. Nothing here reads a clock or gathers entropy.
//!
//! ```
//! use bytes::Bytes;
//! use whimbrel_base::{PortRange, ReservedPorts, Secrets};
//! use whimbrel_udp::{Arrived, Bind, Local, Room, Sockets};
//! use whimbrel_wire::{Address, Endpoint, TrafficClass};
//!
//! let range = PortRange::new(32_768, 60_999).unwrap();
//! let mut sockets = Sockets::new(&Secrets::from_seed(1), range, ReservedPorts::NONE);
//! let here = Endpoint::new(Address::from_v4_octets([10, 0, 0, 1]), 53);
//! let there = Endpoint::new(Address::from_v4_octets([10, 0, 0, 2]), 4_000);
//! let socket = sockets.bind(&Bind::new(Local::Address(here.addr), here.port)).unwrap();
//!
//! let class = TrafficClass::default();
//! let query = Arrived { from: there, to: here, data: b"query", class, hop_limit: 64 };
//! sockets.deliver(&query, Room::Enough).unwrap();
//! assert_eq!(sockets.recv(socket).unwrap().data, Bytes::from_static(b"query"));
//! ```
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod counters;
mod datagram;
mod error;
mod key;
mod ports;
mod queue;
mod socket;
mod sockets;

pub use bytes;
pub use counters::Counters;
pub use datagram::{Arrived, Fragmenting, OutgoingDatagram, Received, SendOptions};
pub use error::{BindError, QueueError, SocketError, Undelivered};
pub use key::{Bind, Local, Sharing};
pub use sockets::{Ends, Room, Sizes, Sockets, UdpHandle};
pub use whimbrel_base as base;
pub use whimbrel_wire as wire;
