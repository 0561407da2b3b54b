//! The TCP protocol: RFC 9293 and its neighbours, without a clock, a system call or an address
//! to send to.
//!
//! A flow is held by the record that its lifetime needs, and by no more: a
//! [`SynEntry`](table::SynEntry) while it is half open (64 bytes), a [`Connection`](conn::Connection)
//! while it carries data (216, and buffers while something is in them), a
//! [`TimeWait`](table::TimeWait) when it is over (48). One [`FlowTable`](table::FlowTable) finds
//! whichever it is by one keyed probe.
//!
//! Callers supply the time and the secrets; the same calls give the same bytes.
//!
//! A handshake, seen by both of its records. To send packets and to be a host, use
//! `whimbrel-stack`, which does this for all connections of a host.
//!
//! ```
//! use whimbrel_tcp::base::Instant;
//! use whimbrel_tcp::base::packet::{Payload, SegMeta, Slices};
//! use whimbrel_tcp::conn::{ActiveOpen, Connection, State};
//! use whimbrel_tcp::table::{AdvertisedValues, PassiveOpen, SynEntry, SynStep};
//! use whimbrel_tcp::wire::{Address, Mss, OptionOrder, SeqNum, TcpHeader, TcpView, TrafficClass, WindowSize};
//! use whimbrel_tcp::{Context, RxSegment, Tunables, Verdict};
//!
//! let [client, server] = [1, 2].map(|host| Address::from_v4_bytes([10, 0, 0, host]));
//! let mss = Mss::new(1_460);
//! let mut cx = Context::new(Instant::ZERO, Tunables::default());
//!
//! // An active open: its SYN is what it wants to send. Headers, ports and text are its caller's.
//! let (iss, timestamp_offset) = (SeqNum::new(1_000), 7);
//! let open = ActiveOpen {
//!     remote: server, remote_port: 80, local_port: 50_000, local_index: 0, iss, timestamp_offset, mss,
//! };
//! let mut connection = Connection::connect(&mut cx, open);
//! let mut text = Slices::new();
//! let syn = connection.poll_transmit(&mut cx, 1_460, &mut text).expect("a SYN is due");
//!
//! // A passive open is 64 bytes until its handshake is complete.
//! let asked = PassiveOpen {
//!     remote: client, local_index: 0, listener: 0, iss: SeqNum::new(9_000), scale_limit: 1 << 20,
//!     time_wait: None,
//! };
//! let entry = SynEntry::from_syn(&syn.header(50_000, 80), asked, &cx.tunables);
//! let window = WindowSize::new(65_535);
//! let syn_ack = entry.syn_ack(AdvertisedValues { tsval: 1, mss, window }).header(80, 50_000);
//!
//! // What arrives is lent for one call, its header read already.
//! let mut bytes = [0; TcpHeader::MAX_LEN];
//! let mut arrived = |header: &TcpHeader, judge: &mut dyn FnMut(&RxSegment<'_>)| {
//!     let len = header.emit(OptionOrder::Linux, &mut bytes);
//!     let (header, _) = TcpView::parse(&bytes[..len]).expect("it was written above");
//!     let (payload, meta) = (Payload::NONE, SegMeta::SINGLE);
//!     judge(&RxSegment { header, payload, meta, class: TrafficClass::default() });
//! };
//! arrived(&syn_ack, &mut |segment| {
//!     assert_eq!(connection.on_segment(&mut cx, segment), Verdict::Accepted);
//! });
//! assert_eq!(connection.state(), State::Established);
//!
//! // Its acknowledgment completes the other side.
//! let third = connection.poll_transmit(&mut cx, 1_460, &mut text).expect("an ACK is due");
//! arrived(&third.header(50_000, 80), &mut |segment| {
//!     assert_eq!(entry.judge(segment, window, &Tunables::default()), SynStep::Complete);
//! });
//! ```
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod budget;
mod buffer_size;
pub mod conn;
pub mod counters;
mod env;
mod flags;
pub mod identity;
pub mod recv;
pub mod segment;
pub mod send;
pub mod table;
pub mod tunables;
pub mod verdict;

pub use bytes;
pub use conn::Context;
pub use counters::Counters;
pub use env::Env;
pub use identity::Identity;
pub use segment::RxSegment;
pub use tunables::{TUNABLES, Tunables};
pub use verdict::{CloseReason, DropReason, Reply, Step, Verdict};
pub use whimbrel_base as base;
pub use whimbrel_recovery::{self as recovery, RouteMetrics, cc};
pub use whimbrel_wire as wire;
