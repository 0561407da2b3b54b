//! Kernel variables, by name.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use whimbrel_tcp::Tunables;

use super::ShellAct;
use crate::host::Administration;

/// Acts of `sysctl [-q|-w|…] name=value …`. A name without a value is only read.
pub(super) fn acts(words: &[&str]) -> Option<Vec<ShellAct>> {
    let mut acts = Vec::new();
    let mut words = words.iter().peekable();
    while let Some(word) = words.next() {
        if let Some(letters) = word.strip_prefix('-') {
            if letters.is_empty() || !letters.chars().all(|letter| "qwnei".contains(letter)) {
                return None;
            }
            continue;
        }
        // `name = value`, with blanks.
        if words.next_if(|next| **next == "=").is_some() {
            acts.push(set(word, words.next()?)?);
            continue;
        }
        acts.push(match word.split_once('=') {
            Some((name, value)) => set(name, value)?,
            None => ShellAct::NoEffect,
        });
    }
    (!acts.is_empty()).then_some(acts)
}

/// The variable behind `/proc/sys/…`.
pub(super) fn name_of_file(file: &str) -> Option<String> {
    let name = file.strip_prefix("/proc/sys/")?;
    Some(name.replace('/', "."))
}

/// Act for a variable. `None` if the variable has no meaning here on any host.
pub(super) fn set(name: &str, value: &str) -> Option<ShellAct> {
    let name = name.trim().replace('/', ".");
    let value = value.trim();
    if value.is_empty() || value.contains('$') {
        return None;
    }
    if PURGES.contains(&name.as_str()) {
        let purge = match system_of(&name) {
            Some(_) => Administration::PurgeHostCache,
            None => Administration::PurgeCaches,
        };
        return Some(if value == "0" { ShellAct::NoEffect } else { ShellAct::Administer(purge) });
    }
    let set = ShellAct::Set { name: name.clone(), value: value.to_string() };
    if is_tunable(&name) {
        return Some(set);
    }
    let is_default = DEFAULTS.iter().any(|(known, default)| *known == name && *default == value);
    let is_unseen = UNSEEN.iter().any(|known| match known.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => *known == name,
    });
    // The host decides about any other name.
    Some(if is_default || is_unseen { ShellAct::NoEffect } else { set })
}

/// System that alone has a variable of this name, if that is not Linux.
pub fn system_of(name: &str) -> Option<&'static str> {
    const FREEBSD: [&str; 3] = ["net.inet.", "net.inet6.", "kern."];
    FREEBSD.iter().any(|prefix| name.starts_with(prefix)).then_some("FreeBSD")
}

fn is_tunable(name: &str) -> bool {
    Tunables::default().value_of(name).is_some()
}

/// Variables that clear cached paths.
const PURGES: &[&str] = &[
    "net.inet.tcp.hostcache.purge",
    "net.inet.tcp.hostcache.purgenow",
    "net.ipv4.route.flush",
    "net.ipv6.route.flush",
];

/// Variables whose value changes neither packets nor results of calls; `*` ends a prefix.
const UNSEEN: &[&str] = &[
    "debug.*",
    // The clock is the script's own.
    "kern.eventtimer.*",
    "kern.hz",
    "kern.ipc.tls.*",
    "kern.timecounter.*",
    "net.inet.icmp.icmplim*",
    "net.inet.tcp.bb.*",
    "net.inet.tcp.hostcache.bucketlimit",
    "net.inet.tcp.hostcache.cachelimit",
    "net.inet.tcp.hostcache.enable",
    "net.inet.tcp.hostcache.expire",
    "net.inet.tcp.hostcache.prune",
    "net.inet.tcp.log_debug",
    "net.inet.tcp.log_in_vain",
    "net.inet.tcp.lro.*",
    "net.inet.tcp.per_cpu_timers",
    "net.inet.tcp.pcap_in.*",
    "net.inet.tcp.reass.*",
    "net.inet.tcp.sack.globalmaxholes",
    "net.inet.tcp.sack.tso",
    "net.inet.tcp.soreceive_stream",
    "net.inet.tcp.tso",
    // Packets are cut, so delays for larger ones do not show.
    "net.ipv4.tcp_autocorking",
    "net.ipv4.tcp_backlog_ack_defer",
    "net.ipv4.tcp_limit_output_bytes",
    "net.ipv4.tcp_low_latency",
    "net.ipv4.tcp_min_tso_segs",
    "net.ipv4.tcp_no_metrics_save",
    "net.ipv4.tcp_tso_rtt_log",
    "net.ipv4.tcp_tso_win_divisor",
];

/// Variables without a tunable, with their system's default, which its profile implements. The host
/// refuses any other value.
const DEFAULTS: &[(&str, &str)] = &[
    ("kern.ipc.soacceptqueue", "128"),
    ("kern.ipc.somaxconn", "128"),
    ("net.inet.tcp.abc_l_var", "2"),
    // Connections are probed if their applications request it.
    ("net.inet.tcp.always_keepalive", "0"),
    ("net.inet.tcp.blackhole", "0"),
    ("net.inet.tcp.cc.abe", "0"),
    ("net.inet.tcp.drop_synfin", "0"),
    ("net.inet.tcp.ecn.maxretries", "1"),
    ("net.inet.tcp.fast_finwait2_recycle", "0"),
    ("net.inet.tcp.functions_inherit_listen_socket_stack", "1"),
    ("net.inet.tcp.functions_default", "freebsd"),
    ("net.inet.tcp.initcwnd_segments", "10"),
    ("net.inet.tcp.insecure_ack", "0"),
    ("net.inet.tcp.maxunacktime", "0"),
    ("net.inet.tcp.nolocaltimewait", "0"),
    ("net.inet.tcp.path_mtu_discovery", "1"),
    ("net.inet.tcp.pmtud_blackhole_detection", "0"),
    ("net.inet.tcp.rexmit_drop_options", "0"),
    ("net.inet.tcp.rfc3042", "1"),
    ("net.inet.tcp.recvbuf_auto", "0"),
    ("net.inet.tcp.rfc3390", "1"),
    ("net.inet.tcp.sendbuf_auto", "0"),
    ("net.inet.tcp.syncache.rst_on_sock_fail", "1"),
    ("net.inet.tcp.ts_offset_per_conn", "1"),
    ("net.inet.tcp.udp_tunneling_overhead", "0"),
    ("net.inet.tcp.udp_tunneling_port", "0"),
    ("net.ipv4.ip_no_pmtu_disc", "0"),
    ("net.ipv4.tcp_comp_sack_delay_ns", "0"),
    ("net.ipv4.tcp_comp_sack_nr", "0"),
    ("net.ipv4.tcp_dsack", "1"),
    ("net.ipv4.tcp_fack", "0"),
    ("net.ipv4.tcp_frto", "2"),
    ("net.ipv4.tcp_migrate_req", "0"),
    ("net.ipv4.tcp_mtu_probing", "0"),
    ("net.ipv4.tcp_plb_enabled", "0"),
    ("net.ipv4.tcp_shrink_window", "0"),
    ("net.ipv4.tcp_thin_linear_timeouts", "0"),
    ("net.ipv4.tcp_workaround_signed_windows", "0"),
];
