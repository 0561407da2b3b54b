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

use whimbrel_stack::InterfaceAddress;
use whimbrel_wire::Address;

use crate::tun::{Offload, TunConfig, TunConfigError};

/// A wire: where frames go.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum WireSpec {
    /// `tun:NAME,addr=ADDRESS/PREFIX[,host=ADDRESS][,queues=N][,offload=on|off][,mtu=N]`; `addr`
    /// and `host` may repeat. Without a `host` in its network, each `addr` gets the first other
    /// address of the network as the machine's.
    Tun(TunConfig),
}

impl FromStr for WireSpec {
    type Err = SpecError;

    fn from_str(spec: &str) -> Result<Self, SpecError> {
        let (kind, rest) = spec.split_once(':').ok_or_else(|| SpecError::NoKind(spec.into()))?;
        match kind {
            "tun" => parse_tun(rest).map(Self::Tun),
            _ if PLANNED.contains(&kind) => Err(SpecError::NotBuilt(kind.into())),
            _ => Err(SpecError::UnknownKind(kind.into())),
        }
    }
}

/// Why what was typed means no wire.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SpecError {
    /// No colon.
    #[error("wire {0:?} names no kind: write KIND:TARGET, as in {EXAMPLE}")]
    NoKind(String),
    /// A kind that is none.
    #[error("wire kind {0:?} is unknown; this version has tun:, as in {EXAMPLE}")]
    UnknownKind(String),
    /// A kind of a later version.
    #[error("wire kind {0}: is planned; this version has only tun:, as in {EXAMPLE}")]
    NotBuilt(String),
    /// No name.
    #[error("tun: needs an interface name, as in {EXAMPLE}")]
    NoTarget,
    /// Not of the form `key=value`.
    #[error("{0:?} is no key=value; tun: has the keys {KEYS}, as in {EXAMPLE}")]
    NoValue(String),
    /// A key that is none.
    #[error("key {0:?} is unknown; tun: has the keys {KEYS}, as in {EXAMPLE}")]
    UnknownKey(String),
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
    #[error("{0} is given twice: only addr and host may repeat")]
    Repeated(&'static str),
    /// Values that are good alone and not together.
    #[error(transparent)]
    Tun(#[from] TunConfigError),
}

/// What was typed for `tun:`.
#[derive(Default)]
struct Typed {
    addresses: Vec<InterfaceAddress>,
    hosts: Vec<Address>,
    queues: Option<u16>,
    offload: Option<Offload>,
    mtu: Option<u16>,
}

fn parse_tun(rest: &str) -> Result<TunConfig, SpecError> {
    let mut parts = rest.split(',');
    let name = parts.next().filter(|name| !name.is_empty()).ok_or(SpecError::NoTarget)?;
    let mut typed = Typed::default();
    for part in parts {
        let (key, value) = part.split_once('=').ok_or_else(|| SpecError::NoValue(part.into()))?;
        typed.take(key, value)?;
    }
    let mut config = TunConfig::new(name, typed.addresses)?.with_hosts(&typed.hosts)?;
    if let Some(mtu) = typed.mtu {
        config = config.with_mtu(mtu)?;
    }
    if let Some(queues) = typed.queues {
        config = config.with_queues(queues)?;
    }
    Ok(config.with_offload(typed.offload.unwrap_or_default()))
}

impl Typed {
    fn take(&mut self, key: &str, value: &str) -> Result<(), SpecError> {
        match key {
            "addr" => self.addresses.push(
                interface_address(value)
                    .ok_or_else(|| bad("addr", value, "ADDRESS/PREFIX, as in addr=10.9.0.2/24"))?,
            ),
            "host" => self.hosts.push(address(value).ok_or_else(|| {
                bad("host", value, "an address without prefix, as in host=10.9.0.1")
            })?),
            "queues" => once(
                &mut self.queues,
                "queues",
                value.parse().map_err(|_| bad("queues", value, "1 to 256, as in queues=2"))?,
            )?,
            "mtu" => once(
                &mut self.mtu,
                "mtu",
                value.parse().map_err(|_| {
                    bad("mtu", value, "68 to 65535 octets (1280 with IPv6), as in mtu=1500")
                })?,
            )?,
            "offload" => once(&mut self.offload, "offload", offload(value)?)?,
            _ => return Err(SpecError::UnknownKey(key.into())),
        }
        Ok(())
    }
}

fn once<T>(place: &mut Option<T>, key: &'static str, value: T) -> Result<(), SpecError> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(SpecError::Repeated(key)),
    }
}

fn interface_address(value: &str) -> Option<InterfaceAddress> {
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

fn offload(value: &str) -> Result<Offload, SpecError> {
    match value {
        "on" => Ok(Offload::On),
        "off" => Ok(Offload::Off),
        _ => Err(bad("offload", value, "on or off, as in offload=on")),
    }
}

fn bad(key: &'static str, value: &str, allowed: &'static str) -> SpecError {
    SpecError::BadValue { key, value: value.into(), allowed }
}

/// Kinds of wire that later versions have.
const PLANNED: [&str; 7] = ["mem", "unix", "tap", "packet", "xdp", "pcap", "kernel"];
const KEYS: &str = "addr, host, queues, offload and mtu";
const EXAMPLE: &str = "tun:whim0,addr=10.9.0.2/24,host=10.9.0.1";

#[cfg(test)]
mod tests;
