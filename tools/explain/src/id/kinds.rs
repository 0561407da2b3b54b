//! Kinds of findings, and the texts of those that have their own.

use super::Texts;

/// Kinds of `LOSS`.
pub(crate) const CONGESTION: &str = "congestion";
pub(crate) const POLICER: &str = "policer";
pub(crate) const BY_CHANCE: &str = "by chance";
pub(crate) const UNKNOWN: &str = "unknown kind";
pub(crate) const NOT_HERE: &str = "not decidable here";
pub(crate) const SYNS_UNHEEDED: &str = "of SYNs: the path, or a full queue";
/// After the server's counters have said that no queue was full.
pub(crate) const SYNS_FILTERED: &str = "of SYNs: the path, or a filter";
/// Kind of `ACCEPT_OVERFLOW`.
pub(crate) const SYNS_DROPPED: &str = "SYNs are dropped";

pub(super) const LOSS_BY_CONGESTION: Texts = Texts {
    name: "LOSS",
    cause: "the queue of the bottleneck fills, and drops what exceeds it: round trips grow before the losses",
    refuted_by: "the queue at the bottleneck drops nothing (tc -s qdisc)",
    linux: "at the bottleneck: tc qdisc replace dev IF root fq_codel; sender: \
            net.ipv4.tcp_congestion_control=bbr",
    freebsd: "at the bottleneck: ipfw pipe with fq_codel; sender: net.inet.tcp.functions_default=bbr",
};
pub(super) const LOSS_BY_POLICER: Texts = Texts {
    name: "LOSS",
    cause: "a policer drops what exceeds its rate, without a queue",
    refuted_by: "the losses stay when the sender is paced below the rate at which they begin",
    linux: "sender: tc qdisc replace dev IF root fq maxrate RATE, a little below the policer's; its owner: shape \
            instead of police, or a larger burst",
    freebsd: "sender: ipfw pipe config bw RATE, a little below the policer's; its owner: shape instead of police, \
              or a larger burst",
};
pub(super) const LOSS_BY_CHANCE: Texts = Texts {
    name: "LOSS",
    cause: "segments are lost whatever the rate and the queue: a link or a card has errors",
    refuted_by: "the losses end when the sender is paced at half of its rate",
    linux: "errors of each link: ip -s link, ethtool -S; sender: net.ipv4.tcp_congestion_control=bbr",
    freebsd: "errors of each link: netstat -i; sender: net.inet.tcp.functions_default=bbr",
};
pub(super) const LOSS_OF_SYNS: Texts = Texts {
    name: "LOSS",
    cause: "SYNs are sent again before one is answered: the path loses them, or the server drops them because a \
            queue is full or a filter says so",
    refuted_by: "a capture at the server has all SYNs: then it drops them; without them it is the path",
    linux: "server: nstat -az TcpExtListenOverflows TcpExtListenDrops; if they rise: a larger backlog of listen() \
            and net.core.somaxconn; otherwise nft list ruleset, and the path",
    freebsd: "server: netstat -Lan, netstat -s -p tcp (listen queue overflows); if they rise: \
              kern.ipc.soacceptqueue; otherwise pfctl -sr, and the path",
};
pub(super) const DROPPED_SYNS: Texts = Texts {
    name: "ACCEPT_OVERFLOW",
    cause: "the server drops SYNs because its accept queue is full: the program accepts too slowly",
    refuted_by: "nstat -az TcpExtListenOverflows at the server does not rise: then a filter drops SYNs, or the \
                 path loses them",
    linux: "server: a larger backlog of listen() and net.core.somaxconn; a program that accepts faster",
    freebsd: "server: kern.ipc.soacceptqueue and the backlog of listen(); netstat -Lan",
};
