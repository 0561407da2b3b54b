//! Tests of programs on bad networks, in virtual time: hosts with names at one hub.
//!
//! A [`World`] has one tokio runtime with a paused clock. Each host has a [`Stack`](crate::Stack) of its
//! own, and a link to the hub in each direction. While all tasks wait, time jumps to the next timer or
//! packet, so an hour of retransmissions takes milliseconds. The same seed repeats the same run, packet
//! by packet, if the programs draw nothing from elsewhere (`docs/testing.md` lists what does).
//!
//! ```
//! use std::time::Duration;
//!
//! use tokio::io::{AsyncReadExt, AsyncWriteExt};
//! use whimbrel::sim::World;
//! use whimbrel::{TcpListener, TcpStream};
//!
//! let world = World::new(1);
//! // Each packet takes 10 ms to the hub and 10 ms from it; one in 50 is lost on each way.
//! world.set_link("delay=10ms,loss=2%".parse().unwrap());
//! world.host("echo", |net| async move {
//!     let listener = TcpListener::bind(net.stack(), "0.0.0.0:7").await?;
//!     loop {
//!         let (mut stream, _) = listener.accept().await?;
//!         tokio::spawn(async move {
//!             let (mut read, mut write) = stream.split();
//!             tokio::io::copy(&mut read, &mut write).await
//!         });
//!     }
//! });
//! let net = world.net("client");
//! world.run(async {
//!     let mut stream = TcpStream::connect(net.stack(), (net.lookup("echo")?, 7)).await?;
//!     world.partition("client", "echo");
//!     stream.write_all(b"late").await?;
//!     tokio::time::sleep(Duration::from_secs(60)).await;
//!     world.heal("client", "echo");
//!     let mut text = [0; 4];
//!     stream.read_exact(&mut text).await?;
//!     assert_eq!(&text, b"late");
//!     std::io::Result::Ok(())
//! })?;
//! # std::io::Result::Ok(())
//! ```

/// Compiles and runs the examples of the chapter.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/testing.md")]
struct Chapter;

mod explore;
mod failure;
mod faults;
mod hub_task;
mod net;
mod network;
mod packet_log;
mod packet_summary;
mod program;
mod world;

pub use explore::{explore, twice};
pub use faults::Faults;
pub use net::Net;
pub use program::Outcome;
pub use whimbrel_io::hub::{HubCounters, HubLinks};
pub use world::World;
