//! Whole hosts in a world of their own: virtual time, impaired links, and nothing by chance.
//!
//! The same seed makes the same world, segment by segment, on any machine.
//!
//! A greeting over a link that loses every third frame or so, in virtual time:
//!
//! ```
//! use whimbrel_sim::link::LinkConfig;
//! use whimbrel_sim::link::stack::base::Instant;
//! use whimbrel_sim::link::stack::bytes::Bytes;
//! use whimbrel_sim::link::stack::wire::Family;
//! use whimbrel_sim::link::stack::{Event, Handle, Recv, Shard};
//! use whimbrel_sim::pair::{PairConfig, server_at};
//! use whimbrel_sim::{Application, Limits, Pair};
//!
//! /// Who says something, or listens.
//! #[derive(Default)]
//! struct Greeter {
//!     says: Option<&'static str>,
//!     hears: bool,
//!     heard: Vec<u8>,
//!     handle: Option<Handle>,
//! }
//!
//! impl Application for Greeter {
//!     fn on_wake(&mut self, shard: &mut Shard, _: Instant) {
//!         let at = server_at(Family::V4, 80);
//!         if let Some(text) = self.says.take() {
//!             let handle = shard.connect(at, None).expect("a port is free");
//!             shard.send(handle, &mut Bytes::from(text)).expect("it opens");
//!             shard.shutdown(handle);
//!         } else if self.hears && self.handle.is_none() && shard.counters().passive_opens == 0 {
//!             // The port may be ours already.
//!             let _ = shard.listen(at, 1);
//!         }
//!         while let Some(event) = shard.poll_event() {
//!             if let Event::Accepted(listener) = event {
//!                 self.handle = shard.accept(listener);
//!             }
//!         }
//!         let Some(handle) = self.handle else { return };
//!         while let Recv::Data(bytes) = shard.recv(handle) {
//!             self.heard.extend_from_slice(&bytes);
//!         }
//!     }
//!
//!     fn is_done(&self) -> bool {
//!         !self.hears || self.heard == b"hello"
//!     }
//! }
//!
//! let lossy: LinkConfig = "delay=10ms,loss=30%".parse()?;
//! let config = PairConfig { links: [lossy.clone(), lossy], seed: 7, ..PairConfig::default() };
//! let says = Greeter { says: Some("hello"), ..Greeter::default() };
//! let hears = Greeter { hears: true, ..Greeter::default() };
//! let mut pair = Pair::new(&config, [says, hears])?;
//! pair.world.run(&Limits::default())?;
//! assert_eq!(pair.world.host(pair.server).1.heard, b"hello");
//! assert!(pair.world.now() >= Instant::from_millis(30), "a handshake and its text");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

extern crate alloc;

pub mod capture;
pub mod goals;
pub mod host;
pub mod labelled;
pub mod oracle;
pub mod pair;
pub mod path;
pub mod router;
mod sacked;
pub mod siege;
pub mod watch;
pub mod world;

pub use host::{Application, HostId, Idle};
pub use oracle::{Outcome, run_seed};
pub use pair::Pair;
pub use whimbrel_apps as apps;
pub use whimbrel_link as link;
pub use world::{Limits, StuckRun, World};
