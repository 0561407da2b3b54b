//! What nearly every packet is: a TCP segment in IPv4, whole and without IP options. Both headers are
//! read and written in one go, 32 bits at a time.
//!
//! A sum does not depend on byte order (RFC 1071 2 (B)), so words are added as they lie in memory. Up
//! to 2^32 of them fit into 64 bits without a carry, and each is loaded or stored for the packet's own
//! sake: the sums of the headers cost an addition a word. Everything else, and whatever is wrong, is
//! left to [`Ipv4Header`](crate::Ipv4Header) and [`TcpHeader`](crate::TcpHeader).

use crate::tcp::{OptionsView, TcpFlags, TcpView, Timestamps};
use crate::{Address, Mss, Protocol, RawWindow, SeqNum, Sum, TrafficClass, WindowScale};

/// A segment that arrived so: its lengths fit, and its checksums are right.
#[derive(Clone, Copy, Debug)]
pub struct PlainSegment<'a> {
    head: &'a [u8; HEADS],
    /// TCP options as they came, not yet read.
    options: &'a [u8],
    /// What follows them, trimmed to the length that the IP header states.
    text: &'a [u8],
}

/// Whether the TCP checksum is looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Checksum {
    /// It must be right.
    Verify,
    /// Whoever handed the packet over vouches for it.
    Trust,
}

impl<'a> PlainSegment<'a> {
    /// The segment of `packet`. `None` if it is anything else, or wrong: the parsers of its headers
    /// know what.
    #[inline(always)]
    pub fn read(packet: &'a [u8], checksum: Checksum) -> Option<Self> {
        let (head, rest) = packet.split_first_chunk::<HEADS>()?;
        let [first, second, third, src, dst, ports, seq, ack, control, urgent] = words(head);
        let is_plain = u32::from_be(first) >> 24 == VERSION_IHL
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
                // What nearly every segment has.
                [a, b, c] => (sum([a, b, c].map(|word| u32::from_ne_bytes(*word))), text),
                // Unrolled, too, the five words of a SYN take as much from all others, whose registers run short.
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

    /// Source address: the sender's.
    #[inline]
    pub fn src(&self) -> Address {
        let [_, _, _, src, ..] = words(self.head);
        Address::from_v4_octets(src.to_ne_bytes())
    }

    /// Destination address: the receiver's.
    #[inline]
    pub fn dst(&self) -> Address {
        let [_, _, _, _, dst, ..] = words(self.head);
        Address::from_v4_octets(dst.to_ne_bytes())
    }

    /// The sender's port, and the receiver's.
    #[inline]
    pub fn ports(&self) -> (u16, u16) {
        let [_, _, _, _, _, ports, ..] = words(self.head);
        let ports = u32::from_be(ports);
        ((ports >> 16) as u16, ports as u16)
    }

    /// The TCP header, and the text behind it.
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

/// The headers of a segment that is to leave so.
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
    /// The options, of those that a plain segment has.
    pub options: PlainOptions,
}

/// The options that nearly all segments have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PlainOptions {
    /// No options at all.
    None,
    /// Timestamps behind two NOPs.
    Timestamps(Timestamps),
    /// Those of a SYN: MSS, SACK-permitted and timestamps, NOP and window scale, in
    /// [`OptionOrder::Linux`](crate::OptionOrder::Linux).
    Opening(Mss, Timestamps, WindowScale),
}

/// The text behind headers that are written.
#[derive(Clone, Copy, Debug)]
pub struct Text {
    /// Bytes, at most 65,483.
    pub len: u32,
    /// What its bytes sum up to; `None` if a device completes the checksum.
    pub sum: Option<Sum>,
}

impl PlainHeaders {
    /// Bytes of the longest.
    pub const MAX_LEN: usize = HEADS + 20;

    /// Writes both headers to the front of `room`, their checksums included; returns their bytes.
    /// Without the sum of the text the TCP checksum is that of the pseudo-header, not complemented.
    #[inline(always)]
    pub fn emit(&self, text: Text, room: &mut [u8; Self::MAX_LEN]) -> usize {
        let (heads, options) = room.split_at_mut(HEADS);
        let (options_len, options_sum) = match self.options {
            PlainOptions::None => (0_usize, 0),
            PlainOptions::Timestamps(Timestamps { val, ecr }) => {
                let words = [STAMPS, val, ecr].map(u32::to_be);
                put(options, words);
                (12, sum(words))
            }
            PlainOptions::Opening(mss, Timestamps { val, ecr }, scale) => {
                let (mss, scale) = (MSS | u32::from(mss.get()), SCALE | u32::from(scale.get()));
                let words = [mss, SACK_AND_STAMPS, val, ecr, scale].map(u32::to_be);
                put(options, words);
                (20, sum(words))
            }
        };
        let header_len = options_len.wrapping_add(TCP_LEN);
        let tcp_len = (text.len as usize).wrapping_add(header_len);
        let total_len = tcp_len.wrapping_add(IP_LEN) as u32;
        let pair = |high: u16, low: u16| ((u32::from(high) << 16) | u32::from(low)).to_be();
        let [src, dst] = [self.src, self.dst].map(|end| u32::from_ne_bytes(end.v4_octets()));
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

/// The words of both headers, as they lie in memory.
#[inline(always)]
fn words(head: &[u8; HEADS]) -> [u32; HEADS / 4] {
    let (words, _) = head.as_chunks::<4>();
    // Of as many words none is missing, which the compiler sees.
    core::array::from_fn(|at| words.get(at).map_or(0, |word| u32::from_ne_bytes(*word)))
}

/// Writes words as they are to lie in memory.
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

/// What the pseudo-header adds beside the addresses.
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

/// A sum in 16 bits, not complemented.
#[inline(always)]
const fn fold(sum: u64) -> u16 {
    // Both halves in both orders: what the lower sum carries goes where its end-around carry belongs.
    let sum = (sum.wrapping_add(sum.rotate_left(32)) >> 32) as u32;
    (sum.wrapping_add(sum.rotate_left(16)) >> 16) as u16
}

const IP_LEN: usize = crate::Ipv4Header::LEN;
const TCP_LEN: usize = crate::TcpHeader::LEN;
/// Bytes of both headers without TCP options.
const HEADS: usize = IP_LEN + TCP_LEN;
/// Two NOPs, and the timestamps option's kind and length.
const STAMPS: u32 = 0x0101_080a;
/// SACK-permitted, and the same.
const SACK_AND_STAMPS: u32 = 0x0402_080a;
/// MSS, in front of its value.
const MSS: u32 = 0x0204_0000;
/// NOP and window scale, in front of its value.
const SCALE: u32 = 0x0103_0300;
const VERSION_IHL: u32 = 0x45;
const DONT_FRAGMENT: u32 = 0x4000;
/// In the second word: all that makes a fragment.
const FRAGMENT: u32 = 0xbfff;
/// In the third word: what the payload is.
const PROTOCOL: u32 = 0x00ff_0000;
const TCP: u32 = (Protocol::TCP.0 as u32) << 16;
const IP_CHECKSUM_AT: usize = 10;
const TCP_CHECKSUM_AT: usize = IP_LEN + crate::TcpHeader::CHECKSUM_OFFSET;

#[cfg(test)]
mod tests;
