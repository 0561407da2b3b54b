//! Reports that a segment was too big (RFC 1191, RFC 8201), and what the path carries since.
//!
//! That a segment was too big is believed at once where none as large was acknowledged before, and
//! otherwise only if the segment that is quoted times out (RFC 5927 7.2): a forger of such errors
//! could otherwise have us cut what flows into crumbs.

use whimbrel_base::packet::LEAST_PATH_MTU_V4;
use whimbrel_wire::SeqNum;

use crate::conn::stamps::TIMESTAMP_BYTES;
use crate::conn::{Connection, Flags, State};
use crate::tunables::MtuProbing;
use crate::verdict::IcmpVerdict;
use crate::{Context, Tunables};

/// A report that a segment was too big, not believed yet (RFC 5927 7.2's pending message).
#[derive(Clone, Copy, Debug)]
pub(super) struct TooBig {
    /// The segment that it quotes (claimedtcpseq).
    pub(super) seq: SeqNum,
    /// The MTU that the report claims (claimedmtu).
    pub(super) mtu: u16,
}

impl Connection {
    /// The path is said to carry less than what was sent.
    pub(super) fn on_too_big(&mut self, cx: &mut Context, said: TooBig) -> IcmpVerdict {
        let mss = self.mss_carried(said.mtu, &cx.tunables);
        // RFC 5927 7.2: "the ICMP error message cannot be legitimate if it claims to have been
        // triggered by a packet larger than the largest packet we have so far sent for this
        // connection." What is in flight is at least as much as any segment of it.
        if !self.is_news(said.mtu, &cx.tunables)
            || self.transfer.tcb.sender.unacknowledged() <= u32::from(mss)
        {
            return IcmpVerdict::Ignored;
        }
        // RFC 5927 7.2: "If claimedmtu is equal to or larger than maxsizeacked, TCP is supposed to be
        // at the Initial Path-MTU Discovery stage, and thus the ICMP 'Packet Too Big' error message
        // is honored immediately." And "if nsegrto is greater than or equal to MAXSEGRTO", which is 1.
        if mss >= self.transfer.tcb.sender.acked_size()
            || (self.transfer.tcb.sender.attempts() > 0 && self.stands_first(&said))
        {
            return self.on_path_mtu(cx, said.mtu);
        }
        let Some(buffers) = self.transfer.tcb.buffers.as_mut() else { return IcmpVerdict::Ignored };
        // What stands before others times out before them; of two about one segment the one that
        // harms less is tried first, as a true report comes again.
        let better =
            |old: &TooBig| said.seq.before(old.seq) || (said.seq == old.seq && said.mtu > old.mtu);
        if buffers.too_big.as_ref().is_none_or(better) {
            buffers.too_big = Some(said);
        }
        cx.counters.path_mtu_held += 1;
        IcmpVerdict::Held
    }

    /// True if the segment quoted is the one that waits for its acknowledgment the longest.
    fn stands_first(&self, said: &TooBig) -> bool {
        said.seq.offset_from(self.transfer.tcb.sender.seq().una)
            < u32::from(self.transfer.tcb.sender.mss())
    }

    /// The MTU that a report claims and that is not believed yet, bytes of an IP packet.
    #[cfg(test)]
    pub(super) fn held_path_mtu(&self) -> Option<u16> {
        Some(self.transfer.tcb.buffers.as_ref()?.too_big?.mtu)
    }

    /// The first segment timed out, and with it what was held of it is believed: RFC 5927 7.2, with
    /// a MAXSEGRTO of 1. All in flight goes again in any case. Returns the MTU that is news.
    pub(super) fn apply_pmtu_report(&mut self, cx: &mut Context) -> Option<u16> {
        let held = self.transfer.tcb.buffers.as_ref().and_then(|buffers| buffers.too_big);
        let said = held.filter(|said| self.stands_first(said))?;
        if let Some(buffers) = self.transfer.tcb.buffers.as_mut() {
            buffers.too_big = None;
        }
        let is_news = self.is_news(said.mtu, &cx.tunables);
        if is_news {
            self.take_path_mtu(cx, said.mtu);
        }
        is_news.then_some(said.mtu)
    }

    /// The path carries IP packets of no more than `mtu` bytes. By reports sizes only ever fall: what lies beyond a
    /// path that became wider is found by the next connection, or by probes if some are sent.
    ///
    /// Segments that exceed the new size never arrived, and are cut anew. As RFC 1191 6.4 has it, that must not
    /// happen for every report: each lost segment brings one, and a second of the same size changes nothing here.
    ///
    /// Below [`LEAST_PATH_MTU_V4`] segments stay as that has them, and what is sent may be fragmented.
    pub fn on_path_mtu(&mut self, cx: &mut Context, mtu: u16) -> IcmpVerdict {
        if !self.is_news(mtu, &cx.tunables)
            || matches!(self.transfer.tcb.state, State::Closed | State::TimeWait)
        {
            return IcmpVerdict::Ignored;
        }
        let carried = self.mss_carried(mtu, &cx.tunables);
        self.take_path_mtu(cx, mtu);
        self.lose_larger(carried);
        IcmpVerdict::Lowered
    }

    /// The connection of a complete handshake is in its place: if probes are always sent, segments begin small.
    pub fn begin_mtu_search(&mut self, cx: &mut Context) {
        if cx.tunables.mtu_probing == MtuProbing::Always {
            self.transfer.begin_mtu_search(cx);
        }
    }

    /// Before the SYN is sent: probes of other connections found that the path carries `mtu` bytes.
    pub fn begin_probed(&mut self, cx: &Context, mtu: u16) {
        let mss = self.mss_carried(mtu, &cx.tunables);
        self.transfer.tcb.sender.limit_mss(mss);
    }

    /// Segments of more text than this never arrived.
    fn lose_larger(&mut self, carried: u16) {
        let mut queue = self.transfer.tcb.buffers.as_deref_mut().map(|buffers| &mut buffers.send);
        if self.transfer.tcb.sender.on_path_mtu(carried, queue.as_deref_mut())
            && self.transfer.tcb.state == State::SynSent
        {
            // It was the SYN, for its text (RFC 7413): it goes again at once, without.
            self.transfer.tcb.sender.go_back(queue);
        }
    }

    /// The link itself carries IP packets of no more than `mtu` bytes from now on, which is less than before:
    /// what exceeds that is cut anew and goes again.
    pub fn on_link_mtu(&mut self, cx: &mut Context, mtu: u16) {
        let mss = self.mss_carried(mtu, &cx.tunables);
        if mss >= self.transfer.tcb.sender.mss()
            || matches!(self.transfer.tcb.state, State::Closed | State::TimeWait)
        {
            return;
        }
        cx.counters.path_mtu_lowered += 1;
        self.transfer.tcb.sender.set_mss(mss);
        self.transfer.limit_mtu_search(mss);
        self.lose_larger(mss);
    }

    /// True if a path of this MTU has segments cut smaller than they are, or fragmented where they are not.
    fn is_news(&self, mtu: u16, tunables: &Tunables) -> bool {
        self.mss_for_mtu(mtu, tunables) < self.transfer.tcb.sender.mss()
            || (self.has_fragments(mtu) && !self.transfer.tcb.flags.has(Flags::FRAGMENTS))
    }

    fn take_path_mtu(&mut self, cx: &mut Context, mtu: u16) {
        let mss = self.mss_for_mtu(mtu, &cx.tunables);
        self.transfer.tcb.sender.set_mss(mss.min(self.transfer.tcb.sender.mss()));
        self.transfer.note_reported_mss(cx, mss);
        if self.has_fragments(mtu) {
            self.transfer.tcb.flags.set(Flags::FRAGMENTS);
        }
        cx.counters.path_mtu_lowered += 1;
    }

    /// Packets leave with Don't Fragment again, as the host has forgotten that the path carries less than the
    /// least that is believed of one: a router may say so anew.
    pub const fn forget_fragments(&mut self) {
        self.transfer.tcb.flags.clear(Flags::FRAGMENTS);
    }

    fn has_fragments(&self, mtu: u16) -> bool {
        self.transfer.tcb.ends.remote.is_v4() && mtu < LEAST_PATH_MTU_V4
    }

    /// The text of a segment on a path of this MTU. While opening, the options of later segments are not
    /// settled, and what they take goes off when they are.
    fn mss_for_mtu(&self, mtu: u16, tunables: &Tunables) -> u16 {
        let least = if self.transfer.tcb.ends.remote.is_v4() { LEAST_PATH_MTU_V4 } else { 0 };
        self.mss_carried(mtu.max(least), tunables)
    }

    /// The text that fits an IP packet of `mtu` bytes.
    fn mss_carried(&self, mtu: u16, tunables: &Tunables) -> u16 {
        let ip = if self.transfer.tcb.ends.remote.is_v4() { IPV4_HEADER } else { IPV6_HEADER };
        let settled = self.transfer.tcb.state != State::SynSent
            && self.transfer.tcb.flags.has(Flags::TIMESTAMPS);
        let options = if settled { TIMESTAMP_BYTES } else { 0 };
        mtu.saturating_sub(ip + TCP_HEADER).max(tunables.least_mss) - options
    }
}

const IPV4_HEADER: u16 = 20;

const IPV6_HEADER: u16 = 40;

const TCP_HEADER: u16 = 20;
