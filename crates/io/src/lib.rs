//! Where Whimbrel meets the machine: devices, the worker thread, the clock, entropy and signals.
//!
//! Everything below this crate is told the time and handed its secrets; this one asks the system
//! for them. It is the only crate with `unsafe`, and all of that stands in `sys`,
//! which nobody else sees.
//!
//! A program that runs one shard over TUN until it is interrupted:
//!
//! ```no_run
//! # use whimbrel_io::{Clock, Device, Port, Stop, Tun, Waker, WireSpec, Worker, entropy};
//! # use whimbrel_io::signals::Signals;
//! # use whimbrel_stack::{Shard, ShardConfig};
//! # fn run(port: impl Port) -> Result<(), Box<dyn std::error::Error>> {
//! let WireSpec::Tun(config) = "tun:whim0,addr=10.9.0.2/24,host=10.9.0.1".parse()? else {
//!     return Err("not a TUN device".into());
//! };
//! let stop = Stop::new()?;
//! let _signals = Signals::install(&stop)?;
//! let tun = Tun::open(&config)?;
//! let shard = Shard::new(ShardConfig {
//!     tunables: Default::default(),
//!     secrets: entropy::secrets()?,
//!     capabilities: tun.capabilities(),
//!     addresses: config.addresses().to_vec(),
//!     routes: config.routes(),
//! })?;
//! let mut worker = Worker::new(tun, shard, port, Clock::start(), Waker::new()?);
//! worker.run(&stop)?;
//! println!("{:?}", worker.device().counters());
//! # Ok(())
//! # }
//! ```
#![deny(unsafe_code)]

pub mod bridge;
pub mod clock;
pub mod config;
pub mod dad;
pub mod descriptors;
pub mod device;
pub mod entropy;
pub mod group;
#[cfg(feature = "kernel")]
pub mod kernel;
pub mod mem;
pub mod netlink;
pub mod packet;
pub mod pair;
pub mod parallel;
pub mod pcap;
pub mod poll;
pub mod process;
#[cfg(feature = "rules")]
pub mod rules;
#[cfg(feature = "kernel")]
pub mod script;
pub mod shards;
#[cfg(feature = "signals")]
pub mod signals;
pub mod spec;
pub mod steering;
pub mod stop;
mod sys;
pub mod tap;
pub mod tun;
pub mod unix;
pub mod waker;
pub mod worker;

pub use bridge::{Bridge, BridgeEnd, BridgeError};
pub use clock::Clock;
pub use config::ConfigError;
pub use dad::{Dad, DadError};
pub use device::{Device, DeviceCounters, TxOutcome};
pub use group::{GroupKey, KeySource};
#[cfg(feature = "kernel")]
pub use kernel::KernelSockets;
pub use mem::{MemEnd, MemWire};
pub use packet::{PacketConfig, PacketError, PacketWire};
pub use pair::{MemPair, MemTime};
pub use pcap::{PcapConfig, PcapError, PcapWire};
#[cfg(feature = "kernel")]
pub use script::{KernelHost, KernelHostError};
pub use spec::{SpecError, WireSpec};
pub use steering::Steered;
pub use stop::Stop;
pub use tap::Tap;
pub use tun::{Layer, Offload, Tun, TunConfig, TunError};
pub use unix::{UnixConfig, UnixError, UnixWire};
pub use waker::Waker;
pub use worker::{Activity, Port, Worker, WorkerError};
