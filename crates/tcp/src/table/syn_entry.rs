//! A half-open connection: a SYN arrived, our SYN-ACK is under way, the third segment is awaited.
//!
//! This is SYN-RECEIVED after a passive OPEN (RFC 9293 3.3.2) in 64 bytes, and all that a
//! stranger can make us hold. The entry knows what the two SYNs said; the connection is built
//! whole when the handshake is complete, never before. It has no clock, no buffers, no socket.
//!
//! ```text
//!   peer                                   here
//!   irs                SYN       ->        RCV.NXT = irs + 1
//!                      <-        SYN,ACK   iss;  SND.UNA = iss, SND.NXT = iss + 1
//!   irs + 1            ACK       ->        SEG.ACK = iss + 1: complete
//! ```

mod ecn;
mod judge;
mod stage;

use whimbrel_base::{Instant, Micros, Tick, cold_path};
use whimbrel_wire::tcp::{FastOpen, Opening, TcpFlags, TcpHeader, TcpView, Timestamps};
use whimbrel_wire::{Address, Ecn, Endpoint, Mss, SeqNum, WindowScale, WindowSize};

use self::ecn::{CLASSIC, Repeats, asks_accurate};
use self::stage::SynStage;
use super::{Carried, CookieTerms};
use crate::conn::{
    ActiveOpen, EcnFeedback, FirstTrip, Handshake, OutgoingSegment, RareOptions, SynOptions,
};
use crate::tunables::EcnNegotiation;
use crate::{Reply, Tunables};

pub use judge::SynStep;

/// A half-open connection: passive SYN-RECEIVED.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SynEntry {
    remote: Address,
    remote_port: u16,
    local_port: u16,
    local_index: u16,
    mss: Mss,
    listener: u32,
    irs: SeqNum,
    iss: SeqNum,
    /// TS.Recent, if timestamps were negotiated.
    ts_recent: u32,
    /// The TIME-WAIT record that this handshake will replace, or [`NONE`].
    time_wait: u32,
    /// Neighbours in the list of the retransmission level (see `syn_cache.rs`).
    pub(super) previous: u32,
    pub(super) next: u32,
    /// When it entered that level, by [`tick_rounded_up`].
    pub(super) since: Tick,
    /// When as many challenges as ever may go out at once, if [`Negotiated::CHALLENGED`]; otherwise
    /// when our SYN was first
    /// acknowledged, if [`Negotiated::ACKNOWLEDGED`].
    challenged: Tick,
    /// Snd.Wind.Shift in the lower four bits, Rcv.Wind.Shift in the upper.
    scales: u8,
    negotiated: Negotiated,
    repeats: Repeats,
    /// The decider that had it answered, and how often. (An `enum` leaves bit patterns for `Option` to use.)
    stage: SynStage,
}

/// The values of a SYN that an entry keeps.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    src_port: u16,
    dst_port: u16,
    seq: SeqNum,
    timestamps: Option<Timestamps>,
    opening: Opening,
    flags: TcpFlags,
}

impl From<&TcpView<'_>> for Asked {
    #[inline]
    fn from(syn: &TcpView<'_>) -> Self {
        let TcpView { src_port, dst_port, seq, flags, options, .. } = syn;
        let (timestamps, opening) = (options.timestamps, options.opening());
        let (src_port, dst_port, seq, flags) = (*src_port, *dst_port, *seq, *flags);
        Self { src_port, dst_port, seq, timestamps, opening, flags }
    }
}

impl From<&TcpHeader> for Asked {
    fn from(syn: &TcpHeader) -> Self {
        let TcpHeader { src_port, dst_port, seq, flags, options, .. } = *syn;
        let (timestamps, opening) = (options.timestamps, options.opening());
        Self { src_port, dst_port, seq, timestamps, opening, flags }
    }
}

/// The values of a passive open that are not in the SYN's header.
#[derive(Clone, Copy, Debug)]
pub struct PassiveOpen {
    /// The address that the SYN came from.
    pub remote: Address,
    /// The number of the local address it was sent to.
    pub local_index: u16,
    /// The index of the listener it is for.
    pub listener: u32,
    /// Our initial sequence number.
    pub iss: SeqNum,
    /// The window, bytes, that our scale is chosen for.
    pub scale_limit: u32,
    /// The TIME-WAIT record that comes back if the handshake fails (RFC 1122 4.2.2.13 b).
    pub time_wait: Option<u32>,
}

/// The values that this side advertises in an answer.
#[derive(Clone, Copy, Debug)]
pub struct AdvertisedValues {
    /// TSval now; shown if timestamps were negotiated.
    pub tsval: u32,
    /// The MSS that we accept on this path; shown on a SYN-ACK.
    pub mss: Mss,
    /// The receive window, bytes, unscaled.
    pub window: WindowSize,
}

/// The form of a Fast Open option: an answer has that of its question.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FastOpenForm {
    /// The option of kind 34 (RFC 7413).
    Plain,
    /// Kind 254 and 0xF989.
    Experimental,
}

/// Events that the shard reports: segments of the flow, verdicts, timers.
impl SynEntry {
    /// The entry for a SYN that a listener is there for. Options count if the tunables allow them
    /// and the SYN has them. Accurate ECN is [apart](SynEntry::negotiate_accurate_ecn).
    // Always: of what a SYN says and of what else is known nothing stands in memory before it is in the entry.
    #[inline(always)]
    pub fn from_syn(syn: impl Into<Asked>, open: PassiveOpen, tunables: &Tunables) -> Self {
        let syn = syn.into();
        let own_scale = WindowScale::for_window(open.scale_limit);
        let peer_scale = syn.opening.window_scale.unwrap_or_default();
        Self {
            remote: open.remote,
            remote_port: syn.src_port,
            local_port: syn.dst_port,
            local_index: open.local_index,
            mss: syn.opening.mss.unwrap_or(tunables.default_mss(&open.remote)),
            listener: open.listener,
            irs: syn.seq,
            iss: open.iss,
            ts_recent: syn.timestamps.unwrap_or_default().val,
            time_wait: open.time_wait.unwrap_or(NONE),
            previous: NONE,
            next: NONE,
            since: Tick::new(0),
            challenged: Tick::new(0),
            scales: (own_scale.get() << 4) | peer_scale.get(),
            // RFC 7323 2.2: "both sides MUST send Window Scale options in their <SYN> segments to
            // enable window scaling in either direction". So with the other options.
            negotiated: Negotiated::agreed(&syn, tunables),
            repeats: Repeats::default(),
            stage: SynStage::Answered,
        }
    }

    /// The entry that a cookie stood for: its third segment came, with what the cookie brought back.
    pub fn from_cookie(
        third: &TcpHeader,
        open: PassiveOpen,
        mss: Mss,
        terms: &CookieTerms,
        tunables: &Tunables,
    ) -> Self {
        let carried = terms.carried.unwrap_or(Carried { scale: None, sack: false, ecn: false });
        let peer_scale = carried.scale.unwrap_or_default();
        let negotiated = Negotiated::where_true([
            (Negotiated::WINDOW_SCALE, carried.scale.is_some()),
            (Negotiated::TIMESTAMPS, terms.carried.is_some()),
            (Negotiated::SACK, carried.sack),
        ]);
        let ecn = carried.ecn && tunables.ecn != EcnNegotiation::Off;
        let repeats =
            if ecn { Repeats::of_cookie(third.flags, tunables) } else { Repeats::default() };
        let ecn = if ecn { Negotiated::ECN } else { Negotiated(0) };
        Self {
            remote: open.remote,
            remote_port: third.src_port,
            local_port: third.dst_port,
            local_index: open.local_index,
            mss,
            listener: open.listener,
            irs: terms.irs,
            iss: open.iss,
            ts_recent: third.options.timestamps.unwrap_or_default().val,
            time_wait: NONE,
            previous: NONE,
            next: NONE,
            since: Tick::new(0),
            challenged: Tick::new(0),
            scales: (terms.own_scale.get() << 4) | peer_scale.get(),
            negotiated: negotiated.or(ecn).or(Negotiated::COOKIE_OR_EXPERIMENTAL),
            repeats,
            stage: SynStage::Answered,
        }
    }

    /// Returns the same handshake with nothing negotiated that its cookie cannot carry, and the cookie
    /// that `issue` makes of it as its ISS.
    #[must_use]
    pub fn into_cookie(mut self, issue: impl FnOnce(&CookieTerms, Mss) -> SeqNum) -> Self {
        if !self.has_timestamps() {
            self.negotiated = Negotiated(0);
            self.repeats = Repeats::default();
        }
        let terms = CookieTerms {
            irs: self.irs,
            carried: self.carried(),
            own_scale: self.rcv_wind_shift(),
        };
        self.iss = issue(&terms, self.mss);
        self
    }

    /// The peer's SYN came again ([`SynStep::Repeat`]).
    ///
    /// Options that it no longer has are withdrawn: some senders leave them out when a SYN goes
    /// unanswered, and then ignore them in the answer. None is added.
    pub fn on_repeated_syn(&mut self, syn: &TcpHeader, ecn: Ecn) {
        self.stage.on_repeated();
        if self.repeats.is_accurate() {
            // RFC 9768 3.1.5: it "MUST feed back the IP-ECN field on the latest valid SYN".
            self.repeats.set_accurate(ecn);
        }
        let offered = Negotiated::offered_by(&syn.into());
        self.negotiated = self.negotiated.and(offered.or(Negotiated::REMEMBERED));
        // RFC 7323 4.3 (2): "If: SEG.TSval >= TS.Recent and SEG.SEQ <= Last.ACK.sent then
        // SEG.TSval is copied to TS.Recent; otherwise, it is ignored." A SYN always lies before
        // what we acknowledged.
        if let Some(timestamps) = syn.options.timestamps
            && !is_older(timestamps.val, self.ts_recent)
        {
            self.ts_recent = timestamps.val;
        }
    }

    /// Its SYN-ACK is to bring a Fast Open cookie, in the form of the option that asked for it.
    pub fn grant_fast_open(&mut self, asked: &FastOpen) {
        let form = if asked.is_experimental() {
            Negotiated::COOKIE_OR_EXPERIMENTAL
        } else {
            Negotiated(0)
        };
        self.negotiated = self.negotiated.or(Negotiated::FAST_OPEN).or(form);
    }

    /// Our SYN was acknowledged by a segment without text, and the listener waits for text.
    pub fn on_deferred(&mut self, now: Instant) {
        if !self.negotiated.has(Negotiated::REMEMBERED) {
            self.challenged = tick_rounded_up(now);
        }
        self.negotiated = self.negotiated.or(Negotiated::ACKNOWLEDGED);
    }

    /// True if a challenge may be sent now (`challenge_interval`, `challenge_burst`); if so, it
    /// counts as sent.
    pub fn may_challenge(&mut self, now: Instant, tunables: &Tunables) -> bool {
        if !self.negotiated.has(Negotiated::CHALLENGED) {
            self.negotiated = self.negotiated.or(Negotiated::CHALLENGED);
            self.challenged = now.tick();
        }
        let (interval, burst) = (tunables.challenge_interval, tunables.challenge_burst);
        self.challenged.take_one(now.tick(), interval, burst)
    }
}

/// The segments that an entry has its host send.
impl SynEntry {
    /// The SYN-ACK: the first, or a repetition.
    #[inline]
    pub fn syn_ack(&self, announced: AdvertisedValues) -> OutgoingSegment {
        if self.began_with_ecn() {
            self.syn_ack_with_ecn(announced)
        } else {
            self.plain_syn_ack(announced)
        }
    }

    #[inline]
    fn plain_syn_ack(&self, announced: AdvertisedValues) -> OutgoingSegment {
        OutgoingSegment {
            seq: self.iss,
            ack: self.rcv_nxt(),
            flags: TcpFlags::SYN_ACK,
            // RFC 7323 2.2: "The window field in a segment where the SYN bit is set (i.e., a <SYN>
            // or <SYN,ACK>) MUST NOT be scaled."
            window: announced.window.to_raw(WindowScale::ZERO),
            urgent: 0,
            gso_size: 0,
            timestamps: self.timestamps(announced.tsval),
            rare: RareOptions::Syn(SynOptions {
                mss: announced.mss,
                window_scale: self.is_scaled().then_some(self.rcv_wind_shift()),
                sack_permitted: self.has_sack(),
                fast_open: None,
            }),
        }
    }

    /// The challenge ACK: <SEQ=SND.NXT><ACK=RCV.NXT><CTL=ACK>.
    pub fn challenge_reply(&self, announced: AdvertisedValues) -> Reply {
        Reply {
            seq: self.snd_nxt(),
            ack: self.rcv_nxt(),
            flags: TcpFlags::ACK | self.repeats.ace(),
            window: announced.window.to_raw(self.rcv_wind_shift()),
            timestamps: self.timestamps(announced.tsval),
        }
    }

    /// The form in which the SYN-ACK is to bring a cookie, if it is. RFC 7413 4.2.2: one that the clock
    /// repeats does not, as a middlebox may have swallowed the first.
    #[inline]
    pub fn fast_open(&self) -> Option<FastOpenForm> {
        let granted = self.negotiated.has(Negotiated::FAST_OPEN) && self.retries() == 0;
        if !granted {
            return None;
        }
        cold_path();
        let experimental = self.negotiated.has(Negotiated::COOKIE_OR_EXPERIMENTAL);
        Some(if experimental { FastOpenForm::Experimental } else { FastOpenForm::Plain })
    }

    /// The timestamps that each segment of this handshake carries, if timestamps were negotiated; `val` is TSval.
    pub fn timestamps(&self, val: u32) -> Option<Timestamps> {
        self.ts_recent().map(|ecr| Timestamps { val, ecr })
    }
}

/// The end of the handshake.
impl SynEntry {
    /// Returns the values of both SYNs, for a connection that begins with `open` on a path that carries `peer_mss`
    /// of what the peer announced.
    #[inline(always)]
    pub fn handshake(&self, open: ActiveOpen, peer_mss: Mss, now: Instant) -> Handshake {
        Handshake {
            open,
            irs: self.irs,
            peer_mss,
            scales: self.is_scaled().then(|| (self.snd_wind_shift(), self.rcv_wind_shift())),
            ts_recent: self.ts_recent(),
            sack: self.has_sack(),
            round_trip: self.round_trip(now),
        }
    }
}

/// Explicit congestion notification.
impl SynEntry {
    /// Takes the ECN field in which the SYN with these control bits arrived, if they ask for accurate feedback and the
    /// tunables allow it.
    #[cold]
    pub fn negotiate_accurate_ecn(&mut self, flags: TcpFlags, ecn: Ecn, tunables: &Tunables) {
        if asks_accurate(flags, tunables) {
            self.negotiated = self.negotiated.or(Negotiated::ECN);
            self.repeats.set_accurate(ecn);
        }
    }

    /// True if a SYN asks for one form of feedback, and one before it asked for the other.
    // RFC 9768 3.1.5: it "MUST reset the connection with a RST packet, if it receives a 'Classic' ECN-setup SYN with
    // (AE,CWR,ECE) = (0,1,1) and a SYN requesting AccECN feedback during the same handshake".
    pub fn contradicts_ecn(&self, flags: TcpFlags, tunables: &Tunables) -> bool {
        match self.repeats.is_accurate() {
            true => flags.ace() == CLASSIC,
            false => self.has_ecn() && asks_accurate(flags, tunables),
        }
    }

    /// True if a SYN of the peer's agreed to ECN: there is [feedback](SynEntry::ecn_feedback).
    #[inline]
    pub const fn began_with_ecn(&self) -> bool {
        // At once: the bits are the same.
        (self.negotiated.0 | self.repeats.bits()) & Negotiated::ECN.0 != 0
    }

    /// The feedback that both SYNs agreed upon.
    pub const fn ecn_feedback(&self) -> EcnFeedback {
        self.repeats.feedback(self.has_ecn())
    }

    /// The SYN-ACK that agrees to ECN.
    #[cold]
    #[inline(never)]
    fn syn_ack_with_ecn(&self, announced: AdvertisedValues) -> OutgoingSegment {
        let mut syn_ack = self.plain_syn_ack(announced);
        // RFC 3168 6.1.1: "it sets the ECE flag but not the CWR flag."
        let is_accurate = self.repeats.is_accurate();
        syn_ack.flags |= if is_accurate { self.repeats.flags() } else { TcpFlags::ECE };
        // RFC 9768 3.2.3.2.2: of a SYN-ACK that timed out, or of "a second SYN with a request for AccECN support", it
        // "SHOULD retransmit the SYN/ACK, but with no AccECN Option."
        if is_accurate && self.retries() == 0 && !self.stage.is_repeated() {
            syn_ack.rare = syn_ack.rare.with_counters();
        }
        syn_ack
    }
}

/// The flow that the entry is of.
impl SynEntry {
    /// The address and port of the peer.
    pub const fn remote(&self) -> Endpoint {
        Endpoint::new(self.remote, self.remote_port)
    }

    /// The address of the peer, in its place.
    pub const fn remote_addr(&self) -> &Address {
        &self.remote
    }

    /// The number of the local address.
    pub const fn local_index(&self) -> u16 {
        self.local_index
    }

    /// The port at this side.
    pub const fn local_port(&self) -> u16 {
        self.local_port
    }

    /// The index of the listener it is for. It may have closed since.
    pub const fn listener(&self) -> u32 {
        self.listener
    }

    /// IRS: the peer's initial sequence number.
    pub const fn irs(&self) -> SeqNum {
        self.irs
    }

    /// ISS: our initial sequence number.
    pub const fn iss(&self) -> SeqNum {
        self.iss
    }

    /// RCV.NXT: what follows the peer's SYN.
    pub fn rcv_nxt(&self) -> SeqNum {
        self.irs + 1
    }

    /// SND.NXT: what follows our SYN.
    pub fn snd_nxt(&self) -> SeqNum {
        self.iss + 1
    }

    /// The MSS that the peer announced, or its family's default (RFC 9293 3.7.1). Not clamped.
    pub const fn mss(&self) -> Mss {
        self.mss
    }

    /// True if windows are scaled.
    pub const fn is_scaled(&self) -> bool {
        self.negotiated.has(Negotiated::WINDOW_SCALE)
    }

    /// Snd.Wind.Shift (RFC 7323 2.3): how the peer's windows are scaled; zero if they are not.
    pub const fn snd_wind_shift(&self) -> WindowScale {
        if self.is_scaled() { WindowScale::new(self.scales & 0xf) } else { WindowScale::ZERO }
    }

    /// Rcv.Wind.Shift (RFC 7323 2.3): how our windows are scaled; zero if they are not.
    pub const fn rcv_wind_shift(&self) -> WindowScale {
        if self.is_scaled() { WindowScale::new(self.scales >> 4) } else { WindowScale::ZERO }
    }

    /// True if selective acknowledgment was negotiated (RFC 2018).
    pub const fn has_sack(&self) -> bool {
        self.negotiated.has(Negotiated::SACK)
    }

    /// True if timestamps were negotiated (RFC 7323).
    pub const fn has_timestamps(&self) -> bool {
        self.negotiated.has(Negotiated::TIMESTAMPS)
    }

    /// True if explicit congestion notification was negotiated (RFC 3168, RFC 9768).
    pub const fn has_ecn(&self) -> bool {
        self.negotiated.has(Negotiated::ECN)
    }

    /// TS.Recent, if timestamps were negotiated.
    pub fn ts_recent(&self) -> Option<u32> {
        self.has_timestamps().then_some(self.ts_recent)
    }

    /// The bits that the TSval of a cookie has to carry; `None` without timestamps.
    pub fn carried(&self) -> Option<Carried> {
        let scale = self.is_scaled().then(|| self.snd_wind_shift());
        self.has_timestamps().then(|| Carried { scale, sack: self.has_sack(), ecn: self.has_ecn() })
    }

    /// The TIME-WAIT record to bring back if the handshake fails and to end when it completes.
    pub fn time_wait(&self) -> Option<u32> {
        (self.time_wait != NONE).then_some(self.time_wait)
    }

    /// True if our SYN was acknowledged, and the listener waits for text.
    pub const fn is_deferred(&self) -> bool {
        self.negotiated.has(Negotiated::ACKNOWLEDGED)
    }

    /// The number of times that the clock made us repeat the SYN-ACK: the retransmission level.
    pub const fn retries(&self) -> u8 {
        self.repeats.count()
    }

    /// The SYN-ACK was repeated so many times (0 ..= 31).
    pub(super) const fn set_retries(&mut self, retries: u8) {
        self.repeats.set_count(retries);
    }

    /// Milliseconds since the last SYN-ACK that the clock sent; `None` if it is of a cookie, of which nothing is known.
    pub fn millis_since_syn_ack(&self, now: Instant) -> Option<u32> {
        let is_cookie = self.negotiated.has(Negotiated::COOKIE_OR_EXPERIMENTAL)
            && !self.negotiated.has(Negotiated::FAST_OPEN);
        let millis = tick_rounded_up(now).millis_since(self.since);
        Some(millis).filter(|_| !is_cookie)
    }

    /// The time since the only SYN-ACK was sent, to a millisecond either way, so possibly zero:
    /// the round trip, if the handshake completes `now`. If it was sent more than once, it is not
    /// known which is answered (RFC 6298 3: Karn's algorithm); of a cookie, nothing is known.
    pub fn round_trip(&self, now: Instant) -> FirstTrip {
        if self.negotiated.has(Negotiated::COOKIE_OR_EXPERIMENTAL) {
            cold_path();
            if !self.negotiated.has(Negotiated::FAST_OPEN) {
                return FirstTrip::Unknown;
            }
        }
        let sent_once = self.retries() == 0 && !self.stage.is_repeated();
        let deferred = self.is_deferred() && !self.negotiated.has(Negotiated::CHALLENGED);
        let answered = if deferred { self.challenged } else { tick_rounded_up(now) };
        let millis = answered.millis_since(self.since);
        if sent_once {
            FirstTrip::Took(Micros::from_millis(millis))
        } else {
            cold_path();
            FirstTrip::Repeated
        }
    }
}

/// A set of what was agreed, and one thing to remember.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Negotiated(u8);

impl Negotiated {
    const WINDOW_SCALE: Self = Self(1 << 0);
    const TIMESTAMPS: Self = Self(1 << 1);
    const SACK: Self = Self(1 << 2);
    /// Set while [`SynEntry::challenged`] has a meaning.
    const CHALLENGED: Self = Self(1 << 3);
    /// Our SYN was acknowledged, and its listener waits for text.
    const ACKNOWLEDGED: Self = Self(1 << 4);
    /// Without [`Negotiated::FAST_OPEN`]: nothing but a SYN cookie remembered the handshake. With it: the Fast Open
    /// cookie has the experimental form.
    const COOKIE_OR_EXPERIMENTAL: Self = Self(1 << 5);
    /// Our SYN-ACK brings a Fast Open cookie.
    const FAST_OPEN: Self = Self(1 << 6);
    /// Explicit congestion notification.
    const ECN: Self = Self(1 << 7);
    /// The flags that no SYN takes back.
    const REMEMBERED: Self = Self::CHALLENGED.or(Self::ACKNOWLEDGED);

    /// All that a SYN offers and the tunables allow.
    fn agreed(syn: &Asked, tunables: &Tunables) -> Self {
        let agreed = Self::offered_by(syn);
        // Apart, as few peers ask for it.
        if agreed.has(Self::ECN) && tunables.ecn == EcnNegotiation::Off {
            cold_path();
            return agreed.and(Self::allowed_by(tunables)).and(Self(!Self::ECN.0));
        }
        agreed.and(Self::allowed_by(tunables))
    }

    fn offered_by(syn: &Asked) -> Self {
        let options = Self::where_true([
            (Self::WINDOW_SCALE, syn.opening.window_scale.is_some()),
            (Self::TIMESTAMPS, syn.timestamps.is_some()),
            (Self::SACK, syn.opening.sack_permitted),
        ]);
        // RFC 3168 6.1.1: "we call a SYN packet with the ECE and CWR flags set an 'ECN-setup SYN packet'".
        if syn.flags.contains(TcpFlags::ECN_SETUP) {
            cold_path();
            return options.or(Self::ECN);
        }
        options
    }

    fn allowed_by(tunables: &Tunables) -> Self {
        Self::where_true([
            (Self::WINDOW_SCALE, tunables.window_scaling),
            (Self::TIMESTAMPS, tunables.timestamps),
            (Self::SACK, tunables.sack),
        ])
        .or(Self::ECN)
    }

    fn where_true(parts: [(Self, bool); 3]) -> Self {
        parts.into_iter().filter(|(_, holds)| *holds).fold(Self(0), |set, (part, _)| set.or(part))
    }

    const fn has(self, part: Self) -> bool {
        self.0 & part.0 != 0
    }

    const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

/// The first millisecond that does not begin before `now`: what time-outs count from, so that they
/// run late by less than a millisecond and never early.
pub(super) const fn tick_rounded_up(now: Instant) -> Tick {
    Tick::new((now.as_nanos().wrapping_add(999_999) / 1_000_000) as u32)
}

/// `val < recent` on the circle of timestamps (RFC 7323 5.2). A SYN's timestamp of 0 tells nothing.
const fn is_older(val: u32, recent: u32) -> bool {
    recent != 0 && val.wrapping_sub(recent).cast_signed() < 0
}

/// The number that stands for no record.
pub(super) const NONE: u32 = u32::MAX;

const _: () = assert!(size_of::<SynEntry>() == 64 && size_of::<Option<SynEntry>>() == 64);

#[cfg(test)]
mod tests;
