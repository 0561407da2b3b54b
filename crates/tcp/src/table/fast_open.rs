//! TCP Fast Open (RFC 7413), what is kept of it beside connections: the cookies that this host
//! grants, those that others granted to it, and the opens that are under way.
//!
//! None of this is in the way of a connection that does without.

mod aged;
mod cache;
mod keys;
mod under_way;

pub use cache::{FastOpenCache, KnownServer, Service};
pub use keys::{CookieVerdict, FastOpenKeys};
pub use under_way::{FastOpens, Opened};
