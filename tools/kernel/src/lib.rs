//! The machine's own TCP, to compare the stack with and to run scripts against, and tools that
//! measure both on real threads and in real time.
//!
//! - [`KernelSockets`]: the kernel's sockets, with the calls and the events that a shard has.
//! - [`KernelHost`]: the kernel as a host of packet scripts, in its own network namespace.
//! - [`Bridge`]: two TUN interfaces joined by an impaired link each way.
//! - [`contention`]: threads that wait for one lock, as in a stack that has one.
//!
//! All of it needs Linux.
#![cfg(target_os = "linux")]
#![forbid(unsafe_code)]

pub mod bridge;
pub mod contention;
mod option;
pub mod script;
pub mod sockets;

pub use bridge::{Bridge, BridgeEnd, BridgeError};
pub use script::{KernelHost, KernelHostError};
pub use sockets::KernelSockets;
