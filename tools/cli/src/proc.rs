//! The kernel's data on itself in `/proc`.

use std::collections::BTreeMap;
use std::fs;

/// The first line of a file of the kernel's; empty if there is none.
pub(crate) fn first_line(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default().lines().next().unwrap_or_default().into()
}

/// True if new interfaces get IPv6: it is in the kernel and not switched off.
pub(crate) fn has_ipv6() -> bool {
    first_line("/proc/sys/net/ipv6/conf/default/disable_ipv6") == "0"
}

/// The congestion controls that the kernel has, with blanks between them.
pub(crate) fn congestion_controls() -> String {
    first_line("/proc/sys/net/ipv4/tcp_available_congestion_control")
}

/// The one that it has sockets use.
pub(crate) fn congestion_control() -> String {
    first_line("/proc/sys/net/ipv4/tcp_congestion_control")
}

/// The ports that the kernel draws from, the last one included.
pub(crate) fn ports() -> Option<(u16, u16)> {
    range(&first_line("/proc/sys/net/ipv4/ip_local_port_range"))
}

fn range(line: &str) -> Option<(u16, u16)> {
    let mut ports = line.split_whitespace().map(str::parse);
    Some((ports.next()?.ok()?, ports.next()?.ok()?))
}

/// True if the kernel never uses a port in TIME-WAIT again early: 0, or 2 ("loopback only") elsewhere.
pub(crate) fn is_port_reuse_off(to_loopback: bool) -> bool {
    match first_line("/proc/sys/net/ipv4/tcp_tw_reuse").as_str() {
        "0" => true,
        "2" => !to_loopback,
        _ => false,
    }
}

/// Connections of this network namespace in TIME-WAIT, to any peer.
pub(crate) fn time_wait() -> Option<u32> {
    waiting(&fs::read_to_string("/proc/net/sockstat").ok()?)
}

/// Counts of the kernel's TCP in this network namespace so far, over all processes, by the names of
/// `nstat`, which are also those of this stack's counters.
pub(crate) fn counters() -> BTreeMap<String, u64> {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    let mut all = rows(&read("/proc/net/snmp"), "Tcp");
    all.extend(rows(&read("/proc/net/netstat"), "TcpExt"));
    all
}

/// By how much they have grown since `before`.
pub(crate) fn counted_since(before: &BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    let grown = counters().into_iter().map(|(name, count)| {
        let grown = count.saturating_sub(before.get(&name).copied().unwrap_or(0));
        (name, grown)
    });
    grown.filter(|(_, grown)| *grown > 0).collect()
}

/// Names and values of one group: each on a separate line behind the group's name.
fn rows(text: &str, group: &str) -> BTreeMap<String, u64> {
    let lines = text.lines().filter_map(|line| line.strip_prefix(group)?.strip_prefix(": "));
    let mut lines = lines.map(str::split_whitespace);
    let (names, values) = (lines.next(), lines.next());
    let pairs = names.into_iter().flatten().zip(values.into_iter().flatten());
    // Those that can shrink are no counters; -1 is no bound.
    let counters = pairs.filter(|(name, _)| *name != "CurrEstab");
    counters
        .filter_map(|(name, value)| Some((format!("{group}{name}"), value.parse().ok()?)))
        .collect()
}

fn waiting(sockstat: &str) -> Option<u32> {
    let line = sockstat.lines().find_map(|line| line.strip_prefix("TCP:"))?;
    let mut words = line.split_whitespace();
    words.find(|word| *word == "tw")?;
    words.next()?.parse().ok()
}

#[cfg(test)]
mod tests;
