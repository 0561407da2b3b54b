//! Where Whimbrel meets the machine: devices, the worker thread, the clock, entropy and signals.
//!
//! Everything below this crate is told the time and handed its secrets; this one asks the system
//! for them. It is the only crate with `unsafe`, and all of that stands in [`sys`].
#![deny(unsafe_code)]

pub mod clock;
pub mod device;
pub mod entropy;
pub mod netlink;
pub mod signals;
pub mod spec;
pub mod stop;
pub mod sys;
pub mod tun;
pub mod waker;
pub mod worker;

pub use clock::Clock;
pub use device::{Device, DeviceCounters, TxOutcome};
pub use spec::{SpecError, WireSpec};
pub use stop::Stop;
pub use tun::{Offload, Tun, TunConfig, TunError};
pub use waker::Waker;
pub use worker::{Activity, Port, Worker, WorkerError};
