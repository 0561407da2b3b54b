//! illumos, as the report on delays of 1.125 s found it in 2011, and as it was tuned in 2014.

use super::{Profile, Setting, set};

/// As it came.
pub(super) const ILLUMOS_2011: Profile = Profile {
    name: "illumos-2011",
    help: "illumos of 2011 (SmartOS), with its defaults.",
    base: None,
    settings: SETTINGS,
    locking: None,
};

/// With what the report set by `ndd`.
pub(super) const TUNED: Profile = Profile {
    name: "illumos-2014-tuned",
    help: "illumos-2011 with the eight settings of a report of 2014.",
    base: Some(&ILLUMOS_2011),
    settings: &[
        set("tcp_smallest_anon_port", "8192", "the report, 1: ndd -set /dev/tcp"),
        set("tcp_time_wait_interval", "5000", "the report, 2"),
        set("tcp_strong_iss", "0", "the report, 3"),
        set("tcp_iss_incr", "25000", "the report, 4"),
        set("tcp_rexmit_interval_initial", "150", "the report, 5"),
        set("tcp_rexmit_interval_min", "25", "the report, 5"),
        set("tcp_rexmit_interval_max", "15000", "the report, 5"),
        set("tcp_ip_abort_interval", "60000", "the report, 6"),
    ],
    locking: None,
};

const SETTINGS: &[Setting] = &[
    set("tcp_xmit_hiwat", "49152", "tcp_tunables.c: TCP_XMIT_HIWATER"),
    set("tcp_recv_hiwat", "128000", "tcp_tunables.c: TCP_RECV_HIWATER"),
    set("buffers.recv.max", "128000", "tcp_input.c, tcp_set_ws_value: the scale is of recv_hiwat"),
    set("buffers", "exact", "tcp_opt_data.c, tcp_opt_set: SO_RCVBUF is the size"),
    set("buffers.told", "as-set", "tcp_opt_data.c, tcp_opt_get"),
    set("buffers.send.auto", "off", "tcp_tunables.c: none says so"),
    set("net.ipv4.tcp_moderate_rcvbuf", "off", "tcp_tunables.c: none says so"),
    set("net.ipv4.tcp_congestion_control", "reno", "tcp_input.c, tcp_input_data"),
    set("options.order", "illumos", "tcp_output.c, tcp_xmit_mp_aux_iss"),
    set("initial_window", "3", "tcp_impl.h: TCP_SET_INIT_CWND, of RFC 3390"),
    set("slow_start.limit", "1", "tcp_input.c, tcp_input_data: mss for each acknowledgment"),
    set("hystart", "off", "older than RFC 9406"),
    set("tail_loss_probe", "off", "older than RFC 8985"),
    // tcp.c, tcp_init_values, makes 1.125 s of it; the report has 1.1 s.
    set("tcp_rexmit_interval_initial", "1000", "tcp_tunables.c: _rexmit_interval_initial"),
    set("tcp_rexmit_interval_min", "400", "tcp_tunables.c: _rexmit_interval_min"),
    set("tcp_rexmit_interval_max", "60000", "tcp_tunables.c: _rexmit_interval_max"),
    set("tcp_ip_abort_cinterval", "180000", "tcp_tunables.c: _ip_abort_cinterval"),
    set("tcp_ip_abort_interval", "300000", "tcp_tunables.c: _ip_abort_interval"),
    set("tcp_deferred_ack_interval", "100", "tcp_tunables.c: _deferred_ack_interval"),
    set("tcp_deferred_acks_max", "2", "tcp_tunables.c: _deferred_acks_max"),
    set("tcp_fin_wait_2_flush_interval", "60000", "tcp_tunables.c: _fin_wait_2_flush_interval"),
    set("tcp_time_wait_interval", "60000", "tcp_tunables.c: _time_wait_interval"),
    set("tw.syn", "illumos", "tcp_time_wait.c, tcp_time_wait_processing: gap > 0 && rgap < 0"),
    set("tw.answer", "reset-in-window", "tcp_time_wait.c, tcp_time_wait_processing: TH_SYN"),
    set("tw.rst", "at-rcv-nxt", "tcp_time_wait.c, tcp_time_wait_processing: TH_RST"),
    set("net.ipv4.tcp_tw_reuse", "off", "tcp_bind.c, tcp_bindi: none says so"),
    set("syn.after_challenge", "off", "the report: the second SYN comes after 1.1 s"),
    set("tcp_smallest_anon_port", "32768", "tcp_tunables.c: smallest_anon_port"),
    set("tcp_largest_anon_port", "65535", "tcp_tunables.c: largest_anon_port"),
    set("ports", "random", "tcp_bind.c, tcp_update_next_port"),
    set("ports.refused", "forget", "tcp_bind.c, tcp_update_next_port: nothing says so"),
    set("tcp_strong_iss", "1", "tcp_tunables.c: _strong_iss"),
    set("tcp_iss_incr", "250000", "tcp_impl.h: ISS_INCR"),
    set("net.ipv4.tcp_syncookies", "off", "it has none"),
    set("net.ipv4.tcp_fastopen", "0", "it has none"),
];
