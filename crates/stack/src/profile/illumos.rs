//! illumos, as the report on delays of 1.125 s found it in 2011, and as it was tuned in 2014.

use super::{Profile, Setting, set};

/// SmartOS of 2011 as it was installed.
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
    set("tcp_xmit_hiwat", "49152", "tcp_tunables.c: TCP_XMIT_HIWATER, 49152"),
    set("tcp_recv_hiwat", "128000", "tcp_tunables.c: TCP_RECV_HIWATER, 128000"),
    set(
        "buffers.recv.max",
        "128000",
        "assumed: tcp_input.c, tcp_set_ws_value: the scale is of recv_hiwat",
    ),
    set("buffers", "exact", "assumed: tcp_opt_data.c, tcp_opt_set"),
    set("buffers.told", "as-set", "assumed: tcp_opt_data.c, tcp_opt_get"),
    set("buffers.send.crowd", "1G", "assumed: tcp.c: of its own conn_t alone"),
    set("buffers.send.auto", "off", "tcp_tunables.c: no entry says so"),
    set("net.ipv4.tcp_moderate_rcvbuf", "off", "tcp_tunables.c: no entry says so"),
    set("net.ipv4.tcp_congestion_control", "reno", "assumed: tcp_input.c, tcp_input_data"),
    set("options.order", "illumos", "assumed: tcp_output.c, tcp_xmit_mp_aux_iss"),
    set(
        "timestamps.missing",
        "take",
        "assumed: tcp_input.c, tcp_paws_check: what lacks them passes",
    ),
    set(
        "initial_window",
        "3",
        "tcp_impl.h: TCP_SET_INIT_CWND, 4,380 bytes of RFC 3390; _slow_start_initial is 4",
    ),
    set("slow_start.limit", "1", "assumed: tcp_input.c, tcp_input_data"),
    set("hystart", "off", "older than RFC 9406"),
    set("tail_loss_probe", "off", "older than RFC 8985"),
    // tcp.c, tcp_init_values, makes 1.125 s of it; the report has 1.1 s.
    set(
        "tcp_rexmit_interval_initial",
        "1000",
        "tcp_tunables.c: _rexmit_interval_initial, 1*SECONDS",
    ),
    set("tcp_rexmit_interval_min", "400", "tcp_tunables.c: _rexmit_interval_min, 400*MS"),
    set("tcp_rexmit_interval_max", "60000", "tcp_tunables.c: _rexmit_interval_max, 60*SECONDS"),
    set("tcp_ip_abort_cinterval", "180000", "tcp_tunables.c: _ip_abort_cinterval, 3*MINUTES"),
    set("tcp_ip_abort_interval", "300000", "tcp_tunables.c: _ip_abort_interval, 5*MINUTES"),
    set("tcp_deferred_ack_interval", "100", "tcp_tunables.c: _deferred_ack_interval, 100*MS"),
    set("tcp_deferred_acks_max", "2", "tcp_tunables.c: _deferred_acks_max, 2"),
    set(
        "tcp_fin_wait_2_flush_interval",
        "60000",
        "tcp_tunables.c: _fin_wait_2_flush_interval, 60*SECONDS",
    ),
    set("tcp_time_wait_interval", "60000", "tcp_tunables.c: _time_wait_interval, 1*MINUTES"),
    set(
        "tw.syn",
        "illumos",
        "tcp_time_wait.c, tcp_time_wait_processing: TH_SYN, gap > 0 and rgap < 0",
    ),
    set(
        "tw.answer",
        "reset-in-window",
        "tcp_time_wait.c, tcp_time_wait_processing: TH_SYN, TH_RST|TH_ACK; beyond it TH_ACK",
    ),
    set(
        "tw.rst",
        "end",
        "tcp_time_wait.c, tcp_time_wait_processing: TH_RST with gap >= 0 and rgap >= 0",
    ),
    set("net.ipv4.tcp_tw_reuse", "off", "tcp_tunables.c: no entry says so"),
    set("syn.after_challenge", "off", "the report: the second SYN comes after 1.1 s"),
    set("tcp_smallest_anon_port", "32768", "tcp_tunables.c: smallest_anon_port, 32*1024"),
    set("tcp_largest_anon_port", "65535", "tcp_tunables.c: largest_anon_port, ULP_MAX_PORT"),
    set(
        "ports",
        "random",
        "tcp_bind.c, tcp_update_next_port: tcp_random_anon_port, random_get_pseudo_bytes",
    ),
    set("ports.refused", "forget", "tcp_bind.c, tcp_update_next_port: nothing says so"),
    set("tcp_strong_iss", "1", "tcp_tunables.c: _strong_iss, 1"),
    set("tcp_iss_incr", "250000", "tcp_tunables.c: _iss_incr; tcp_impl.h: ISS_INCR, 250000"),
    set("net.ipv4.tcp_syncookies", "off", "tcp_tunables.c: no entry says so"),
    set("net.ipv4.tcp_fastopen", "0", "older than RFC 7413"),
];
