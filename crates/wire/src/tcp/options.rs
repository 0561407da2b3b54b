//! TCP options, parsed leniently: known options count, others are skipped.

use super::accurate_ecn::AccurateEcn;
use super::fast_open::FastOpen;
use super::kinds::{
    ACCURATE_ECN_0, ACCURATE_ECN_1, AO, END_OF_LIST, EXPERIMENT, FAST_OPEN, MD5, MSS, NOP, SACK,
    SACK_PERMITTED, TIMESTAMPS, USER_TIMEOUT, WINDOW_SCALE,
};
use super::sack::SackBlocks;
use crate::{Mss, WindowScale};

/// The options of a segment.
///
/// A value holds each option once; if a segment repeats one, its last counts. MSS, window scale,
/// SACK-permitted and Fast Open are meaningful only on a SYN. They are parsed in any segment, and
/// the caller must ignore them elsewhere.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TcpOptions {
    /// Kind 2: the largest segment that its sender accepts (RFC 9293 3.7.1).
    pub mss: Option<Mss>,
    /// Kind 3: the shift of its sender's windows (RFC 7323 2.2); values above 14 become 14.
    pub window_scale: Option<WindowScale>,
    /// Kind 4: its sender accepts SACK options (RFC 2018 2).
    pub sack_permitted: bool,
    /// Kind 8 (RFC 7323 3.2).
    pub timestamps: Option<Timestamps>,
    /// Kind 5: ranges that arrived out of order (RFC 2018 3), or twice (RFC 2883 4).
    pub sack: SackBlocks,
    /// Kind 34, or 254 with the experiment 0xF989 (RFC 7413 4.1).
    pub fast_open: Option<FastOpen>,
    /// Kind 28 (RFC 5482 3).
    pub user_timeout: Option<UserTimeout>,
    /// Kinds 172 and 174 (RFC 9768 3.2.3).
    pub accurate_ecn: Option<AccurateEcn>,
    /// Authentication option of the segment. Never emitted.
    pub authentication: Option<Authentication>,
    /// True if parsing stopped at an option whose length is below 2 or beyond the header. Never
    /// emitted.
    pub malformed: bool,
}

/// The timestamps option (RFC 7323 3.2), in ticks that each peer chooses.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Timestamps {
    /// TSval: its sender's clock.
    pub val: u32,
    /// TSecr: the receiver's clock, echoed; meaningless without ACK.
    pub ecr: u32,
}

/// Kind of an authentication option; its digest is not kept.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Authentication {
    /// Kind 19 (RFC 2385).
    Md5,
    /// Kind 29, TCP-AO (RFC 5925).
    Ao,
}

/// The user time-out option (RFC 5482 3): the time for which its sender waits for an
/// acknowledgment.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct UserTimeout(u16);

impl UserTimeout {
    /// Creates the option for `seconds`: exact to 32,767, then in minutes, rounded up, to 32,767.
    pub const fn from_seconds(seconds: u32) -> Self {
        if seconds <= 0x7fff {
            return Self(seconds as u16);
        }
        let minutes = seconds.div_ceil(60);
        Self(0x8000 | if minutes > 0x7fff { 0x7fff } else { minutes as u16 })
    }

    /// Creates the option from its field: a granularity bit above 15 bits of seconds or, if it is
    /// set, minutes.
    pub const fn from_bits(bits: u16) -> Self {
        Self(bits)
    }

    /// Returns the field of the option: granularity and 15 bits.
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// Returns the seconds, 0 ..= 1,966,020. Zero is meaningless, and the caller sets limits before
    /// it adopts the value.
    pub const fn seconds(self) -> u32 {
        let value = (self.0 & 0x7fff) as u32;
        if self.0 & 0x8000 == 0 { value } else { value.wrapping_mul(60) }
    }
}

/// Options of a SYN other than timestamps and a Fast Open cookie.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Opening {
    /// Kind 2 (RFC 9293 3.7.1).
    pub mss: Option<Mss>,
    /// Kind 3 (RFC 7323 2.2).
    pub window_scale: Option<WindowScale>,
    /// Kind 4 (RFC 2018 2).
    pub sack_permitted: bool,
}

impl TcpOptions {
    /// Length of the longest options, in bytes.
    pub const MAX_LEN: usize = 40;

    /// Parses the bytes between the fixed header and the text.
    ///
    /// Never fails: an unknown kind, or a known one of a wrong length, is skipped by its length; a
    /// length that cannot be skipped ends parsing and sets `malformed`.
    pub fn parse(bytes: &[u8]) -> Self {
        let mut options = Self::default();
        options.read_list(bytes);
        options
    }

    /// Returns the options that a SYN offers.
    pub const fn opening(&self) -> Opening {
        let Self { mss, window_scale, sack_permitted, .. } = *self;
        Opening { mss, window_scale, sack_permitted }
    }

    fn read_list(&mut self, mut bytes: &[u8]) {
        while let [kind, rest @ ..] = bytes {
            match *kind {
                END_OF_LIST => return,
                NOP => bytes = rest,
                kind => match split_body(rest) {
                    Some((body, next)) => {
                        self.read_option(kind, body);
                        bytes = next;
                    }
                    // RFC 9293 3.1 (MUST-7): "TCP implementations MUST be prepared to handle an
                    // illegal option length (e.g., zero)".
                    None => {
                        self.malformed = true;
                        return;
                    }
                },
            }
        }
    }

    fn read_option(&mut self, kind: u8, body: &[u8]) {
        match (kind, body) {
            (MSS, &[a, b]) => self.mss = Some(Mss::new(u16::from_be_bytes([a, b]))),
            (WINDOW_SCALE, &[shift]) => self.window_scale = Some(WindowScale::new(shift)),
            (SACK_PERMITTED, []) => self.sack_permitted = true,
            (SACK, _) => self.sack = SackBlocks::from_body(body).unwrap_or(self.sack),
            (TIMESTAMPS, &[a, b, c, d, e, f, g, h]) => {
                self.timestamps = Some(Timestamps::from_bytes([a, b, c, d, e, f, g, h]));
            }
            (MD5, &[_, ..]) if body.len() == 16 => self.authentication = Some(Authentication::Md5),
            (USER_TIMEOUT, &[a, b]) => {
                self.user_timeout = Some(UserTimeout(u16::from_be_bytes([a, b])));
            }
            (AO, &[_, _, ..]) => self.authentication = Some(Authentication::Ao),
            (FAST_OPEN, cookie) => {
                self.fast_open = FastOpen::from_body(cookie, false).or(self.fast_open);
            }
            (ACCURATE_ECN_0 | ACCURATE_ECN_1, _) => {
                self.accurate_ecn = Some(AccurateEcn::from_body(kind, body));
            }
            (EXPERIMENT, [0xf9, 0x89, cookie @ ..]) => {
                self.fast_open = FastOpen::from_body(cookie, true).or(self.fast_open);
            }
            _ => {}
        }
    }
}

impl Opening {
    /// Creates the options that nearly every SYN has.
    pub(super) const fn usual(
        mss: Mss,
        window_scale: Option<WindowScale>,
        sack_permitted: bool,
    ) -> Self {
        Self { mss: Some(mss), window_scale, sack_permitted }
    }

    /// Parses the options of nearly every SYN: MSS, SACK-permitted and timestamps, NOP and window scale.
    #[inline]
    pub(super) fn parse_usual(bytes: &[u8]) -> Option<(Timestamps, WindowScale)> {
        let (&[MSS, 4, _, _], rest) = bytes.split_first_chunk()? else { return None };
        let stamped = Timestamps::first_of(rest, [SACK_PERMITTED, 2, TIMESTAMPS, 10])?;
        let (timestamps, &[NOP, WINDOW_SCALE, 3, shift]) = stamped else { return None };
        Some((timestamps, WindowScale::new(shift)))
    }

    /// Parses options that begin with MSS and are aligned to 32 bits, as most systems' SYNs have them, with the
    /// timestamps among them. `None` if there are others.
    pub(super) fn parse_aligned(bytes: &[u8]) -> Option<(Self, Option<Timestamps>)> {
        let ([[MSS, 4, a, b], words @ ..], []) = bytes.as_chunks::<4>() else { return None };
        let mss = Some(Mss::new(u16::from_be_bytes([*a, *b])));
        let mut opening = Self { mss, window_scale: None, sack_permitted: false };
        let (mut timestamps, mut words) = (None, words);
        while let [word, rest @ ..] = words {
            words = rest;
            match u32::from_be_bytes(*word) {
                word if word & !0xff == PADDED_SCALE => {
                    opening.window_scale = Some(WindowScale::new(word as u8));
                }
                PADDED_SACK_PERMITTED => opening.sack_permitted = true,
                before @ (PADDED_TIMESTAMPS | SACK_PERMITTED_AND_TIMESTAMPS) => {
                    opening.sack_permitted |= before == SACK_PERMITTED_AND_TIMESTAMPS;
                    let [val, ecr, behind @ ..] = rest else { return None };
                    let [val, ecr] = [val, ecr].map(|word| u32::from_be_bytes(*word));
                    timestamps = Some(Timestamps { val, ecr });
                    words = behind;
                }
                _ => return None,
            }
        }
        Some((opening, timestamps))
    }
}

/// NOP and window scale, in front of its value.
const PADDED_SCALE: u32 = u32::from_be_bytes([NOP, WINDOW_SCALE, 3, 0]);
const PADDED_SACK_PERMITTED: u32 = u32::from_be_bytes([NOP, NOP, SACK_PERMITTED, 2]);
const PADDED_TIMESTAMPS: u32 = u32::from_be_bytes([NOP, NOP, TIMESTAMPS, 10]);
const SACK_PERMITTED_AND_TIMESTAMPS: u32 = u32::from_be_bytes([SACK_PERMITTED, 2, TIMESTAMPS, 10]);

impl Timestamps {
    /// Returns the timestamps that follow `before` at the front of `bytes`, and the rest of the
    /// bytes.
    #[inline]
    pub(super) fn first_of(bytes: &[u8], before: [u8; 4]) -> Option<(Self, &[u8])> {
        let (found, rest) = bytes.split_first_chunk::<4>()?;
        let (stamps, rest) = rest.split_first_chunk::<8>()?;
        (*found == before).then_some((Self::from_bytes(*stamps), rest))
    }

    #[inline]
    pub(super) const fn from_bytes([a, b, c, d, e, f, g, h]: [u8; 8]) -> Self {
        Self { val: u32::from_be_bytes([a, b, c, d]), ecr: u32::from_be_bytes([e, f, g, h]) }
    }

    #[inline]
    pub(super) const fn to_bytes(self) -> [u8; 8] {
        (((self.val as u64) << 32) | self.ecr as u64).to_be_bytes()
    }
}

/// Returns an option's body and what follows it; `rest` begins with its length byte.
#[inline]
fn split_body(rest: &[u8]) -> Option<(&[u8], &[u8])> {
    let (len, rest) = rest.split_first()?;
    rest.split_at_checked(usize::from(len.checked_sub(2)?))
}

const _: () = assert!(size_of::<TcpOptions>() <= 96);

#[cfg(test)]
mod tests;
