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
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod config;
pub mod counters;
pub mod cut;
pub mod fate;
pub mod filter;
pub mod link;
mod packet_flow;
pub mod pcapng;
pub mod reader;
pub mod recorder;
mod targets;
pub mod tracer;

pub use config::{
    BurstLoss, ConfigError, LinkConfig, Probability, QueueLimit, Reorder, TargetedDrop,
};
pub use counters::LinkCounters;
pub use cut::cut;
pub use fate::{Fate, Loss};
pub use link::{Link, LinkState};
