//! Profiles: the rules of other stacks, as far as tunables can say them.
//!
//! A profile is a list of tunables, each by a name and as it would be typed; no branch of the code
//! knows of them. What a stack does and no tunable says is no part of its profile.

use whimbrel_base::tunables::TunableError;
use whimbrel_tcp::Tunables;

/// The rules of a stack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Profile {
    /// As it is typed.
    pub name: &'static str,
    /// Which stack it imitates, in a line for people.
    pub help: &'static str,
    /// What differs from the defaults: names and values.
    pub settings: &'static [(&'static str, &'static str)],
}

/// Every profile, the default one first.
pub const PROFILES: &[Profile] = &[WHIMBREL, LINUX, FREEBSD];

impl Profile {
    /// The profile of this name.
    pub fn by_name(name: &str) -> Option<&'static Self> {
        PROFILES.iter().find(|profile| profile.name == name)
    }

    /// The defaults, with what differs.
    pub fn tunables(&self) -> Result<Tunables, TunableError> {
        let mut tunables = Tunables::default();
        for (name, value) in self.settings {
            tunables.set_by_name(name, value)?;
        }
        Ok(tunables)
    }
}

const WHIMBREL: Profile =
    Profile { name: "whimbrel", help: "This stack's defaults.", settings: &[] };

const LINUX: Profile = Profile {
    name: "linux",
    help: "Linux, with the variables that its packet scripts set before they begin.",
    settings: &[
        // tcp(7): setting either "disables this mechanism for this connection", autotuning.
        ("buffers", "exact"),
        // What is announced at first: all that a SYN can say.
        ("buffers.recv", "64k"),
        // The last number of `net.ipv4.tcp_rmem`: a scale of 8.
        ("buffers.recv.max", "15M"),
        ("net.ipv4.tcp_syn_retries", "5"),
        // Quick acknowledgments, as of a connection's first sixteen segments.
        ("ack_every", "1"),
        ("net.ipv4.tcp_congestion_control", "reno"),
        ("timestamps.missing", "take"),
        ("msl", "30s"),
        ("tw.syn", "linux"),
        ("tw.rst", "at-rcv-nxt"),
        ("tw.empty", "silence"),
        ("icmp.time_exceeded", "hard"),
        ("icmp.unreachable", "hard"),
        ("net.ipv4.tcp_tw_reuse", "2"),
        ("ports", "even-first"),
        ("net.ipv4.tcp_fastopen", "1"),
        ("net.ipv4.tcp_fastopen_blackhole_timeout_sec", "0"),
        // A connection answers one invalid segment in each `tcp_invalid_ratelimit`.
        ("challenge.burst", "1"),
        ("icmp.frag_needed", "immediate"),
        ("neighbours.claims", "replace"),
    ],
};

const FREEBSD: Profile = Profile {
    name: "freebsd",
    help: "FreeBSD 14 with its default stack.",
    settings: &[
        // uipc_sockbuf.c, sbsetopt: SO_SNDBUF and SO_RCVBUF clear SB_AUTOSIZE.
        ("buffers", "exact"),
        ("net.inet.tcp.sendspace", "32768"),
        ("net.inet.tcp.recvspace", "65536"),
        ("kern.ipc.maxsockbuf", "2097152"),
        ("net.inet.tcp.sendbuf_max", "2097152"),
        ("buffers.told", "as-set"),
        ("recv.window", "full-segments"),
        ("options.order", "freebsd"),
        // Doubled, and `rexmit_slop` on top of each but the first.
        ("syn.retry", "1s,2.2s,4.2s,8.2s,16.2s,32.2s,64s"),
        ("syn.after_challenge", "off"),
        ("net.ipv4.tcp_syn_retries", "12"),
        ("net.inet.tcp.syncache.rexmtlimit", "3"),
        ("net.inet.tcp.keepinit", "75000"),
        ("net.ipv4.tcp_rto_max_ms", "64s"),
        ("net.inet.tcp.retries", "12"),
        ("net.inet.tcp.delacktime", "40"),
        ("net.inet.tcp.keepcnt", "8"),
        ("net.inet.tcp.msl", "30000"),
        ("timestamps.missing", "drop-syn"),
        ("tw.syn", "by-sequence"),
        ("tw.answer", "silence"),
        ("tw.rst", "ignore"),
        // tcp_input.c, tcp_do_segment: ECONNRESET in each synchronized state.
        ("rst.close_wait", "reset"),
        // ip_icmp.c, icmp_input, and tcp_subr.c, tcp_ctlinput: both end SYN-SENT (tcp_drop_syn_sent).
        ("icmp.prohibited", "refused"),
        ("icmp.time_exceeded", "hard"),
        // tcp_subr.c, tcp_notify: t_softerror is for the case of a time-out.
        ("icmp.soft_errors", "kept"),
        // tcp_input.c, tcp_do_segment: only what nobody holds any more (SS_NOFDREF) is reset.
        ("shutdown.text", "take"),
        ("net.ipv4.tcp_tw_reuse", "0"),
        // Five in each second.
        ("net.inet.tcp.ack_war_timewindow", "200"),
        ("net.inet.tcp.ack_war_cnt", "5"),
        ("icmp.frag_needed", "immediate"),
        ("neighbours.claims", "replace"),
        ("net.inet.tcp.fastopen.server_enable", "0"),
        ("net.inet.ip.portrange.first", "10000"),
        ("net.inet.ip.portrange.last", "65535"),
        ("net.inet.ip.portrange.randomized", "1"),
    ],
};

#[cfg(test)]
mod tests;
