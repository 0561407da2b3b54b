//! Names of findings, with cause and remedy of each.

use std::fmt;

use kinds::{BY_CHANCE, CONGESTION, POLICER, SYNS_DROPPED, SYNS_FILTERED, SYNS_UNHEEDED};

pub(crate) mod kinds;

/// Name of a finding.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum Id {
    /// Nothing came back to a SYN.
    SynUnanswered,
    /// A reset came back to a SYN.
    SynRefused,
    /// A SYN met the record of a closed connection with the same ports.
    TwSynRefused,
    /// The accept queue of a listener was full.
    AcceptOverflow,
    /// A client has used all of its ports towards a server.
    PortExhausted,
    /// Window scale, SACK or timestamps are missing.
    OptionsMissing,
    /// An application had the path for itself and sent nothing.
    AppSlow,
    /// The receiver's window was full.
    RwndLimited,
    /// The receiver closed its window.
    ZeroWindow,
    /// The sender kept a constant amount in flight, below all windows.
    SenderLimited,
    /// The congestion window was the limit.
    CwndLimited,
    /// Nagle's algorithm waited for a delayed acknowledgment.
    NagleDelack,
    /// A queue on the path made the round trip long.
    Bufferbloat,
    /// Segments were lost.
    Loss,
    /// The last segments of a burst were lost, which only a time-out shows.
    TailLoss,
    /// Segments that had arrived were sent again.
    SpuriousRetransmit,
    /// Segments overtook each other.
    Reordering,
    /// Long segments disappear without an ICMP error.
    PmtuBlackhole,
    /// The path carried nothing for a while.
    Outage,
    /// An end stopped to answer.
    PeerSilent,
    /// A middlebox had forgotten an idle connection.
    IdleForgotten,
    /// An end reset a connection whose text it had not read.
    RstWithData,
    /// A third party reset the connection.
    RstInjected,
    /// An application did not close after the other end had.
    CloseWaitHeld,
    /// The capture lacks frames.
    CaptureLossy,
    /// The capture has frames twice.
    CaptureDuplicates,
    /// The capture has one direction only.
    CaptureOneWay,
    /// The capture has segments before or after the card's offload.
    CaptureOffloaded,
    /// The capture's time goes backwards: captures one after another.
    CaptureUnordered,
}

/// Cause, refutation and settings of a finding, or of one of its kinds.
pub(crate) struct Texts {
    name: &'static str,
    pub(crate) cause: &'static str,
    pub(crate) refuted_by: &'static str,
    pub(crate) linux: &'static str,
    pub(crate) freebsd: &'static str,
}

impl Id {
    /// All, in the order of a connection's life.
    pub const ALL: [Self; 29] = [
        Self::SynUnanswered,
        Self::SynRefused,
        Self::TwSynRefused,
        Self::AcceptOverflow,
        Self::PortExhausted,
        Self::OptionsMissing,
        Self::AppSlow,
        Self::RwndLimited,
        Self::ZeroWindow,
        Self::SenderLimited,
        Self::CwndLimited,
        Self::NagleDelack,
        Self::Bufferbloat,
        Self::Loss,
        Self::TailLoss,
        Self::SpuriousRetransmit,
        Self::Reordering,
        Self::PmtuBlackhole,
        Self::Outage,
        Self::PeerSilent,
        Self::IdleForgotten,
        Self::RstWithData,
        Self::RstInjected,
        Self::CloseWaitHeld,
        Self::CaptureLossy,
        Self::CaptureDuplicates,
        Self::CaptureOneWay,
        Self::CaptureOffloaded,
        Self::CaptureUnordered,
    ];

    /// The name in reports: `SYN_UNANSWERED`.
    pub fn name(self) -> &'static str {
        self.texts().name
    }

    /// The cause, in one sentence.
    pub fn cause(self) -> &'static str {
        self.texts().cause
    }

    /// An observation that would show the finding to be wrong.
    pub fn refuted_by(self) -> &'static str {
        self.texts().refuted_by
    }

    /// The change on Linux.
    pub fn linux(self) -> &'static str {
        self.texts().linux
    }

    /// The change on FreeBSD.
    pub fn freebsd(self) -> &'static str {
        self.texts().freebsd
    }

    /// The texts of a kind: those of the finding, unless it has its own.
    pub(crate) fn texts_of(self, kind: &str) -> &'static Texts {
        match (self, kind) {
            (Self::AcceptOverflow, SYNS_DROPPED) => &kinds::DROPPED_SYNS,
            (Self::Loss, CONGESTION) => &kinds::LOSS_BY_CONGESTION,
            (Self::Loss, POLICER) => &kinds::LOSS_BY_POLICER,
            (Self::Loss, BY_CHANCE) => &kinds::LOSS_BY_CHANCE,
            (Self::Loss, SYNS_UNHEEDED | SYNS_FILTERED) => &kinds::LOSS_OF_SYNS,
            _ => self.texts(),
        }
    }

    const fn texts(self) -> &'static Texts {
        match self {
            Self::SynUnanswered => &SYN_UNANSWERED,
            Self::SynRefused => &SYN_REFUSED,
            Self::TwSynRefused => &TW_SYN_REFUSED,
            Self::AcceptOverflow => &ACCEPT_OVERFLOW,
            Self::PortExhausted => &PORT_EXHAUSTED,
            Self::OptionsMissing => &OPTIONS_MISSING,
            Self::AppSlow => &APP_SLOW,
            Self::RwndLimited => &RWND_LIMITED,
            Self::ZeroWindow => &ZERO_WINDOW,
            Self::SenderLimited => &SENDER_LIMITED,
            Self::CwndLimited => &CWND_LIMITED,
            Self::NagleDelack => &NAGLE_DELACK,
            Self::Bufferbloat => &BUFFERBLOAT,
            Self::Loss => &LOSS,
            Self::TailLoss => &TAIL_LOSS,
            Self::SpuriousRetransmit => &SPURIOUS_RETRANSMIT,
            Self::Reordering => &REORDERING,
            Self::PmtuBlackhole => &PMTU_BLACKHOLE,
            Self::Outage => &OUTAGE,
            Self::PeerSilent => &PEER_SILENT,
            Self::IdleForgotten => &IDLE_FORGOTTEN,
            Self::RstWithData => &RST_WITH_DATA,
            Self::RstInjected => &RST_INJECTED,
            Self::CloseWaitHeld => &CLOSE_WAIT_HELD,
            Self::CaptureLossy => &CAPTURE_LOSSY,
            Self::CaptureDuplicates => &CAPTURE_DUPLICATES,
            Self::CaptureOneWay => &CAPTURE_ONE_WAY,
            Self::CaptureOffloaded => &CAPTURE_OFFLOADED,
            Self::CaptureUnordered => &CAPTURE_UNORDERED,
        }
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

const SYN_UNANSWERED: Texts = Texts {
    name: "SYN_UNANSWERED",
    cause: "nothing comes back to SYNs: a filter drops them, the host is down, or its queue is full",
    refuted_by: "a SYN-ACK in a capture at the server: then the way back loses it",
    linux: "server: nft list ruleset; nstat -az TcpExtListenDrops TcpExtTCPReqQFullDrop; \
            net.ipv4.tcp_max_syn_backlog and the backlog of listen()",
    freebsd: "server: pfctl -sr; netstat -Lan; kern.ipc.soacceptqueue",
};
const SYN_REFUSED: Texts = Texts {
    name: "SYN_REFUSED",
    cause: "a reset answers the SYN: no program listens at that port, or a filter rejects it",
    refuted_by: "ss -ltn at the server shows the port, and a capture there shows no reset",
    linux: "server: ss -ltnp; start the program, or mend the rule with 'reject with tcp reset'",
    freebsd: "server: sockstat -l; start the program, or mend 'block return'",
};
const TW_SYN_REFUSED: Texts = Texts {
    name: "TW_SYN_REFUSED",
    cause: "the server still keeps a closed connection of the same ports (TIME-WAIT), and refuses its SYN",
    refuted_by: "the ACK that answers has numbers of no former connection",
    linux: "client: net.ipv4.tcp_timestamps=1 and more ports (net.ipv4.ip_local_port_range); let the client \
            close first, or keep connections alive",
    freebsd: "client: net.inet.tcp.rfc1323=1, net.inet.ip.portrange.first=10000; server: a shorter \
              net.inet.tcp.msl; let the client close first",
};
const ACCEPT_OVERFLOW: Texts = Texts {
    name: "ACCEPT_OVERFLOW",
    cause: "the server sends its SYN-ACK again although the ACK was there: its accept queue is full",
    refuted_by: "nstat -az TcpExtListenOverflows at the server does not rise",
    linux: "server: a larger backlog of listen() and net.core.somaxconn; a program that accepts faster",
    freebsd: "server: kern.ipc.soacceptqueue and the backlog of listen(); netstat -Lan",
};
const PORT_EXHAUSTED: Texts = Texts {
    name: "PORT_EXHAUSTED",
    cause: "the client has used all of its ports to this server, and waits until TIME-WAIT frees them",
    refuted_by: "connect() at the client does not fail, and ss -tan state time-wait shows free ports",
    linux: "client: net.ipv4.ip_local_port_range=1024 65535, net.ipv4.tcp_tw_reuse=1; keep connections alive",
    freebsd: "client: net.inet.ip.portrange.first=1024, net.inet.tcp.msl=7500; keep connections alive",
};
const OPTIONS_MISSING: Texts = Texts {
    name: "OPTIONS_MISSING",
    cause: "options of the handshake are missing, and without them windows stay small or losses cost more",
    refuted_by: "a capture at the other end shows the option in the same SYN: then a middlebox removes it",
    linux: "net.ipv4.tcp_window_scaling=1, net.ipv4.tcp_sack=1, net.ipv4.tcp_timestamps=1; otherwise find the \
            middlebox that removes them",
    freebsd: "net.inet.tcp.rfc1323=1, net.inet.tcp.sack.enable=1; otherwise find the middlebox",
};
const APP_SLOW: Texts = Texts {
    name: "APP_SLOW",
    cause: "the program has nothing in flight and open windows, and sends late",
    refuted_by: "the program's own log shows that it had sent earlier",
    linux: "none of TCP's: profile the program (strace -r -e trace=network -p PID)",
    freebsd: "none of TCP's: profile the program (truss -d -p PID)",
};
const RWND_LIMITED: Texts = Texts {
    name: "RWND_LIMITED",
    cause: "the sender fills the receiver's window and waits for more",
    refuted_by: "ss -ti at the sender shows no rwnd_limited",
    linux: "receiver: net.ipv4.tcp_rmem (its third value), and no SO_RCVBUF in the program",
    freebsd: "receiver: net.inet.tcp.recvbuf_max, kern.ipc.maxsockbuf, and no SO_RCVBUF in the program",
};
const ZERO_WINDOW: Texts = Texts {
    name: "ZERO_WINDOW",
    cause: "the receiving program does not read: its window is closed",
    refuted_by: "the receive queue at that end (ss -tn, Recv-Q) is empty",
    linux: "receiver: profile the program that does not read; net.ipv4.tcp_rmem only delays it",
    freebsd: "receiver: profile the program that does not read; net.inet.tcp.recvbuf_max only delays it",
};
const SENDER_LIMITED: Texts = Texts {
    name: "SENDER_LIMITED",
    cause: "the sender keeps a constant amount in flight, below the window and without losses: its send buffer \
            or a clamp limits it",
    refuted_by: "ss -ti at the sender shows no sndbuf_limited, and its cwnd is that amount",
    linux: "sender: net.ipv4.tcp_wmem (its third value), no SO_SNDBUF in the program; ip route: no cwnd lock",
    freebsd: "sender: net.inet.tcp.sendbuf_max, and no SO_SNDBUF in the program",
};
const CWND_LIMITED: Texts = Texts {
    name: "CWND_LIMITED",
    cause: "the congestion window is the limit: it starts small, and grows once a round trip",
    refuted_by: "ss -ti at the sender shows a cwnd above what is in flight",
    linux: "sender: net.ipv4.tcp_slow_start_after_idle=0; ip route change … initcwnd 20; one connection for \
            several transfers",
    freebsd: "sender: net.inet.tcp.initcwnd_segments=20; one connection for several transfers",
};
const NAGLE_DELACK: Texts = Texts {
    name: "NAGLE_DELACK",
    cause: "a short write waits for the ACK of the one before it, which the other end delays",
    refuted_by: "the program sets TCP_NODELAY, or writes the second part later",
    linux: "sender: TCP_NODELAY, or one write (writev, MSG_MORE); receiver: ip route change … quickack 1",
    freebsd: "sender: TCP_NODELAY, or one write; receiver: net.inet.tcp.delayed_ack=0",
};
const BUFFERBLOAT: Texts = Texts {
    name: "BUFFERBLOAT",
    cause: "a queue on the path holds so much that the round trip grows under load",
    refuted_by: "ping during the transfer keeps the short time: then the host itself answers late",
    linux: "at the bottleneck: tc qdisc replace dev IF root cake bandwidth RATE, or fq_codel; sender: \
            net.ipv4.tcp_congestion_control=bbr",
    freebsd: "at the bottleneck: ipfw pipe with fq_codel; sender: net.inet.tcp.functions_default=bbr",
};
const LOSS: Texts = Texts {
    name: "LOSS",
    cause: "segments are lost on the path",
    refuted_by: "a capture at the receiver shows them",
    linux: "congestion: fq_codel at the bottleneck; policer: tc qdisc … fq maxrate below its rate; by chance: \
            ethtool -S for errors of the link, net.ipv4.tcp_congestion_control=bbr",
    freebsd: "congestion: fq_codel at the bottleneck; policer: pace below its rate; by chance: netstat -i for \
              errors of the link",
};
const TAIL_LOSS: Texts = Texts {
    name: "TAIL_LOSS",
    cause: "the last segments of a burst are lost; nothing behind them shows it before a time-out",
    refuted_by: "duplicate ACKs or SACK blocks before the segment is sent again",
    linux: "sender: net.ipv4.tcp_early_retrans=3 (TLP), net.ipv4.tcp_recovery=1 (RACK)",
    freebsd: "sender: net.inet.tcp.functions_default=rack",
};
const SPURIOUS_RETRANSMIT: Texts = Texts {
    name: "SPURIOUS_RETRANSMIT",
    cause: "segments are sent again although they had arrived: the round trip jumped, or ACKs were late",
    refuted_by: "no D-SACK, and the echoed timestamp is of the second transmission",
    linux: "sender: net.ipv4.tcp_frto=2, net.ipv4.tcp_timestamps=1; look for what delays the path",
    freebsd: "sender: net.inet.tcp.rexmit_min=230, net.inet.tcp.rfc1323=1",
};
const REORDERING: Texts = Texts {
    name: "REORDERING",
    cause: "the path delivers segments out of order",
    refuted_by: "the late segment has a later IP id or TSval: then it was sent again",
    linux: "sender: net.ipv4.tcp_recovery=1, net.ipv4.tcp_max_reordering=300; path: one queue for each flow",
    freebsd: "sender: net.inet.tcp.functions_default=rack; path: lagg by flow (use_flowid)",
};
const PMTU_BLACKHOLE: Texts = Texts {
    name: "PMTU_BLACKHOLE",
    cause: "long segments disappear, shorter ones pass, and no ICMP error comes",
    refuted_by: "ping -M do -s 1472 passes",
    linux: "sender: net.ipv4.tcp_mtu_probing=1; router: iptables … TCPMSS --clamp-mss-to-pmtu; filter: let ICMP \
            type 3 code 4 pass",
    freebsd: "sender: net.inet.tcp.pmtud_blackhole_detection=1; pf: scrub max-mss; let ICMP unreach pass",
};
const OUTAGE: Texts = Texts {
    name: "OUTAGE",
    cause: "the path carries nothing for a while, then all goes on",
    refuted_by: "other connections over the same path go on meanwhile",
    linux: "none of TCP's: logs of interfaces and routes (ip monitor, dmesg)",
    freebsd: "none of TCP's: logs of interfaces and routes (route monitor, dmesg)",
};
const PEER_SILENT: Texts = Texts {
    name: "PEER_SILENT",
    cause: "an end does not answer any more, until the end of the capture",
    refuted_by: "a capture at that end shows answers",
    linux: "TCP_USER_TIMEOUT and SO_KEEPALIVE end such connections earlier; net.ipv4.tcp_retries2",
    freebsd: "SO_KEEPALIVE ends such connections earlier; net.inet.tcp.keepidle",
};
const IDLE_FORGOTTEN: Texts = Texts {
    name: "IDLE_FORGOTTEN",
    cause: "a NAT or firewall has forgotten the connection while it was idle",
    refuted_by: "the other end answers, or the same happens without idleness",
    linux: "ends: SO_KEEPALIVE with net.ipv4.tcp_keepalive_time below the box's limit; box: \
            net.netfilter.nf_conntrack_tcp_timeout_established",
    freebsd: "ends: SO_KEEPALIVE with net.inet.tcp.keepidle below the box's limit; box: pf 'set timeout \
              tcp.established'",
};
const RST_WITH_DATA: Texts = Texts {
    name: "RST_WITH_DATA",
    cause: "a program closes while text is unread, so its system resets the connection",
    refuted_by: "the program sets SO_LINGER to 0 on purpose",
    linux: "none of TCP's: read until the end, or shutdown(SHUT_WR) and read before close",
    freebsd: "none of TCP's: read until the end, or shutdown(SHUT_WR) and read before close",
};
const RST_INJECTED: Texts = Texts {
    name: "RST_INJECTED",
    cause: "a third party resets the connection in the name of an end",
    refuted_by: "a capture at that end shows the reset leaving it",
    linux: "find the box by its TTL; against forged resets only IPsec or TCP-AO help",
    freebsd: "find the box by its TTL; against forged resets only IPsec or TCP-MD5 help",
};
const CLOSE_WAIT_HELD: Texts = Texts {
    name: "CLOSE_WAIT_HELD",
    cause: "the other end has closed, and the program neither sends nor closes",
    refuted_by: "ss -tan state close-wait at that end is empty",
    linux: "none of TCP's: mend the program's close (ss -tanp state close-wait)",
    freebsd: "none of TCP's: mend the program's close (sockstat -s)",
};
const CAPTURE_LOSSY: Texts = Texts {
    name: "CAPTURE_LOSSY",
    cause: "the capture lacks frames that were acknowledged: it could not keep up",
    refuted_by: "the statistics of the capture show no drops",
    linux: "dumpcap -B 64 -s 96, or a filter",
    freebsd: "tcpdump -B 65536 -s 96; net.bpf.maxbufsize",
};
const CAPTURE_DUPLICATES: Texts = Texts {
    name: "CAPTURE_DUPLICATES",
    cause: "the capture has frames twice: it was taken at two interfaces, or at a mirror of both directions",
    refuted_by: "the second frame has another IP id",
    linux: "capture at one interface, not at any; editcap -d removes them",
    freebsd: "capture at one interface; editcap -d removes them",
};
const CAPTURE_ONE_WAY: Texts = Texts {
    name: "CAPTURE_ONE_WAY",
    cause: "the capture has one direction only: routes differ, or a filter keeps the other away",
    refuted_by: "the other direction is in another file",
    linux: "capture at a host instead of a router; mirror both directions",
    freebsd: "capture at a host instead of a router; mirror both directions",
};
const CAPTURE_OFFLOADED: Texts = Texts {
    name: "CAPTURE_OFFLOADED",
    cause: "segments are longer than the path's: the capture was taken before or after the card's offload",
    refuted_by: "the MTU of the path is that large",
    linux: "ethtool -K IF tso off gso off gro off, if frames on the wire matter",
    freebsd: "ifconfig IF -tso -lro, if frames on the wire matter",
};
const CAPTURE_UNORDERED: Texts = Texts {
    name: "CAPTURE_UNORDERED",
    cause: "time goes backwards by more than a second: the file has several captures, each of which is explained \
            for itself",
    refuted_by: "the host's clock was set back during the capture",
    linux: "mergecap without -a orders captures of one time; explain takes several files, too",
    freebsd: "mergecap without -a orders captures of one time; explain takes several files, too",
};
