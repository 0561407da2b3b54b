//! An HTTP/1.1 origin server (RFC 9110, RFC 9112), without IO.
//!
//! [`Connection`] is the protocol: it takes bytes and returns the next [`Step`]. [`HttpServer`]
//! drives one per connection of a [`Shard`](whimbrel_stack::Shard). The content comes from a
//! [`Site`]: bodies in memory, or sources read piece by piece, so that a response of any size takes
//! bounded memory; a request's body goes to an [`Upload`] the same way.
//!
//! It is strict where leniency would allow request smuggling: line ends are CRLF, a request has one
//! framing, folded lines are refused.

#![deny(clippy::indexing_slicing)]

pub mod body;
mod body_source;
pub mod chunked;
pub mod compose;
pub mod connection;
pub mod content_type;
pub mod date;
pub mod exchange_log;
pub mod fault;
pub mod fixed;
pub mod head;
pub mod limits;
pub mod path;
pub mod range;
pub mod reply;
pub mod request;
pub mod response;
pub mod scan;
pub mod server;
pub mod site;
pub mod validators;

pub use body_source::{BodySource, SourceError};
pub use compose::{ComposeError, Composition};
pub use connection::{Connection, Step};
pub use content_type::content_type;
pub use date::HttpDate;
pub use exchange_log::{ExchangeLog, LoggedExchange};
pub use fixed::FixedBody;
pub use limits::{CloseBy, KeepAlive, Limits, ServerSettings};
pub use range::{ByteRange, RangeOutcome};
pub use reply::{Reply, ReplyReader};
pub use request::{Framing, Method, Request, Version};
pub use response::{Body, Response, Status};
pub use server::HttpServer;
pub use site::{LongAnswer, Site, SiteResponse, Upload};
pub use validators::{EntityTag, Judgment, Validators};
