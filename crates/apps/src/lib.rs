//! Applications as state machines: octets in, octets out, and no IO of their own.
//!
//! One machine runs under several drivers: on a shard's own thread ([`http::HttpServer`]), in a
//! simulated world, or over any other stream of octets ([`http::Connection`]).
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod http;
