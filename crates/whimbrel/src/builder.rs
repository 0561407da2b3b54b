//! How a stack is made: its wire, its addresses, its rules.

use std::io;
#[cfg(feature = "rules")]
use std::path::PathBuf;
use std::sync::Arc;
#[cfg(target_os = "linux")]
use std::sync::{Mutex, PoisonError};

use whimbrel_base::{Secrets, tunables::TunableError};
use whimbrel_io::config::default_routes;
#[cfg(feature = "rules")]
use whimbrel_io::rules::{Rules, RulesError, Sources, Variables};
#[cfg(target_os = "linux")]
use whimbrel_io::{AnyDevice, ConfigError, Device, ShardPlan, Waker, WireSpec};
use whimbrel_io::{
    Clock, DuplicateAddressDetection, GroupKey, MemEnd, ShardConfigError, ShardCount, StackConfig,
    StackShard, Stop, WireError, entropy, stack,
};
use whimbrel_link::LinkConfig;
#[cfg(target_os = "linux")]
use whimbrel_stack::Medium;
use whimbrel_stack::shard::NotLocal;
use whimbrel_stack::{InterfaceAddress, Route};
use whimbrel_tcp::Tunables;
use whimbrel_tcp::cc::{AddError, Algorithm, CongestionControl, UnknownAlgorithm};
use whimbrel_wire::Address;

use crate::congestion::CongestionControls;
use crate::driver::Driver;
use crate::mailbox::Mailbox;
use crate::packets::{PacketEnd, PacketQueues};
use crate::shutdown::Shutdown;
use crate::stack::StackOptions;
use crate::stack_port::StackPort;
use crate::ways::Ways;
use crate::{PacketPort, Stack};

/// Configures a [`Stack`].
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let stack = whimbrel::Stack::builder()
///     .wire("tun:whim0,addr=10.9.0.2/24,host=10.9.0.1".parse()?)
///     .set("net.ipv4.tcp_syn_retries", "3")?
///     .build()?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
pub struct StackBuilder {
    wire: Option<Wire>,
    addresses: Vec<InterfaceAddress>,
    routes: Vec<Route>,
    sources: Vec<Address>,
    tunables: Tunables,
    congestion: CongestionControls,
    seed: Option<u64>,
    shards: Option<u16>,
    driver: Option<Driver>,
    group: Option<GroupKey>,
    fast_open_key: Option<GroupKey>,
    any_address: bool,
    /// Whether addresses are asked for before the stack has them; nothing: nobody can be asked.
    dad: Option<DuplicateAddressDetection>,
    packet_queues: Option<Arc<PacketQueues>>,
    #[cfg(feature = "rules")]
    files_and_variables: Sources,
}

#[derive(Debug)]
enum Wire {
    #[cfg(target_os = "linux")]
    Spec(Box<WireSpec>),
    Mem(MemEnd),
    /// A lock that nobody waits for: a device may be sent to another thread, and not be shared.
    #[cfg(target_os = "linux")]
    Device(Mutex<AnyDevice>),
    Packets(PacketEnd),
}

/// Both ends of a wire inside the process, which needs no privilege. `there` is the way from the
/// first to the second, `back` the other; the same `seed` makes the same losses.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use whimbrel::{LinkConfig, Stack, mem_wire};
///
/// let far: LinkConfig = "rate=100M,delay=40ms,loss=0.1%".parse()?;
/// let (left, right) = mem_wire(far.clone(), far, 7)?;
/// let left = Stack::builder().mem(left).address("192.0.2.1", 24)?.build()?;
/// let right = Stack::builder().mem(right).address("192.0.2.2", 24)?.build()?;
/// # Ok(())
/// # }
/// ```
pub fn mem_wire(there: LinkConfig, back: LinkConfig, seed: u64) -> io::Result<(MemEnd, MemEnd)> {
    Ok(MemEnd::pair(there, back, seed))
}

/// Why there is no stack.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// No wire was given.
    #[error(
        "the stack has no wire: give one, as in .wire(\"tun:whim0,addr=10.9.0.2/24\".parse()?), or \
         packets of your own (.packets(1500))"
    )]
    NoWire,
    /// A number of shards that no stack has.
    #[error("{shards} shards: give 1 to {most}")]
    Shards {
        /// How many shards were asked for.
        shards: u16,
        /// The most there can be.
        most: u16,
    },
    /// The wire cannot have so many shards.
    #[error("shards: {0}")]
    Plan(#[from] ShardConfigError),
    /// The wire could not be opened, or another station has an address of the stack's.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// A capture, which only `whimbrel pcap` plays.
    #[error("a capture is no wire of a stack's: give tun:, tap:, packet: or unix:, or .mem(...)")]
    Capture,
    /// An address that is none.
    #[error("{0:?} is no address: give one, as in 10.9.0.2 or fd09::2")]
    Address(String),
    /// A source address that the stack has not.
    #[error(transparent)]
    Source(#[from] NotLocal),
    /// A configuration file, or the environment, says what means nothing.
    #[cfg(feature = "rules")]
    #[error(transparent)]
    Rules(#[from] RulesError),
    /// A tunable that may not have its value.
    #[error(transparent)]
    Tunable(#[from] TunableError),
    /// No congestion control has this name.
    #[error(transparent)]
    UnknownAlgorithm(#[from] UnknownAlgorithm),
    /// A congestion control cannot be added.
    #[error(transparent)]
    AddAlgorithm(#[from] AddError),
    /// The system gave no random octets for keys.
    #[error(transparent)]
    Entropy(#[from] entropy::EntropyError),
    /// [`Driver::Runtime`], and no runtime.
    #[error(
        "no runtime of tokio's to run the shards as tasks of: call build() within one, or give \
         Driver::Thread"
    )]
    NoRuntime,
    /// No thread, or no descriptor.
    #[error("the system gave no thread or descriptor: {0}")]
    System(#[from] io::Error),
}

impl StackBuilder {
    fn new() -> Self {
        Self::default()
    }

    /// Frames go through `wire`: `tun:`, `tap:`, `packet:` or `unix:`, whose addresses and routes
    /// the stack gets. Linux alone has them.
    #[cfg(target_os = "linux")]
    pub fn wire(mut self, wire: WireSpec) -> Self {
        self.wire = Some(Wire::Spec(Box::new(wire)));
        self
    }

    /// Frames go to the other end of a wire inside the process.
    pub fn mem(mut self, end: MemEnd) -> Self {
        self.wire = Some(Wire::Mem(end));
        self
    }

    /// Frames go through this device: what you wrote yourself, for a link that no [`WireSpec`] knows. It has
    /// one queue, so that the stack has one shard. If its frames begin with their IP header, the stack's
    /// routes lead to it, whatever the destination; if they are Ethernet's, give gateways by
    /// [`StackBuilder::route`]. Linux alone: elsewhere nothing waits for a device's descriptor, and
    /// [`StackBuilder::packets`] does what it would.
    ///
    /// ```
    /// use std::io::{self, ErrorKind};
    /// use std::os::fd::{AsFd, BorrowedFd};
    /// use std::os::unix::net::UnixDatagram;
    ///
    /// use whimbrel::device::{
    ///     Capabilities, Device, DeviceCounters, Medium, RxFrame, SegMeta, TxBatch, TxOutcome,
    /// };
    /// use whimbrel::{Stack, TcpListener, TcpStream};
    ///
    /// /// A socket, and in each of its messages an IP packet.
    /// #[derive(Debug)]
    /// struct Datagrams {
    ///     socket: UnixDatagram,
    ///     counters: DeviceCounters,
    /// }
    ///
    /// impl AsFd for Datagrams {
    ///     fn as_fd(&self) -> BorrowedFd<'_> {
    ///         self.socket.as_fd()
    ///     }
    /// }
    ///
    /// impl Device for Datagrams {
    ///     fn name(&self) -> String {
    ///         "datagrams".into()
    ///     }
    ///
    ///     fn capabilities(&self) -> Capabilities {
    ///         // The stack computes checksums and makes no segment larger than the MTU.
    ///         Capabilities::plain(Medium::Ip, 1_500)
    ///     }
    ///
    ///     fn rx_burst(&mut self, deliver: &mut dyn FnMut(&[RxFrame<'_>])) -> io::Result<usize> {
    ///         let mut packet = [0; 1_500];
    ///         match self.socket.recv(&mut packet) {
    ///             Ok(len) => {
    ///                 self.counters.rx_frames += 1;
    ///                 deliver(&[RxFrame::new(&packet[..len], SegMeta::SINGLE)]);
    ///                 Ok(1)
    ///             }
    ///             Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(0),
    ///             Err(error) => Err(error),
    ///         }
    ///     }
    ///
    ///     fn tx_burst(&mut self, batch: &mut TxBatch) -> io::Result<TxOutcome> {
    ///         while let Some(segment) = batch.pending().first() {
    ///             match self.socket.send(&segment.to_vec()) {
    ///                 Ok(_) => batch.consume(1),
    ///                 Err(error) if error.kind() == ErrorKind::WouldBlock => {
    ///                     return Ok(TxOutcome::Blocked);
    ///                 }
    ///                 Err(error) => return Err(error),
    ///             }
    ///             self.counters.tx_frames += 1;
    ///         }
    ///         Ok(TxOutcome::Drained)
    ///     }
    ///
    ///     fn counters(&self) -> &DeviceCounters {
    ///         &self.counters
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let (near, far) = UnixDatagram::pair()?;
    /// let device = |socket: UnixDatagram| {
    ///     socket.set_nonblocking(true)?;
    ///     io::Result::Ok(Datagrams { socket, counters: DeviceCounters::default() })
    /// };
    /// let here = Stack::builder().device(device(near)?).address("10.0.0.1", 24)?.build()?;
    /// let there = Stack::builder().device(device(far)?).address("10.0.0.2", 24)?.build()?;
    /// let listener = TcpListener::bind(&there, "10.0.0.2:7").await?;
    /// let (connected, accepted) =
    ///     tokio::join!(TcpStream::connect(&here, "10.0.0.2:7"), listener.accept());
    /// assert_eq!(connected?.local_addr()?, accepted?.1);
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(target_os = "linux")]
    pub fn device(mut self, device: impl Device + Send + 'static) -> Self {
        self.wire = Some(Wire::Device(Mutex::new(Box::new(device))));
        self
    }

    /// The wire is you: what the stack sends is taken out of the [`PacketPort`], and what is put in there
    /// it receives. Packets have up to `mtu` bytes: 68 (RFC 791) to 65,535, and 1,280 at least (RFC 8200 5) if the
    /// stack has an IPv6 address. Routes lead there whatever the destination. With several
    /// [`StackBuilder::shards`] each packet is put before the shard that its ports lead to.
    pub fn packets(mut self, mtu: u16) -> (Self, PacketPort) {
        let (end, port) = PacketPort::pair(mtu);
        self.wire = Some(Wire::Packets(end));
        (self, port)
    }

    /// Adds an address, in a network with a prefix of `prefix_len` bits (0 ..= 32 for IPv4, 0 ..=
    /// 128 for IPv6).
    pub fn address(mut self, addr: &str, prefix_len: u8) -> Result<Self, BuildError> {
        self.addresses.push(InterfaceAddress { addr: parse(addr)?, prefix_len });
        Ok(self)
    }

    /// Connections that are bound to no address speak from these in turn, as far as they are of the
    /// peer's family; otherwise from the one that the route suggests. Each has ports of its own, so
    /// ten of them open ten times as many to one server. They must be among the stack's addresses.
    pub fn source_pool(mut self, addrs: &[&str]) -> Result<Self, BuildError> {
        self.sources = addrs.iter().map(|addr| parse(addr)).collect::<Result<_, _>>()?;
        Ok(self)
    }

    /// Takes segments for whatever address, and speaks from it, as a machine with a local route to all of the
    /// internet does: for transparent proxies and tunnels. [`TcpListener::bind_any`](crate::TcpListener::bind_any)
    /// hears of connections to addresses that are not the stack's own, and
    /// [`UdpSocket::bind_any`](crate::UdpSocket::bind_any) of datagrams; until somebody calls it, they are
    /// refused. Other listeners and sockets hear of the stack's own alone, an unspecified address included. Echo
    /// requests for others stay [unclaimed](Stack::unclaimed).
    ///
    /// Connections have up to 65,470 addresses at a time: where there are more, those go first whose last connection has waited
    /// longest in TIME-WAIT, and are counted as
    /// [`addresses_recycled`](whimbrel_stack::ip::IpCounters::addresses_recycled). Over `tap:` and `packet:`
    /// nobody is told that they are here: routes must lead to the stack's own address.
    pub fn any_address(mut self) -> Self {
        self.any_address = true;
        self
    }

    /// Adds a route beyond those that addresses and wire imply.
    pub fn route(mut self, route: Route) -> Self {
        self.routes.push(route);
        self
    }

    /// Replaces all rules, those of a profile included.
    pub fn tunables(mut self, tunables: Tunables) -> Self {
        self.tunables = tunables;
        self
    }

    /// Replaces all rules by those of this file, as the command line's `--config` reads it:
    /// `profile = "linux"`, and below `[tunables]` names and values. With [`StackBuilder::environment`],
    /// in either order, variables prevail over it.
    ///
    /// # Errors
    ///
    /// [`BuildError::Rules`]: it cannot be read, or a line of it means nothing, and which.
    #[cfg(feature = "rules")]
    pub fn config_file(mut self, path: impl Into<PathBuf>) -> Result<Self, BuildError> {
        self.files_and_variables.file = Some(path.into());
        self.gather()
    }

    /// Replaces all rules by those of the environment, as the command line takes them: a profile
    /// (`WHIMBREL_PROFILE`), a file (`WHIMBREL_CONFIG`, unless [`StackBuilder::config_file`] names one),
    /// and tunables by their names (`WHIMBREL_TCP_SYN_RETRIES`).
    ///
    /// # Errors
    ///
    /// [`BuildError::Rules`]: a variable that begins like these means nothing.
    #[cfg(feature = "rules")]
    pub fn environment(mut self) -> Result<Self, BuildError> {
        self.files_and_variables.environment = Variables::of_process()?;
        self.gather()
    }

    #[cfg(feature = "rules")]
    fn gather(mut self) -> Result<Self, BuildError> {
        let rules = Rules::gather(self.files_and_variables.clone())?;
        rules.validate()?;
        self.tunables = rules.tunables;
        Ok(self)
    }

    /// Sets the tunable that has this name or alias: `.set("net.ipv4.tcp_syn_retries", "3")`.
    pub fn set(mut self, name: &str, value: &str) -> Result<Self, BuildError> {
        self.tunables.set_by_name(name, value)?;
        Ok(self)
    }

    /// Connections whose socket, listener and route name no congestion control have the one of this name:
    /// one of the stack's own, such as `"reno"` and, as without this, `"cubic"`, or one that was added before.
    ///
    /// # Errors
    ///
    /// [`BuildError::UnknownAlgorithm`]: there is none of this name; it tells which there are.
    pub fn tcp_congestion(mut self, name: &str) -> Result<Self, BuildError> {
        self.congestion.set_usual(name, &mut self.tunables)?;
        Ok(self)
    }

    /// Adds a congestion control of yours, by whose name sockets, listeners and routes can ask for it. Each
    /// connection that has it has one that `make` made. It runs where the shards do: one that panics
    /// ends the stack.
    ///
    /// ```
    /// use whimbrel::cc::{Ack, CongestionControl, Loss, Timeout, Window};
    /// use whimbrel::{Stack, TcpSocket, mem_wire};
    ///
    /// /// Half as many bytes in flight after each loss, and a segment more each round trip.
    /// #[derive(Debug)]
    /// struct Careful;
    ///
    /// impl CongestionControl for Careful {
    ///     fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
    ///         window.grow((ack.limited / (window.cwnd / ack.mss).max(1)).min(ack.mss));
    ///     }
    ///
    ///     fn on_loss_event(&mut self, window: &mut Window, loss: &Loss) {
    ///         window.ssthresh = (loss.in_flight / 2).max(2 * loss.mss);
    ///     }
    ///
    ///     fn on_rto(&mut self, window: &mut Window, timeout: &Timeout) {
    ///         window.cwnd = timeout.mss;
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let (wire, _other) = mem_wire(Default::default(), Default::default(), 1)?;
    /// let stack = Stack::builder()
    ///     .mem(wire)
    ///     .address("192.0.2.1", 24)?
    ///     .add_congestion_control("careful", || Careful)?
    ///     .build()?;
    /// let socket = TcpSocket::new_v4(&stack)?;
    /// assert_eq!(socket.tcp_congestion()?, "cubic");
    /// socket.set_tcp_congestion("careful")?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`BuildError::AddAlgorithm`]: there is no room for another (with the stack's own there are 15 at most),
    /// the name is one of the stack's own, or it has not 1 to 15 letters, digits, hyphens and underscores.
    pub fn add_congestion_control<C: CongestionControl + 'static>(
        mut self,
        name: &str,
        make: impl Fn() -> C + Send + Sync + 'static,
    ) -> Result<Self, BuildError> {
        self.congestion.add(name, make)?;
        Ok(self)
    }

    /// The congestion control of this name, for the metrics of a [`Route`]: one of the stack's own, or one
    /// that was added before.
    ///
    /// # Errors
    ///
    /// As [`StackBuilder::tcp_congestion`].
    pub fn congestion_control(&self, name: &str) -> Result<Algorithm, BuildError> {
        Ok(self.congestion.named(name)?)
    }

    /// Keys, ports and sequence numbers repeat with `seed`. For tests only: whoever guesses it can
    /// forge segments. Without it keys come from the system's entropy.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Takes part in a group of stacks that have this key of their SYN cookies in common, and complete
    /// each other's handshakes, as behind a balancer that deals segments to any of them. A third
    /// segment is honoured whether this stack sent the cookie or another; their clocks must agree to
    /// 40 s, and listeners of the group are to have the same settings.
    /// [`Stack::set_cookie_keys`] changes the key.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let key: whimbrel::KeySource = "file:/etc/whimbrel/cookie.key".parse()?;
    /// let stack = whimbrel::Stack::builder().cookie_group(key.read()?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn cookie_group(mut self, key: GroupKey) -> Self {
        self.group = Some(key);
        self
    }

    /// Grants cookies of Fast Open (RFC 7413) under this key, so that those of another stack with it are
    /// good here; without it under one that was drawn. Linux makes the same cookies of the same 16
    /// octets. [`Stack::rotate_fast_open_key`] changes it.
    pub fn fast_open_key(mut self, key: GroupKey) -> Self {
        self.fast_open_key = Some(key);
        self
    }

    /// Runs the stack on so many shards (1 ..= 256; by default as many as the wire has queues), each
    /// a thread or a task ([`StackBuilder::driver`]), with a queue of the wire and connections of its own:
    /// `connect` takes them in turn, and a listener accepts from all. `unix:` has one queue.
    pub fn shards(mut self, shards: u16) -> Self {
        self.shards = Some(shards);
        self
    }

    /// What drives the shards: threads of the stack's own, or the runtime that it is built in. By default the
    /// latter, if there is one.
    pub fn driver(mut self, driver: Driver) -> Self {
        self.driver = Some(driver);
        self
    }

    /// Opens the wire and starts the shards. Over `tap:` and `packet:` it first asks, for 0.9 s,
    /// whether somebody else has the stack's addresses (`dad=off` in the wire's description: it does not).
    ///
    /// # Panics
    ///
    /// As tokio's own types do, within a runtime of tokio's that was built without `enable_all`, unless
    /// [`StackBuilder::driver`] says [`Driver::Thread`].
    pub fn build(mut self) -> Result<Stack, BuildError> {
        let most = ShardCount::MOST;
        if let Some(shards) = self.shards.filter(|shards| !(1..=most).contains(shards)) {
            return Err(BuildError::Shards { shards, most });
        }
        let driver = Driver::here(self.driver).ok_or(BuildError::NoRuntime)?;
        let stop = Stop::new()?;
        let shards = match self.wire.take().ok_or(BuildError::NoWire)? {
            Wire::Mem(end) => stack::open_mem(end, self.shards.unwrap_or(1), self.config()?)?,
            #[cfg(target_os = "linux")]
            Wire::Spec(spec) => self.open(*spec, &stop)?,
            #[cfg(target_os = "linux")]
            Wire::Device(device) => {
                self.open_device(device.into_inner().unwrap_or_else(PoisonError::into_inner))?
            }
            Wire::Packets(end) => self.open_packets(end)?,
        };
        self.start(shards, stop, driver)
    }

    #[cfg(target_os = "linux")]
    fn open(&mut self, spec: WireSpec, stop: &Stop) -> Result<Vec<StackShard>, BuildError> {
        let count = self.shards.map_or(ShardCount::PerQueue, ShardCount::Exactly);
        let ShardPlan { wire, .. } = ShardPlan::new(spec, count, None)?;
        if wire.is_capture() {
            return Err(BuildError::Capture);
        }
        self.addresses.splice(0..0, wire.addresses().iter().copied());
        self.routes.extend(wire.routes());
        self.dad = Some(wire.dad());
        let config = self.config()?;
        Ok(stack::open(&wire, config, Clock::start(), stop)?)
    }

    #[cfg(target_os = "linux")]
    fn open_device(&mut self, device: AnyDevice) -> Result<Vec<StackShard>, BuildError> {
        if let Some(shards) = self.shards.filter(|shards| *shards != 1) {
            return Err(ShardConfigError::Wire(ConfigError::OneQueue(shards)).into());
        }
        let dad = match device.capabilities().medium {
            Medium::Ip => {
                self.routes.extend(default_routes(&self.addresses, &[]));
                DuplicateAddressDetection::Off
            }
            Medium::Ethernet { .. } => DuplicateAddressDetection::On,
        };
        self.dad = Some(dad);
        let config = self.config()?;
        Ok(stack::open_devices(vec![device], vec![Waker::new()?], Clock::start(), config)?)
    }

    fn open_packets(&mut self, end: PacketEnd) -> Result<Vec<StackShard>, BuildError> {
        self.routes.extend(default_routes(&self.addresses, &[]));
        self.packet_queues = Some(end.queues());
        let (devices, wakers) = end.open(self.shards.unwrap_or(1))?;
        Ok(stack::open_devices(devices, wakers, Clock::start(), self.config()?)?)
    }

    fn config(&self) -> Result<StackConfig, BuildError> {
        let mut secrets = match self.seed {
            Some(seed) => Secrets::from_seed(seed),
            None => entropy::secrets()?,
        };
        if let Some(key) = self.fast_open_key {
            secrets.fast_open = *key.key();
        }
        Ok(StackConfig {
            tunables: self.tunables.clone(),
            secrets,
            addresses: self.addresses.clone(),
            routes: self.routes.clone(),
            dad: self.dad.unwrap_or(DuplicateAddressDetection::Off),
            group: self.group,
        })
    }

    fn start(
        self,
        shards: Vec<StackShard>,
        stop: Stop,
        driver: Driver,
    ) -> Result<Stack, BuildError> {
        let wakers = shards.iter().map(|shard| shard.waker.clone()).collect();
        let shutdown = Arc::new(Shutdown::new(stop.clone(), wakers));
        if let Some(queues) = &self.packet_queues {
            queues.attach(Arc::clone(&shutdown));
        }
        let (mut mailboxes, mut workers) = (Vec::new(), Vec::new());
        for mut shard in shards {
            shard.shard.set_source_pool(&self.sources)?;
            if self.any_address {
                shard.shard.take_any_address();
            }
            self.congestion.give_to(&mut shard.shard)?;
            let names = self.congestion.names(&self.tunables);
            // What is put into packets is as long as you like; a device has buffers of its own.
            let most_mtu = if self.packet_queues.is_some() { u16::MAX } else { shard.shard.mtu() };
            let ways = Ways::new(&shard.shard, most_mtu);
            let mailbox = Arc::new(Mailbox::new(shard.waker.clone(), names, ways));
            let stack_port = StackPort::new(Arc::clone(&mailbox), Arc::clone(&shutdown));
            mailboxes.push(mailbox);
            workers.push(shard.worker(stack_port));
        }
        if let Some(queues) = &self.packet_queues {
            queues.attach_shards(mailboxes.clone());
        }
        driver.start(workers, shutdown)?;
        let seed = self.seed.unwrap_or_else(|| fastrand::u64(..));
        let dad = self.dad.unwrap_or(DuplicateAddressDetection::Off);
        let habits = StackOptions { packet_queues: self.packet_queues, dad, seed };
        Ok(Stack::new(mailboxes.into(), self.addresses, self.tunables, habits))
    }
}

fn parse(addr: &str) -> Result<Address, BuildError> {
    let parsed = addr.parse::<std::net::IpAddr>();
    parsed.map(Address::from).map_err(|_| BuildError::Address(addr.into()))
}

impl Stack {
    /// Begins to configure a stack, by default without a wire.
    pub fn builder() -> StackBuilder {
        StackBuilder::new()
    }

    /// Two stacks, joined inside the process by a perfect wire: 10.0.0.1 and fd00::1, 10.0.0.2 and
    /// fd00::2. For tests and examples; [`StackBuilder::mem`] makes other wires.
    pub fn pair() -> Result<(Self, Self), BuildError> {
        let (first, second) = mem_wire(LinkConfig::default(), LinkConfig::default(), 0)?;
        let first = Self::builder().mem(first).address("10.0.0.1", 24)?.address("fd00::1", 64)?;
        let second = Self::builder().mem(second).address("10.0.0.2", 24)?.address("fd00::2", 64)?;
        Ok((first.build()?, second.build()?))
    }
}
