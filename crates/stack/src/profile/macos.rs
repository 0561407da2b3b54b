//! macOS 12, and two remedies for its few ports.

use super::{Profile, Setting, set};

/// macOS 12 as installed.
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

/// With 32,768 ports to draw from, twice as many.
pub(super) const WIDE_PORTS: Profile = Profile {
    name: "macos-12+wide-ports",
    help: "macos-12 with ports from 32768 on.",
    base: Some(&MACOS_12),
    settings: &[set("net.inet.ip.portrange.first", "32768", "serverfault.com, question 145907")],
    locking: None,
};

const SETTINGS: &[Setting] = &[
    set(
        "net.inet.tcp.sendspace",
        "131072",
        "assumed: what sysctl says there; later tcp_usrreq.c begin with 1448 * 256",
    ),
    set(
        "net.inet.tcp.recvspace",
        "131072",
        "assumed: what sysctl says there; later tcp_usrreq.c begin with 1448 * 384",
    ),
    set("net.inet.tcp.sendbuf_max", "4M", "assumed: what sysctl says there"),
    set(
        "net.inet.tcp.recvbuf_max",
        "4M",
        "assumed: what sysctl says there; later tcp_input.c begin with 2 MiB",
    ),
    set("buffers.send.crowd", "1G", "assumed: uipc_socket2.c, sbspace: of its own socket alone"),
    set("buffers", "exact", "tcp_usrreq.c, tcp_attach: no SB_AUTOSIZE where SB_USRSIZE is set"),
    set("buffers.told", "as-set", "assumed: uipc_socket.c, sogetoptlock"),
    set("options.order", "freebsd", "assumed: tcp_output.c"),
    set("timestamps.missing", "take", "assumed: tcp_input.c: PAWS asks TOF_TS first"),
    set("slow_start.limit", "2", "tcp_input.c: tcp_do_rfc3465_lim2, 1: \"L=2*SMSS\""),
    set("hystart", "off", "older than RFC 9406"),
    set("initial_rto", "1s", "tcp_timer.h: TCPTV_RTOBASE, 1*TCP_RETRANSHZ"),
    set(
        "syn.retry",
        "1s,1s,1s,1s,1s,2s,4s,8s,16s,32s,64s",
        "tcp_timer.c: tcp_syn_backoff, 1, 1, 1, 1, 1, 2 to 64",
    ),
    set("net.ipv4.tcp_syn_retries", "12", "tcp_timer.h: TCP_MAXRXTSHIFT, 12"),
    set("net.inet.tcp.keepinit", "75000", "tcp_timer.h: TCPTV_KEEP_INIT, 75*TCP_RETRANSHZ"),
    set(
        "net.inet.tcp.rexmit_slop",
        "200",
        "tcp_timer.h: TCPTV_REXMTSLOP, TCP_RETRANSHZ/5, and TCPTV_REXMTMIN",
    ),
    set("net.ipv4.tcp_rto_max_ms", "64s", "tcp_timer.h: TCPTV_REXMTMAX, 64*TCP_RETRANSHZ"),
    set("net.inet.tcp.retries", "12", "tcp_timer.h: TCP_MAXRXTSHIFT, 12"),
    set("net.inet.tcp.delacktime", "100", "tcp_timer.c: tcp_delack = TCP_RETRANSHZ / 10"),
    set("net.inet.tcp.keepcnt", "8", "tcp_timer.h: TCPTV_KEEPCNT, 8"),
    set("net.inet.tcp.finwait2_timeout", "60000", "tcp_timer.h: TCPTV_FINWAIT2, 60*TCP_RETRANSHZ"),
    set("net.inet.tcp.msl", "15000", "the report; tcp_timer.h: TCPTV_MSL, 15*TCP_RETRANSHZ"),
    set("tw.syn", "by-sequence", "assumed, as FreeBSD"),
    set("tw.rst", "ignore", "assumed, as FreeBSD"),
    set(
        "net.ipv4.tcp_tw_reuse",
        "off",
        "in_pcb.c, in_pcbbind: a port that in_pcblookup_local finds is in use",
    ),
    set(
        "net.inet.ip.portrange.first",
        "49152",
        "the report; in_pcb.c: ipport_firstauto = IPPORT_HIFIRSTAUTO, 49152",
    ),
    set(
        "net.inet.ip.portrange.last",
        "65535",
        "the report; in_pcb.c: ipport_lastauto = IPPORT_HILASTAUTO, 65535",
    ),
    set(
        "ports",
        "sequential",
        "tcp_subr.c: tcp_use_randomport = 0; in_pcb.c, in_pcbbind: ++*lastport",
    ),
    set("ports.refused", "forget", "in_pcb.c, in_pcbbind: nothing says so"),
    set("syn.after_challenge", "off", "assumed, as FreeBSD"),
];
