//! Links as they are: slow, long, lossy.
//!
//! A [`Link`] is one direction of a link between two hosts: frames go in, and come out later,
//! changed, or never. It knows rate, delay, queue and every impairment by a configuration
//! ([`LinkConfig`]) and a seed. Time is an argument, so the same link serves a simulation in
//! virtual time and an in-memory wire in real time; the same configuration, seed and frames give
//! the same arrivals.
//!
//! [`pcapng`] writes what passed, and why something did not, into a capture file; [`reader`] reads
//! such files, and others'; [`filter`] says which packets of them are wanted; a [`recorder`] notes what
//! a shard makes of each frame, and a [`tracer`] what becomes of each connection.
//!
//! Twenty frames over a slow and lossy link, and the capture of what arrived:
//!
//! ```
//! use std::time::Duration;
//!
//! use whimbrel_link::pcapng::{Direction, LinkType, PacketNote, Section};
//! use whimbrel_link::stack::base::Instant;
//! use whimbrel_link::stack::bytes::Bytes;
//! use whimbrel_link::{Link, LinkConfig};
//!
//! // 1 Mb/s, 10 ms, and each frame is lost with a chance of a quarter: the seed says which.
//! let config: LinkConfig = "rate=1M,delay=10ms,loss=25%".parse()?;
//! let mut link = Link::new(config, 1);
//! for number in 0..20 {
//!     link.push_frame(Instant::ZERO, Bytes::from(vec![number; 1_250]));
//! }
//!
//! let mut capture = Vec::new();
//! let mut section = Section::begin(&mut capture);
//! let interface = section.describe(&mut capture, "far end", LinkType::Raw);
//! let mut arrived = Vec::new();
//! while let Some(at) = link.next_arrival() {
//!     // Time is an argument: what arrives then is taken then.
//!     while let Some(frame) = link.pop(at) {
//!         let wire_len = frame.len() as u32;
//!         let note = PacketNote { interface, at, direction: Direction::In, wire_len, comment: "" };
//!         section.packet(&mut capture, &note, &frame);
//!         arrived.push((at, frame[0]));
//!     }
//! }
//!
//! // A frame of 10,000 bits takes 10 ms to send, and 10 to travel.
//! let first = arrived[0];
//! assert_eq!(first.0, Instant::ZERO + Duration::from_millis(10 * (u64::from(first.1) + 2)));
//! assert!(arrived.len() < 20 && arrived.is_sorted());
//! assert_eq!(link.counters().lost(), 20 - arrived.len() as u64);
//! assert_eq!(&capture[..4], [0x0a, 0x0d, 0x0d, 0x0a], "a section header of pcapng");
//! # Ok::<(), whimbrel_link::ConfigError>(())
//! ```
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

mod ack_batch;
pub mod config;
pub mod counters;
pub mod cut;
pub mod fate;
pub mod filter;
pub mod link;
mod middlebox;
mod packet_flow;
pub mod pcapng;
mod policer;
mod pure_ack;
pub mod reader;
pub mod recorder;
mod schedule;
mod targets;
pub mod tracer;
pub mod waits;

pub use config::{
    BurstLoss, Change, ConfigError, Forgetting, Forgotten, LinkConfig, Policing, Probability,
    QueueLimit, Reorder, Step, TargetedDrop,
};
pub use counters::LinkCounters;
pub use cut::cut;
pub use fate::{LinkOutcome, Loss};
pub use link::{Link, LinkState};
pub use waits::Waits;
pub use whimbrel_stack as stack;
