//! What is typed after `--wire`, turned into what is meant: `kind:target[,key=value…]`.
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

use crate::Dad;
use crate::config::ConfigError;
use crate::packet::PacketConfig;
use crate::pcap::{PcapConfig, Speed};
use crate::tun::{Layer, Offload, TunConfig};
use crate::unix::UnixConfig;

pub use kind::Kind;

mod kind;

/// A wire: where frames go.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum WireSpec {
    /// `tun:NAME,addr=ADDRESS/PREFIX[,host=ADDRESS][,queues=N][,offload=on|off][,mtu=N]`; `addr`
    /// and `host` may repeat. Without a `host` in its network, each `addr` gets the first other
    /// address of the network as the machine's.
    Tun(TunConfig),
    /// `tap:NAME,addr=ADDRESS/PREFIX[,host=ADDRESS][,mac=MAC][,offload=on|off][,mtu=N][,dad=on|off]`: the
    /// same with Ethernet frames. Without `mac` the stack's station is drawn at random.
    Tap(TunConfig),
    /// `packet:IF,addr=ADDRESS/PREFIX[,gw=ADDRESS][,mac=MAC][,fanout=N][,offload=on|off]
    /// [,dad=on|off]`: a station of the stack's own on the interface IF; `addr` and `gw` may repeat. Without `mac`
    /// the station is drawn at random.
    Packet(PacketConfig),
    /// `unix:PATH,addr=ADDRESS/PREFIX[,mtu=N]`: a socket to another process; `addr` may repeat.
    Unix(UnixConfig),
    /// `pcap:FILE,addr=ADDRESS/PREFIX[,mac=MAC][,speed=max]`: a capture, replayed; `addr` may repeat.
    /// Without `mac` the station is the one that frames for these addresses are for.
    Pcap(PcapConfig),
    /// `mem:[rate=45M][,delay=35ms][,…]`: both hosts in this process, and a link between them in
    /// each direction that is like this; `mem:` alone is perfect.
    Mem(LinkConfig),
    /// `kernel:`: no stack of ours, but the kernel's sockets.
    Kernel,
}

impl WireSpec {
    /// The stack's addresses, where the wire says them.
    pub fn addresses(&self) -> &[InterfaceAddress] {
        match self {
            Self::Tun(config) | Self::Tap(config) => config.addresses(),
            Self::Packet(config) => config.addresses(),
            Self::Unix(config) => config.addresses(),
            Self::Pcap(config) => config.addresses(),
            Self::Mem(_) | Self::Kernel => &[],
        }
    }

    /// Whether others on the wire are asked for the stack's addresses before it uses them.
    pub fn dad(&self) -> Dad {
        match self {
            Self::Tun(config) | Self::Tap(config) => config.dad(),
            Self::Packet(config) => config.dad(),
            Self::Unix(_) | Self::Pcap(_) | Self::Mem(_) | Self::Kernel => Dad::Off,
        }
    }

    /// The queues that frames come in by: one for each shard.
    pub fn queues(&self) -> u16 {
        match self {
            Self::Tun(config) | Self::Tap(config) => config.queues(),
            Self::Packet(config) => config.fanout(),
            Self::Unix(_) | Self::Pcap(_) | Self::Mem(_) | Self::Kernel => 1,
        }
    }

    /// The same with so many queues.
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

    /// The stack's ways beyond the networks of its addresses.
    pub fn routes(&self) -> Vec<Route> {
        match self {
            Self::Tun(config) | Self::Tap(config) => config.routes(),
            Self::Packet(config) => config.routes(),
            Self::Unix(config) => config.routes(),
            Self::Pcap(config) => config.routes(),
            Self::Mem(_) | Self::Kernel => Vec::new(),
        }
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
        let kind = Kind::named(kind).ok_or_else(|| match PLANNED.contains(&kind) {
            true => SpecError::NotBuilt(kind.into()),
            false => SpecError::UnknownKind(kind.into()),
        })?;
        let (target, typed) = Typed::parse(kind, rest)?;
        Ok(match kind {
            Kind::Tun => Self::Tun(typed.interface(target, Layer::Ip)?),
            Kind::Tap => {
                let layer = Layer::Ethernet(typed.mac);
                Self::Tap(typed.interface(target, layer)?)
            }
            Kind::Packet => Self::Packet(typed.place(target)?),
            Kind::Unix => {
                let config = UnixConfig::new(target, typed.addresses)?;
                Self::Unix(match typed.mtu {
                    Some(mtu) => config.with_mtu(mtu)?,
                    None => config,
                })
            }
            Kind::Pcap => {
                let config = PcapConfig::new(target, typed.addresses)?;
                let config = config.with_speed(typed.speed.unwrap_or_default());
                Self::Pcap(match typed.mac {
                    Some(mac) => config.with_mac(mac)?,
                    None => config,
                })
            }
        })
    }
}

/// Why what was typed means no wire.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SpecError {
    /// No colon.
    #[error("wire {0:?} names no kind: write KIND:TARGET, as in {EXAMPLE}")]
    NoKind(String),
    /// A kind that can stand alone, without its colon.
    #[error("wire {0:?} has no colon: give {0}:")]
    NoColon(String),
    /// A kind that is none.
    #[error("wire kind {0:?} is unknown; this version has {KINDS}, as in {EXAMPLE}")]
    UnknownKind(String),
    /// A kind of a later version.
    #[error("wire kind {0}: is planned; this version has only {KINDS}, as in {EXAMPLE}")]
    NotBuilt(String),
    /// No name.
    #[error("{0} needs {target}, as in {example}", target = .0.target(), example = .0.example())]
    NoTarget(Kind),
    /// Not of the form `key=value`.
    #[error("{1:?} is no key=value; {0} has the keys {keys}, as in {example}", keys = .0.key_list(), example = .0.example())]
    NoValue(Kind, String),
    /// A key that is none.
    #[error("key {1:?} is unknown; {0} has the keys {keys}, as in {example}", keys = .0.key_list(), example = .0.example())]
    UnknownKey(Kind, String),
    /// A value out of its key's range.
    #[error("{key}={value}: give {allowed}")]
    BadValue {
        /// The key.
        key: &'static str,
        /// What was given.
        value: String,
        /// What is allowed, with an example.
        allowed: &'static str,
    },
    /// A key that must not repeat.
    #[error("{0} is given twice: only addr, host and gw may repeat")]
    Repeated(&'static str),
    /// Something behind `kernel:`.
    #[error("kernel:{0} says too much: kernel: stands alone, the kernel knows its addresses")]
    KernelTarget(String),
    /// What stands behind `mem:` describes no link.
    #[error("mem: {0}")]
    Link(#[from] whimbrel_link::ConfigError),
    /// Values that are good alone and not together.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

/// What was typed after the target.
#[derive(Default)]
struct Typed {
    addresses: Vec<InterfaceAddress>,
    hosts: Vec<Address>,
    gateways: Vec<Address>,
    mac: Option<MacAddress>,
    speed: Option<Speed>,
    queues: Option<u16>,
    fanout: Option<u16>,
    offload: Option<Offload>,
    dad: Option<Dad>,
    mtu: Option<u16>,
}

impl Typed {
    fn parse(kind: Kind, rest: &str) -> Result<(&str, Self), SpecError> {
        let mut parts = rest.split(',');
        let target = parts.next().filter(|target| !target.is_empty());
        let target = target.ok_or(SpecError::NoTarget(kind))?;
        let mut typed = Self::default();
        for part in parts {
            let (key, value) =
                part.split_once('=').ok_or_else(|| SpecError::NoValue(kind, part.into()))?;
            if !kind.keys().contains(&key) {
                return Err(SpecError::UnknownKey(kind, key.into()));
            }
            typed.take(kind, key, value)?;
        }
        Ok((target, typed))
    }

    fn take(&mut self, kind: Kind, key: &str, value: &str) -> Result<(), SpecError> {
        match key {
            "addr" => self.addresses.push(
                interface_address(value)
                    .ok_or_else(|| bad("addr", value, "ADDRESS/PREFIX, as in addr=10.9.0.2/24"))?,
            ),
            "host" => self.hosts.push(address(value).ok_or_else(|| {
                bad("host", value, "an address without prefix, as in host=10.9.0.1")
            })?),
            "gw" => {
                let allowed = "an address without prefix, as in gw=10.9.0.1";
                self.gateways.push(address(value).ok_or_else(|| bad("gw", value, allowed))?);
            }
            "fanout" => once(
                &mut self.fanout,
                "fanout",
                value.parse().map_err(|_| bad("fanout", value, "1 to 256, as in fanout=2"))?,
            )?,
            "queues" => once(
                &mut self.queues,
                "queues",
                value.parse().map_err(|_| bad("queues", value, "1 to 256, as in queues=2"))?,
            )?,
            "mtu" => once(
                &mut self.mtu,
                "mtu",
                value.parse().map_err(|_| {
                    bad("mtu", value, "68 to 65535 bytes (1280 with IPv6), as in mtu=1500")
                })?,
            )?,
            "offload" => once(&mut self.offload, "offload", offload(value)?)?,
            "dad" => once(&mut self.dad, "dad", dad(value)?)?,
            "speed" => once(&mut self.speed, "speed", speed(value)?)?,
            "mac" => once(
                &mut self.mac,
                "mac",
                station(value).ok_or_else(|| {
                    bad(
                        "mac",
                        value,
                        "six pairs of hexadecimal digits, as in mac=02:00:00:00:00:01",
                    )
                })?,
            )?,
            _ => return Err(SpecError::UnknownKey(kind, key.into())),
        }
        Ok(())
    }

    /// The interface called `name` that it means.
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

    /// The place on the interface called `name` that it means.
    fn place(self, name: &str) -> Result<PacketConfig, ConfigError> {
        let config = PacketConfig::new(name, self.addresses)?.with_gateways(&self.gateways)?;
        let config = config.with_mac(self.mac)?.with_fanout(self.fanout.unwrap_or(1))?;
        let config = config.with_dad(self.dad.unwrap_or_default());
        Ok(config.with_offload(self.offload.unwrap_or_default()))
    }
}

fn once<T>(place: &mut Option<T>, key: &'static str, value: T) -> Result<(), SpecError> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(SpecError::Repeated(key)),
    }
}

pub(crate) fn interface_address(value: &str) -> Option<InterfaceAddress> {
    let (addr, prefix_len) = value.split_once('/')?;
    Some(InterfaceAddress { addr: address(addr)?, prefix_len: prefix_len.parse().ok()? })
}

fn address(value: &str) -> Option<Address> {
    match value.parse().ok()? {
        // It would become the IPv4 address, with a prefix of the other family.
        IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some() => None,
        addr => Some(addr.into()),
    }
}

fn station(value: &str) -> Option<MacAddress> {
    let mut octets = [0; 6];
    let mut pairs = value.split(':');
    for octet in &mut octets {
        let pair = pairs.next().filter(|pair| pair.len() == 2 && !pair.starts_with('+'))?;
        *octet = u8::from_str_radix(pair, 16).ok()?;
    }
    pairs.next().is_none().then_some(MacAddress(octets))
}

fn speed(value: &str) -> Result<Speed, SpecError> {
    match value {
        "max" => Ok(Speed::Max),
        "captured" => Ok(Speed::Captured),
        _ => Err(bad("speed", value, "max or captured, as in speed=max")),
    }
}

fn offload(value: &str) -> Result<Offload, SpecError> {
    match value {
        "on" => Ok(Offload::On),
        "off" => Ok(Offload::Off),
        _ => Err(bad("offload", value, "on or off, as in offload=on")),
    }
}

fn dad(value: &str) -> Result<Dad, SpecError> {
    match value {
        "on" => Ok(Dad::On),
        "off" => Ok(Dad::Off),
        _ => Err(bad("dad", value, "on or off, as in dad=off")),
    }
}

fn bad(key: &'static str, value: &str, allowed: &'static str) -> SpecError {
    SpecError::BadValue { key, value: value.into(), allowed }
}

/// Kinds of wire that later versions have.
const PLANNED: [&str; 1] = ["xdp"];
const KINDS: &str = "tun:, tap:, packet:, unix:, pcap:, mem: and kernel:";
const EXAMPLE: &str = "tun:whim0,addr=10.9.0.2/24,host=10.9.0.1";

#[cfg(test)]
mod tests;
