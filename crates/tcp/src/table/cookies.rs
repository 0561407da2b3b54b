//! SYN cookies (RFC 4987 3.6): a handshake whose first half is remembered by the peer.
//!
//! Our initial sequence number is the cookie: a peer that returns it in the third segment has received
//! our SYN-ACK, and brings back what the half-open entry would have held.
//!
//! ```text
//!   ISS    | 27 bits: SipHash-2-4 of all below and of both ends, under the cookie key
//!          |  2 bits: when it was made, in periods of 40 s, modulo 4
//!          |  3 bits: the peer's MSS, rounded down to one of eight
//!   TSval  |  6 low bits, if the peer offered timestamps: its window scale (4), SACK (1), ECN (1)
//! ```
//!
//! Without timestamps a cookie has no room for window scale, SACK and ECN, and none is negotiated. What TSval
//! carries is no part of the hash, as in Linux: it is what the peer itself asked for, and a third segment
//! that comes without its timestamps brings the cookie all the same.
//!
//! A cookie holds for 80 to 120 s. A guess is right once in 2^27, whatever it guesses; once in 2^26
//! while two keys are good. Without timestamps it is tried three times.
//!
//! **Limit.** Nothing remembers that a cookie was used: an observer of a third segment, who repeats it
//! within those two minutes after its connection is over and left no TIME-WAIT, opens it again.
//! So cookies are honoured only while their listener lately sent some, and never while their flow
//! has a record. Both are judged where the records are.
//!
//! **Groups.** Machines that share the cookie key, and are told one clock, complete each other's
//! handshakes. Their clocks may differ by up to 40 s. [`Cookies::set_keys`] says how their key changes.

use core::time::Duration;

use whimbrel_base::{Instant, Key, Secrets, SipHasher24};
use whimbrel_wire::{Address, Flow, Mss, SeqNum, WindowScale};

/// Makes and checks the cookies of one shard.
#[derive(Clone)]
pub struct Cookies {
    prf: SipHasher24,
    /// Of another key whose cookies are good.
    other: Option<SipHasher24>,
    /// The time of the group's clock at the shard's start; zero outside a group.
    epoch: Duration,
    membership: Membership,
}

/// The group whose cookies are honoured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Membership {
    /// This host's own alone.
    Alone,
    /// Those of every host with the same key.
    Group,
}

/// The terms of a handshake that a cookie holds, other than its endpoints and the peer's MSS. A segment whose
/// terms differ from those that the cookie was made for does not match it, but for what TSval carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CookieTerms {
    /// IRS: the peer's initial sequence number.
    pub irs: SeqNum,
    /// The bits that our TSval carries; `None` if timestamps were not negotiated.
    pub carried: Option<Carried>,
    /// Rcv.Wind.Shift: how our windows are scaled.
    pub own_scale: WindowScale,
}

/// The agreement by options that fits the low bits of TSval.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Carried {
    /// Snd.Wind.Shift, if windows are scaled.
    pub scale: Option<WindowScale>,
    /// True if selective acknowledgment was negotiated.
    pub sack: bool,
    /// True if explicit congestion notification was negotiated.
    pub ecn: bool,
}

impl CookieTerms {
    /// The terms that a segment answers if it echoes this TSval, where windows would be scaled by `own_scale`.
    pub fn echoed(irs: SeqNum, tsecr: u32, own_scale: WindowScale) -> Self {
        let carried = Carried::read(tsecr);
        let own_scale = if carried.scale.is_some() { own_scale } else { WindowScale::ZERO };
        Self { irs, carried: Some(carried), own_scale }
    }

    /// The terms that a segment without timestamps may answer, where windows would be scaled by `own_scale`:
    /// those of a handshake that negotiated no timestamps, and of one that did, without and with window
    /// scaling. The peer's scale and SACK stay unknown.
    pub fn without_timestamps(irs: SeqNum, own_scale: WindowScale) -> [Self; 3] {
        let stamped = |scale| Some(Carried { scale, sack: false, ecn: false });
        [
            Self { irs, carried: None, own_scale: WindowScale::ZERO },
            Self { irs, carried: stamped(None), own_scale: WindowScale::ZERO },
            Self { irs, carried: stamped(Some(WindowScale::ZERO)), own_scale },
        ]
    }
}

impl Cookies {
    /// The longest that a cookie holds.
    pub const LIFETIME: Duration = Duration::from_secs(3 * PERIOD_SECS);

    /// The cookies of a stack with these keys, alone.
    pub fn new(secrets: &Secrets) -> Self {
        Self {
            prf: secrets.cookies.prf(),
            other: None,
            epoch: Duration::ZERO,
            membership: Membership::Alone,
        }
    }

    /// Makes cookies under `key` from now on, and takes those under `other` as well.
    ///
    /// A group changes its key in three steps, and refuses no client: all of its machines take the new key
    /// as `other`; then it becomes their `key`, and the old one `other`; [`Cookies::LIFETIME`] after the
    /// last of them the old one is left out.
    pub fn set_keys(&mut self, key: &Key, other: Option<&Key>) {
        self.prf = key.prf();
        self.other = other.map(Key::prf);
    }

    /// Takes part in a group, whose clock shows `clock` at this moment: any time that all its
    /// machines agree on, such as the time since 1970.
    pub fn join_group(&mut self, now: Instant, clock: Duration) {
        self.epoch = clock.saturating_sub(now.since(Instant::ZERO));
        self.membership = Membership::Group;
    }

    /// The group whose cookies are honoured.
    pub const fn membership(&self) -> Membership {
        self.membership
    }

    /// The cookie for a handshake: our ISS.
    pub fn issue(&self, flow: &Flow, terms: &CookieTerms, mss: Mss, now: Instant) -> SeqNum {
        let above = MSS_TABLE.partition_point(|listed| *listed <= mss.get());
        compose(&self.prf, flow, terms, self.period(now), above.saturating_sub(1) as u32)
    }

    /// The MSS of a peer that returned this ISS, if it is a cookie of this handshake that holds now.
    pub fn redeem(
        &self,
        flow: &Flow,
        terms: &CookieTerms,
        iss: SeqNum,
        now: Instant,
    ) -> Option<Mss> {
        let (period, rank) = (iss.raw() >> RANK_BITS & PERIOD_MASK, iss.raw() & RANK_MASK);
        let period = self.recent(period, now)?;
        let mss = *MSS_TABLE.get(rank as usize)?;
        let is_of = |prf: &SipHasher24| compose(prf, flow, terms, period, rank) == iss;
        (is_of(&self.prf) || self.other.as_ref().is_some_and(is_of)).then_some(Mss::new(mss))
    }

    /// The period that ends in these two bits and whose cookies hold now.
    fn recent(&self, bits: u32, now: Instant) -> Option<u64> {
        let current = self.period(now);
        match (current as u32).wrapping_sub(bits) & PERIOD_MASK {
            // Another machine's clock may be ahead of ours.
            PERIOD_MASK => (self.membership == Membership::Group).then(|| current.wrapping_add(1)),
            age => current.checked_sub(u64::from(age)),
        }
    }

    fn period(&self, now: Instant) -> u64 {
        let clock = self.epoch.saturating_add(now.since(Instant::ZERO));
        clock.as_secs() / PERIOD_SECS
    }
}

fn compose(prf: &SipHasher24, flow: &Flow, terms: &CookieTerms, period: u64, rank: u32) -> SeqNum {
    let mut input = Input::EMPTY;
    for end in [&flow.local, &flow.remote] {
        input.push_address(&end.addr);
        input.push(&end.port.to_be_bytes());
    }
    input.push(&terms.irs.raw().to_be_bytes());
    input.push(&period.to_be_bytes());
    let scaled = terms.carried.map(|carried| carried.scale.is_some());
    let form = scaled.map_or(Form::Plain, |it| if it { Form::Scaled } else { Form::Stamped });
    input.push(&[rank as u8, form as u8, terms.own_scale.get()]);
    // Rank and period are hashed, too: a peer that changes them has another cookie, and no valid one.
    let code = prf.hash(input.as_slice()) as u32;
    let signed = (period as u32 & PERIOD_MASK) << RANK_BITS | rank;
    SeqNum::new(code << (RANK_BITS + PERIOD_BITS) | signed)
}

/// Says that there is a key, and nothing of what it is.
impl core::fmt::Debug for Cookies {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Cookies").field("membership", &self.membership).finish_non_exhaustive()
    }
}

impl Carried {
    /// The latest TSval not above `tsval` that carries this: less than 128 ms behind it, so that
    /// the next segment's is not below.
    pub const fn stamp(self, tsval: u32) -> u32 {
        let stamped = tsval & !CARRIED_MASK | self.bits();
        if stamped & CARRIED_MASK > tsval & CARRIED_MASK {
            stamped.wrapping_sub(CARRIED_MASK + 1)
        } else {
            stamped
        }
    }

    /// Reads the options that an echoed TSval carries. The cookie shows whether the TSval was ours.
    pub const fn read(tsecr: u32) -> Self {
        let scale = tsecr & SCALE_MASK;
        let scaled = scale != NOT_SCALED;
        Self {
            scale: if scaled { Some(WindowScale::new(scale as u8)) } else { None },
            sack: tsecr & SACK_BIT != 0,
            ecn: tsecr & ECN_BIT != 0,
        }
    }

    const fn bits(self) -> u32 {
        let scale = match self.scale {
            Some(scale) => scale.get() as u32,
            None => NOT_SCALED,
        };
        scale | if self.sack { SACK_BIT } else { 0 } | if self.ecn { ECN_BIT } else { 0 }
    }
}

/// The input of a cookie's hash.
struct Input {
    bytes: [u8; MOST_INPUT],
    len: usize,
}

impl Input {
    const EMPTY: Self = Self { bytes: [0; MOST_INPUT], len: 0 };

    fn push(&mut self, bytes: &[u8]) {
        let end = self.len + bytes.len();
        if let Some(place) = self.bytes.get_mut(self.len..end) {
            place.copy_from_slice(bytes);
            self.len = end;
        }
    }

    /// The length of the whole tells the families apart.
    fn push_address(&mut self, addr: &Address) {
        if addr.is_v4() { self.push(&addr.v4_bytes()) } else { self.push(addr.as_bytes()) }
    }

    fn as_slice(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or(&self.bytes)
    }
}

/// The MSS values announced over the links in use: tunnels and mobile networks (1,360, 1,400), Ethernet
/// under IPv6 (1,440) and IPv4 (1,460), jumbo frames (8,940); each family's default; and something
/// for a peer that takes less.
const MSS_TABLE: [u16; 8] = [48, 536, 1_220, 1_360, 1_400, 1_440, 1_460, 8_940];
/// Two addresses of 16 bytes, two ports, IRS, period and three bytes.
const MOST_INPUT: usize = 2 * (16 + 2) + 4 + 8 + 3;
const RANK_BITS: u32 = 3;
const RANK_MASK: u32 = (1 << RANK_BITS) - 1;
const PERIOD_BITS: u32 = 2;
const PERIOD_MASK: u32 = (1 << PERIOD_BITS) - 1;
const PERIOD_SECS: u64 = 40;
const CARRIED_MASK: u32 = 0x3f;
const SCALE_MASK: u32 = 0xf;
/// No scale is above 14.
const NOT_SCALED: u32 = 0xf;
const SACK_BIT: u32 = 0x10;
const ECN_BIT: u32 = 0x20;

/// The negotiated form of a handshake that is hashed.
#[derive(Clone, Copy)]
enum Form {
    /// No timestamps, and so nothing else.
    Plain,
    /// Timestamps, and no window scaling.
    Stamped,
    /// Timestamps and window scaling.
    Scaled,
}

#[cfg(test)]
mod tests;
