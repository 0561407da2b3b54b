//! The control socket: its methods, and what clients can do to it.
#![cfg(target_os = "linux")]

mod methods;
#[path = "../../../../tests/harness/needs.rs"]
mod needs;
mod strangers;
mod world;
