//! What every protocol of a host stands on, and none owns: time, keys and their hash, records in
//! numbered places, ranges and sets of ports, and how tables become tunables and counters.
//!
//! Time and entropy are arguments: nothing here reads a clock or gathers randomness, so that the
//! same calls give the same bytes.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod counters;
pub mod pair_hasher;
pub mod ports;
pub mod secrets;
pub mod sip;
pub mod slab;
pub mod time;
pub mod tunables;

pub use pair_hasher::PairHasher;
pub use ports::{PortRange, ReservedPorts};
pub use secrets::{Key, Secrets};
pub use sip::SipHasher24;
pub use slab::Slab;
pub use time::{Instant, Micros, Tick};
