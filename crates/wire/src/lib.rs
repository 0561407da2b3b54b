//! Bytes to values and back: every packet format that Whimbrel speaks.
//!
//! This crate knows layouts, ranges and checksums, and nothing of behaviour: no connection, no
//! time, no allocation. Whatever bytes arrive, parsing returns a value that is valid or a
//! [`ParseError`]; it never panics. Emitting panics if, and only if, the buffer is too short: the
//! caller has sized it from the same value.
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
pub use window::{Mss, RawWindow, WindowScale, WindowSize};
