//! Finds the frames that `drop=` names: the K-th transmission of the N-th full segment of a stream.
//!
//! Positions follow from sequence numbers, so a stream is followed from its SYN on. Streams that
//! began before the link, or beyond the limit, have no losses.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use whimbrel_wire::tcp::{TcpFlags, TcpView};
use whimbrel_wire::{Endpoint, IpHeader, Protocol, SeqNum};

use crate::config::TargetedDrop;

/// Transmissions of one direction to lose, and the state of its streams.
#[derive(Debug)]
pub(crate) struct Targets {
    drops: Vec<TargetedDrop>,
    /// The MTU of the link, in bytes.
    mtu: u16,
    streams: BTreeMap<[Endpoint; 2], Stream>,
}

/// One direction of a connection.
#[derive(Debug)]
struct Stream {
    /// Sequence number of its first byte of text.
    start: SeqNum,
    /// Bytes of text in a full segment, once a segment with text was seen.
    mss: Option<u32>,
    /// Number of transmissions of each target's first byte.
    transmissions: Vec<u8>,
}

impl Targets {
    pub(crate) const fn new(drops: Vec<TargetedDrop>, mtu: u16) -> Self {
        Self { drops, mtu, streams: BTreeMap::new() }
    }

    /// True if this frame is one of them. Call it once for each frame, when it is sent.
    pub(crate) fn take(&mut self, frame: &[u8]) -> bool {
        if self.drops.is_empty() {
            return false;
        }
        let Ok((ip, payload)) = IpHeader::parse(frame) else { return false };
        if ip.protocol != Protocol::TCP || ip.fragment.is_some() {
            return false;
        }
        let Ok((tcp, header_len)) = TcpView::parse(payload) else { return false };
        let ends = [Endpoint::new(ip.src, tcp.src_port), Endpoint::new(ip.dst, tcp.dst_port)];
        let is_syn = tcp.flags.contains(TcpFlags::SYN);
        let first = tcp.seq + u32::from(is_syn);
        if is_syn {
            self.begin(ends, first);
        }
        let text = payload.len() - header_len;
        let Some(stream) = self.streams.get_mut(&ends).filter(|_| text > 0) else { return false };
        if !is_syn {
            let headers = usize::from(ip.header_len) + header_len;
            stream.mss.get_or_insert(usize::from(self.mtu).saturating_sub(headers).max(1) as u32);
        }
        stream.is_hit(&self.drops, first.distance_from(stream.start), text)
    }

    /// Handles a SYN: a repeated one belongs to the same stream.
    fn begin(&mut self, ends: [Endpoint; 2], start: SeqNum) {
        let is_known = self.streams.get(&ends).is_some_and(|stream| stream.start == start);
        let has_room = self.streams.len() < Self::MOST_STREAMS || self.streams.contains_key(&ends);
        if !is_known && has_room {
            let transmissions = alloc::vec![0; self.drops.len()];
            self.streams.insert(ends, Stream { start, mss: None, transmissions });
        }
    }

    /// Most streams followed at a time.
    const MOST_STREAMS: usize = 1 << 16;
}

impl Stream {
    /// Handles `len` bytes of text, the first of them `at` bytes into the stream.
    fn is_hit(&mut self, drops: &[TargetedDrop], at: i32, len: usize) -> bool {
        let text = i64::from(at)..i64::from(at) + len as i64;
        let mut is_hit = false;
        for (drop, transmissions) in drops.iter().zip(&mut self.transmissions) {
            // Text on a SYN comes before the size of a full segment is known: it contains the first
            // byte.
            let target = i64::from(drop.segment - 1) * i64::from(self.mss.unwrap_or(u32::MAX));
            if target <= WITHIN && text.contains(&target) {
                *transmissions = transmissions.saturating_add(1);
                is_hit |= *transmissions == drop.transmission;
            }
        }
        is_hit
    }
}

/// Numbers repeat after 4 GiB, and are comparable within 2.
const WITHIN: i64 = 1 << 30;

#[cfg(test)]
mod tests;
