//! `--route`: path metrics for a network, set in advance.

use std::net::IpAddr;
use std::time::Duration;

use clap::Args;
use whimbrel_io::WireSpec;
use whimbrel_stack::{InterfaceAddress, Route, RouteMetrics};
use whimbrel_tcp::cc::Algorithm;
use whimbrel_wire::Address;

use crate::failure::Failure;
use crate::{congestion, quantity, rules, size};

/// The typed options.
#[derive(Args, Clone, Default, Debug)]
pub(crate) struct RouteOptions {
    /// Path metrics for a network: mtu= and advmss= (bytes), initcwnd= and initrwnd= (segments), rtt=
    /// (time), ssthresh=, sendpipe= and recvpipe= (bytes), congestion= (by its name). Connections to
    /// that network start with these values. Sizes only raise the defaults, unless the tunable
    /// `buffers` says otherwise. May repeat; on a mem: wire both hosts have it.
    #[arg(
        help_heading = rules::HEADING,
        long,
        value_name = "NETWORK,KEY=VALUE…",
        value_parser = parse
    )]
    route: Vec<RouteOption>,
}

impl RouteOptions {
    /// Fails if there are any: there is no wire.
    pub(crate) fn none_without_wire(&self) -> Result<(), Failure> {
        match self.route.is_empty() {
            true => Ok(()),
            false => Err(Failure::usage(OPTION, "it is of the wire of -w, which is not given")),
        }
    }

    /// The routes on this wire.
    pub(crate) fn plan(&self, wire: &WireSpec) -> Result<Vec<RouteOption>, Failure> {
        if !self.route.is_empty() && wire.is_kernel() {
            let text = "the kernel's sockets use the kernel's routes: use `ip route`, or another \
                        wire (-w)";
            return Err(Failure::usage(OPTION, text));
        }
        Ok(self.route.clone())
    }
}

/// A network, and its path metrics.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RouteOption {
    network: Address,
    prefix_len: u8,
    metrics: RouteMetrics,
}

/// The routes of a host with these addresses and `routes`, with metrics: the metrics do not change
/// where packets go.
pub(crate) fn known(
    options: &[RouteOption],
    own: &[InterfaceAddress],
    routes: &[Route],
) -> Result<Vec<Route>, Failure> {
    options.iter().map(|option| option.route(own, routes)).collect()
}

/// The congestion control of the narrowest network that contains `remote`, if one sets it.
pub(crate) fn congestion(options: &[RouteOption], remote: Address) -> Option<&'static str> {
    let host = if remote.is_v4() { 32 } else { 128 };
    let remote = |it: &RouteOption| RouteOption { network: remote, prefix_len: host, ..*it };
    let leading = options.iter().filter(|it| remote(it).lies_in(it.network, it.prefix_len));
    let algorithm = leading.max_by_key(|it| it.prefix_len)?.metrics.congestion?;
    Algorithm::OURS.into_iter().find(|(known, _)| *known == algorithm).map(|(_, name)| name)
}

impl RouteOption {
    fn route(&self, own: &[InterfaceAddress], routes: &[Route]) -> Result<Route, Failure> {
        let Self { network, prefix_len, metrics } = *self;
        let connected = own.iter().any(|own| self.lies_in(own.addr, own.prefix_len));
        let covering = routes.iter().filter(|it| self.lies_in(it.network, it.prefix_len));
        let best = covering.max_by_key(|route| route.prefix_len);
        let gateway = match (connected, best) {
            (true, _) => None,
            (false, Some(route)) => route.gateway,
            (false, None) => return Err(self.unreachable(own)),
        };
        let route = Route::new(network.to_ip(), prefix_len).with_metrics(metrics);
        Ok(gateway.map_or(route, |gateway| route.via(gateway.to_ip())))
    }

    /// True if it is this network, or a part of it.
    fn lies_in(&self, network: Address, prefix_len: u8) -> bool {
        let bits = |it: Address| match it.to_ip() {
            IpAddr::V4(v4) => (u128::from(v4.to_bits()) << 96, 32),
            IpAddr::V6(v6) => (v6.to_bits(), 128),
        };
        let ((outer, width), (inner, own_width)) = (bits(network), bits(self.network));
        let beyond = 128 - u32::from(prefix_len);
        let differ = (outer ^ inner).checked_shr(beyond).unwrap_or(0);
        width == own_width && prefix_len <= self.prefix_len && differ == 0
    }

    fn unreachable(&self, own: &[InterfaceAddress]) -> Failure {
        let own: Vec<_> = own.iter().map(|it| format!("{}/{}", it.addr, it.prefix_len)).collect();
        let text = format!(
            "{}/{}: a host at {} cannot reach all of it: use a network within the host's, or add \
             a gateway to the wire",
            self.network,
            self.prefix_len,
            own.join(", ")
        );
        Failure::usage(OPTION, text)
    }
}

/// `NETWORK/LENGTH,KEY=VALUE…`.
fn parse(text: &str) -> Result<RouteOption, String> {
    let mut parts = text.split(',');
    let (network, prefix_len) = parse_network(parts.next().unwrap_or_default())?;
    let mut metrics = RouteMetrics::default();
    let mut known = Vec::new();
    for part in parts {
        let (key, value) =
            part.split_once('=').ok_or_else(|| format!("{part:?} has no value: {KEYS}"))?;
        if known.contains(&key) {
            return Err(format!("{key}= is given twice: use it once"));
        }
        take(&mut metrics, network, key, value).map_err(|error| format!("{part}: {error}"))?;
        known.push(key);
    }
    match known[..] {
        [] => Err(format!("no metric is given: {KEYS}")),
        _ => Ok(RouteOption { network, prefix_len, metrics }),
    }
}

fn parse_network(text: &str) -> Result<(Address, u8), String> {
    let parts = text.split_once('/').and_then(|(addr, len)| {
        let addr: IpAddr = addr.parse().ok()?;
        Some((addr.to_canonical(), len.parse::<u8>().ok()?))
    });
    let (addr, len) = parts.ok_or_else(|| {
        format!(
            "{text:?} is not a network: use an address with a prefix length, for example \
                 10.0.0.0/24"
        )
    })?;
    match if addr.is_ipv4() { 32 } else { 128 } {
        bits if len > bits => Err(format!("{text}: give a prefix length of 0 to {bits}")),
        _ => Ok((addr.into(), len)),
    }
}

fn take(
    metrics: &mut RouteMetrics,
    network: Address,
    key: &str,
    value: &str,
) -> Result<(), String> {
    let segments = quantity::whole::<u16>(1..=65_535);
    // RFC 791 3.2, RFC 8200 5: what every link carries.
    let least = if network.is_v4() { 68 } else { 1_280 };
    match key {
        "mtu" => metrics.mtu = Some(quantity::whole(least..=65_535)(value)?),
        "advmss" => metrics.advmss = Some(quantity::whole(1..=65_535)(value)?),
        "initcwnd" => metrics.initcwnd = Some(segments(value)?),
        "initrwnd" => metrics.initrwnd = Some(segments(value)?),
        "rtt" => metrics.rtt = Some(round_trip(value)?),
        "ssthresh" => metrics.ssthresh = Some(bytes(value)?),
        "sendpipe" => metrics.sendpipe = Some(bytes(value)?),
        "recvpipe" => metrics.recvpipe = Some(bytes(value)?),
        "congestion" => metrics.congestion = Some(algorithm(value)?),
        _ => return Err(KEYS.into()),
    }
    Ok(())
}

/// No longer than the longest RTO.
fn round_trip(text: &str) -> Result<Duration, String> {
    let time = quantity::some_time(text)?;
    let fits = time <= Duration::from_secs(60);
    fits.then_some(time).ok_or_else(|| "give at most 60s".into())
}

/// As of the tunables `buffers.send` and `buffers.recv`.
fn bytes(text: &str) -> Result<u32, String> {
    let bytes = size::parse(text)?;
    let fits = u32::try_from(bytes).ok().filter(|it| (2 << 10..=1 << 30).contains(it));
    fits.ok_or_else(|| "give 2k to 1G bytes".into())
}

fn algorithm(name: &str) -> Result<Algorithm, String> {
    let known = Algorithm::OURS.into_iter().find(|(_, known)| *known == name);
    known.map(|(algorithm, _)| algorithm).ok_or_else(|| format!("give {}", congestion::names()))
}

const OPTION: &str = "--route";
const KEYS: &str = "give mtu=, advmss=, initcwnd=, initrwnd=, rtt=, ssthresh=, sendpipe=, \
                    recvpipe= or \
                    congestion=";

#[cfg(test)]
mod tests;
