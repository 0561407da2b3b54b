//! Waits until one of several descriptors is ready.

pub use crate::sys::{Interest, PollFd, ppoll};
