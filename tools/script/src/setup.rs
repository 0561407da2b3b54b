//! Configuration by a script's `--name=value` lines: addresses, sizes, tolerances.
//!
//! An unknown option is reported, and the caller skips the script: a test that does not test its
//! own text is worth less than none.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::net::IpAddr;
use core::time::Duration;

use whimbrel_wire::{Address, Endpoint};

use super::ast::{Direction, OptionLine, PacketEnds, Script};
pub use super::dialect::Dialect;
use super::host::Network;

/// Configuration of a script before its first line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Setup {
    /// Address family of the application.
    pub ip_version: IpVersion,
    /// Addresses of the host under test and its peer.
    pub network: Network,
    /// Address to bind: the host's address, and the port of a passive open.
    pub bind: Endpoint,
    /// Address to connect to.
    pub connect: Endpoint,
    /// Smallest tolerance of a packet's time.
    pub tolerance: Duration,
    /// Tolerance of a packet's time, in thousandths of the time since the event before.
    pub tolerance_permille: u32,
    /// Microseconds in a tick of the host's timestamps, if they are checked.
    pub timestamp_tick_usecs: Option<u32>,
    /// True if an inbound TSecr keeps its distance to the first one, instead of standing for the
    /// segment that had it.
    pub scaled_ecr: bool,
    /// Treatment of a written segment that comes in pieces.
    pub segments: Segments,
    /// Failures that are warnings.
    pub non_fatal: Vec<NonFatal>,
}

/// Failures that do not end a script.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NonFatal {
    /// Contents and times of packets.
    Packets,
    /// Results of calls: another value is a warning.
    Calls,
    /// Assertions of snippets: a false one is a warning.
    Snippets,
}

/// Address family of sockets and packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum IpVersion {
    /// Sockets and packets of IPv4.
    #[default]
    V4,
    /// Sockets and packets of IPv6.
    V6,
    /// Sockets of IPv6, packets of IPv4.
    V4MappedV6,
}

/// Treatment of a written segment that comes in pieces.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Segments {
    /// Several smaller ones match a longer one, and the other way round.
    #[default]
    Any,
    /// `--strict_segments`: each must match.
    Strict,
}

impl Setup {
    /// Configuration of `script`; an error has a sentence for each line that is not supported.
    pub fn of(script: &Script, dialect: Dialect) -> Result<Self, Vec<String>> {
        let mut unsupported = Vec::new();
        let ip_version = ip_version(&script.options, &mut unsupported);
        let mut setup = Self::new(ip_version, dialect);
        let mut mss = None;
        for option in &script.options {
            let outcome = match option.name.as_str() {
                "mss" => number(option).map(|size: u16| mss = Some(size)),
                _ => setup.apply(option),
            };
            if let Err(why) = outcome {
                unsupported.push(format!("line {}: {why}", option.line));
            }
        }
        if let Some(mss) = mss {
            setup.network.mtu = mss.saturating_add(setup.headers());
        }
        if unsupported.is_empty() { Ok(setup) } else { Err(unsupported) }
    }

    /// Configuration of a script without options.
    pub fn new(ip_version: IpVersion, dialect: Dialect) -> Self {
        let network = default_network(ip_version, dialect);
        Self {
            ip_version,
            bind: Endpoint::new(network.local, PORT),
            connect: Endpoint::new(network.remote, PORT),
            network,
            tolerance: Duration::from_micros(4_000),
            tolerance_permille: match dialect {
                Dialect::Linux | Dialect::Whimbrel => 125,
                Dialect::FreeBsd => 50,
            },
            timestamp_tick_usecs: None,
            scaled_ecr: false,
            segments: Segments::Any,
            non_fatal: Vec::new(),
        }
    }

    /// Tolerance of an event that comes `gap` after the one before.
    pub fn tolerance_after(&self, gap: Duration) -> Duration {
        self.tolerance.max(gap * self.tolerance_permille / 1_000)
    }

    /// Ends of a packet, with the script's own addresses if only ports are written.
    pub fn ends(&self, ends: PacketEnds, direction: Direction) -> PacketEnds {
        let Network { local, remote, .. } = self.network;
        let (from, to) = match direction {
            Direction::In => (remote, local),
            Direction::Out => (local, remote),
        };
        let named = |end: Endpoint, own: Address| {
            if end.addr.is_unspecified() { Endpoint::new(own, end.port) } else { end }
        };
        PacketEnds { from: named(ends.from, from), to: named(ends.to, to) }
    }

    fn apply(&mut self, option: &OptionLine) -> Result<(), String> {
        match option.name.as_str() {
            "ip_version" => {}
            "tolerance_usecs" => self.tolerance = Duration::from_micros(number(option)?),
            "mtu" => self.network.mtu = number(option)?,
            "local_ip" => {
                (self.network.local, self.network.prefix_len) = self.network_of(option)?;
                self.bind.addr = self.network.local;
            }
            "remote_ip" => {
                self.network.remote = self.network_of(option)?.0;
                self.connect.addr = self.network.remote;
            }
            "gateway_ip" => self.network.gateway = self.network_of(option)?.0,
            "netmask_ip" => self.network.prefix_len = prefix_len(value(option)?)?,
            "local_port" | "bind_port" => self.bind.port = number(option)?,
            "connect_port" => self.connect.port = number(option)?,
            "tcp_ts_tick_usecs" => {
                self.timestamp_tick_usecs = Some(number(option)?).filter(|tick| *tick != 0);
            }
            "tcp_ts_ecr_scaled" => self.scaled_ecr = switch(option)?,
            "strict_segments" => {
                self.segments = if switch(option)? { Segments::Strict } else { Segments::Any };
            }
            "non_fatal" => self.non_fatal = non_fatal(option)?,
            // `TCP_INFO`, checked by a Python program: snippets here.
            "code_sockopt" => only(option, &["TCP_INFO"])?,
            "code_format" => only(option, &["python"])?,
            "code_command" => interpreter(option)?,
            name if UNFELT.contains(&name) => {}
            name => return Err(format!("option --{name} is not supported")),
        }
        Ok(())
    }

    /// An address with or without a prefix length after a slash.
    fn network_of(&self, option: &OptionLine) -> Result<(Address, u8), String> {
        let text = value(option)?;
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, prefix.parse().ok()),
            None => (text, Some(self.network.prefix_len)),
        };
        let address = address.parse::<IpAddr>().ok().map(Address::from);
        let (Some(address), Some(prefix)) = (address, prefix) else {
            return Err(format!("--{}={text} is no address", option.name));
        };
        if address.family() != self.network.local.family() {
            return Err(format!("--{}={text} is of another family", option.name));
        }
        Ok((address, prefix))
    }

    /// Bytes of headers in a full segment.
    fn headers(&self) -> u16 {
        if self.network.local.is_v4() { 40 } else { 60 }
    }
}

fn default_network(ip_version: IpVersion, dialect: Dialect) -> Network {
    match (ip_version, dialect) {
        (IpVersion::V4 | IpVersion::V4MappedV6, _) => Network::v4(),
        (IpVersion::V6, Dialect::Linux) => Network::v6(),
        (IpVersion::V6, Dialect::FreeBsd | Dialect::Whimbrel) => {
            Network { mtu: 1_500, ..Network::v6() }
        }
    }
}

fn ip_version(options: &[OptionLine], unsupported: &mut Vec<String>) -> IpVersion {
    let Some(option) = options.iter().rfind(|option| option.name == "ip_version") else {
        return IpVersion::V4;
    };
    match option.value.as_deref() {
        Some("ipv4") => IpVersion::V4,
        Some("ipv6") => IpVersion::V6,
        Some("ipv4-mapped-ipv6") => IpVersion::V4MappedV6,
        other => {
            let other = other.unwrap_or_default();
            unsupported.push(format!("line {}: there is no --ip_version={other}", option.line));
            IpVersion::V4
        }
    }
}

fn value(option: &OptionLine) -> Result<&str, String> {
    option.value.as_deref().ok_or_else(|| format!("--{} wants a value", option.name))
}

fn number<N: core::str::FromStr>(option: &OptionLine) -> Result<N, String> {
    let text = value(option)?;
    text.parse().map_err(|_| format!("--{}={text} is out of range", option.name))
}

/// Accepts only values that mean the behaviour here.
fn only(option: &OptionLine, usual: &[&str]) -> Result<(), String> {
    let text = value(option)?;
    let is_usual = usual.contains(&text);
    is_usual.then_some(()).ok_or_else(|| format!("--{}={text} is not supported", option.name))
}

/// The program for snippets, which must be Python, at any path.
fn interpreter(option: &OptionLine) -> Result<(), String> {
    let text = value(option)?;
    let program = text.split_whitespace().next().unwrap_or_default();
    let is_python = program.rsplit('/').next().is_some_and(|name| name.starts_with("python"));
    is_python.then_some(()).ok_or_else(|| format!("--code_command={text} is not supported"))
}

/// `--name`, `--name=1` or `--name=0`.
fn switch(option: &OptionLine) -> Result<bool, String> {
    match option.value.as_deref() {
        None | Some("1" | "true") => Ok(true),
        Some("0" | "false") => Ok(false),
        Some(other) => Err(format!("--{}={other} is neither 0 nor 1", option.name)),
    }
}

/// Failures that need not end a run: names with commas between them.
fn non_fatal(option: &OptionLine) -> Result<Vec<NonFatal>, String> {
    let kind = |name| match name {
        "packet" => Ok(NonFatal::Packets),
        "syscall" => Ok(NonFatal::Calls),
        "code" => Ok(NonFatal::Snippets),
        other => Err(format!("--non_fatal={other} is not supported")),
    };
    value(option)?.split(',').map(kind).collect()
}

/// Number of bits of a mask, given as `255.255.0.0` or as `16`.
fn prefix_len(text: &str) -> Result<u8, String> {
    if let Ok(IpAddr::V4(mask)) = text.parse() {
        let bits = mask.to_bits();
        if bits.leading_ones() + bits.trailing_zeros() >= 32 {
            return Ok(bits.leading_ones() as u8);
        }
    }
    text.parse().map_err(|_| "--netmask_ip is no mask".to_string())
}

/// Port of the services on both sides.
const PORT: u16 = 8080;

/// Options that do not change the meaning of a script here: verbosity, the speed of the original's
/// link, and the machines between which packets go. Here both sides are one process and the wire is
/// a queue.
const UNFELT: &[&str] = &[
    "debug",
    "persistent_tun_dev",
    "speed",
    "verbose",
    "wire_client",
    "wire_client_dev",
    "wire_server",
    "wire_server_dev",
    "wire_server_ip",
    "wire_server_port",
];

#[cfg(test)]
mod tests;
