//! Whimbrel for programs: a TCP/IP stack in user space, with tokio's types in front.
//!
//! A [`Stack`] is a value: it has a wire, addresses and rules, and its own threads. What is global
//! in tokio takes the stack as its first argument; everything else is named and behaves as in
//! `tokio::net`, down to `Interest` and `ToSocketAddrs`, which are tokio's own.
//!
//! ```
//! use tokio::io::{AsyncReadExt, AsyncWriteExt};
//! use whimbrel::{Stack, TcpListener, TcpStream};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // Two stacks, joined inside the process: neither root nor a device is needed.
//! let (left, right) = Stack::pair()?;
//! let listener = TcpListener::bind(&left, "10.0.0.1:7").await?;
//! tokio::spawn(async move {
//!     while let Ok((stream, _peer)) = listener.accept().await {
//!         tokio::spawn(async move {
//!             let (mut read, mut write) = stream.into_split();
//!             tokio::io::copy(&mut read, &mut write).await
//!         });
//!     }
//! });
//! let mut stream = TcpStream::connect(&right, "10.0.0.1:7").await?;
//! stream.write_all(b"whimbrel").await?;
//! stream.shutdown().await?;
//! let mut echo = String::new();
//! stream.read_to_string(&mut echo).await?;
//! assert_eq!(echo, "whimbrel");
//! # Ok(())
//! # }
//! ```
//!
//! # How octets cross
//!
//! A stream and its shard share one cell of 128 octets. What is written is copied once, into a chunk
//! that the shard sends from; what arrives is a chunk that the shard received into, and copied once,
//! out of it. A dirty cell stands once in its shard's queue, and a task is woken once a burst: there
//! is neither a wake-up nor a system call for a packet, and none at all while both sides are busy.
//!
//! What that costs, by `cargo run --release -p whimbrel --example echo_bench`, against ports that run
//! on the shards' own threads over the same in-memory wire. Processor time of the whole process, both
//! ends included: the least and the most of six runs, each the median of three, on two cores that
//! others used too.
//!
//! | | tasks on tokio | ports |
//! |---|---|---|
//! | echo of 64 octets, 1 connection | 27 to 111 us (48 to 112 us a round trip) | 7 to 11 us (10 to 20) |
//! | the same, 16 at once | 5.6 to 6.9 us | 1.4 to 1.8 us |
//! | the same, 256 at once | 3.3 to 6.3 us | 1.2 to 1.9 us |
//! | one flow, MTU 1500 | 1.0 to 1.9 s/GB (2.7 to 9 Gbit/s) | 0.5 to 0.7 s/GB (4 to 13) |
//! | an idle connection, each end, resident, its `TcpStream` of 120 not counted | 496 octets | |
//!
//! An echo wakes four threads where ports wake two; with many at once they are awake already. The
//! spread is that of the runtime, whose threads look for work before they sleep, if a core is free.
//! Who needs the shortest round trip writes a port.
//!
//! Nothing needs tokio's reactor. The streams work under any executor whose tasks are woken by
//! `Waker`s; only names (`"example.org:80"`) are resolved on tokio's blocking threads.
#![forbid(unsafe_code)]

mod backlog;
mod bind_table;
mod builder;
mod cell;
#[cfg(feature = "hyper-util")]
mod client;
mod congestion;
mod exchange;
mod fault;
mod listener;
mod mailbox;
#[cfg(feature = "axum")]
mod serve;
mod sharded_listener;
mod shutdown;
mod socket;
mod split;
mod split_owned;
mod stack;
mod stack_port;
mod stream;
mod waiters;

/// What the README shows must compile, and run.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

pub use builder::{BuildError, StackBuilder, mem_wire};
#[cfg(feature = "hyper-util")]
pub use client::Connector;
pub use listener::{Incoming, ListenerStats, TcpListener};
#[cfg(feature = "axum")]
pub use serve::serve;
pub use socket::TcpSocket;
pub use split::{ReadHalf, WriteHalf};
pub use split_owned::{OwnedReadHalf, OwnedWriteHalf, ReuniteError};
pub use stack::{Census, ShardCensus, Stack};
pub use stream::{TcpInfo, TcpStream};
pub use whimbrel_base::tunables::TunableError;
pub use whimbrel_io::{
    DadError, GroupKey, KeySource, MemEnd, PacketConfig, PacketError, ShardPlanError, SpecError,
    TunConfig, TunError, UnixConfig, UnixError, WireError, WireSpec,
};
pub use whimbrel_link::LinkConfig;
pub use whimbrel_stack::{InterfaceAddress, Route, RouteMetrics, Shard};
pub use whimbrel_tcp::cc;
pub use whimbrel_tcp::conn::{BufferSize, SoftError, State};
pub use whimbrel_tcp::recovery::CaState;
pub use whimbrel_tcp::{CloseReason, Counters, Tunables};
pub use whimbrel_wire::Address;

/// Everything can go to another thread, and be shared by several.
const _: () = {
    const fn is_send_and_sync<T: Send + Sync + 'static>() {}
    is_send_and_sync::<Stack>();
    is_send_and_sync::<StackBuilder>();
    is_send_and_sync::<TcpListener>();
    is_send_and_sync::<TcpSocket>();
    is_send_and_sync::<TcpStream>();
    is_send_and_sync::<OwnedReadHalf>();
    is_send_and_sync::<OwnedWriteHalf>();
};
