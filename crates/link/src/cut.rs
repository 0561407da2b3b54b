//! TCP segmentation offload in software: cuts a super-segment into packets and completes their
//! checksums, as a network card does.
//!
//! A link queues, delays and loses packets, never super-segments: a queue of 100 packets holds 100
//! packets with or without the sender's offload, and a loss takes one of them.

use alloc::vec::Vec;

use bytes::Bytes;
use whimbrel_base::packet::{TxChecksum, TxSegment};
use whimbrel_wire::tcp::{TcpFlags, TcpHeader};
use whimbrel_wire::{IpHeader, SeqNum, Sum};

/// Passes each packet of `segment` to `emit`, in order: one, or several if its text exceeds
/// `gso_size`. The segment begins with its IP header.
///
/// As in hardware, IPv4 identifications count up from the first packet's, FIN and PSH stand on the
/// last packet and CWR only on the first, and options are repeated on each.
pub fn cut(segment: &TxSegment, mut emit: impl FnMut(Bytes)) {
    let header = segment.header();
    let text = segment.payload.bytes() as usize;
    let gso_size = usize::from(segment.gso_size);
    if gso_size == 0 || text <= gso_size {
        emit(whole(segment));
        return;
    }
    let mut source = Source { slices: segment.payload.as_slice(), skip: 0 };
    let (mut done, mut place) = (0, 0);
    while done < text {
        let len = gso_size.min(text - done);
        let mut packet = Vec::with_capacity(header.len() + len);
        packet.extend_from_slice(header);
        source.append_to(&mut packet, len);
        let piece = CutPacket { place, done, is_last: done + len == text };
        rewrite(&mut packet, usize::from(segment.transport_offset), piece);
        emit(Bytes::from(packet));
        done += len;
        place += 1;
    }
}

/// A segment that fits in one packet; a checksum left to the device is completed.
fn whole(segment: &TxSegment) -> Bytes {
    let mut packet = segment.to_vec();
    if let TxChecksum::Partial(offset) = segment.checksum {
        let transport = usize::from(segment.transport_offset);
        if let Some(bytes) = packet.get_mut(transport..) {
            // The field holds the sum of the pseudo-header, which so enters this sum.
            let checksum = Sum::new().add_bytes(bytes).finish();
            put(bytes, usize::from(offset), checksum.to_be_bytes());
        }
    }
    Bytes::from(packet)
}

/// Position of a packet in a super-segment.
#[derive(Clone, Copy)]
struct CutPacket {
    place: u16,
    /// Bytes of text before it.
    done: usize,
    is_last: bool,
}

fn rewrite(packet: &mut [u8], transport: usize, piece: CutPacket) {
    rewrite_ip(packet, transport, piece.place);
    let Ok((ip, _)) = IpHeader::parse(packet) else { return };
    let Some(tcp) = packet.get_mut(transport..).filter(|tcp| tcp.len() >= TcpHeader::LEN) else {
        return;
    };
    let seq = SeqNum::new(word(tcp, SEQ)) + piece.done as u32;
    put(tcp, SEQ, seq.raw().to_be_bytes());
    let first = if piece.place == 0 { TcpFlags::NONE } else { TcpFlags::CWR };
    let last = if piece.is_last { TcpFlags::NONE } else { TcpFlags::FIN | TcpFlags::PSH };
    tcp[FLAGS] &= !((first | last).bits() as u8);
    put(tcp, TcpHeader::CHECKSUM_OFFSET, [0; 2]);
    let pseudo = Sum::pseudo_header(ip.src, ip.dst, ip.protocol.0, tcp.len() as u32);
    let checksum = pseudo.add_bytes(tcp).finish();
    put(tcp, TcpHeader::CHECKSUM_OFFSET, checksum.to_be_bytes());
}

/// Sets the length, and for IPv4 the identification and the checksum.
fn rewrite_ip(packet: &mut [u8], transport: usize, place: u16) {
    let len = packet.len();
    if packet.first().is_some_and(|first| first >> 4 == 4) {
        let identification = (word(packet, 4) >> 16) as u16;
        put(packet, 2, (len as u16).to_be_bytes());
        put(packet, 4, identification.wrapping_add(place).to_be_bytes());
        put(packet, 10, [0; 2]);
        let checksum = Sum::new().add_bytes(packet.get(..transport).unwrap_or_default()).finish();
        put(packet, 10, checksum.to_be_bytes());
    } else {
        put(packet, 4, ((len - V6_HEADER.min(len)) as u16).to_be_bytes());
    }
}

/// The 32 bits at `at`.
fn word(bytes: &[u8], at: usize) -> u32 {
    let word = bytes.get(at..).and_then(|rest| rest.first_chunk::<4>());
    word.map_or(0, |word| u32::from_be_bytes(*word))
}

fn put<const N: usize>(bytes: &mut [u8], at: usize, value: [u8; N]) {
    if let Some(place) = bytes.get_mut(at..at + N) {
        place.copy_from_slice(&value);
    }
}

/// Text in slices, read from the front.
struct Source<'a> {
    slices: &'a [Bytes],
    /// Bytes of the first slice already read.
    skip: usize,
}

impl Source<'_> {
    fn append_to(&mut self, packet: &mut Vec<u8>, mut len: usize) {
        while let Some(first) = self.slices.first().filter(|_| len > 0) {
            let rest = first.get(self.skip..).unwrap_or_default();
            let take = rest.len().min(len);
            packet.extend_from_slice(rest.split_at(take).0);
            len -= take;
            self.skip += take;
            if take == rest.len() {
                self.slices = self.slices.get(1..).unwrap_or_default();
                self.skip = 0;
            }
        }
    }
}

/// Offset of the sequence number in a TCP header.
const SEQ: usize = 4;
/// Offset of the low eight flags.
const FLAGS: usize = 13;
/// Bytes of an IPv6 header, which its length field does not count.
const V6_HEADER: usize = 40;

#[cfg(test)]
mod tests;
