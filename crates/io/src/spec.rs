//! Parses and opens wire specifications, as given to `--wire`: `kind:target[,key=value…]`.
//!
//! Each kind has a folder with its configuration and its device. Only this file knows its text form and
//! the stack's options on it.
//!
//! ```
//! use whimbrel_io::WireSpec;
//!
//! let spec = "tun:whim0,addr=10.9.0.2/24,addr=fd09::2/64,host=10.9.0.1,mtu=1500".parse();
//! let Ok(WireSpec::Tun(config)) = spec else { panic!("{spec:?}") };
//! assert_eq!(config.addresses().len(), 2);
//! assert_eq!(config.hosts().len(), 2); // fd09::1 was derived
//! ```

use std::net::IpAddr;
use std::str::FromStr;

use whimbrel_link::LinkConfig;
use whimbrel_stack::{InterfaceAddress, Route};
use whimbrel_wire::{Address, MacAddress};

use crate::config::ConfigError;
use crate::device::{AnyDevice, boxed};
use crate::packet::{PacketConfig, PacketWire};
use crate::pcap::{PcapConfig, PcapWire, Speed};
use crate::tun::{Layer, Offload, Tun, TunConfig};
use crate::unix::{UnixConfig, UnixWire};
use crate::{Clock, DuplicateAddressDetection, Stop, WireError};

pub use error::{Kind, SpecError};

mod error;

/// A wire: the source and destination of a stack's frames.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum WireSpec {
    /// `tun:NAME,addr=ADDRESS/PREFIX[,host=ADDRESS][,queues=N][,offload=on|off][,mtu=N]`; `addr` and
    /// `host` may repeat. An `addr` without a `host` in its network gets the first other address of the
    /// network as that of the machine.
    Tun(TunConfig),
    /// `tap:NAME,addr=ADDRESS/PREFIX[,host=ADDRESS][,mac=MAC][,offload=on|off][,mtu=N][,dad=on|off]`:
    /// like `tun:` with Ethernet frames. Without `mac` the station address is random.
    Tap(TunConfig),
    /// `packet:IF,addr=ADDRESS/PREFIX[,gw=ADDRESS][,mac=MAC][,fanout=N][,offload=on|off]
    /// [,dad=on|off]`: a station of the stack's own on the interface IF; `addr` and `gw` may repeat.
    /// Without `mac` the station address is random.
    Packet(PacketConfig),
    /// `unix:PATH,addr=ADDRESS/PREFIX[,mtu=N]`: a socket to another process; `addr` may repeat.
    Unix(UnixConfig),
    /// `pcap:FILE,addr=ADDRESS/PREFIX[,mac=MAC][,speed=max]`: a capture to replay; `addr` may repeat.
    /// Without `mac` the stack has the station address to which the capture's frames for these
    /// addresses go.
    Pcap(PcapConfig),
    /// `mem:[rate=45M][,delay=35ms][,…]`: both hosts in this process, with such a link in each
    /// direction; `mem:` without options is perfect.
    Mem(LinkConfig),
    /// `kernel:`: the kernel's sockets instead of a stack.
    Kernel,
}

impl WireSpec {
    /// Returns the stack's addresses, if the wire specifies them.
    pub fn addresses(&self) -> &[InterfaceAddress] {
        match self {
            Self::Tun(config) | Self::Tap(config) => config.addresses(),
            Self::Packet(config) => config.addresses(),
            Self::Unix(config) => config.addresses(),
            Self::Pcap(config) => config.addresses(),
            Self::Mem(_) | Self::Kernel => &[],
        }
    }

    /// Returns the mode of duplicate address detection.
    pub fn dad(&self) -> DuplicateAddressDetection {
        match self {
            Self::Tun(config) | Self::Tap(config) => config.dad(),
            Self::Packet(config) => config.dad(),
            Self::Unix(_) | Self::Pcap(_) | Self::Mem(_) | Self::Kernel => {
                DuplicateAddressDetection::Off
            }
        }
    }

    /// Returns the number of receive queues, one for each shard.
    pub fn queues(&self) -> u16 {
        match self {
            Self::Tun(config) | Self::Tap(config) => config.queues(),
            Self::Packet(config) => config.fanout(),
            Self::Unix(_) | Self::Pcap(_) | Self::Mem(_) | Self::Kernel => 1,
        }
    }

    /// Returns this wire with another number of queues.
    pub fn with_queues(self, queues: u16) -> Result<Self, ConfigError> {
        Ok(match self {
            Self::Tun(config) => Self::Tun(config.with_queues(queues)?),
            Self::Tap(config) => Self::Tap(config.with_queues(queues)?),
            Self::Packet(config) => Self::Packet(config.with_fanout(queues)?),
            Self::Unix(_) | Self::Pcap(_) | Self::Mem(_) | Self::Kernel if queues != 1 => {
                return Err(ConfigError::OneQueue(queues));
            }
            one => one,
        })
    }

    /// Returns the stack's routes in addition to those to its networks.
    pub fn routes(&self) -> Vec<Route> {
        match self {
            Self::Tun(config) | Self::Tap(config) => config.routes(),
            Self::Packet(config) => config.routes(),
            Self::Unix(config) => config.routes(),
            Self::Pcap(config) => config.routes(),
            Self::Mem(_) | Self::Kernel => Vec::new(),
        }
    }

    /// Opens the wire: a device for each queue, in the kernel's order, to be
    /// [joined](crate::Steered::join). `clock` is that of their workers; `done` is set when a finite
    /// wire, such as a capture, has ended. [`stack::open`](crate::stack::open) also creates shards.
    pub fn open(&self, clock: Clock, done: &Stop) -> Result<Vec<AnyDevice>, WireError> {
        Ok(match self {
            Self::Tun(config) | Self::Tap(config) => boxed(Tun::open_queues(config)?),
            Self::Packet(config) => boxed(PacketWire::open_fanout(config)?),
            Self::Unix(config) => boxed([UnixWire::open(config)?]),
            Self::Pcap(config) => boxed([PcapWire::open(config, clock, done.clone())?]),
            Self::Mem(_) | Self::Kernel => return Err(WireError::NoDevice),
        })
    }

    /// True for the kernel's sockets.
    pub fn is_kernel(&self) -> bool {
        *self == Self::Kernel
    }

    /// Returns the link between both hosts, if both are in this process.
    pub fn mem_link(&self) -> Option<&LinkConfig> {
        if let Self::Mem(link) = self { Some(link) } else { None }
    }

    /// True for a capture, which ends and discards what the stack sends.
    pub fn is_capture(&self) -> bool {
        matches!(self, Self::Pcap(_))
    }

    /// True if this machine can reach the stack there: frames of the machine do not come back to a
    /// station on its own interface.
    pub fn is_reached_from_here(&self) -> bool {
        !matches!(self, Self::Packet(_))
    }
}

impl FromStr for WireSpec {
    type Err = SpecError;

    fn from_str(spec: &str) -> Result<Self, SpecError> {
        let (kind, rest) = spec.split_once(':').ok_or_else(|| match spec {
            "mem" | "kernel" => SpecError::NoColon(spec.into()),
            _ => SpecError::NoKind(spec.into()),
        })?;
        match (kind, rest) {
            ("mem", link) => return Ok(Self::Mem(link.parse()?)),
            ("kernel", "") => return Ok(Self::Kernel),
            ("kernel", more) => return Err(SpecError::KernelTarget(more.into())),
            _ => {}
        }
        let named = KINDS.iter().find(|(known, _)| known.name == kind);
        let (kind, read) = named.ok_or_else(|| match PLANNED.contains(&kind) {
            true => SpecError::NotBuilt(kind.into(), names()),
            false => SpecError::UnknownKind(kind.into(), names()),
        })?;
        let (target, typed) = Options::parse(kind, rest)?;
        Ok(read(target, typed)?)
    }
}

/// Parses a wire of one kind from its target and options.
type Read = fn(&str, Options) -> Result<WireSpec, ConfigError>;

/// All kinds that have devices.
const KINDS: [(Kind, Read); 5] = [
    (
        Kind::new("tun", INTERFACE, &["addr", "host", "queues", "offload", "mtu"], EXAMPLE),
        |name, typed| typed.interface(name, Layer::Ip).map(WireSpec::Tun),
    ),
    (
        Kind::new("tap", INTERFACE, &["addr", "host", "mac", "offload", "mtu", "dad"], TAP_EXAMPLE),
        |name, typed| {
            let layer = Layer::Ethernet(typed.mac);
            typed.interface(name, layer).map(WireSpec::Tap)
        },
    ),
    (
        Kind::new(
            "packet",
            INTERFACE,
            &["addr", "gw", "mac", "fanout", "offload", "dad"],
            PACKET_EXAMPLE,
        ),
        |name, typed| typed.place(name).map(WireSpec::Packet),
    ),
    (
        Kind::new("unix", "the path of a socket", &["addr", "mtu"], UNIX_EXAMPLE),
        |path, Options { addresses, mtu, .. }| {
            let config = UnixConfig::new(path, addresses)?;
            mtu.map_or(Ok(config.clone()), |mtu| config.with_mtu(mtu)).map(WireSpec::Unix)
        },
    ),
    (
        Kind::new("pcap", "a capture", &["addr", "mac", "speed"], PCAP_EXAMPLE),
        |path, Options { addresses, mac, speed, .. }| {
            let config = PcapConfig::new(path, addresses)?.with_speed(speed.unwrap_or_default());
            mac.map_or(Ok(config.clone()), |mac| config.with_mac(mac)).map(WireSpec::Pcap)
        },
    ),
];

/// Returns the names of all kinds for messages; those without devices last.
fn names() -> String {
    let kinds = KINDS.iter().map(|(kind, _)| format!("{kind}, "));
    kinds.collect::<String>() + "mem: and kernel:"
}

/// Options after the target, by key.
#[derive(Default)]
struct Options {
    addresses: Vec<InterfaceAddress>,
    hosts: Vec<Address>,
    gateways: Vec<Address>,
    mac: Option<MacAddress>,
    speed: Option<Speed>,
    queues: Option<u16>,
    fanout: Option<u16>,
    offload: Option<Offload>,
    dad: Option<DuplicateAddressDetection>,
    mtu: Option<u16>,
}

impl Options {
    fn parse<'r>(kind: &'static Kind, rest: &'r str) -> Result<(&'r str, Self), SpecError> {
        let mut parts = rest.split(',');
        let target = parts.next().filter(|target| !target.is_empty());
        let target = target.ok_or(SpecError::NoTarget(kind))?;
        let mut typed = Self::default();
        for part in parts {
            let (key, value) =
                part.split_once('=').ok_or_else(|| SpecError::NoValue(kind, part.into()))?;
            if !kind.keys.contains(&key) {
                return Err(SpecError::UnknownKey(kind, key.into()));
            }
            typed.take(kind, key, value)?;
        }
        Ok((target, typed))
    }

    fn take(&mut self, kind: &'static Kind, key: &str, value: &str) -> Result<(), SpecError> {
        let known = VALUES.iter().find(|(known, ..)| *known == key);
        let unknown = || SpecError::UnknownKey(kind, key.into());
        let (key, allowed, take) = *known.ok_or_else(unknown)?;
        take(self, Given { key, value, allowed })
    }

    /// Returns the configuration of the interface `name`.
    fn interface(self, name: &str, layer: Layer) -> Result<TunConfig, ConfigError> {
        let mut config = TunConfig::new(name, self.addresses)?.with_hosts(&self.hosts)?;
        config = config.with_layer(layer)?;
        if let Some(mtu) = self.mtu {
            config = config.with_mtu(mtu)?;
        }
        if let Some(queues) = self.queues {
            config = config.with_queues(queues)?;
        }
        let config = config.with_dad(self.dad.unwrap_or_default());
        Ok(config.with_offload(self.offload.unwrap_or_default()))
    }

    /// Returns the configuration of a station on the interface `name`.
    fn place(self, name: &str) -> Result<PacketConfig, ConfigError> {
        let config = PacketConfig::new(name, self.addresses)?.with_gateways(&self.gateways)?;
        let config = config.with_mac(self.mac)?.with_fanout(self.fanout.unwrap_or(1))?;
        let config = config.with_dad(self.dad.unwrap_or_default());
        Ok(config.with_offload(self.offload.unwrap_or_default()))
    }
}

/// A key with its value, as they were given.
struct Given<'t> {
    key: &'static str,
    value: &'t str,
    /// Valid values, in words.
    allowed: &'static str,
}

impl Given<'_> {
    fn read<T>(&self, read: impl Fn(&str) -> Option<T>) -> Result<T, SpecError> {
        let &Self { key, value, allowed } = self;
        read(value).ok_or_else(|| SpecError::BadValue { key, value: value.into(), allowed })
    }

    /// Reads the value of a key that must not repeat.
    fn once<T>(
        &self,
        place: &mut Option<T>,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<(), SpecError> {
        match place.replace(self.read(read)?) {
            None => Ok(()),
            Some(_) => Err(SpecError::Repeated(self.key)),
        }
    }
}

/// Parses an address with the length of its prefix, as in `10.9.0.2/24`.
pub fn interface_address(value: &str) -> Option<InterfaceAddress> {
    let (addr, prefix_len) = value.split_once('/')?;
    Some(InterfaceAddress { addr: address(addr)?, prefix_len: prefix_len.parse().ok()? })
}

fn address(value: &str) -> Option<Address> {
    match value.parse().ok()? {
        // An IPv4-mapped address would become the IPv4 address, with a prefix of the other family.
        IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some() => None,
        addr => Some(addr.into()),
    }
}

fn station(value: &str) -> Option<MacAddress> {
    let mut bytes = [0; 6];
    let mut pairs = value.split(':');
    for byte in &mut bytes {
        let pair = pairs.next().filter(|pair| pair.len() == 2 && !pair.starts_with('+'))?;
        *byte = u8::from_str_radix(pair, 16).ok()?;
    }
    pairs.next().is_none().then_some(MacAddress(bytes))
}

fn number(value: &str) -> Option<u16> {
    value.parse().ok()
}

fn speed(value: &str) -> Option<Speed> {
    [("max", Speed::Max), ("captured", Speed::Captured)].into_iter().find_map(named(value))
}

fn offload(value: &str) -> Option<Offload> {
    [("on", Offload::On), ("off", Offload::Off)].into_iter().find_map(named(value))
}

fn dad(value: &str) -> Option<DuplicateAddressDetection> {
    [("on", DuplicateAddressDetection::On), ("off", DuplicateAddressDetection::Off)]
        .into_iter()
        .find_map(named(value))
}

fn named<T>(value: &str) -> impl Fn((&str, T)) -> Option<T> {
    move |(name, it)| (name == value).then_some(it)
}

/// Each key, its valid values in words, and its place.
const VALUES: [(&str, &str, Take); 10] = [
    ("addr", "ADDRESS/PREFIX, as in addr=10.9.0.2/24", |typed, given| {
        given.read(interface_address).map(|address| typed.addresses.push(address))
    }),
    ("host", "an address without prefix, as in host=10.9.0.1", |typed, given| {
        given.read(address).map(|host| typed.hosts.push(host))
    }),
    ("gw", "an address without prefix, as in gw=10.9.0.1", |typed, given| {
        given.read(address).map(|gateway| typed.gateways.push(gateway))
    }),
    ("fanout", "1 to 256, as in fanout=2", |typed, given| given.once(&mut typed.fanout, number)),
    ("queues", "1 to 256, as in queues=2", |typed, given| given.once(&mut typed.queues, number)),
    ("mtu", "68 to 65535 bytes (1280 with IPv6), as in mtu=1500", |typed, given| {
        given.once(&mut typed.mtu, number)
    }),
    ("offload", "on or off, as in offload=on", |typed, given| {
        given.once(&mut typed.offload, offload)
    }),
    ("dad", "on or off, as in dad=off", |typed, given| given.once(&mut typed.dad, dad)),
    ("speed", "max or captured, as in speed=max", |typed, given| {
        given.once(&mut typed.speed, speed)
    }),
    ("mac", "six pairs of hexadecimal digits, as in mac=02:00:00:00:00:01", |typed, given| {
        given.once(&mut typed.mac, station)
    }),
];

/// Puts a given value in its place.
type Take = fn(&mut Options, Given<'_>) -> Result<(), SpecError>;

/// Kinds of wire of later versions.
const PLANNED: [&str; 1] = ["xdp"];
const INTERFACE: &str = "an interface name";
/// Example of a first wire.
const EXAMPLE: &str = "tun:whim0,addr=10.9.0.2/24,host=10.9.0.1";
const TAP_EXAMPLE: &str = "tap:whim0,addr=10.9.0.2/24,host=10.9.0.1";
const PACKET_EXAMPLE: &str = "packet:eth0,addr=10.9.0.2/24,gw=10.9.0.1";
const UNIX_EXAMPLE: &str = "unix:/run/whimbrel.sock,addr=10.9.0.2/24";
const PCAP_EXAMPLE: &str = "pcap:whim0.pcapng,addr=10.9.0.2/24";

#[cfg(test)]
mod tests;
