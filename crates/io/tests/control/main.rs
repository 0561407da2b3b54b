//! The control socket: its methods, and what clients can do to it.
#![cfg(target_os = "linux")]

mod frames;
mod methods;
mod metrics;
#[path = "../../../../tests/harness/needs.rs"]
mod needs;
mod schema;
mod strangers;
mod world;
