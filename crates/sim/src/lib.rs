//! Whole hosts in a world of their own: virtual time, impaired links, and nothing by chance.
//!
//! The same seed makes the same world, segment by segment, on any machine.
#![forbid(unsafe_code)]

extern crate alloc;

pub mod capture;
pub mod goals;
pub mod host;
pub mod lab;
pub mod oracle;
pub mod pair;
pub mod path;
pub mod router;
mod sacked;
pub mod script;
pub mod siege;
pub mod watch;
pub mod world;

pub use host::{Application, HostId, Idle};
pub use oracle::{Outcome, run_seed};
pub use pair::Pair;
pub use world::{Limits, Stuck, World};
