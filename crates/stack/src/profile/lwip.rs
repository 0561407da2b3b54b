//! lwIP 2.1, with the options that Unikraft gives it.

use super::{Profile, Setting, set};

/// As Unikraft runs it, below nginx.
pub(super) const LWIP_2_1: Profile = Profile {
    name: "lwip-2.1",
    help: "lwIP 2.1 as Unikraft configures it.",
    base: None,
    settings: SETTINGS,
    locking: None,
};

/// The remedy of the report on nginx.
pub(super) const MSL_5S: Profile = Profile {
    name: "lwip-2.1+msl5s",
    help: "lwip-2.1 with TCP_MSL at 5 s: TIME-WAIT lasts 10 s.",
    base: Some(&LWIP_2_1),
    settings: &[set(
        "TCP_MSL",
        "5000",
        "the report, pull request 74 of Unikraft's lib-lwip: LWIP_TCP_MSL",
    )],
    locking: None,
};

const SETTINGS: &[Setting] = &[
    set("TCP_WND", "262142", "Unikraft's lwipopts.h: TCP_WND 262142, with LWIP_WND_SCALE"),
    set("TCP_SND_BUF", "1M", "Unikraft's lwipopts.h: TCP_SND_BUF 1024 * 1024, with LWIP_WND_SCALE"),
    set("buffers.recv.max", "262142", "Unikraft's lwipopts.h: TCP_WND, for good"),
    set("buffers", "exact", "assumed: sockets.c, lwip_setsockopt_impl"),
    set("buffers.told", "as-set", "assumed: sockets.c, lwip_getsockopt_impl"),
    set("buffers.send.crowd", "1G", "assumed: tcp.h, tcp_sndbuf: of its own pcb alone"),
    set("buffers.send.auto", "off", "Unikraft's lwipopts.h: TCP_SND_BUF, a constant"),
    set(
        "net.ipv4.tcp_moderate_rcvbuf",
        "off",
        "tcp.c, tcp_connect: rcv_wnd is TCP_WND, a constant",
    ),
    set("LWIP_TCP_TIMESTAMPS", "0", "opt.h: 0; Unikraft's Config.uk: default n"),
    set("LWIP_TCP_SACK_OUT", "0", "opt.h: 0"),
    set("net.ipv4.tcp_ecn", "0", "assumed: tcp_in.c: reserved bits are not looked at"),
    set("options.order", "lwip", "assumed: tcp_out.c, tcp_output_segment"),
    set("timestamps.missing", "take", "assumed: tcp_in.c, tcp_parseopt: there is no PAWS"),
    set(
        "net.ipv4.tcp_congestion_control",
        "reno",
        "tcp_in.c, tcp_receive: after fast retransmit cwnd = ssthresh",
    ),
    set("initial_window", "3", "tcp_in.c: LWIP_TCP_CALC_INITIAL_CWND, 4,380 bytes"),
    set("slow_start.limit", "2", "assumed: tcp_in.c, tcp_receive, for RFC 3465"),
    set("hystart", "off", "older than RFC 9406"),
    set("tail_loss_probe", "off", "tcp.c, tcp_slowtmr: RTO alone"),
    set("LWIP_TCP_RTO_TIME", "3000", "assumed: opt.h"),
    set("syn.retry", "x1", "tcp.c, tcp_slowtmr: not doubled in SYN_SENT"),
    set("TCP_SYNMAXRTX", "6", "opt.h: 6"),
    set("TCP_MAXRTX", "12", "opt.h: 12"),
    set(
        "net.ipv4.tcp_rto_min_us",
        "500ms",
        "tcp_priv.h: TCP_SLOW_INTERVAL, 2 * 250, of which RTO is a multiple",
    ),
    set("delayed_ack", "250ms", "tcp_priv.h: TCP_FAST_INTERVAL, 250; tcp.c, tcp_fasttmr"),
    set("fin_timeout", "20s", "tcp_priv.h: TCP_FIN_WAIT_TIMEOUT 20000"),
    set("TCP_MSL", "60000", "tcp_priv.h: TCP_MSL 60000UL"),
    set("tw.syn", "never", "tcp_in.c, tcp_timewait_input: no case opens it again"),
    set(
        "tw.answer",
        "reset-in-window",
        "tcp_in.c, tcp_timewait_input: \"If the SYN is in the window it is an error, send a reset\"",
    ),
    set("tw.rst", "ignore", "tcp_in.c, tcp_timewait_input: \"RFC 1337: in TIME_WAIT, ignore RST\""),
    set("tw.empty", "silence", "tcp_in.c, tcp_timewait_input: answered only if tcplen > 0"),
    set(
        "net.ipv4.tcp_tw_reuse",
        "off",
        "tcp.c, tcp_new_port: all lists are searched, that of TIME-WAIT too",
    ),
    set("TCP_LOCAL_PORT_RANGE_START", "49152", "tcp.c: TCP_LOCAL_PORT_RANGE_START 0xc000"),
    set(
        "TCP_LOCAL_PORT_RANGE_END",
        "65534",
        "tcp.c, tcp_new_port: at TCP_LOCAL_PORT_RANGE_END, 0xffff, it begins again",
    ),
    set("ports", "sequential", "tcp.c, tcp_new_port: tcp_port++"),
    set("ports.refused", "forget", "tcp.c, tcp_new_port: nothing says so"),
    // One counter, to which tcp_ticks are added with each connection: half seconds since the start.
    set("isn", "host-wide-plain", "tcp.c, tcp_next_iss: one iss of the host"),
    set("isn.step", "120", "tcp.c, tcp_next_iss: iss += tcp_ticks, as they are after a minute"),
    set("net.ipv4.tcp_syncookies", "off", "tcp_in.c, tcp_listen_input: each SYN has a pcb at once"),
    set("net.ipv4.tcp_fastopen", "0", "assumed: it has none"),
];
