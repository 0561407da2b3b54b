//! macOS 12, and two remedies for its few ports.

use super::{Profile, Setting, set};

/// As it comes.
pub(super) const MACOS_12: Profile = Profile {
    name: "macos-12",
    help: "macOS 12 (XNU 8019), with its defaults.",
    base: None,
    settings: SETTINGS,
    locking: None,
};

/// TIME-WAIT of 2 s.
pub(super) const MSL_1S: Profile = Profile {
    name: "macos-12+msl1s",
    help: "macos-12 with net.inet.tcp.msl at 1 s, as for tests in a local network.",
    base: Some(&MACOS_12),
    settings: &[set("net.inet.tcp.msl", "1000", "brianp.net, 3 October 2008: sysctl -w")],
    locking: None,
};

/// Twice the ports.
pub(super) const WIDE_PORTS: Profile = Profile {
    name: "macos-12+wide-ports",
    help: "macos-12 with ports from 32768 on.",
    base: Some(&MACOS_12),
    settings: &[set("net.inet.ip.portrange.first", "32768", "serverfault.com, question 145907")],
    locking: None,
};

const SETTINGS: &[Setting] = &[
    set("net.inet.tcp.sendspace", "131072", "tcp_usrreq.c: tcp_sendspace"),
    set("net.inet.tcp.recvspace", "131072", "tcp_usrreq.c: tcp_recvspace"),
    set("net.inet.tcp.sendbuf_max", "4M", "tcp_output.c: tcp_autosndbuf_max"),
    set("net.inet.tcp.recvbuf_max", "4M", "tcp_input.c: tcp_autorcvbuf_max"),
    set("buffers", "exact", "uipc_socket.c, sosetoptlock: SO_SNDBUF clears SB_AUTOSIZE"),
    set("buffers.told", "as-set", "uipc_socket.c, sogetoptlock: sb_hiwat"),
    set("options.order", "freebsd", "tcp_output.c: the order of tcp_addoptions"),
    set("slow_start.limit", "2", "tcp_cc.c: tcp_do_rfc3465_lim2"),
    set("hystart", "off", "older than RFC 9406"),
    set("initial_rto", "1s", "tcp_timer.h: TCPTV_RTOBASE"),
    set("syn.retry", "1s,1s,1s,1s,1s,2s,4s,8s,16s,32s,64s", "tcp_timer.c: tcp_syn_backoff"),
    set("net.ipv4.tcp_syn_retries", "12", "tcp_timer.h: TCP_MAXRXTSHIFT"),
    set("net.inet.tcp.keepinit", "75000", "tcp_timer.h: TCPTV_KEEP_INIT"),
    set("net.inet.tcp.rexmit_slop", "200", "tcp_timer.h: TCPTV_REXMTSLOP, beside TCPTV_REXMTMIN"),
    set("net.ipv4.tcp_rto_max_ms", "64s", "tcp_timer.h: TCPTV_REXMTMAX"),
    set("net.inet.tcp.retries", "12", "tcp_timer.h: TCP_MAXRXTSHIFT"),
    set("net.inet.tcp.delacktime", "100", "tcp_timer.h: IS_TIMER_HZ_100MS"),
    set("net.inet.tcp.keepcnt", "8", "tcp_timer.h: TCPTV_KEEPCNT"),
    set("net.inet.tcp.finwait2_timeout", "60000", "tcp_timer.h: TCPTV_FINWAIT2"),
    set("net.inet.tcp.msl", "15000", "the report; tcp_timer.h: TCPTV_MSL"),
    set("tw.syn", "by-sequence", "tcp_input.c: SEQ_GT(th->th_seq, tp->rcv_nxt)"),
    set("tw.rst", "ignore", "assumed, as FreeBSD"),
    set("net.ipv4.tcp_tw_reuse", "off", "in_pcb.c, in_pcbbind: a port in TIME-WAIT is in use"),
    set(
        "net.inet.ip.portrange.first",
        "49152",
        "in_pcb.c: ipport_firstauto; the report: 16,384 ports",
    ),
    set("net.inet.ip.portrange.last", "65535", "in_pcb.c: ipport_lastauto"),
    set("ports", "sequential", "tcp_subr.c: tcp_use_randomport is 0"),
    set("ports.refused", "forget", "in_pcb.c, in_pcbbind: nothing says so"),
    set("syn.after_challenge", "off", "assumed, as FreeBSD"),
];
