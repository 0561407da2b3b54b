//! BSD sockets over one [`Shard`](whimbrel_stack::Shard): descriptors, `errno`, options by their C
//! names, and the semantics of Linux' calls.
//!
//! No call sleeps, because there is no thread here. A call that would block returns its condition
//! ([`Outcome::Block`]), and the driver of the shard repeats the call when the condition may hold:
//! a packet script in virtual time, or a library whose caller sleeps meanwhile.
//!
//! Options that the stack does not support are refused (`ENOPROTOOPT`, `EOPNOTSUPP`), never
//! ignored. Only stream sockets exist.
//!
//! `connect`, `send`, `accept` and `recv` of two processes, each over a host of its own:
//!
//! ```
//! use whimbrel_posix::stack::base::{Instant, Secrets};
//! use whimbrel_posix::stack::base::packet::SegMeta;
//! use whimbrel_posix::stack::tcp::Tunables;
//! use whimbrel_posix::stack::wire::{Address, Endpoint};
//! use whimbrel_posix::stack::{
//!     Capabilities, InterfaceAddress, Medium, RxFrame, Shard, ShardConfig, TxBatch, bytes::Bytes,
//! };
//! use whimbrel_posix::{
//!     BlockedOn, Domain, Errno, Incoming, MsgFlags, Outcome, Outgoing, Protocol, SocketFlags, SocketType,
//!     Sockets,
//! };
//!
//! fn process(last: u8) -> Sockets {
//!     let addr = Address::from_v4_bytes([10, 0, 0, last]);
//!     let shard = Shard::new(ShardConfig {
//!         tunables: Tunables::default(),
//!         secrets: Secrets::from_seed(last.into()),
//!         capabilities: Capabilities::plain(Medium::Ip, 1_500),
//!         addresses: vec![InterfaceAddress { addr, prefix_len: 24 }],
//!         routes: Vec::new(),
//!     });
//!     Sockets::new(shard.expect("a valid host"))
//! }
//!
//! fn carry(from: &mut Sockets, to: &mut Sockets) -> usize {
//!     let mut batch = TxBatch::new(16);
//!     from.shard_mut().tx(&mut batch);
//!     for segment in batch.pending() {
//!         let frame = segment.to_vec();
//!         to.shard_mut().rx(Instant::ZERO, &[RxFrame::new(&frame, SegMeta::SINGLE)]);
//!     }
//!     to.drain_events();
//!     batch.pending().len()
//! }
//!
//! let (mut client, mut server) = (process(1), process(2));
//! let mut stream = |process: &mut Sockets| {
//!     process.socket(Domain::Inet, SocketType::Stream, SocketFlags::NONE, Protocol::Tcp)
//! };
//! let at = Endpoint::new(Address::from_v4_bytes([10, 0, 0, 2]), 80);
//! let (near, listener) = (stream(&mut client)?, stream(&mut server)?);
//! server.bind(listener, at)?;
//! server.listen(listener, 16)?;
//!
//! // A call that would block returns its condition, and is repeated when that may hold.
//! assert_eq!(client.connect(near, at), Outcome::Block(BlockedOn::Connected(near)));
//! while carry(&mut client, &mut server) + carry(&mut server, &mut client) > 0 {}
//! assert!(client.may_go_on(&BlockedOn::Connected(near)));
//! assert_eq!(client.connect(near, at), Outcome::Done(Ok(())));
//!
//! let mut hello = Outgoing::new(Bytes::from_static(b"hello"));
//! assert_eq!(client.send(near, &mut hello, MsgFlags::NONE), Outcome::Done(Ok(5)));
//! while carry(&mut client, &mut server) + carry(&mut server, &mut client) > 0 {}
//! let Outcome::Done(accepted) = server.accept(listener, SocketFlags::NONE) else { panic!() };
//! let mut heard = Incoming::new(1_024);
//! assert_eq!(server.recv(accepted?.fd, &mut heard, MsgFlags::NONE), Outcome::Done(Ok(5)));
//! assert_eq!(heard.to_vec(), b"hello");
//! # Ok::<(), Errno>(())
//! ```
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

#[macro_use]
mod names;

mod blocking;
mod command;
pub mod constants;
mod context;
mod datagram;
pub mod descriptor;
pub mod domain;
mod epoll;
pub mod errno;
mod fd;
pub mod flags;
pub mod option;
pub mod outcome;
mod ports;
mod socket;
pub mod sockets;
pub mod state;
pub mod tcp_info;
pub mod transfer;

pub use domain::{Domain, Protocol, SocketType};
pub use errno::Errno;
pub use fd::Fd;
pub use flags::{EpollEvents, FileFlags, MsgFlags, PollEvents, SocketFlags};
pub use option::{Linger, OptionValue, SocketOption};
pub use outcome::{BlockedOn, Outcome};
pub use sockets::{
    Accepted, EpollOp, EpollReport, Fcntl, Ioctl, PollFd, ReceivedFrom, Shut, Sockets,
};
pub use tcp_info::TcpInfo;
pub use transfer::{Incoming, Outgoing};
pub use whimbrel_stack as stack;

#[cfg(test)]
mod tests;
