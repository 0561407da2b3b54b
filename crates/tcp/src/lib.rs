//! The TCP protocol: RFC 9293 and its neighbours, without a clock, a system call or an address
//! to send to.
//!
//! A flow is held by the record that its lifetime needs, and by no more: a
//! [`SynEntry`](table::SynEntry) while it is half open (64 octets), a [`Connection`](conn::Connection)
//! while it carries data (at most 232, and buffers while something is in them), a
//! [`TimeWait`](table::TimeWait) when it is over (48). One [`FlowTable`](table::FlowTable) finds
//! whichever it is by one keyed probe.
//!
//! Everything here is told the time and handed its secrets; the same calls give the same bytes.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod budget;
mod buffer_size;
pub mod cc;
pub mod conn;
pub mod context;
pub mod counters;
mod flags;
pub mod flight;
pub mod identity;
pub mod recovery;
pub mod recv;
pub mod segment;
pub mod send;
pub mod table;
pub mod tunables;
pub mod verdict;

pub use context::Context;
pub use counters::Counters;
pub use identity::Identity;
pub use segment::{Payload, RxSegment, SegMeta, Slices, TxSegment};
pub use tunables::{TUNABLES, Tunables};
pub use verdict::{CloseReason, DropReason, Reply, Step, Verdict};
