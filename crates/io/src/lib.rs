//! Devices, worker threads, clock, entropy and signals: everything that Whimbrel needs from the
//! operating system.
//!
//! The crates below receive time and keys as arguments; this one gets them from the system. Only this
//! crate has `unsafe` code, all of it in the private module `sys`.
//!
//! A program that runs a stack on any wire until it is interrupted, with a shard at each queue:
//!
//! ```no_run
//! # use whimbrel_io::{Clock, Port, ShardThreads, StackConfig, Stop, entropy, stack};
//! # use whimbrel_io::{StackShard, WireSpec};
//! # use whimbrel_io::signals::Signals;
//! # fn run(wire: &str, port: impl Port + Clone + Sync) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
//! let wire: WireSpec = wire.parse()?; // "tun:whim0,addr=10.9.0.2/24,host=10.9.0.1"
//! let stop = Stop::new()?;
//! let _signals = Signals::install(&stop)?;
//! let config = StackConfig::new(&wire, Default::default(), entropy::secrets()?);
//! let shards = stack::open(&wire, config, Clock::start(), &stop)?;
//! let serve = |shard: StackShard| {
//!     let mut worker = shard.worker(port.clone());
//!     worker.run(&stop)?;
//!     println!("{:?}", worker.shard().counters());
//!     Ok::<_, Box<dyn std::error::Error + Send + Sync>>(())
//! };
//! ShardThreads { stop: &stop, processors: &[] }.run(shards, serve, || Ok(stop.wait()?))?;
//! # Ok(())
//! # }
//! ```
//!
//! Optional parts are features, off by default: `signals`, `rules` for configuration files and
//! environment variables, and `control` for control sockets, and `metrics` for OpenMetrics. The
//! command line has all of them.
//!
//! On systems other than Linux there are only devices inside the process. The application carries the
//! packets, and a worker sleeps until its [`Waker`] or a deadline wakes it.
#![deny(unsafe_code)]

mod checked_writer;
pub mod clock;
pub mod config;
#[cfg(all(target_os = "linux", feature = "control"))]
pub mod control;
pub mod dad;
#[cfg(target_os = "linux")]
pub mod descriptors;
pub mod device;
pub mod entropy;
pub mod group;
pub mod impaired;
pub mod inspect;
#[cfg(all(target_os = "linux", feature = "control"))]
mod linger;
pub mod mem;
#[cfg(all(target_os = "linux", feature = "metrics"))]
pub mod metrics;
#[cfg(target_os = "linux")]
pub mod netlink;
#[cfg(test)]
#[path = "../../../tests/harness/outputs.rs"]
mod outputs;
#[cfg(target_os = "linux")]
pub mod packet;
#[cfg(target_os = "linux")]
pub mod packet_filter;
#[cfg(target_os = "linux")]
pub mod pair;
pub mod parallel;
#[cfg(target_os = "linux")]
pub mod pcap;
#[cfg(target_os = "linux")]
pub mod poll;
#[cfg(target_os = "linux")]
pub mod process;
#[cfg(feature = "rules")]
pub mod rules;
#[cfg(target_os = "linux")]
pub mod sent_datagrams;
pub mod shards;
#[cfg(all(target_os = "linux", feature = "signals"))]
pub mod signals;
#[cfg(target_os = "linux")]
pub mod socket_option;
#[cfg(target_os = "linux")]
pub mod spec;
pub mod stack;
pub mod steering;
pub mod stop;
#[cfg(target_os = "linux")]
mod sys;
#[cfg(not(target_os = "linux"))]
#[path = "sys/unsupported.rs"]
mod sys;
pub mod tap;
#[cfg(test)]
#[path = "../../../tests/harness/test_file.rs"]
mod test_file;
pub mod text;
pub mod threads;
pub mod trace;
#[cfg(target_os = "linux")]
pub mod tun;
#[cfg(target_os = "linux")]
pub mod unix;
pub mod waker;
mod wire_error;
pub mod worker;

pub use clock::Clock;
pub use config::ConfigError;
pub use dad::{AddressCheckError, DuplicateAddressDetection};
pub use device::{AnyDevice, Device, DeviceCounters, TxOutcome};
pub use group::{GroupKey, KeySource};
pub use impaired::{ImpairedDevice, ImpairedLinks};
pub use inspect::{Inspect, Inspections, Inspector};
pub use mem::hub;
pub use mem::{LinkHandle, MemEnd, MemWire, PacketVerdict};
#[cfg(target_os = "linux")]
pub use packet::{PacketConfig, PacketError, PacketWire};
#[cfg(target_os = "linux")]
pub use pair::{MemPair, MemTime};
#[cfg(target_os = "linux")]
pub use pcap::{PcapConfig, PcapError, PcapWire};
#[cfg(target_os = "linux")]
pub use shards::ShardPlan;
pub use shards::{ShardConfigError, ShardCount};
#[cfg(target_os = "linux")]
pub use spec::{SpecError, WireSpec};
pub use stack::{StackConfig, StackShard, StackWorker};
pub use steering::Steered;
pub use stop::Stop;
pub use tap::Tap;
pub use threads::{ShardThreads, ThreadError};
pub use trace::Trace;
#[cfg(target_os = "linux")]
pub use tun::{Layer, Offload, Tun, TunConfig, TunError};
#[cfg(target_os = "linux")]
pub use unix::{UnixConfig, UnixError, UnixWire};
pub use waker::Waker;
pub use wire_error::WireError;
pub use worker::{Activity, PollInterest, PollResult, Port, Worker, WorkerError};
