//! What ICMP errors do to a connection (RFC 1122 4.2.3.9, RFC 5461, RFC 5927, RFC 1191, RFC 8201).
//!
//! Anybody can send them, so that each must quote a segment that is in flight, and none ends a
//! connection that is established: the retransmission timer finds out better than a router does.
//! Before that, a hard error spares the application two minutes of SYNs.
//!
//! That a segment was too big is believed at once where none as large was acknowledged before, and
//! otherwise only if the segment that is quoted times out (RFC 5927 7.2): whoever forges such errors
//! would have us cut what flows into crumbs.

use whimbrel_base::packet::{IcmpError, LEAST_PATH_MTU_V4, SoftError};
use whimbrel_wire::SeqNum;

use super::open::TIMESTAMP_OCTETS;
use super::{Connection, Flags, State};
use crate::tunables::{FragNeeded, ProhibitedByIcmp, TimeExceededByIcmp, UnreachableByIcmp};
use crate::verdict::CloseReason;
use crate::{Context, Tunables};

/// What became of an ICMP error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum IcmpVerdict {
    /// The quoted segment is not in flight: a forgery, or long out of date.
    OutOfWindow,
    /// Noted for whoever asks [`Connection::soft_error`].
    Noted,
    /// The path carries less than was thought. Whatever was too big is sent again.
    Lowered,
    /// Segments as large were acknowledged before: it waits until the quoted one times out, and is
    /// forgotten if that is acknowledged.
    Held,
    /// Nothing new, or nothing that could be true.
    Ignored,
    /// It ended the attempt to open.
    Closed(CloseReason),
}

/// A report that a segment was too big, not believed yet (RFC 5927 7.2's pending message).
#[derive(Clone, Copy, Debug)]
pub(super) struct TooBig {
    /// The segment that it quotes (claimedtcpseq).
    seq: SeqNum,
    /// What the link is said to carry (claimedmtu).
    mtu: u16,
}

impl Connection {
    /// A router or the peer's host sent an error that quotes the segment at `seq`.
    pub fn on_icmp(&mut self, cx: &mut Context, seq: SeqNum, error: IcmpError) -> IcmpVerdict {
        if matches!(self.state, State::Closed | State::TimeWait) {
            return IcmpVerdict::Ignored;
        }
        // RFC 5927 4.1: "the TCP sequence number contained in the payload of the ICMP error
        // message is within the range SND.UNA =< SEG.SEQ < SND.NXT". SND.NXT may have gone back:
        // SND.MAX it is. A bare acknowledgment stands at SND.MAX itself, and may be undeliverable,
        // but neither too big nor refused by whoever is to have sent no SYN yet.
        let beyond = seq.offset_from(self.sender.seq().una);
        let sent = self.sender.unacknowledged();
        let bare = self.is_synchronized() && !matches!(error, IcmpError::TooBig { .. });
        if beyond > sent || beyond == sent && !bare {
            cx.counters.icmp_out_of_window += 1;
            return IcmpVerdict::OutOfWindow;
        }
        match error {
            IcmpError::Refused => self.on_hard_error(cx, CloseReason::Refused, SoftError::Refused),
            IcmpError::NoTcp => self.on_hard_error(cx, CloseReason::Refused, SoftError::NoTcp),
            IcmpError::Prohibited => {
                let reason = match cx.tunables.icmp_prohibited {
                    ProhibitedByIcmp::Unreachable => CloseReason::Unreachable,
                    ProhibitedByIcmp::Refused => CloseReason::Refused,
                };
                self.on_hard_error(cx, reason, SoftError::Prohibited)
            }
            IcmpError::Soft(error) if self.ends_attempt(error, &cx.tunables) => {
                self.on_hard_error(cx, CloseReason::Unreachable, error)
            }
            IcmpError::Soft(error) => self.note_soft_error(cx, error),
            IcmpError::TooBig { mtu } => match cx.tunables.frag_needed {
                FragNeeded::Verified => self.on_too_big(cx, TooBig { seq, mtu }),
                FragNeeded::Immediate => self.on_path_mtu(cx, mtu),
            },
        }
    }

    /// The last soft error, if no new data was acknowledged since (RFC 1122 4.2.3.9: "TCP MUST NOT
    /// abort the connection, and it SHOULD make the information available to the application").
    pub const fn soft_error(&self) -> Option<SoftError> {
        self.soft_error
    }

    /// The same, and it is forgotten.
    pub const fn take_soft_error(&mut self) -> Option<SoftError> {
        self.soft_error.take()
    }

    /// RFC 5927 5.2: in a synchronized state hard errors are treated as soft ones. Whoever forges
    /// one then gains nothing, and a host that restarted or a firewall that changed its mind is
    /// found out by retransmissions.
    ///
    /// `reason` is what the end of an attempt is told as, and `error` what is noted otherwise.
    fn on_hard_error(
        &mut self,
        cx: &mut Context,
        reason: CloseReason,
        error: SoftError,
    ) -> IcmpVerdict {
        if self.is_synchronized() || !cx.tunables.icmp_aborts {
            return self.note_soft_error(cx, error);
        }
        cx.counters.icmp_aborts += 1;
        self.soft_error = Some(error);
        self.end(cx, reason);
        IcmpVerdict::Closed(reason)
    }

    /// The path is said to carry less than what was sent.
    fn on_too_big(&mut self, cx: &mut Context, said: TooBig) -> IcmpVerdict {
        let mss = self.mss_carried(said.mtu, &cx.tunables);
        // RFC 5927 7.2: "the ICMP error message cannot be legitimate if it claims to have been
        // triggered by a packet larger than the largest packet we have so far sent for this
        // connection." What is in flight is at least as much as any segment of it.
        if !self.is_news(said.mtu, &cx.tunables) || self.sender.unacknowledged() <= u32::from(mss) {
            return IcmpVerdict::Ignored;
        }
        // RFC 5927 7.2: "If claimedmtu is equal to or larger than maxsizeacked, TCP is supposed to be
        // at the Initial Path-MTU Discovery stage, and thus the ICMP 'Packet Too Big' error message
        // is honored immediately." And "if nsegrto is greater than or equal to MAXSEGRTO", which is 1.
        if mss >= self.sender.acked_size()
            || (self.sender.attempts() > 0 && self.stands_first(&said))
        {
            return self.on_path_mtu(cx, said.mtu);
        }
        let Some(buffers) = self.buffers.as_mut() else { return IcmpVerdict::Ignored };
        // What stands before others times out before them; of two about one segment the one that
        // harms less is tried first, as the truth is told again.
        let better =
            |old: &TooBig| said.seq.before(old.seq) || (said.seq == old.seq && said.mtu > old.mtu);
        if buffers.too_big.as_ref().is_none_or(better) {
            buffers.too_big = Some(said);
        }
        cx.counters.path_mtu_held += 1;
        IcmpVerdict::Held
    }

    /// Whether the segment quoted is the one that waits for its acknowledgment the longest.
    fn stands_first(&self, said: &TooBig) -> bool {
        said.seq.offset_from(self.sender.seq().una) < u32::from(self.sender.mss())
    }

    /// What the path is said to carry and not believed to, octets of an IP packet.
    pub fn held_path_mtu(&self) -> Option<u16> {
        Some(self.buffers.as_ref()?.too_big?.mtu)
    }

    /// RFC 5927 7.2: "If, while there is a pending ICMP 'Packet Too Big' error message, the TCP SEQ
    /// claimed by the pending message is acknowledged [...], then the 'pending error' condition is
    /// cleared."
    #[cold]
    pub(super) fn update_too_big(&mut self, cx: &mut Context, ack: SeqNum) {
        if let Some(buffers) = self.buffers.as_mut()
            && buffers.too_big.is_some_and(|said| said.seq.before(ack))
        {
            buffers.too_big = None;
            cx.counters.path_mtu_refuted += 1;
        }
    }

    /// The first segment timed out, and with it what was held of it is believed: RFC 5927 7.2, with
    /// a MAXSEGRTO of 1. All in flight goes again in any case.
    pub(super) fn apply_pmtu_report(&mut self, cx: &mut Context) {
        let held = self.buffers.as_ref().and_then(|buffers| buffers.too_big);
        let Some(said) = held.filter(|said| self.stands_first(said)) else { return };
        if let Some(buffers) = self.buffers.as_mut() {
            buffers.too_big = None;
        }
        if self.is_news(said.mtu, &cx.tunables) {
            self.take_path_mtu(cx, said.mtu);
        }
    }

    /// Whether an error that is soft in itself ends an attempt, by the rules that are in force.
    fn ends_attempt(&self, error: SoftError, tunables: &Tunables) -> bool {
        if self.is_synchronized() || !tunables.icmp_aborts {
            return false;
        }
        let any = tunables.icmp_unreachable == UnreachableByIcmp::Hard;
        match error {
            // Whoever heard of the peer by its SYN knows that there is a way.
            SoftError::TimeExceeded => {
                let hard = tunables.icmp_time_exceeded == TimeExceededByIcmp::Hard;
                hard && (any || self.state == State::SynSent)
            }
            // Somebody was reached, and is to have put together what he can.
            SoftError::FragmentsLost => false,
            _ => any,
        }
    }

    fn is_synchronized(&self) -> bool {
        // RFC 9293 3.10.4 calls it FIN-WAIT-1 once our FIN is sent.
        !matches!(self.state, State::SynSent | State::SynReceived) || self.sender.fin_sent()
    }

    fn note_soft_error(&mut self, cx: &mut Context, error: SoftError) -> IcmpVerdict {
        cx.counters.icmp_soft_errors += 1;
        self.soft_error = Some(error);
        IcmpVerdict::Noted
    }

    /// The path carries IP packets of no more than `mtu` octets. Sizes only ever fall: what lies
    /// beyond a path that became wider is found by the next connection.
    ///
    /// What exceeds the new size never arrived, and is cut anew. As RFC 1191 6.4 has it, that must not happen for every report: each lost segment
    /// brings one, and a second of the same size changes nothing here.
    ///
    /// Below [`LEAST_PATH_MTU_V4`] segments stay as that has them, and what is sent may be fragmented.
    pub fn on_path_mtu(&mut self, cx: &mut Context, mtu: u16) -> IcmpVerdict {
        if !self.is_news(mtu, &cx.tunables) || matches!(self.state, State::Closed | State::TimeWait)
        {
            return IcmpVerdict::Ignored;
        }
        let carried = self.mss_carried(mtu, &cx.tunables);
        self.take_path_mtu(cx, mtu);
        self.lose_larger(carried);
        IcmpVerdict::Lowered
    }

    /// Segments of more text than this never arrived.
    fn lose_larger(&mut self, carried: u16) {
        let mut queue = self.buffers.as_deref_mut().map(|buffers| &mut buffers.send);
        if self.sender.on_path_mtu(carried, queue.as_deref_mut()) && self.state == State::SynSent {
            // It was the SYN, for its text (RFC 7413): it goes again at once, without.
            self.sender.go_back(queue);
        }
    }

    /// The link itself carries IP packets of no more than `mtu` octets from now on, which is less than before:
    /// what exceeds that is cut anew and goes again.
    pub fn on_link_mtu(&mut self, cx: &mut Context, mtu: u16) {
        let mss = self.mss_carried(mtu, &cx.tunables);
        if mss >= self.sender.mss() || matches!(self.state, State::Closed | State::TimeWait) {
            return;
        }
        cx.counters.path_mtu_lowered += 1;
        self.sender.lower_mss(mss);
        self.lose_larger(mss);
    }

    /// True if a path of this MTU has segments cut smaller than they are, or fragmented where they are not.
    fn is_news(&self, mtu: u16, tunables: &Tunables) -> bool {
        self.mss_for_mtu(mtu, tunables) < self.sender.mss()
            || (self.has_fragments(mtu) && !self.flags.has(Flags::FRAGMENTS))
    }

    fn take_path_mtu(&mut self, cx: &mut Context, mtu: u16) {
        let mss = self.mss_for_mtu(mtu, &cx.tunables);
        self.sender.lower_mss(mss.min(self.sender.mss()));
        if self.has_fragments(mtu) {
            self.flags.set(Flags::FRAGMENTS);
        }
        cx.counters.path_mtu_lowered += 1;
    }

    /// Packets leave with Don't Fragment again, as the host has forgotten that the path carries less than the
    /// least that is believed of one: a router may say so anew.
    pub const fn forget_fragments(&mut self) {
        self.flags.clear(Flags::FRAGMENTS);
    }

    fn has_fragments(&self, mtu: u16) -> bool {
        self.remote.is_v4() && mtu < LEAST_PATH_MTU_V4
    }

    /// The text of a segment on a path of this MTU. While opening, the options of later segments are not
    /// settled, and what they take goes off when they are.
    fn mss_for_mtu(&self, mtu: u16, tunables: &Tunables) -> u16 {
        let least = if self.remote.is_v4() { LEAST_PATH_MTU_V4 } else { 0 };
        self.mss_carried(mtu.max(least), tunables)
    }

    /// The text that fits an IP packet of `mtu` octets.
    fn mss_carried(&self, mtu: u16, tunables: &Tunables) -> u16 {
        let ip = if self.remote.is_v4() { IPV4_HEADER } else { IPV6_HEADER };
        let settled = self.state != State::SynSent && self.flags.has(Flags::TIMESTAMPS);
        let options = if settled { TIMESTAMP_OCTETS } else { 0 };
        mtu.saturating_sub(ip + TCP_HEADER).max(tunables.least_mss) - options
    }
}

const IPV4_HEADER: u16 = 20;
const IPV6_HEADER: u16 = 40;
const TCP_HEADER: u16 = 20;
