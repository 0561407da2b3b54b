//! Parts that all protocols of a host share: time, keys and their hash, records in numbered places,
//! ranges and sets of ports, packets, foreign text, and macros for tunables and counters.
//!
//! Time and entropy are arguments: nothing here reads a clock or gathers randomness, so that the
//! same calls give the same bytes.
//!
//! ```
//! use std::time::Duration;
//!
//! use whimbrel_base::{Instant, PortRange, ReservedPorts, Secrets, Slab};
//!
//! // Time is an argument. Deadlines are instants; small records keep milliseconds.
//! let now = Instant::ZERO + Duration::from_millis(1_500);
//! assert_eq!(now.tick().millis_since(Instant::ZERO.tick()), 1_500);
//! assert!(now < Instant::NEVER);
//!
//! // Six keys for six uses, from entropy, or from a seed if runs must repeat.
//! let [secrets, again] = [1, 1].map(Secrets::from_seed);
//! let hash = |secrets: &Secrets| secrets.isn.prf().hash(b"10.0.0.1:80");
//! assert_eq!(hash(&secrets), hash(&again));
//!
//! // Records in numbered places: growth moves none, and a free place is used again.
//! let mut slab = Slab::default();
//! let (first, second) = (slab.insert("first"), slab.insert("second"));
//! assert_eq!(slab.remove(first), Some("first"));
//! assert_eq!(slab.insert("third"), first);
//! assert_eq!(slab.get(second), Some(&"second"));
//!
//! // Ephemeral ports, without those of servers.
//! let range = PortRange::new(8_000, 8_999).unwrap();
//! let reserved = ReservedPorts::new(&[(8_080, 8_080), (8_443, 8_445)]).unwrap();
//! assert!(range.contains(8_080) && reserved.contains(8_080));
//! ```
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod counters;
pub mod foreign;
pub mod hint;
pub mod inline_queue;
pub mod packet;
pub mod pair_hasher;
pub mod ports;
pub mod secrets;
pub mod shared_chunks;
pub mod sip;
pub mod slab;
pub mod time;
pub mod tunables;

pub use foreign::Foreign;
pub use hint::cold_path;
pub use inline_queue::InlineQueue;
pub use pair_hasher::PairHasher;
pub use ports::{PortRange, ReservedPorts};
pub use secrets::{Key, Secrets};
pub use shared_chunks::SharedChunks;
pub use sip::SipHasher24;
pub use slab::Slab;
pub use time::{Instant, Micros, Tick};
