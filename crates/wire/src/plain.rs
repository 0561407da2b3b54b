//! Plain segments, which are nearly all packets: TCP in IPv4, whole, without IP options, and on arrival
//! without an ECN codepoint (RFC 3168). Both headers are read and written together, 32 bits at a time.
//!
//! A sum does not depend on byte order (RFC 1071 2 (B)), so words are added as they lie in memory.
//! Up to 2^32 of them fit into 64 bits without a carry. Each is loaded or stored anyway, so the
//! sums of the headers cost one addition a word. All other or faulty packets are left to
//! [`Ipv4Header`](crate::Ipv4Header) and [`TcpHeader`](crate::TcpHeader).

mod datagram;

use crate::tcp::{OptionsView, TcpFlags, TcpView, Timestamps};
use crate::{Address, Mss, Protocol, RawWindow, SeqNum, Sum, TrafficClass, WindowScale};

pub use datagram::{PlainDatagram, PlainDatagramHeaders};

/// A plain segment that arrived: its lengths fit, and its checksums are right.
#[derive(Clone, Copy, Debug)]
pub struct PlainSegment<'a> {
    head: &'a [u8; HEADS],
    /// TCP options, not yet parsed.
    options: &'a [u8],
    /// Text, trimmed to the length in the IP header.
    text: &'a [u8],
}

/// Treatment of the TCP checksum.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Checksum {
    /// It must be right.
    Verify,
    /// It has been verified, for example by a device.
    Trust,
}

impl<'a> PlainSegment<'a> {
    /// Parses `packet`. `None` if it is no plain segment or invalid: the parsers of its headers
    /// then find the reason.
    #[inline(always)]
    pub fn read(packet: &'a [u8], checksum: Checksum) -> Option<Self> {
        let (head, rest) = packet.split_first_chunk::<HEADS>()?;
        let [first, second, third, src, dst, ports, seq, ack, control, urgent] = words(head);
        let is_plain = u32::from_be(first) & VERSION_IHL_ECN == VERSION_IHL << 24
            && u32::from_be(second) & FRAGMENT == 0
            && u32::from_be(third) & PROTOCOL == TCP;
        let addresses = u64::from(src).wrapping_add(u64::from(dst));
        if !is_plain || !is_valid(sum([first, second, third]).wrapping_add(addresses)) {
            return None;
        }
        let rest_len = ((u32::from_be(first) & 0xffff) as usize).checked_sub(HEADS)?;
        let rest = rest.get(..rest_len)?;
        let header_len = (u32::from_be(control) >> 28 << 2) as usize;
        let options_len = header_len.checked_sub(TCP_LEN)?;
        let (options, text) = rest.split_at_checked(options_len)?;
        if checksum == Checksum::Verify {
            let header = sum([ports, seq, ack, control, urgent]);
            let pseudo = addresses.wrapping_add(pseudo(rest_len.wrapping_add(TCP_LEN)));
            let (words, _) = options.as_chunks::<4>();
            let (options, behind) = match words {
                // Nearly every segment has these.
                [a, b, c] => (sum([a, b, c].map(|word| u32::from_ne_bytes(*word))), text),
                // Unrolling the five words of a SYN as well would slow all others, because
                // registers run short.
                _ => (0, rest),
            };
            let behind =
                if behind.is_empty() { 0 } else { Sum::new().add_bytes(behind).in_33_bits() };
            let rest = options.wrapping_add(behind);
            if !is_valid(header.wrapping_add(pseudo).wrapping_add(rest)) {
                return None;
            }
        }
        Some(Self { head, options, text })
    }

    /// Returns the source address: the sender's.
    #[inline]
    pub fn src(&self) -> Address {
        let [_, _, _, src, ..] = words(self.head);
        Address::from_v4_bytes(src.to_ne_bytes())
    }

    /// Returns the destination address: the receiver's.
    #[inline]
    pub fn dst(&self) -> Address {
        let [_, _, _, _, dst, ..] = words(self.head);
        Address::from_v4_bytes(dst.to_ne_bytes())
    }

    /// Returns the ports of the sender and of the receiver.
    #[inline]
    pub fn ports(&self) -> (u16, u16) {
        let [_, _, _, _, _, ports, ..] = words(self.head);
        let ports = u32::from_be(ports);
        ((ports >> 16) as u16, ports as u16)
    }

    /// Returns the TCP header, and the text.
    #[inline(always)]
    pub fn view(&self) -> (TcpView<'a>, &'a [u8]) {
        let [_, _, _, _, _, _, seq, ack, control, urgent] = words(self.head);
        let control = u32::from_be(control);
        let (src_port, dst_port) = self.ports();
        let view = TcpView {
            src_port,
            dst_port,
            seq: SeqNum::new(u32::from_be(seq)),
            ack: SeqNum::new(u32::from_be(ack)),
            flags: TcpFlags::from_bits((control >> 16) as u16),
            window: RawWindow::new(control as u16),
            urgent: u32::from_be(urgent) as u16,
            options: OptionsView::read(self.options),
        };
        (view, self.text)
    }
}

/// The headers of a plain segment to send.
#[derive(Clone, Copy, Debug)]
pub struct PlainHeaders {
    /// The sender; an IPv4 address.
    pub src: Address,
    /// The receiver; an IPv4 address.
    pub dst: Address,
    /// Type of service: DSCP and ECN.
    pub class: TrafficClass,
    /// Time to live: routers that it may still pass.
    pub hop_limit: u8,
    /// Source port: the sender's.
    pub src_port: u16,
    /// Destination port: the receiver's.
    pub dst_port: u16,
    /// SEG.SEQ: the number of the first byte.
    pub seq: SeqNum,
    /// SEG.ACK: the next number that the sender expects, if ACK is set.
    pub ack: SeqNum,
    /// The control bits (SYN, ACK, FIN, …).
    pub flags: TcpFlags,
    /// SEG.WND as it stands in the header, unscaled.
    pub window: RawWindow,
    /// SEG.UP: the urgent pointer, if URG is set.
    pub urgent: u16,
    /// Options of a plain segment.
    pub options: PlainOptions,
}

/// The options that nearly all segments have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PlainOptions {
    /// No options at all.
    None,
    /// Timestamps behind two NOPs.
    Timestamps(Timestamps),
    /// Those of a SYN.
    Opening(PlainOpening),
}

/// Options of a SYN or SYN-ACK, in [`OptionOrder::Linux`](crate::OptionOrder::Linux).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PlainOpening {
    /// The MSS that is announced.
    pub mss: Mss,
    /// The scale of the sender's windows, if it is offered or agreed upon.
    pub window_scale: Option<WindowScale>,
    /// SACK options are welcome.
    pub sack_permitted: bool,
    /// Timestamps, if they are offered or agreed upon.
    pub timestamps: Option<Timestamps>,
}

impl PlainOptions {
    /// Writes the options to the front of `room`, 20 bytes; returns their bytes and the sum of their words.
    #[inline(always)]
    fn put(&self, room: &mut [u8]) -> (usize, u64) {
        match self {
            Self::None => (0, 0),
            Self::Timestamps(Timestamps { val, ecr }) => {
                let words = [STAMPS, *val, *ecr].map(u32::to_be);
                put(room, words);
                (12, sum(words))
            }
            Self::Opening(opening) => {
                let (words, len) = opening.words();
                // Zeros behind the last option are not sent.
                put(room, words);
                (len, sum(words))
            }
        }
    }
}

impl PlainOpening {
    /// True if no option is missing.
    #[inline(always)]
    pub const fn is_whole(&self) -> bool {
        self.sack_permitted && self.timestamps.is_some() && self.window_scale.is_some()
    }

    /// Returns the options with zeros behind them, and their length in bytes.
    #[inline(always)]
    fn words(&self) -> ([u32; 5], usize) {
        let mss = MSS | u32::from(self.mss.get());
        let scale = self.window_scale.map_or(0, |scale| SCALE | u32::from(scale.get()));
        let (words, len) = match (self.timestamps, self.sack_permitted) {
            (Some(Timestamps { val, ecr }), sack) => {
                ([mss, if sack { SACK_AND_STAMPS } else { STAMPS }, val, ecr, scale], 16_usize)
            }
            (None, true) => ([mss, SACK_ALONE, scale, 0, 0], 8),
            (None, false) => ([mss, scale, 0, 0, 0], 4),
        };
        (words.map(u32::to_be), len.wrapping_add(if scale == 0 { 0 } else { 4 }))
    }
}

/// The text of a segment whose headers are written.
#[derive(Clone, Copy, Debug)]
pub struct Text {
    /// Length in bytes, at most 65,483.
    pub len: u32,
    /// Sum of its bytes; `None` if a device completes the checksum.
    pub sum: Option<Sum>,
}

impl PlainHeaders {
    /// Length of the longest headers in bytes.
    pub const MAX_LEN: usize = HEADS + 20;

    /// Writes both headers to the front of `room`, their checksums included; returns their bytes.
    /// Without the sum of the text the TCP checksum is that of the pseudo-header, not complemented.
    #[inline(always)]
    pub fn emit(&self, text: Text, room: &mut [u8; Self::MAX_LEN]) -> usize {
        let (heads, options) = room.split_at_mut(HEADS);
        let (options_len, options_sum) = self.options.put(options);
        let header_len = options_len.wrapping_add(TCP_LEN);
        let tcp_len = (text.len as usize).wrapping_add(header_len);
        let total_len = tcp_len.wrapping_add(IP_LEN) as u32;
        let pair = |high: u16, low: u16| ((u32::from(high) << 16) | u32::from(low)).to_be();
        let [src, dst] = [self.src, self.dst].map(|end| u32::from_ne_bytes(end.v4_bytes()));
        let first = (VERSION_IHL << 24 | u32::from(self.class.0) << 16 | total_len).to_be();
        let third = (u32::from(self.hop_limit) << 24 | TCP).to_be();
        let offset = (header_len as u16) << 10;
        let ports = pair(self.src_port, self.dst_port);
        let control = pair(offset | self.flags.bits(), self.window.get());
        let (seq, ack) = (self.seq.raw().to_be(), self.ack.raw().to_be());
        let urgent = u32::from(self.urgent).to_be();
        let addresses = u64::from(src).wrapping_add(u64::from(dst));
        let header = sum([ports, seq, ack, control, urgent]).wrapping_add(options_sum);

        put(
            heads,
            [first, DONT_FRAGMENT.to_be(), third, src, dst, ports, seq, ack, control, urgent],
        );
        let ip_sum = sum([first, DONT_FRAGMENT.to_be(), third]).wrapping_add(addresses);
        put_checksum(heads, IP_CHECKSUM_AT, !fold(ip_sum));
        let pseudo = addresses.wrapping_add(pseudo(tcp_len));
        let checksum = match text.sum {
            Some(text) => !fold(header.wrapping_add(pseudo).wrapping_add(text.in_33_bits())),
            None => fold(pseudo),
        };
        put_checksum(heads, TCP_CHECKSUM_AT, checksum);
        header_len.wrapping_add(IP_LEN)
    }
}

/// Returns the words of both headers, in memory order.
#[inline(always)]
fn words(head: &[u8; HEADS]) -> [u32; HEADS / 4] {
    read_words(head)
}

/// Returns the words of headers, in memory order.
#[inline(always)]
fn read_words<const BYTES: usize, const WORDS: usize>(head: &[u8; BYTES]) -> [u32; WORDS] {
    const { assert!(BYTES == 4 * WORDS) };
    let (words, _) = head.as_chunks::<4>();
    // No word is missing, which the compiler sees.
    core::array::from_fn(|at| words.get(at).map_or(0, |word| u32::from_ne_bytes(*word)))
}

/// Writes words in memory order.
#[inline(always)]
fn put<const N: usize>(room: &mut [u8], words: [u32; N]) {
    let (places, _) = room.as_chunks_mut::<4>();
    for (place, word) in places.iter_mut().zip(words) {
        *place = word.to_ne_bytes();
    }
}

#[inline(always)]
fn put_checksum(heads: &mut [u8], at: usize, checksum: u16) {
    let (_, behind) = heads.split_at_mut(at);
    if let Some(place) = behind.first_chunk_mut() {
        *place = checksum.to_ne_bytes();
    }
}

#[inline(always)]
fn sum<const N: usize>(words: [u32; N]) -> u64 {
    words.into_iter().fold(0, |sum, word| sum.wrapping_add(u64::from(word)))
}

/// Returns what the pseudo-header adds to the sum of the addresses.
#[inline(always)]
fn pseudo(tcp_len: usize) -> u64 {
    u64::from(((Protocol::TCP.0 as u32) << 16 | tcp_len as u32).to_be())
}

/// True if data that was added together with its checksum, and is not all zeros, is intact: 2^16-1
/// divides its sum.
#[inline(always)]
const fn is_valid(sum: u64) -> bool {
    sum.is_multiple_of(0xffff)
}

/// Returns a sum in 16 bits, not complemented.
#[inline(always)]
const fn fold(sum: u64) -> u16 {
    // Both halves in both orders: the carry of the lower sum is added where its end-around carry
    // belongs.
    let sum = (sum.wrapping_add(sum.rotate_left(32)) >> 32) as u32;
    (sum.wrapping_add(sum.rotate_left(16)) >> 16) as u16
}

const IP_LEN: usize = crate::Ipv4Header::LEN;
const TCP_LEN: usize = crate::TcpHeader::LEN;
/// Length of both headers without TCP options, in bytes.
const HEADS: usize = IP_LEN + TCP_LEN;
/// Two NOPs, and the timestamps option's kind and length.
const STAMPS: u32 = 0x0101_080a;
/// SACK-permitted, and the timestamps option's kind and length.
const SACK_AND_STAMPS: u32 = 0x0402_080a;
/// Two NOPs and SACK-permitted.
const SACK_ALONE: u32 = 0x0101_0402;
/// MSS, in front of its value.
const MSS: u32 = 0x0204_0000;
/// NOP and window scale, in front of its value.
const SCALE: u32 = 0x0103_0300;
const VERSION_IHL: u32 = 0x45;
/// Mask in the first word: version, header length and ECN field.
const VERSION_IHL_ECN: u32 = 0xff03_0000;
const DONT_FRAGMENT: u32 = 0x4000;
/// Mask in the second word: all that makes a fragment.
const FRAGMENT: u32 = 0xbfff;
/// Mask in the third word: the protocol of the payload.
const PROTOCOL: u32 = 0x00ff_0000;
const TCP: u32 = (Protocol::TCP.0 as u32) << 16;
const IP_CHECKSUM_AT: usize = 10;
const TCP_CHECKSUM_AT: usize = IP_LEN + crate::TcpHeader::CHECKSUM_OFFSET;

#[cfg(test)]
mod tests;
