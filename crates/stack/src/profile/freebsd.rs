//! FreeBSD: of 1997, of 2013, and of today.

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

/// As it comes.
pub(super) const FREEBSD_15: Profile = Profile {
    name: "freebsd-15",
    help: "FreeBSD 15 with its default stack.",
    base: None,
    settings: OF_TODAY,
    locking: None,
};

/// What packet scripts of others expect: nothing else.
pub(super) const FREEBSD: Profile = Profile {
    name: "freebsd",
    help: "The same as freebsd-15.",
    base: Some(&FREEBSD_15),
    settings: &[],
    locking: None,
};

const OF_1997: &[Setting] = &[
    set("net.inet.tcp.sendspace", "16384", "tcp_usrreq.c: TCP_SENDSPACE"),
    set("net.inet.tcp.recvspace", "16384", "tcp_usrreq.c: TCP_RECVSPACE"),
    set("buffers", "route", "tcp_input.c, tcp_mss: rmx_sendpipe, rmx_recvpipe"),
    set("kern.ipc.maxsockbuf", "262144", "socketvar.h: SB_MAX"),
    set("buffers.told", "as-set", "uipc_socket.c, sogetopt: sb_hiwat"),
    set("buffers.send.auto", "off", "tcp_output.c: it has none"),
    set("net.ipv4.tcp_moderate_rcvbuf", "off", "tcp_input.c: it has none"),
    set("net.inet.tcp.rfc1323", "1", "tcp_subr.c: tcp_do_rfc1323"),
    set("net.inet.tcp.sack.enable", "0", "it has none"),
    set("options.order", "freebsd", "tcp_output.c: MSS, NOP and window scale, NOPs and timestamps"),
    set("net.ipv4.tcp_congestion_control", "reno", "tcp_input.c, tcp_input"),
    set("initial_window", "1", "tcp_input.c, tcp_mss: snd_cwnd = mss"),
    set("slow_start.limit", "1", "tcp_input.c: t_maxseg for each acknowledgment"),
    set("hystart", "off", "older than RFC 9406"),
    set("tail_loss_probe", "off", "older than RFC 8985"),
    set("initial_rto", "6s", "tcp_subr.c, tcp_newtcpcb: t_rxtcur, of TCPTV_SRTTDFLT"),
    set(
        "syn.retry",
        "6s,24s,48s,64s",
        "tcp_timer.c, tcp_backoff; twice t_rxtcur from the second on",
    ),
    set("net.ipv4.tcp_syn_retries", "12", "tcp_timer.h: TCP_MAXRXTSHIFT"),
    set("net.inet.tcp.keepinit", "75000", "tcp_timer.h: TCPTV_KEEP_INIT"),
    set("net.inet.tcp.rexmit_min", "1000", "tcp_timer.h: TCPTV_MIN"),
    set("net.ipv4.tcp_rto_max_ms", "64s", "tcp_timer.h: TCPTV_REXMTMAX"),
    set("net.inet.tcp.retries", "12", "tcp_timer.h: TCP_MAXRXTSHIFT"),
    set("net.inet.tcp.delacktime", "200", "protosw.h: PR_FASTHZ"),
    set("net.inet.tcp.keepcnt", "8", "tcp_timer.h: TCPTV_KEEPCNT"),
    set("net.inet.tcp.msl", "30000", "tcp_timer.h: TCPTV_MSL"),
    set("net.inet.tcp.insecure_rst", "1", "tcp_input.c: TH_RST, anywhere in the window"),
    set("net.inet.tcp.insecure_syn", "1", "tcp_input.c: TH_SYN, tcp_drop"),
    set("net.inet.tcp.drop_synfin", "0", "tcp_input.c: it has none"),
    set("tw.syn", "by-sequence", "tcp_input.c: SEQ_GT(ti->ti_seq, tp->rcv_nxt)"),
    set("tw.rst", "end", "tcp_input.c: TH_RST, case TCPS_TIME_WAIT"),
    set("challenge.burst", "255", "tcp_input.c, dropafterack: no limit"),
    set("net.ipv4.tcp_tw_reuse", "off", "in_pcb.c, in_pcbbind: a port in TIME-WAIT is in use"),
    set("syn.after_challenge", "off", "tcp_input.c, TCPS_SYN_SENT: dropwithreset"),
    set("net.inet.ip.portrange.first", "1024", "in_pcb.c: ipport_firstauto, IPPORT_RESERVED"),
    set("net.inet.ip.portrange.last", "5000", "in_pcb.c: ipport_lastauto, IPPORT_USERRESERVED"),
    set("net.inet.ip.portrange.randomized", "0", "in_pcb.c, in_pcbbind: lastport"),
    set("ports.refused", "forget", "in_pcb.c, in_pcbbind: nothing says so"),
    set("isn", "host-wide", "tcp_seq.h: tcp_iss, with a random part"),
    set("isn.step", "64000", "tcp_seq.h: \"a quarter of\" TCP_ISSINCR, on average"),
    set("net.inet.tcp.syncookies", "0", "it has none"),
    set("net.inet.tcp.fastopen.client_enable", "0", "it has none"),
    set("net.inet.tcp.fastopen.server_enable", "0", "it has none"),
    set("icmp.frag_needed", "immediate", "tcp_subr.c, tcp_mtudisc"),
    set("neighbours.claims", "replace", "if_ether.c, in_arpinput"),
];

const OF_2013: &[Setting] = &[
    set("net.inet.tcp.sendspace", "32768", "tcp_usrreq.c: tcp_sendspace"),
    set("net.inet.tcp.recvspace", "65536", "tcp_usrreq.c: tcp_recvspace"),
    set("kern.ipc.maxsockbuf", "2097152", "sockbuf.h: SB_MAX"),
    set("net.inet.tcp.sendbuf_max", "2097152", "tcp_output.c: tcp_autosndbuf_max"),
    set("buffers", "exact", "uipc_sockbuf.c, sbsetopt: SB_AUTOSIZE is cleared"),
    set("buffers.told", "as-set", "uipc_socket.c, sogetopt: sb_hiwat"),
    set("recv.window", "full-segments", "tcp_input.c, tcp_mss; tcp_output.c, tcp_output"),
    set("options.order", "freebsd", "tcp_output.c, tcp_addoptions"),
    set("net.inet.tcp.cc.algorithm", "newreno", "cc.c: V_default_cc_ptr"),
    set("initial_window", "3", "tcp_input.c, cc_conn_init: tcp_do_rfc3390, 4,380 bytes"),
    set("net.inet.tcp.abc_l_var", "2", "tcp_input.c: tcp_abc_l_var"),
    set("hystart", "off", "older than RFC 9406"),
    set("tail_loss_probe", "off", "older than RFC 8985"),
    set("initial_rto", "3s", "tcp_timer.h: TCPTV_RTOBASE"),
    set(
        "syn.retry",
        "3s,3.2s,3.2s,3.2s,3.2s,6.2s,12.2s,24.2s,48.2s,64s",
        "tcp_timer.c: tcp_syn_backoff",
    ),
    set("net.ipv4.tcp_syn_retries", "12", "tcp_timer.h: TCP_MAXRXTSHIFT"),
    set("net.inet.tcp.syncache.rexmtlimit", "3", "tcp_syncache.c: SYNCACHE_MAXREXMTS"),
    set("net.inet.tcp.keepinit", "75000", "tcp_timer.h: TCPTV_KEEP_INIT"),
    set("net.inet.tcp.rexmit_slop", "200", "tcp_timer.h: TCPTV_CPU_VAR, beside TCPTV_MIN"),
    set("net.ipv4.tcp_rto_max_ms", "64s", "tcp_timer.h: TCPTV_REXMTMAX"),
    set("net.inet.tcp.retries", "12", "tcp_timer.h: TCP_MAXRXTSHIFT"),
    set("net.inet.tcp.delacktime", "100", "tcp_timer.h: TCPTV_DELACK"),
    set("net.inet.tcp.keepcnt", "8", "tcp_timer.h: TCPTV_KEEPCNT"),
    set("net.inet.tcp.msl", "30000", "tcp_timer.h: TCPTV_MSL"),
    set("net.inet.tcp.drop_synfin", "0", "tcp_input.c: drop_synfin"),
    set("tw.syn", "by-sequence", "tcp_timewait.c, tcp_twcheck: SEQ_GT(th->th_seq, tw->rcv_nxt)"),
    set("tw.answer", "silence", "tcp_timewait.c, tcp_twcheck: only segments with ACK are answered"),
    set("tw.rst", "ignore", "tcp_timewait.c, tcp_twcheck: RFC 1337"),
    set("rst.close_wait", "reset", "tcp_input.c, tcp_do_segment: ECONNRESET"),
    set("net.ipv4.tcp_tw_reuse", "off", "in_pcb.c, in_pcb_lport: a port in TIME-WAIT is in use"),
    set("syn.after_challenge", "off", "tcp_input.c, tcp_do_segment: dropwithreset"),
    set("net.inet.ip.portrange.first", "10000", "in.h: IPPORT_EPHEMERALFIRST"),
    set("net.inet.ip.portrange.last", "65535", "in.h: IPPORT_EPHEMERALLAST"),
    set("net.inet.ip.portrange.randomized", "1", "in_pcb.c: ipport_randomized"),
    set("ports.refused", "forget", "in_pcb.c, in_pcb_lport: nothing says so"),
    set("net.inet.tcp.fastopen.client_enable", "0", "it has none"),
    set("net.inet.tcp.fastopen.server_enable", "0", "it has none"),
    set("icmp.frag_needed", "immediate", "tcp_subr.c, tcp_ctlinput"),
    set("neighbours.claims", "replace", "if_ether.c, in_arpinput"),
];

const OF_TODAY: &[Setting] = &[
    set("buffers", "exact", "uipc_sockbuf.c, sbsetopt: SO_SNDBUF and SO_RCVBUF clear SB_AUTOSIZE"),
    set("net.inet.tcp.sendspace", "32768", "tcp_usrreq.c: tcp_sendspace"),
    set("net.inet.tcp.recvspace", "65536", "tcp_usrreq.c: tcp_recvspace"),
    set("kern.ipc.maxsockbuf", "2097152", "sockbuf.h: SB_MAX"),
    set("net.inet.tcp.sendbuf_max", "2097152", "tcp_output.c: tcp_autosndbuf_max"),
    set("buffers.told", "as-set", "uipc_socket.c, sogetopt: sb_hiwat"),
    set("recv.window", "full-segments", "tcp_input.c, tcp_mss; tcp_output.c, tcp_default_output"),
    set("options.order", "freebsd", "tcp_output.c, tcp_addoptions"),
    set(
        "syn.retry",
        "1s,2.2s,4.2s,8.2s,16.2s,32.2s,64s",
        "tcp_timer.c, tcp_backoff: and rexmit_slop but for the first",
    ),
    set("syn.after_challenge", "off", "tcp_input.c, tcp_do_segment: dropwithreset"),
    set("net.ipv4.tcp_syn_retries", "12", "tcp_timer.h: TCP_MAXRXTSHIFT"),
    set("net.inet.tcp.syncache.rexmtlimit", "3", "tcp_syncache.c: SYNCACHE_MAXREXMTS"),
    set("net.inet.tcp.keepinit", "75000", "tcp_timer.h: TCPTV_KEEP_INIT"),
    set("net.ipv4.tcp_rto_max_ms", "64s", "tcp_timer.h: TCPTV_REXMTMAX"),
    set("net.inet.tcp.retries", "12", "tcp_timer.h: TCP_MAXRXTSHIFT"),
    set("net.inet.tcp.delacktime", "40", "tcp_timer.h: TCPTV_DELACK"),
    set("net.inet.tcp.keepcnt", "8", "tcp_timer.h: TCPTV_KEEPCNT"),
    set("net.inet.tcp.msl", "30000", "tcp_timer.h: TCPTV_MSL"),
    set("timestamps.missing", "drop-syn", "tcp_input.c, tcp_do_segment: tolerate_missing_ts is 0"),
    set("tw.syn", "by-sequence", "tcp_timewait.c, tcp_twcheck: SEQ_GT"),
    set("tw.answer", "silence", "tcp_timewait.c, tcp_twcheck"),
    set("tw.rst", "ignore", "tcp_timewait.c, tcp_twcheck: RFC 1337"),
    set(
        "rst.close_wait",
        "reset",
        "tcp_input.c, tcp_do_segment: ECONNRESET in each synchronized state",
    ),
    set(
        "icmp.prohibited",
        "refused",
        "ip_icmp.c, icmp_input; tcp_subr.c, tcp_ctlinput: tcp_drop_syn_sent",
    ),
    set(
        "icmp.time_exceeded",
        "hard",
        "ip_icmp.c, icmp_input; tcp_subr.c, tcp_ctlinput: tcp_drop_syn_sent",
    ),
    set(
        "icmp.soft_errors",
        "kept",
        "tcp_subr.c, tcp_notify: t_softerror is for the case of a time-out",
    ),
    set("shutdown.text", "take", "tcp_input.c, tcp_do_segment: SS_NOFDREF"),
    set("net.ipv4.tcp_tw_reuse", "0", "in_pcb.c, in_pcb_lport: a port in TIME-WAIT is in use"),
    set("net.inet.tcp.ack_war_timewindow", "200", "tcp_input.c: five in each second"),
    set("net.inet.tcp.ack_war_cnt", "5", "tcp_input.c: tcp_ack_war_cnt"),
    set("icmp.frag_needed", "immediate", "tcp_subr.c, tcp_ctlinput"),
    set("neighbours.claims", "replace", "if_ether.c, in_arpinput"),
    set("net.inet.tcp.fastopen.server_enable", "0", "tcp_fastopen.c: fastopen_server_enable"),
    set("net.inet.ip.portrange.first", "10000", "in.h: IPPORT_EPHEMERALFIRST"),
    set("net.inet.ip.portrange.last", "65535", "in.h: IPPORT_EPHEMERALLAST"),
    set("net.inet.ip.portrange.randomized", "1", "in_pcb.c: ipport_randomized"),
    set("ports.refused", "forget", "in_pcb.c, in_pcb_lport: nothing says so"),
];
