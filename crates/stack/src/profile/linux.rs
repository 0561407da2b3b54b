//! Linux 6.18, and as packet scripts have it.

use super::{Profile, Setting, set};

/// Linux 6.18 with the defaults of its `sysctl`.
pub(super) const LINUX_6_18: Profile = Profile {
    name: "linux-6.18",
    help: "Linux 6.18, with its defaults.",
    base: None,
    settings: SETTINGS,
    locking: None,
};

/// The profile that packet scripts of others expect: what differs from [`LINUX_6_18`] stands here alone.
pub(super) const LINUX: Profile = Profile {
    name: "linux",
    help: "linux-6.18 with the variables that its packet scripts set before they begin.",
    base: Some(&LINUX_6_18),
    settings: &[
        set("buffers.recv.max", "15M", "its scripts' tcp_rmem: a scale of 8"),
        set("buffers.send", "256k", "its scripts' tcp_wmem: more than any of them sends"),
        set("buffers.send.max", "64M", "its scripts' tcp_wmem: more than any of them sends"),
        set("syn.retry", "x2", "its scripts' tcp_syn_linear_timeouts"),
        set("net.ipv4.tcp_syn_retries", "5", "its scripts' tcp_syn_retries"),
        set("net.ipv4.tcp_rto_max_ms", "60s", "no script waits for longer"),
        set(
            "ack_every",
            "1",
            "tcp_input.c: tcp_incr_quickack of TCP_MAX_QUICKACKS, 16, at the first data",
        ),
        set("net.ipv4.tcp_congestion_control", "reno", "its scripts' tcp_congestion_control"),
    ],
    locking: None,
};

const SETTINGS: &[Setting] = &[
    set("buffers", "exact", "tcp(7): a size that is set \"disables this mechanism\""),
    set(
        "buffers.recv",
        "64k",
        "assumed: tcp_output.c, tcp_select_initial_window: what a SYN can say",
    ),
    set("buffers.recv.max", "32M", "measured: the last of net.ipv4.tcp_rmem, a scale of 10"),
    set("net.ipv4.tcp_wmem", "4096 16384 4194304", "measured"),
    set("buffers.send.crowd", "1G", "tcp.h, tcp_stream_memory_free: asks of its own socket alone"),
    set("net.ipv4.tcp_syn_retries", "10", "measured: tcp_syn_retries 6, tcp_syn_linear_timeouts 4"),
    set(
        "syn.retry",
        "1s,1s,1s,1s,1s,2s,4s,8s,16s,32s,64s",
        "ip-sysctl.rst: tcp_syn_linear_timeouts",
    ),
    set("net.ipv4.tcp_rto_max_ms", "120000", "measured"),
    set("timestamps.missing", "take", "measured"),
    set("msl", "30s", "tcp.h: TCP_TIMEWAIT_LEN, 60*HZ, for 2 MSL"),
    set("tw.syn", "linux", "measured"),
    set("tw.rst", "at-rcv-nxt", "measured: net.ipv4.tcp_rfc1337 is 0"),
    set("tw.empty", "silence", "measured"),
    set("icmp.time_exceeded", "hard", "assumed: tcp_ipv4.c, tcp_v4_err: any error ends a SYN"),
    set("icmp.unreachable", "hard", "assumed: tcp_ipv4.c, tcp_v4_err: any error ends a SYN"),
    set("net.ipv4.tcp_tw_reuse", "2", "measured"),
    set(
        "ports",
        "even-first",
        "inet_hashtables.c, __inet_hash_connect: a step of 2, even ports first; measured",
    ),
    set("ports.refused", "forget", "inet_hashtables.c, __inet_hash_connect: nothing says so"),
    set("net.ipv4.tcp_fastopen", "1", "measured"),
    set("net.ipv4.tcp_fastopen_blackhole_timeout_sec", "0", "measured"),
    set("challenge.burst", "1", "measured: one in each net.ipv4.tcp_invalid_ratelimit"),
    set("net.ipv4.tcp_mtu_probing", "0", "measured"),
    set("net.ipv4.tcp_mtu_probe_floor", "48", "measured"),
    set("icmp.frag_needed", "immediate", "assumed: tcp_ipv4.c, tcp_v4_mtu_reduced"),
    set("neighbours.claims", "replace", "assumed: arp.c, arp_process"),
];
