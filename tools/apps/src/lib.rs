//! Applications as state machines: bytes in, bytes out, and no IO of their own.
//!
//! Servers ([`http::HttpServer`], [`PeerServer`]) and loads ([`Load`], [`Bulk`]) are written over a
//! small [`Transport`], which a shard is, and which the kernel's sockets can be: the same machine
//! runs on a shard's own thread, in a simulated world in virtual time, and over the kernel as the
//! baseline to compare with. Time is an argument, so a run can be repeated to the byte.
//!
//! A web server on one shard, with a client on another:
//!
//! ```
//! use whimbrel_apps::http::{HttpServer, Limits, Request, Response, Site, SiteResponse, Status};
//! use whimbrel_apps::stack::base::{Instant, Secrets};
//! use whimbrel_apps::stack::base::packet::SegMeta;
//! use whimbrel_apps::stack::tcp::Tunables;
//! use whimbrel_apps::stack::wire::{Address, Endpoint};
//! use whimbrel_apps::stack::{
//!     Capabilities, InterfaceAddress, Medium, Recv, RxFrame, Shard, ShardConfig, TxBatch, bytes::Bytes,
//! };
//!
//! /// The content: a line of text for each path.
//! struct Greeting;
//!
//! impl Site for Greeting {
//!     fn respond(&mut self, request: &Request<'_>) -> SiteResponse {
//!         Response::text(Status::OK, format!("you asked for {}", request.path())).into()
//!     }
//! }
//!
//! fn host(last: u8) -> Shard {
//!     let addr = Address::from_v4_bytes([10, 0, 0, last]);
//!     Shard::new(ShardConfig {
//!         tunables: Tunables::default(),
//!         secrets: Secrets::from_seed(last.into()),
//!         capabilities: Capabilities::plain(Medium::Ip, 1_500),
//!         addresses: vec![InterfaceAddress { addr, prefix_len: 24 }],
//!         routes: Vec::new(),
//!     })
//!     .expect("a valid host")
//! }
//!
//! fn carry(from: &mut Shard, to: &mut Shard) -> usize {
//!     let mut batch = TxBatch::new(16);
//!     from.tx(&mut batch);
//!     for segment in batch.pending() {
//!         to.rx(Instant::ZERO, &[RxFrame::new(&segment.to_vec(), SegMeta::SINGLE)]);
//!     }
//!     batch.pending().len()
//! }
//!
//! let (mut client, mut shard) = (host(1), host(2));
//! let at = Endpoint::new(Address::from_v4_bytes([10, 0, 0, 2]), 80);
//! shard.listen(at, 16).expect("the port is free");
//! let mut server = HttpServer::new(Greeting, Limits::default());
//!
//! let handle = client.connect(at, None).expect("a port is free");
//! let mut request = Bytes::from_static(b"GET /birds HTTP/1.1\r\nHost: whimbrel\r\n\r\n");
//! client.send(handle, &mut request).expect("it is open, or opening");
//! loop {
//!     let there = carry(&mut client, &mut shard);
//!     // After each burst the server handles its events.
//!     server.poll(&mut shard, Instant::ZERO, usize::MAX);
//!     if there + carry(&mut shard, &mut client) == 0 {
//!         break;
//!     }
//! }
//! let mut response = Vec::new();
//! while let Recv::Data(bytes) = client.recv(handle) {
//!     response.extend_from_slice(&bytes);
//! }
//! assert!(response.starts_with(b"HTTP/1.1 200 OK\r\n"));
//! assert!(response.ends_with(b"you asked for /birds"));
//! assert_eq!(server.statistics().requests, 1);
//! ```
#![forbid(unsafe_code)]

extern crate alloc;

pub mod bulk;
pub mod condition;
mod direction;
pub mod effort;
pub mod fair_queue;
pub mod http;
pub mod idle;
pub mod iperf3;
pub mod iperf3_server;
pub mod load;
pub mod pace;
pub mod part;
pub mod peer;
pub mod place_table;
pub mod proxy_header;
mod race;
pub mod ready_queue;
pub mod record;
pub mod relay;
mod server_connections;
pub mod source;
mod statistics;
#[cfg(test)]
mod test_transport;
pub mod transport;

pub use bulk::Bulk;
pub use condition::Condition;
pub use load::Load;
pub use pace::Pace;
pub use part::Part;
pub use peer::PeerServer;
pub use race::{Destination, interleave};
pub use record::Record;
pub use statistics::Statistics;
pub use transport::{ConnError, Model, Reading, Transport, TransportEvent};
pub use whimbrel_stack as stack;
