//! The UDP protocol (RFC 768) of one host: the ports of its sockets, the datagrams that wait to be
//! received or sent, and ICMP errors about sent ones.
//!
//! Packets, addresses of the host and routes belong to the caller, which passes received datagrams
//! to [`Sockets`] and takes those to be sent. Nothing here reads a clock or gathers entropy.
//!
//! ```
//! use bytes::Bytes;
//! use whimbrel_base::{PortRange, ReservedPorts, Secrets};
//! use whimbrel_udp::{Arrived, Bind, Local, Room, Sockets};
//! use whimbrel_wire::{Address, Endpoint, TrafficClass};
//!
//! let range = PortRange::new(32_768, 60_999).unwrap();
//! let mut sockets = Sockets::new(&Secrets::from_seed(1), range, ReservedPorts::NONE);
//! let here = Endpoint::new(Address::from_v4_bytes([10, 0, 0, 1]), 53);
//! let there = Endpoint::new(Address::from_v4_bytes([10, 0, 0, 2]), 4_000);
//! let socket = sockets.bind(&Bind::new(Local::Address(here.addr), here.port)).unwrap();
//!
//! let class = TrafficClass::default();
//! let (hop_limit, dont_fragment) = (64, true);
//! let query = Arrived { from: there, to: here, data: b"query", class, hop_limit, dont_fragment };
//! sockets.deliver(&query, Room::Enough).unwrap();
//! assert_eq!(sockets.recv(socket).unwrap().data, Bytes::from_static(b"query"));
//! ```
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod counters;
mod datagram;
mod error;
mod error_queue;
mod handle;
mod key;
mod ports;
mod queue;
mod sending;
mod socket;
mod sockets;

pub use bytes;
pub use counters::Counters;
pub use datagram::{Arrived, Fragmenting, OutgoingDatagram, Received, Room, SendOptions};
pub use error::{BindError, QueueError, SocketError, Undelivered};
pub use error_queue::DatagramError;
pub use handle::UdpHandle;
pub use key::{Bind, Local, Sharing};
pub use sending::{Sender, Sending};
pub use sockets::{Ends, Sizes, Sockets};
pub use whimbrel_base as base;
pub use whimbrel_wire as wire;
