//! Configuration and start of a stack: wire, addresses, tunables.

use std::io;
#[cfg(feature = "rules")]
use std::path::PathBuf;
use std::sync::Arc;
#[cfg(target_os = "linux")]
use std::sync::{Mutex, PoisonError};

use whimbrel_base::{Secrets, tunables::TunableError};
use whimbrel_io::config::default_routes;
#[cfg(all(target_os = "linux", feature = "control"))]
use whimbrel_io::control::{ControlError, ControlPlace};
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

use crate::bind_table::SourceAddresses;
use crate::clock::{self, TimeSource};
use crate::congestion::CongestionControls;
use crate::driver::Driver;
#[cfg(feature = "sim")]
use crate::host_names::HostNames;
use crate::mailbox::Mailbox;
use crate::packets::{PacketEnd, PacketQueues};
use crate::shutdown::Shutdown;
use crate::stack::StackOptions;
use crate::stack_port::StackPort;
use crate::ways::Ways;
use crate::{InvalidAddress, PacketPort, Stack, ToAddress};

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
    /// Duplicate address detection before the start; `None` if the wire has no other hosts.
    dad: Option<DuplicateAddressDetection>,
    packet_queues: Option<Arc<PacketQueues>>,
    #[cfg(all(target_os = "linux", feature = "control"))]
    control: Option<ControlPlace>,
    #[cfg(feature = "tracing")]
    has_events: bool,
    #[cfg(feature = "rules")]
    files_and_variables: Sources,
    /// Names of the other hosts, in a simulated world.
    #[cfg(feature = "sim")]
    names: Option<Arc<HostNames>>,
}

#[derive(Debug)]
enum Wire {
    #[cfg(target_os = "linux")]
    Spec(Box<WireSpec>),
    Mem(MemEnd),
    /// A lock without contention: a device is `Send` but need not be `Sync`.
    #[cfg(target_os = "linux")]
    Device(Mutex<AnyDevice>),
    Packets(PacketEnd),
}

/// Creates both ends of a wire inside the process, which needs no privilege. `there` describes the
/// direction from the first to the second, `back` the other. The same `seed` repeats the same losses.
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

/// Reason why a stack could not be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// No wire was given.
    #[error(
        "the stack has no wire: give one, as in .wire(\"tun:whim0,addr=10.9.0.2/24\".parse()?), or \
         packets of your own (.packets(1500))"
    )]
    NoWire,
    /// The number of shards is out of range.
    #[error("{shards} shards: give 1 to {most}")]
    Shards {
        /// Requested number of shards.
        shards: u16,
        /// Largest number of shards.
        most: u16,
    },
    /// The wire does not support this number of shards.
    #[error("shards: {0}")]
    Plan(#[from] ShardConfigError),
    /// The wire could not be opened, or another host has an address of the stack's.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// A capture, which only `whimbrel pcap` replays.
    #[error("a capture is no wire of a stack's: give tun:, tap:, packet: or unix:, or .mem(...)")]
    Capture,
    /// An invalid address.
    #[error(transparent)]
    Address(#[from] InvalidAddress),
    /// A source address that is not an address of the stack.
    #[error(transparent)]
    Source(#[from] NotLocal),
    /// Invalid setting in a configuration file or an environment variable.
    #[cfg(feature = "rules")]
    #[cfg_attr(docsrs, doc(cfg(feature = "rules")))]
    #[error(transparent)]
    Rules(#[from] RulesError),
    /// Invalid value of a tunable.
    #[error(transparent)]
    Tunable(#[from] TunableError),
    /// No congestion control has this name.
    #[error(transparent)]
    UnknownAlgorithm(#[from] UnknownAlgorithm),
    /// A congestion control cannot be added.
    #[error(transparent)]
    AddAlgorithm(#[from] AddError),
    /// The system returned no random bytes for keys.
    #[error(transparent)]
    Entropy(#[from] entropy::EntropyError),
    /// [`Driver::Runtime`] was requested outside of a tokio runtime.
    #[error(
        "no runtime of tokio's to run the shards as tasks of: call build() within one, or give \
         Driver::Thread"
    )]
    NoRuntime,
    /// The clock of the current tokio runtime is paused. [`Driver::Thread`] and wires with a descriptor
    /// follow the machine's clock.
    #[error(
        "tokio's clock is paused, and {0} follows the machine's: build Driver::Runtime over mem_wire or \
         packets, or call tokio::time::resume() before build()"
    )]
    PausedClock(&'static str),
    /// The control socket could not be served.
    #[cfg(all(target_os = "linux", feature = "control"))]
    #[cfg_attr(docsrs, doc(cfg(feature = "control")))]
    #[error("control socket: {0}")]
    Control(#[from] ControlError),
    /// A thread or a descriptor could not be created.
    #[error("the system gave no thread or descriptor: {0}")]
    System(#[from] io::Error),
}

impl StackBuilder {
    fn new() -> Self {
        Self::default()
    }

    /// Uses this wire (`tun:`, `tap:`, `packet:` or `unix:`) with its addresses and routes. Linux only.
    #[cfg(target_os = "linux")]
    pub fn wire(mut self, wire: WireSpec) -> Self {
        self.wire = Some(Wire::Spec(Box::new(wire)));
        self
    }

    /// Uses one end of a wire inside the process.
    pub fn mem(mut self, end: MemEnd) -> Self {
        self.wire = Some(Wire::Mem(end));
        self
    }

    /// Uses a custom device, for a link that [`WireSpec`] does not support. It has one queue, so the
    /// stack has one shard. If its frames begin with the IP header, all routes of the stack use it; for
    /// Ethernet frames, set gateways with [`StackBuilder::route`]. Linux only, because workers cannot
    /// wait for descriptors on other systems; use [`StackBuilder::packets`] there.
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
    /// /// A socket whose messages are IP packets.
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

    /// Makes the application the wire: the [`PacketPort`] returns the packets that the stack sends and
    /// takes packets for it. Packets have up to `mtu` bytes, 68 (RFC 791) to 65,535, and at least 1,280
    /// (RFC 8200 5) if the stack has an IPv6 address. All routes lead there. With several
    /// [`StackBuilder::shards`], each packet goes to the shard of its ports.
    pub fn packets(mut self, mtu: u16) -> (Self, PacketPort) {
        let (end, port) = PacketPort::pair(mtu);
        self.wire = Some(Wire::Packets(end));
        (self, port)
    }

    /// Adds an address with its prefix length (0 to 32 for IPv4, 0 to 128 for IPv6).
    ///
    /// # Errors
    ///
    /// [`BuildError::Address`]: the text is not an address.
    pub fn address(mut self, addr: impl ToAddress, prefix_len: u8) -> Result<Self, BuildError> {
        self.addresses.push(InterfaceAddress::new(addr.to_address()?, prefix_len));
        Ok(self)
    }

    /// Sets the source addresses that unbound connections use in turn, if they have the peer's family.
    /// Otherwise the route selects the source. Each address has its own ports, so that ten addresses
    /// allow ten times as many connections to one server. All must be addresses of the stack.
    ///
    /// # Errors
    ///
    /// [`BuildError::Address`]: a text is not an address.
    pub fn source_pool<A: ToAddress>(
        mut self,
        addrs: impl IntoIterator<Item = A>,
    ) -> Result<Self, BuildError> {
        let addrs = addrs.into_iter().map(|addr| addr.to_address().map(Address::from));
        self.sources = addrs.collect::<Result<_, _>>()?;
        Ok(self)
    }

    /// Accepts packets for any address and sends from any address, like a host with a local route to
    /// the whole Internet. Transparent proxies and tunnels need this. Connections to foreign addresses
    /// go to [`TcpListener::bind_any`](crate::TcpListener::bind_any), datagrams to
    /// [`UdpSocket::bind_any`](crate::UdpSocket::bind_any); without these they are refused. Other
    /// listeners and sockets receive only packets for the stack's own addresses. Echo requests for
    /// foreign addresses stay [unclaimed](Stack::unclaimed).
    ///
    /// Connections have up to 65,470 addresses at a time. Beyond that, the address whose last
    /// connection has been in TIME-WAIT longest is removed and counted as
    /// [`addresses_recycled`](whimbrel_stack::ip::IpCounters::addresses_recycled). Over `tap:` and
    /// `packet:` foreign addresses are not announced: routes must lead to the stack's own address.
    pub fn any_address(mut self) -> Self {
        self.any_address = true;
        self
    }

    /// Adds a route to those implied by addresses and wire:
    /// `.route(Route::default_via("10.0.0.1".parse()?))`.
    pub fn route(mut self, route: Route) -> Self {
        self.routes.push(route);
        self
    }

    /// Replaces all tunables, including those of a profile.
    pub fn tunables(mut self, tunables: Tunables) -> Self {
        self.tunables = tunables;
        self
    }

    /// Replaces all tunables by those of this file, in the format of the command line's `--config`:
    /// `profile = "linux"`, and names with values below `[tunables]`. Variables of
    /// [`StackBuilder::environment`] override it, in either order of calls.
    ///
    /// # Errors
    ///
    /// [`BuildError::Rules`]: the file cannot be read, or a line is invalid; the message names it.
    #[cfg(feature = "rules")]
    #[cfg_attr(docsrs, doc(cfg(feature = "rules")))]
    pub fn config_file(mut self, path: impl Into<PathBuf>) -> Result<Self, BuildError> {
        self.files_and_variables.file = Some(path.into());
        self.gather()
    }

    /// Replaces all tunables by those of the environment, as the command line does: a profile
    /// (`WHIMBREL_PROFILE`), a file (`WHIMBREL_CONFIG`, unless [`StackBuilder::config_file`] names
    /// one), and single tunables by name (`WHIMBREL_TCP_SYN_RETRIES`).
    ///
    /// # Errors
    ///
    /// [`BuildError::Rules`]: a variable with such a prefix is invalid.
    #[cfg(feature = "rules")]
    #[cfg_attr(docsrs, doc(cfg(feature = "rules")))]
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

    /// Sets a tunable by its name or alias: `.set("net.ipv4.tcp_syn_retries", "3")`.
    pub fn set(mut self, name: &str, value: &str) -> Result<Self, BuildError> {
        self.tunables.set_by_name(name, value)?;
        Ok(self)
    }

    /// Sets the default congestion control, for connections whose socket, listener and route set none.
    /// It is one of the stack's own, such as `"reno"` or `"cubic"` (the default), or one added before.
    ///
    /// # Errors
    ///
    /// [`BuildError::UnknownAlgorithm`]: no congestion control has this name; the message lists the
    /// available ones.
    pub fn tcp_congestion(mut self, name: &str) -> Result<Self, BuildError> {
        self.congestion.set_usual(name, &mut self.tunables)?;
        Ok(self)
    }

    /// Adds a custom congestion control, which sockets, listeners and routes can select by its name.
    /// `make` creates one for each connection that uses it. It runs on the shard's thread; a panic ends
    /// the stack.
    ///
    /// ```
    /// use whimbrel::cc::{Ack, CongestionControl, Loss, Timeout, Window};
    /// use whimbrel::{Stack, TcpSocket, mem_wire};
    ///
    /// /// Halves the bytes in flight after each loss, and adds a segment each round trip.
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
    /// [`BuildError::AddAlgorithm`]: more than 15 (including the stack's own), the name of an existing
    /// one, or a name without 1 to 15 letters, digits, hyphens and underscores.
    pub fn add_congestion_control<C: CongestionControl + 'static>(
        mut self,
        name: &str,
        make: impl Fn() -> C + Send + Sync + 'static,
    ) -> Result<Self, BuildError> {
        self.congestion.add(name, make)?;
        Ok(self)
    }

    /// Returns the congestion control of this name, for the metrics of a [`Route`]: one of the stack's
    /// own, or one added before.
    ///
    /// # Errors
    ///
    /// As [`StackBuilder::tcp_congestion`].
    pub fn congestion_control(&self, name: &str) -> Result<Algorithm, BuildError> {
        Ok(self.congestion.named(name)?)
    }

    /// Derives keys, ports and sequence numbers from `seed`. For tests only: an attacker who guesses it
    /// can forge segments. By default, keys come from the system's entropy.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Joins a group of stacks with a common SYN cookie key. Each stack accepts the cookies of the
    /// others, so that a load balancer may send any segment to any of them. Their clocks must agree to
    /// 40 s, and their listeners should have the same settings. [`Stack::set_cookie_keys`] changes the
    /// key.
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

    /// Grants Fast Open cookies (RFC 7413) with this key, so that stacks with the same key accept each
    /// other's cookies; otherwise with a random key. Linux derives the same cookies from the same 16
    /// bytes. [`Stack::rotate_fast_open_key`] changes it.
    pub fn fast_open_key(mut self, key: GroupKey) -> Self {
        self.fast_open_key = Some(key);
        self
    }

    /// Sets the number of shards (1 to 256; by default the wire's number of queues). Each is a thread
    /// or task ([`StackBuilder::driver`]) with a queue of the wire and its own connections. `connect`
    /// uses them in turn, and a listener accepts from all. `unix:` has one queue.
    pub fn shards(mut self, shards: u16) -> Self {
        self.shards = Some(shards);
        self
    }

    /// Sets what runs the shards: threads, or the runtime in which the stack is built. The default is
    /// the runtime, if there is one.
    pub fn driver(mut self, driver: Driver) -> Self {
        self.driver = Some(driver);
        self
    }

    /// Serves a control socket, by which `whimbrel ss`, `nstat`, `netstat` and `sysctl` look into the stack and
    /// change it; docs/CONTROL.md has its protocol. Only the user of this process and root are served. The
    /// socket goes with the last clone of the stack.
    #[cfg(all(target_os = "linux", feature = "control"))]
    #[cfg_attr(docsrs, doc(cfg(feature = "control")))]
    pub fn control(mut self, place: ControlPlace) -> Self {
        self.control = Some(place);
        self
    }

    /// Emits events of connections by the crate `tracing`: those of the program's `--trace`, at the targets
    /// `whimbrel::connection`, `recovery`, `transfer` and `refused`, which docs/LONG-PATHS.md describes. The shards
    /// emit them between packets, so that a slow subscriber delays these. Each burst of packets costs a few look-ups
    /// a connection, whatever the subscriber takes.
    #[cfg(feature = "tracing")]
    #[cfg_attr(docsrs, doc(cfg(feature = "tracing")))]
    pub const fn tracing(mut self) -> Self {
        self.has_events = true;
        self
    }

    /// Opens the wire and starts the shards. Their time begins here. With [`Driver::Runtime`], over
    /// [`mem_wire`] and [`StackBuilder::packets`], it is tokio's, which can be paused. Over `tap:` and `packet:` it first checks for 0.9 s that
    /// no other host has the stack's addresses (unless the wire has `dad=off`).
    ///
    /// # Panics
    ///
    /// Panics within a tokio runtime without `enable_all`, as tokio's own types do, unless
    /// [`StackBuilder::driver`] selects [`Driver::Thread`].
    pub fn build(self) -> Result<Stack, BuildError> {
        self.build_with_shutdown().map(|(stack, _)| stack)
    }

    /// Builds the stack of a host whose peers have these names. The [`Shutdown`] ends it.
    #[cfg(feature = "sim")]
    pub(crate) fn build_named(
        mut self,
        names: Arc<HostNames>,
    ) -> Result<(Stack, Arc<Shutdown>), BuildError> {
        self.names = Some(names);
        self.build_with_shutdown()
    }

    fn build_with_shutdown(mut self) -> Result<(Stack, Arc<Shutdown>), BuildError> {
        let most = ShardCount::MOST;
        if let Some(shards) = self.shards.filter(|shards| !(1..=most).contains(shards)) {
            return Err(BuildError::Shards { shards, most });
        }
        let driver = Driver::here(self.driver).ok_or(BuildError::NoRuntime)?;
        let stop = Stop::new()?;
        let wire = self.wire.take().ok_or(BuildError::NoWire)?;
        let time = wire.time_source(driver)?;
        let clock = time.start();
        let shards = match wire {
            Wire::Mem(end) => {
                stack::open_mem(end, self.shards.unwrap_or(1), clock, self.config()?)?
            }
            #[cfg(target_os = "linux")]
            Wire::Spec(spec) => self.open(*spec, clock, &stop)?,
            #[cfg(target_os = "linux")]
            Wire::Device(device) => {
                let device = device.into_inner().unwrap_or_else(PoisonError::into_inner);
                self.open_device(device, clock)?
            }
            Wire::Packets(end) => self.open_packets(end, clock)?,
        };
        self.start(shards, stop, driver, time)
    }

    #[cfg(target_os = "linux")]
    fn open(
        &mut self,
        spec: WireSpec,
        clock: Clock,
        stop: &Stop,
    ) -> Result<Vec<StackShard>, BuildError> {
        let count = self.shards.map_or(ShardCount::PerQueue, ShardCount::Exactly);
        let ShardPlan { wire, .. } = ShardPlan::new(spec, count, None)?;
        if wire.is_capture() {
            return Err(BuildError::Capture);
        }
        self.addresses.splice(0..0, wire.addresses().iter().copied());
        self.routes.extend(wire.routes());
        self.dad = Some(wire.dad());
        let config = self.config()?;
        Ok(stack::open(&wire, config, clock, stop)?)
    }

    #[cfg(target_os = "linux")]
    fn open_device(
        &mut self,
        device: AnyDevice,
        clock: Clock,
    ) -> Result<Vec<StackShard>, BuildError> {
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
        Ok(stack::open_devices(vec![device], vec![Waker::new()?], clock, config)?)
    }

    fn open_packets(
        &mut self,
        end: PacketEnd,
        clock: Clock,
    ) -> Result<Vec<StackShard>, BuildError> {
        self.routes.extend(default_routes(&self.addresses, &[]));
        self.packet_queues = Some(end.queues());
        let (devices, wakers) = end.open(self.shards.unwrap_or(1))?;
        Ok(stack::open_devices(devices, wakers, clock, self.config()?)?)
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
        #[cfg_attr(not(feature = "tracing"), expect(unused_mut, reason = "events change them"))]
        mut shards: Vec<StackShard>,
        stop: Stop,
        driver: Driver,
        time: TimeSource,
    ) -> Result<(Stack, Arc<Shutdown>), BuildError> {
        let wakers = shards.iter().map(|shard| shard.waker.clone()).collect();
        let shutdown = Arc::new(Shutdown::new(stop.clone(), wakers));
        if let Some(queues) = &self.packet_queues {
            queues.attach(Arc::clone(&shutdown));
        }
        let (mut mailboxes, mut workers) = (Vec::new(), Vec::new());
        #[cfg(all(target_os = "linux", feature = "control"))]
        let mut inspectors = Vec::new();
        #[cfg(feature = "tracing")]
        if self.has_events {
            crate::events::emit(&mut shards);
        }
        for mut shard in shards {
            shard.shard.set_source_pool(&self.sources)?;
            if self.any_address {
                shard.shard.take_any_address();
            }
            self.congestion.give_to(&mut shard.shard)?;
            let names = self.congestion.names(&self.tunables);
            // Packet queues take packets of any length; a device has its own buffers.
            let most_mtu = if self.packet_queues.is_some() { u16::MAX } else { shard.shard.mtu() };
            let ways = Ways::new(&shard.shard, most_mtu);
            let mailbox = Arc::new(Mailbox::new(shard.waker.clone(), names, ways));
            let stack_port = StackPort::new(Arc::clone(&mailbox), Arc::clone(&shutdown));
            mailboxes.push(mailbox);
            #[cfg(all(target_os = "linux", feature = "control"))]
            if self.control.is_some() {
                inspectors.push(Arc::new(shard.inspector()) as Arc<dyn whimbrel_io::Inspect>);
            }
            workers.push(shard.worker(stack_port));
        }
        if let Some(queues) = &self.packet_queues {
            queues.attach_shards(mailboxes.clone());
        }
        driver.start(workers, Arc::clone(&shutdown), time)?;
        let seed = self.seed.unwrap_or_else(|| fastrand::u64(..));
        let dad = self.dad.unwrap_or(DuplicateAddressDetection::Off);
        let sources = if self.any_address { SourceAddresses::Any } else { SourceAddresses::Own };
        let habits = StackOptions {
            packet_queues: self.packet_queues,
            dad,
            seed,
            sources,
            #[cfg(feature = "sim")]
            names: self.names,
        };
        let stack = Stack::new(mailboxes.into(), self.addresses, self.tunables, habits);
        #[cfg(all(target_os = "linux", feature = "control"))]
        if let Some(place) = self.control {
            stack.serve_control(&place, inspectors)?;
        }
        Ok((stack, shutdown))
    }
}

impl Wire {
    /// Returns the time that a stack over this wire follows.
    fn time_source(&self, driver: Driver) -> Result<TimeSource, BuildError> {
        let has_queues = matches!(self, Self::Mem(_) | Self::Packets(_));
        let source = match driver {
            Driver::Runtime if has_queues => return Ok(TimeSource::Runtime),
            Driver::Runtime => "a wire with a descriptor",
            Driver::Thread => "Driver::Thread",
        };
        if clock::is_paused() {
            return Err(BuildError::PausedClock(source));
        }
        Ok(TimeSource::Machine)
    }
}

impl Stack {
    /// Returns a builder of a stack, without a wire.
    pub fn builder() -> StackBuilder {
        StackBuilder::new()
    }

    /// Builds two stacks, joined inside the process by a perfect wire, with the addresses 10.0.0.1 and
    /// fd00::1, and 10.0.0.2 and fd00::2. For tests and examples; [`StackBuilder::mem`] takes other
    /// wires.
    pub fn pair() -> Result<(Self, Self), BuildError> {
        let (first, second) = mem_wire(LinkConfig::default(), LinkConfig::default(), 0)?;
        let first = Self::builder().mem(first).address("10.0.0.1", 24)?.address("fd00::1", 64)?;
        let second = Self::builder().mem(second).address("10.0.0.2", 24)?.address("fd00::2", 64)?;
        Ok((first.build()?, second.build()?))
    }
}
