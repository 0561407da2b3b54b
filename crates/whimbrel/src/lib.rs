//! Whimbrel for programs: a TCP/IP stack in user space, with tokio's types in front.
//!
//! A [`Stack`] is a value. It has a wire, addresses and tunables, and runs on the tokio runtime or on
//! threads ([`Driver`]). Functions that use global state in tokio take the stack as their first
//! argument. All other items have the names and behaviour of `tokio::net`; `Interest` and
//! `ToSocketAddrs` are tokio's own.
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
//! # Features
//!
//! | feature | adds |
//! |---|---|
//! | `axum` | `axum::serve` takes a [`TcpListener`]; `serve` ends with its stack |
//! | `hyper-util` | `Connector`, with which hyper-util's pooling client uses a stack |
//! | `quinn`, `hickory`, `tonic` | `compat`: sockets with the traits of these libraries |
//! | `rules` | `StackBuilder::config_file` and `StackBuilder::environment` |
//! | `control`, `metrics` | `StackBuilder::control`: a control socket for `whimbrel ss` and its like; `Stack::metrics`: OpenMetrics |
//! | `tracing` | `StackBuilder::tracing`: events of connections for `tracing` |
//! | `sim` | `sim::World`: hosts on bad networks in virtual time, for tests; enables tokio's `test-util` |
//!
//! None is on by default.
//!
//! # Examples
//!
//! A **server** that other machines reach, as a host of its own behind a TUN device:
//!
//! ```no_run
//! # #[cfg(target_os = "linux")]
//! # async fn server() -> Result<(), Box<dyn std::error::Error>> {
//! use whimbrel::{Stack, TcpListener};
//!
//! let wire = "tun:whim0,addr=10.9.0.2/24,host=10.9.0.1".parse()?;
//! let stack = Stack::builder().wire(wire).build()?;
//! let listener = TcpListener::bind(&stack, "10.9.0.2:7").await?;
//! while let Ok((mut stream, _peer)) = listener.accept().await {
//!     tokio::spawn(async move {
//!         let (mut read, mut write) = stream.split();
//!         tokio::io::copy(&mut read, &mut write).await
//!     });
//! }
//! # Ok(())
//! # }
//! ```
//!
//! A **client** that tells why it could not connect ([`ConnectError`]):
//!
//! ```
//! use whimbrel::{ConnectError, Stack, TcpStream};
//!
//! /// Connects, and waits while all ports are in TIME-WAIT.
//! async fn connect(stack: &Stack, to: &str) -> std::io::Result<TcpStream> {
//!     loop {
//!         let error = match TcpStream::connect(stack, to).await {
//!             Ok(stream) => return Ok(stream),
//!             Err(error) => error,
//!         };
//!         match error.get_ref().and_then(|error| error.downcast_ref()) {
//!             Some(ConnectError::NotStarted(whimbrel::ConnectStartError::PortsExhausted {
//!                 next: Some(next),
//!                 ..
//!             })) => tokio::time::sleep(*next).await,
//!             _ => return Err(error),
//!         }
//!     }
//! }
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let (left, right) = Stack::pair()?;
//! # let _listener = whimbrel::TcpListener::bind(&left, "10.0.0.1:7").await?;
//! # connect(&right, "10.0.0.1:7").await?;
//! # Ok(())
//! # }
//! ```
//!
//! A **test over a bad path**: 1 in 20 packets is lost, and each takes 5 ms.
//!
//! ```
//! use tokio::io::{AsyncReadExt, AsyncWriteExt};
//! use whimbrel::{LinkConfig, Stack, TcpListener, TcpStream, mem_wire};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let bad: LinkConfig = "rate=10M,delay=5ms,loss=5%".parse()?;
//! let (left, right) = mem_wire(bad.clone(), bad, 1)?;
//! let server = Stack::builder().mem(left).address("10.0.0.1", 24)?.build()?;
//! let client = Stack::builder().mem(right).address("10.0.0.2", 24)?.build()?;
//! let listener = TcpListener::bind(&server, "10.0.0.1:7").await?;
//! let mut sender = TcpStream::connect(&client, "10.0.0.1:7").await?;
//! let (mut receiver, _) = listener.accept().await?;
//! tokio::spawn(async move { sender.write_all(&[7; 100_000]).await });
//! let mut received = Vec::new();
//! receiver.read_to_end(&mut received).await?;
//! assert_eq!(received, [7; 100_000]);
//! # Ok(())
//! # }
//! ```
//!
//! A **proxy**: [`TcpListener::bind_any`] yields each connection, to any address, before it is answered.
//! Its example forwards them through the kernel's sockets; `examples/proxy.rs` does so with UDP, too.
//!
//! A **tunnel**: packets pass through your own code, here from one stack to another. WireGuard would
//! encrypt them (`examples/wireguard.rs`).
//!
//! ```
//! use whimbrel::{PacketPort, Stack};
//!
//! /// Carries packets, as a tunnel does.
//! async fn carry(from: std::sync::Arc<PacketPort>, to: std::sync::Arc<PacketPort>) {
//!     while let Ok(packet) = from.recv().await {
//!         let _ = to.try_send(packet);
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let (near, near_port) = Stack::builder().packets(1_420);
//! let (far, far_port) = Stack::builder().packets(1_420);
//! let near = near.address("10.0.0.1", 24)?.build()?;
//! let _far = far.address("10.0.0.2", 24)?.build()?;
//! let [near_port, far_port] = [near_port, far_port].map(std::sync::Arc::new);
//! tokio::spawn(carry(near_port.clone(), far_port.clone()));
//! tokio::spawn(carry(far_port, near_port));
//! assert_eq!(near.ping("10.0.0.2").await?.hop_limit, 64);
//! # Ok(())
//! # }
//! ```
//!
//! # How data is passed
//!
//! A stream and its shard share one cell of 120 bytes. Written data is copied once, into a chunk that
//! the shard sends from. Received data is copied once, out of the chunk that the shard received into. A
//! changed cell is queued once at its shard, and a task is woken once a burst. A packet therefore needs
//! neither a wake-up nor a system call of its own, and a busy connection needs none.
//!
//! Where the runtime drives the shards ([`Driver::Runtime`], the default inside a runtime), a write
//! makes the same thread poll the shard next. With separate threads ([`Driver::Thread`]), a wake-up
//! costs one system call and covers all writes until the shard is awake.
//!
//! Costs with both hosts in one process over a `mem:` wire, on two processors (`cargo run --release
//! --manifest-path bench/Cargo.toml -- face`; `docs/BENCHMARKS.md` has the spread):
//!
//! | | runtime | threads | tokio on the kernel's loopback |
//! |---|---|---|---|
//! | echo of 64 bytes, one at a time | 8 us | 116 us | 12 us |
//! | 256 such echoes in parallel | 640,000/s | 820,000/s | 183,000/s |
//! | a stream, MTU 1500 | 19 Gb/s | 20 Gb/s | 25 Gb/s, MTU 65,535 |
//!
//! Ports run on the shards, without tasks, and move 25 Gb/s.
//!
//! An idle connection takes 496 bytes of resident memory at each host (`--example idle`), and its
//! `TcpStream` 120.
//!
//! With threads, streams need no tokio reactor and work under any executor that uses `Waker`s. Only
//! names (`"example.org:80"`) are resolved on tokio's blocking threads.
//!
//! # Platforms
//!
//! On Linux a stack can use TUN, TAP, AF_PACKET, sockets, custom devices and packets carried by the
//! application ([`StackBuilder::packets`]). On Windows and macOS it can use such packets and in-process
//! wires ([`mem_wire`]): workers cannot wait for descriptors there, so packets wake them.
#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod address_port;
mod addressing;
mod any_listener;
mod any_port;
mod backlog;
mod bind_table;
mod builder;
mod cell;
mod changes;
#[cfg(feature = "hyper-util")]
mod client;
mod clock;
#[cfg(any(feature = "hickory", feature = "quinn", feature = "tonic"))]
#[cfg_attr(docsrs, doc(cfg(any(feature = "hickory", feature = "quinn", feature = "tonic"))))]
pub mod compat;
mod congestion;
pub mod device;
mod dials;
mod driver;
mod error;
#[cfg(feature = "tracing")]
mod events;
mod exchange;
mod fault;
#[cfg(feature = "sim")]
mod host_names;
mod listener;
mod mailbox;
#[cfg(all(target_os = "linux", feature = "control"))]
mod operate;
mod packets;
mod ping;
mod ping_port;
mod readiness;
#[cfg(feature = "axum")]
mod serve;
mod sharded_listener;
mod shutdown;
#[cfg(feature = "sim")]
#[cfg_attr(docsrs, doc(cfg(feature = "sim")))]
pub mod sim;
mod socket;
mod split;
mod split_owned;
mod stack;
mod stack_port;
mod stream;
mod to_address;
mod udp;
mod udp_cell;
mod udp_port;
mod unclaimed;
mod unclaimed_sender;
mod waiters;
mod ways;

/// Compiles and runs the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// Types of the fields of [`Tunables`].
pub mod tunables {
    pub use whimbrel_base::tunables::{InvalidTunable, TunableError};
    pub use whimbrel_base::{PortRange, ReservedPorts};
    pub use whimbrel_tcp::conn::SizeRange;
    pub use whimbrel_tcp::tunables::*;
    pub use whimbrel_wire::{Mss, OptionOrder};
}

/// Types of the fields of [`LinkConfig`], and of a [`LinkHandle`].
pub mod link {
    pub use whimbrel_io::PacketVerdict;
    pub use whimbrel_link::{
        BurstLoss, Change, ConfigError, LinkConfig, LinkCounters, Policing, Probability,
        QueueLimit, Reorder, Step, TargetedDrop,
    };
}

/// The crates below this one, for the types in its API.
///
/// [`Shard`] is the whole host. Its methods use types of [`stack`](parts::stack) and the crates below it.
/// Their versions are this crate's.
pub mod parts {
    pub use {
        whimbrel_base as base, whimbrel_io as io, whimbrel_link as link, whimbrel_stack as stack,
        whimbrel_tcp as tcp, whimbrel_udp as udp, whimbrel_wire as wire,
    };
}

pub use any_listener::{AnyListener, Incoming, IncomingConnections};
pub use builder::{BuildError, StackBuilder, mem_wire};
#[cfg(feature = "hyper-util")]
#[cfg_attr(docsrs, doc(cfg(feature = "hyper-util")))]
pub use client::Connector;
pub use driver::Driver;
pub use error::{BindError, ConnectError, FailedAttempt};
pub use listener::{Connections, ListenerStats, TcpListener};
pub use packets::{PacketCounters, PacketPort};
#[cfg(feature = "axum")]
#[cfg_attr(docsrs, doc(cfg(feature = "axum")))]
pub use serve::serve;
pub use socket::TcpSocket;
pub use split::{ReadHalf, WriteHalf};
pub use split_owned::{OwnedReadHalf, OwnedWriteHalf, ReuniteError};
pub use stack::{Census, ShardCensus, Stack};
pub use stream::{TcpInfo, TcpStream};
pub use to_address::{InvalidAddress, ToAddress};
pub use udp::{AnyUdpSocket, UdpSocket};
pub use unclaimed::UnclaimedPackets;
pub use whimbrel_base::packet::SoftError;
pub use whimbrel_base::tunables::TunableError;
#[cfg(all(target_os = "linux", feature = "control"))]
#[cfg_attr(docsrs, doc(cfg(feature = "control")))]
pub use whimbrel_io::control::{ControlError, ControlPlace};
pub use whimbrel_io::entropy::EntropyError;
pub use whimbrel_io::group::GroupKeyError;
#[cfg(feature = "rules")]
#[cfg_attr(docsrs, doc(cfg(feature = "rules")))]
pub use whimbrel_io::rules::RulesError;
pub use whimbrel_io::{
    AddressCheckError, ConfigError, DuplicateAddressDetection, GroupKey, KeySource, LinkHandle,
    MemEnd,
};
#[cfg(target_os = "linux")]
pub use whimbrel_io::{
    Layer, Offload, PacketConfig, PacketError, PcapConfig, PcapError, SpecError, TunConfig,
    TunError, UnixConfig, UnixError, WireSpec,
};
pub use whimbrel_io::{ShardConfigError, WireError};
pub use whimbrel_link::LinkConfig;
pub use whimbrel_stack::ip::Unreachable;
pub use whimbrel_stack::shard::{ConnectError as ConnectStartError, NotLocal};
pub use whimbrel_stack::{InterfaceAddress, Route, RouteMetrics, SendTo, Shard};
pub use whimbrel_stack::{Ping, PingError, PingFailure, Pong};
pub use whimbrel_tcp::cc;
pub use whimbrel_tcp::conn::{BufferSize, Limit, State, Tally, TcpInfoCounts};
pub use whimbrel_tcp::recovery::CaState;
pub use whimbrel_tcp::{CloseReason, Counters, Tunables};
pub use whimbrel_udp::{
    Counters as UdpCounters, Fragmenting, Received, SendOptions, SocketError as UdpSocketError,
};
pub use whimbrel_wire::{Address, Ecn, Endpoint, Family, TrafficClass};

/// All public types can be sent to other threads and shared.
const _: () = {
    const fn is_send_and_sync<T: Send + Sync + 'static>() {}
    is_send_and_sync::<Stack>();
    is_send_and_sync::<InvalidAddress>();
    is_send_and_sync::<StackBuilder>();
    is_send_and_sync::<PacketPort>();
    is_send_and_sync::<TcpListener>();
    is_send_and_sync::<AnyListener>();
    is_send_and_sync::<Incoming>();
    is_send_and_sync::<TcpSocket>();
    is_send_and_sync::<TcpStream>();
    is_send_and_sync::<UdpSocket>();
    is_send_and_sync::<AnyUdpSocket>();
    is_send_and_sync::<OwnedReadHalf>();
    is_send_and_sync::<OwnedWriteHalf>();
    is_send_and_sync::<UnclaimedPackets>();
    is_send_and_sync::<LinkHandle>();
    #[cfg(feature = "sim")]
    is_send_and_sync::<sim::World>();
};
