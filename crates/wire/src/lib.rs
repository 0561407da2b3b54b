//! Bytes to values and back: every packet format that Whimbrel speaks.
//!
//! This crate knows layouts, ranges and checksums, and nothing of behaviour: no connection, no
//! time, no allocation. Whatever bytes arrive, parsing returns a value that is valid or a
//! [`ParseError`]; it never panics. Emitting panics if, and only if, the buffer is too short: the
//! caller has sized it from the same value.
//!
//! A SYN, written as it goes over IPv4, and read again:
//!
//! ```
//! use whimbrel_wire::tcp::TcpHeader;
//! use whimbrel_wire::{
//!     Address, IpHeader, Ipv4Header, Mss, OptionOrder, ParseError, Protocol, SeqNum, Sum, TcpFlags,
//!     TcpOptions, TcpView,
//! };
//!
//! let [client, server] = [1, 2].map(|host| Address::from_v4_bytes([10, 0, 0, host]));
//! let syn = TcpHeader {
//!     src_port: 50_000,
//!     dst_port: 80,
//!     seq: SeqNum::new(u32::MAX),
//!     flags: TcpFlags::SYN,
//!     options: TcpOptions { mss: Some(Mss::new(1_460)), ..TcpOptions::default() },
//!     ..TcpHeader::default()
//! };
//!
//! // TCP first: its checksum covers the addresses, and IP's header states the length of all.
//! let mut packet = [0; 80];
//! let (ip, tcp) = packet.split_at_mut(Ipv4Header::LEN);
//! let len = syn.emit(OptionOrder::Linux, tcp);
//! let sum = Sum::pseudo_header(client, server, Protocol::TCP.0, len as u32).add_bytes(&tcp[..len]);
//! TcpHeader::set_checksum(&mut tcp[..len], sum.finish());
//! let (src, dst) = (client.v4_bytes().into(), server.v4_bytes().into());
//! Ipv4Header::new(src, dst, Protocol::TCP, len).emit(ip);
//!
//! // What is behind the packet, as padding of Ethernet's, is no part of it.
//! let (ip, segment) = IpHeader::parse(&packet)?;
//! assert_eq!((ip.src, ip.dst, ip.protocol), (client, server, Protocol::TCP));
//! assert_eq!(segment.len(), len);
//! let sum = Sum::pseudo_header(ip.src, ip.dst, ip.protocol.0, segment.len() as u32);
//! assert!(sum.add_bytes(segment).is_valid());
//! let (view, text_at) = TcpView::parse(segment)?;
//! assert_eq!(view.seq + 1, SeqNum::new(0), "numbers go round");
//! assert_eq!(view.options.whole().mss, Some(Mss::new(1_460)));
//! assert!(segment[text_at..].is_empty());
//!
//! // A packet that was cut short is none.
//! assert_eq!(IpHeader::parse(&packet[..30]).unwrap_err(), ParseError::Truncated);
//! # Ok::<(), ParseError>(())
//! ```
#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::arithmetic_side_effects))]

#[cfg(test)]
extern crate std;

pub mod address;
pub mod arp;
pub mod checksum;
mod cursor;
pub mod error;
pub mod ethernet;
pub mod flow;
pub mod icmp;
pub mod icmpv6;
pub mod ip;
pub mod ip_fields;
pub mod ipv4;
pub mod ipv6;
pub mod ndp;
pub mod plain;
pub mod quoted;
pub mod seq;
pub mod tcp;
pub mod udp;
pub mod window;

pub use address::{Address, Family};
pub use arp::{ArpOperation, ArpPacket};
pub use checksum::Sum;
pub use error::ParseError;
pub use ethernet::{EtherType, EthernetHeader, MacAddress};
pub use flow::{Endpoint, Flow};
pub use icmp::IcmpMessage;
pub use icmpv6::Icmpv6Message;
pub use ip::IpHeader;
pub use ip_fields::{Ecn, Fragment, Protocol, TrafficClass};
pub use ipv4::Ipv4Header;
pub use ipv6::Ipv6Header;
pub use ndp::NdpMessage;
pub use plain::{PlainHeaders, PlainSegment};
pub use quoted::QuotedSegment;
pub use seq::SeqNum;
pub use tcp::{
    AccurateEcn, FastOpen, OptionOrder, OptionsView, SackBlock, SackBlocks, TcpFlags, TcpHeader,
    TcpOptions, TcpView, Timestamps, UserTimeout,
};
pub use udp::{UdpHeader, UdpView};
pub use window::{Mss, RawWindow, WindowScale, WindowSize};
