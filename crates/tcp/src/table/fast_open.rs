//! TCP Fast Open (RFC 7413), state of it outside of connections: the cookies that this host
//! grants, and those that others granted to it.
//!
//! None of this is in the way of a connection that does without.

mod aged;
mod cache;
mod keys;

pub use cache::{FastOpenCache, KnownServer, Service};
pub use keys::{CookieVerdict, FastOpenKeys};
