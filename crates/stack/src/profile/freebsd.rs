//! FreeBSD: of 1997, of 2013, and of today.
//!
//! The files of 1997 were read as RTEMS has them, whose `libnetworking` is the stack of FreeBSD 2.2; those of
//! 2013 in 9.3, and those of today in 14.

use super::{Locking, Profile, Setting, set};

/// As the report on FDDI found it.
pub(super) const FREEBSD_2_2_5: Profile = Profile {
    name: "freebsd-2.2.5",
    help: "FreeBSD 2.2.5 (1997), with its defaults.",
    base: None,
    settings: OF_1997,
    locking: None,
};

/// With the report's patch.
pub(super) const FIX: Profile = Profile {
    name: "freebsd-2.2.5+fix",
    help: "freebsd-2.2.5 with the patch that never shrinks a buffer, and a larger SB_MAX.",
    base: Some(&FREEBSD_2_2_5),
    settings: &[
        set("buffers", "exact", "bug 6032: the patch of tcp_input.c, tcp_mss"),
        set("kern.ipc.maxsockbuf", "1M", "bug 6032: \"the change to SB_MAX\", to just under 1 MB"),
    ],
    locking: None,
};

/// As the report on 52,000 queries a second found it.
pub(super) const FREEBSD_9_2: Profile = Profile {
    name: "freebsd-9.2",
    help: "FreeBSD 9.2 (2013), with its defaults.",
    base: None,
    settings: OF_2013,
    locking: Some(Locking::All),
};

/// With the report's patch.
pub(super) const ACCEPT_PATCH: Profile = Profile {
    name: "freebsd-9.2+accept-patch",
    help: "freebsd-9.2 with the patch that takes the lock off accept.",
    base: Some(&FREEBSD_9_2),
    settings: &[],
    locking: Some(Locking::AllButAccept),
};

/// FreeBSD 15 as installed.
pub(super) const FREEBSD_15: Profile = Profile {
    name: "freebsd-15",
    help: "FreeBSD 15 with its default stack.",
    base: None,
    settings: OF_TODAY,
    locking: None,
};

/// The profile that packet scripts of others expect: what differs from [`FREEBSD_15`] stands here alone.
pub(super) const FREEBSD: Profile = Profile {
    name: "freebsd",
    help: "freebsd-15 without patience for missing timestamps, as its packet scripts expect.",
    base: Some(&FREEBSD_15),
    settings: &[set(
        "timestamps.missing",
        "drop-syn",
        "assumed: its scripts' tolerate_missing_ts, 0",
    )],
    locking: None,
};

const OF_1997: &[Setting] = &[
    set("net.inet.tcp.sendspace", "16384", "assumed: tcp_usrreq.c, TCP_SENDSPACE"),
    set("net.inet.tcp.recvspace", "16384", "assumed: tcp_usrreq.c, TCP_RECVSPACE"),
    set(
        "buffers",
        "route",
        "tcp_input.c, tcp_mss: rmx_sendpipe and rmx_recvpipe, if they are set, replace sb_hiwat",
    ),
    set("kern.ipc.maxsockbuf", "262144", "assumed: socketvar.h, SB_MAX"),
    set("buffers.told", "as-set", "assumed: uipc_socket.c, sogetopt"),
    set("buffers.send.crowd", "1G", "assumed: sockbuf.h, sbspace: of its own socket alone"),
    set("buffers.send.auto", "off", "tcp_input.c: only tcp_mss sets sizes, in the handshake"),
    set(
        "net.ipv4.tcp_moderate_rcvbuf",
        "off",
        "tcp_input.c: only tcp_mss sets sizes, in the handshake",
    ),
    set("net.inet.tcp.rfc1323", "1", "tcp_subr.c: tcp_do_rfc1323 = 1"),
    set(
        "net.inet.tcp.sack.enable",
        "0",
        "tcp_input.c, tcp_dooptions: it knows MSS, window scale, timestamps and CC",
    ),
    set("net.inet.tcp.ecn.enable", "0", "older than RFC 3168"),
    set("options.order", "freebsd", "assumed: tcp_output.c"),
    set(
        "timestamps.missing",
        "take",
        "assumed: tcp_input.c, tcp_input: PAWS asks `ts_present` first",
    ),
    set(
        "net.ipv4.tcp_congestion_control",
        "reno",
        "tcp_input.c: the first new ACK sets snd_cwnd to snd_ssthresh",
    ),
    set(
        "initial_window",
        "1",
        "tcp_input.c, tcp_mss: snd_cwnd = mss, if the peer is not on a local network",
    ),
    set("slow_start.limit", "1", "tcp_input.c: incr = t_maxseg for each acknowledgment"),
    set("hystart", "off", "older than RFC 9406"),
    set("tail_loss_probe", "off", "older than RFC 8985"),
    set(
        "initial_rto",
        "3s",
        "tcp_timer.h: TCPTV_RTOBASE, 3 * PR_SLOWHZ; tcp_subr.c, tcp_newtcpcb: t_rxtcur",
    ),
    set("syn.retry", "x2", "tcp_timer.c: tcp_backoff, 1, 2, 4 to 64 times TCP_REXMTVAL"),
    set("net.ipv4.tcp_syn_retries", "12", "tcp_timer.h: TCP_MAXRXTSHIFT, 12"),
    set("net.inet.tcp.keepinit", "75000", "tcp_timer.h: TCPTV_KEEP_INIT, 75 * PR_SLOWHZ"),
    set("net.inet.tcp.rexmit_min", "1000", "tcp_timer.h: TCPTV_MIN, 1 * PR_SLOWHZ"),
    set("net.ipv4.tcp_rto_max_ms", "64s", "tcp_timer.h: TCPTV_REXMTMAX, 64 * PR_SLOWHZ"),
    set("net.inet.tcp.retries", "12", "tcp_timer.h: TCP_MAXRXTSHIFT, 12"),
    set(
        "net.inet.tcp.delacktime",
        "200",
        "assumed: protosw.h, PR_FASTHZ; tcp_timer.c: tcp_fasttimo sends what is delayed",
    ),
    set("net.inet.tcp.keepcnt", "8", "tcp_timer.h: TCPTV_KEEPCNT, 8"),
    set("net.inet.tcp.msl", "30000", "tcp_timer.h: TCPTV_MSL, 30 * PR_SLOWHZ"),
    set(
        "net.inet.tcp.insecure_rst",
        "1",
        "tcp_input.c: TH_RST after trimming to the window, so anywhere in it",
    ),
    set(
        "net.inet.tcp.insecure_syn",
        "1",
        "tcp_input.c: TH_SYN in the window, tcp_drop with ECONNRESET",
    ),
    set("net.inet.tcp.drop_synfin", "0", "tcp_input.c: no such test"),
    set(
        "tw.syn",
        "illumos",
        "tcp_input.c: beyond the window, TCPS_TIME_WAIT and SEQ_GT(ti_seq, rcv_nxt)",
    ),
    set(
        "tw.answer",
        "reset-in-window",
        "tcp_input.c: TH_SYN in the window, dropwithreset; below it, TF_ACKNOW",
    ),
    set("tw.rst", "end", "tcp_input.c: TH_RST, TCPS_TIME_WAIT: tcp_close"),
    set("challenge.burst", "255", "tcp_input.c, dropafterack: no limit"),
    set(
        "net.ipv4.tcp_tw_reuse",
        "off",
        "in_pcb.c, in_pcbbind: a port that in_pcblookup finds is in use",
    ),
    set(
        "syn.after_challenge",
        "off",
        "tcp_input.c, TCPS_SYN_SENT: dropwithreset, and the SYN waits for its timer",
    ),
    set(
        "net.inet.ip.portrange.first",
        "1024",
        "in_pcb.c: ipport_firstauto = IPPORT_RESERVED, 1024",
    ),
    set(
        "net.inet.ip.portrange.last",
        "5000",
        "in_pcb.c: ipport_lastauto = IPPORT_USERRESERVED, 5000",
    ),
    set("net.inet.ip.portrange.randomized", "0", "in_pcb.c, in_pcbbind: ++*lastport"),
    set("ports.refused", "forget", "in_pcb.c, in_pcbbind: nothing says so"),
    set(
        "isn",
        "host-wide",
        "tcp_timer.c, tcp_slowtimo: one tcp_iss, to which TCP_ISSINCR is added",
    ),
    set(
        "isn.step",
        "64000",
        "tcp_seq.h: TCP_ISSINCR, 122 * 1024 and 18 random bits, of which a quarter",
    ),
    set(
        "net.inet.tcp.syncookies",
        "0",
        "tcp_input.c, TCPS_LISTEN: each SYN has a connection at once",
    ),
    set("net.inet.tcp.fastopen.client_enable", "0", "older than RFC 7413"),
    set("net.inet.tcp.fastopen.server_enable", "0", "older than RFC 7413"),
    set("icmp.frag_needed", "immediate", "tcp_subr.c, tcp_ctlinput: PRC_MSGSIZE calls tcp_mtudisc"),
    set("net.ipv4.tcp_mtu_probing", "0", "older than RFC 4821"),
    set("neighbours.claims", "replace", "assumed: if_ether.c, in_arpinput"),
];

const OF_2013: &[Setting] = &[
    set("net.inet.tcp.sendspace", "32768", "assumed: tcp_usrreq.c, tcp_sendspace"),
    set("net.inet.tcp.recvspace", "65536", "tcp_input.c: tcp_recvspace = 1024*64"),
    set("kern.ipc.maxsockbuf", "2097152", "assumed: sockbuf.h, SB_MAX"),
    set("net.inet.tcp.sendbuf_max", "2097152", "tcp_output.c: tcp_autosndbuf_max = 2*1024*1024"),
    set("buffers", "exact", "assumed: uipc_sockbuf.c, sbsetopt clears SB_AUTOSIZE"),
    set("buffers.told", "as-set", "assumed: uipc_socket.c, sogetopt"),
    set("recv.window", "full-segments", "assumed: tcp_input.c, tcp_mss; tcp_output.c, tcp_output"),
    set("options.order", "freebsd", "assumed: tcp_output.c, tcp_addoptions"),
    set(
        "timestamps.missing",
        "take",
        "assumed: tcp_input.c, tcp_do_segment: PAWS asks TOF_TS first",
    ),
    set("net.inet.tcp.cc.algorithm", "newreno", "assumed: cc.c, V_default_cc_ptr"),
    set(
        "initial_window",
        "10",
        "9.3, tcp_input.c, cc_conn_init: tcp_do_initcwnd10 = 1; that 9.2 has it is assumed",
    ),
    set("net.inet.tcp.abc_l_var", "2", "tcp_input.c: tcp_abc_l_var = 2"),
    set("hystart", "off", "older than RFC 9406"),
    set("tail_loss_probe", "off", "older than RFC 8985"),
    set("initial_rto", "3s", "tcp_timer.h: TCPTV_RTOBASE, 3*hz"),
    set(
        "syn.retry",
        "3s,3.2s,3.2s,3.2s,3.2s,6.2s,12.2s,24.2s,48.2s,64s",
        "tcp_timer.c: tcp_syn_backoff, 1, 1, 1, 1, 1, 2 to 64; TCPT_RANGESET adds the slop",
    ),
    set("net.ipv4.tcp_syn_retries", "12", "tcp_timer.h: TCP_MAXRXTSHIFT, 12"),
    set("net.inet.tcp.syncache.rexmtlimit", "3", "assumed: tcp_syncache.c, SYNCACHE_MAXREXMTS"),
    set("net.inet.tcp.keepinit", "75000", "tcp_timer.h: TCPTV_KEEP_INIT, 75*hz"),
    set(
        "net.inet.tcp.rexmit_slop",
        "200",
        "tcp_timer.h: TCPTV_CPU_VAR, hz/5, and TCPTV_MIN, hz/33",
    ),
    set("net.ipv4.tcp_rto_max_ms", "64s", "tcp_timer.h: TCPTV_REXMTMAX, 64*hz"),
    set("net.inet.tcp.retries", "12", "tcp_timer.h: TCP_MAXRXTSHIFT, 12"),
    set("net.inet.tcp.delacktime", "100", "tcp_timer.h: TCPTV_DELACK, hz/10"),
    set("net.inet.tcp.keepcnt", "8", "tcp_timer.h: TCPTV_KEEPCNT, 8"),
    set("net.inet.tcp.msl", "30000", "tcp_timer.h: TCPTV_MSL, 30*hz"),
    set("net.inet.tcp.drop_synfin", "0", "tcp_input.c: drop_synfin = 0"),
    set("tw.syn", "by-sequence", "tcp_timewait.c, tcp_twcheck: TH_SYN and SEQ_GT(th_seq, rcv_nxt)"),
    set("tw.answer", "silence", "tcp_timewait.c, tcp_twcheck: a segment without ACK is dropped"),
    set("tw.rst", "ignore", "tcp_timewait.c, tcp_twcheck: TH_RST is dropped, for RFC 1337"),
    set("rst.close_wait", "reset", "assumed: tcp_input.c, tcp_do_segment"),
    set("net.ipv4.tcp_tw_reuse", "off", "assumed: in_pcb.c, in_pcb_lport"),
    set("syn.after_challenge", "off", "assumed: tcp_input.c, tcp_do_segment: as in 1997"),
    set("net.inet.ip.portrange.first", "10000", "in.h: IPPORT_EPHEMERALFIRST, 10000"),
    set("net.inet.ip.portrange.last", "65535", "in.h: IPPORT_EPHEMERALLAST, 65535"),
    set("net.inet.ip.portrange.randomized", "1", "assumed: in_pcb.c, ipport_randomized"),
    set("ports.refused", "forget", "assumed: in_pcb.c, in_pcb_lport"),
    set("net.inet.tcp.fastopen.client_enable", "0", "older than RFC 7413"),
    set("net.inet.tcp.fastopen.server_enable", "0", "older than RFC 7413"),
    set("icmp.frag_needed", "immediate", "assumed: tcp_subr.c, tcp_ctlinput"),
    set("net.ipv4.tcp_mtu_probing", "0", "assumed: black holes are not looked for"),
    set("neighbours.claims", "replace", "assumed: if_ether.c, in_arpinput"),
];

const OF_TODAY: &[Setting] = &[
    set(
        "buffers",
        "exact",
        "assumed: uipc_sockbuf.c, sbsetopt: SO_SNDBUF and SO_RCVBUF clear SB_AUTOSIZE",
    ),
    set("net.inet.tcp.sendspace", "32768", "assumed: tcp_usrreq.c, tcp_sendspace"),
    set("net.inet.tcp.recvspace", "65536", "assumed: tcp_input.c, tcp_recvspace: as in 9.3"),
    set("kern.ipc.maxsockbuf", "2097152", "assumed: sockbuf.h, SB_MAX"),
    set("net.inet.tcp.sendbuf_max", "2097152", "tcp_output.c: tcp_autosndbuf_max = 2*1024*1024"),
    set("buffers.told", "as-set", "assumed: uipc_socket.c, sogetopt"),
    set(
        "recv.window",
        "full-segments",
        "assumed: tcp_input.c, tcp_mss; tcp_output.c, tcp_default_output",
    ),
    set("options.order", "freebsd", "assumed: tcp_output.c, tcp_addoptions"),
    set(
        "syn.retry",
        "1s,2.2s,4.2s,8.2s,16.2s,32.2s,64s",
        "tcp_timer.c: tcp_rexmit_initial * tcp_backoff; TCPT_RANGESET adds the slop, but to the first",
    ),
    set("syn.after_challenge", "off", "assumed: tcp_input.c, tcp_do_segment: as in 1997"),
    set("net.ipv4.tcp_syn_retries", "12", "tcp_timer.h: TCP_MAXRXTSHIFT, 12"),
    set("net.inet.tcp.syncache.rexmtlimit", "3", "assumed: tcp_syncache.c, SYNCACHE_MAXREXMTS"),
    set("net.inet.tcp.keepinit", "75000", "tcp_timer.h: TCPTV_KEEP_INIT, 75*hz"),
    set("net.ipv4.tcp_rto_max_ms", "64s", "tcp_timer.h: TCPTV_REXMTMAX, 64*hz"),
    set("net.inet.tcp.retries", "12", "tcp_timer.h: TCP_MAXRXTSHIFT, 12"),
    set("net.inet.tcp.delacktime", "40", "tcp_timer.h: TCPTV_DELACK, hz/25"),
    set("net.inet.tcp.keepcnt", "8", "tcp_timer.h: TCPTV_KEEPCNT, 8"),
    set("net.inet.tcp.msl", "30000", "tcp_timer.h: TCPTV_MSL, 30*hz"),
    set(
        "timestamps.missing",
        "take",
        "tcp_subr.c: tcp_tolerate_missing_ts = 1; the manual, tcp(4)",
    ),
    set("tw.syn", "by-sequence", "assumed: tcp_timewait.c, tcp_twcheck: as in 9.3"),
    set("tw.answer", "silence", "tcp_timewait.c, tcp_twcheck: a segment without ACK is dropped"),
    set("tw.rst", "ignore", "assumed: tcp_timewait.c, tcp_twcheck: as in 9.3"),
    set(
        "rst.close_wait",
        "reset",
        "assumed: tcp_input.c, tcp_do_segment: ECONNRESET in each synchronized state",
    ),
    set(
        "icmp.prohibited",
        "refused",
        "assumed: ip_icmp.c, icmp_input; tcp_subr.c: tcp_drop_syn_sent",
    ),
    set(
        "icmp.time_exceeded",
        "hard",
        "assumed: ip_icmp.c, icmp_input; tcp_subr.c: tcp_drop_syn_sent",
    ),
    set(
        "icmp.soft_errors",
        "kept",
        "assumed: tcp_subr.c, tcp_notify: t_softerror is for the case of a time-out",
    ),
    set("shutdown.text", "take", "assumed: tcp_input.c, tcp_do_segment: SS_NOFDREF"),
    set("net.ipv4.tcp_tw_reuse", "0", "assumed: in_pcb.c, in_pcb_lport"),
    set(
        "net.inet.tcp.ack_war_timewindow",
        "200",
        "tcp_subr.c: tcp_ack_war_time_window = 1000, of which a fifth",
    ),
    set("net.inet.tcp.ack_war_cnt", "5", "assumed: tcp_subr.c, tcp_ack_war_cnt"),
    set("icmp.frag_needed", "immediate", "assumed: tcp_subr.c, tcp_ctlinput"),
    set("net.ipv4.tcp_mtu_probing", "0", "assumed: black holes are not looked for"),
    set("neighbours.claims", "replace", "assumed: if_ether.c, in_arpinput"),
    set(
        "net.inet.tcp.fastopen.server_enable",
        "0",
        "assumed: tcp_fastopen.c, fastopen_server_enable",
    ),
    set("net.inet.ip.portrange.first", "10000", "in.h: IPPORT_EPHEMERALFIRST, 10000"),
    set("net.inet.ip.portrange.last", "65535", "in.h: IPPORT_EPHEMERALLAST, 65535"),
    set("net.inet.ip.portrange.randomized", "1", "assumed: in_pcb.c, ipport_randomized"),
    set("ports.refused", "forget", "assumed: in_pcb.c, in_pcb_lport"),
];
