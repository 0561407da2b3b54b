//! Bytes to values and back: every packet format that Whimbrel speaks.
//!
//! This crate knows layouts, ranges and checksums, and nothing of behaviour: no connection, no
//! time, no allocation. Whatever bytes arrive, parsing returns a value that is valid or a
//! [`ParseError`]; it never panics.
#![no_std]
#![forbid(unsafe_code)]

pub mod address;
pub mod flow;
pub mod seq;
pub mod window;

pub use address::{Address, Family};
pub use flow::{Endpoint, Flow};
pub use seq::SeqNum;
pub use window::{Mss, RawWindow, WindowScale, WindowSize};
