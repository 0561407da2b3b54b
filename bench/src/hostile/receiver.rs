//! Streams of a receiver that lies: acknowledgments of what never arrived, byte by byte, and of what came
//! twice, to a server that has [`SEGMENTS`] segments in flight and more to send.

use bytes::Bytes;
use whimbrel_tcp::Tunables;
use whimbrel_wire::tcp::{SackBlock, TcpFlags};
use whimbrel_wire::{Mss, SeqNum, WindowScale};

use super::{ISN, Pace, Victim, frame, numbers};
use crate::Failure;

impl Victim {
    /// A server that sends all the time, to a client with a large window: what is in flight begins at
    /// `sent`.
    pub(super) fn sending() -> Result<Self, Failure> {
        Self::sending_to(true)
    }

    /// A server that sends to a client without SACK.
    pub(super) fn sending_without_sack() -> Result<Self, Failure> {
        Self::sending_to(false)
    }

    fn sending_to(sack: bool) -> Result<Self, Failure> {
        let tunables = Tunables { send_buffer: 8 << 20, ..Tunables::default() };
        let (mut victim, listener) = Self::listening(tunables, 64)?;
        victim.pace = Pace::Each;
        let mut syn = victim.header(TcpFlags::SYN, ISN);
        syn.options.mss = Some(Mss::new(MSS as u16));
        syn.options.sack_permitted = sack;
        syn.options.window_scale = Some(WindowScale::new(14));
        victim.suffer(&[frame(0, &syn, 0)]);
        victim.sent = victim.answered()?.seq + 1;
        victim.suffer(&[victim.segment(TcpFlags::ACK, ISN + 1, 0)]);
        let handle = victim.shard.accept(listener).ok_or("the handshake failed")?;
        victim.shard.send(handle, &mut Bytes::from_static(&[7; 8 << 20]))?;
        victim.suffer(&[]);
        // The window opens as what is in flight is acknowledged, a round trip at a time.
        loop {
            let sent = victim.shard.snapshot(handle).ok_or("it is gone")?.snd.nxt;
            if sent.offset_from(victim.sent) >= SEGMENTS * MSS {
                return Ok(victim);
            }
            victim.sent = sent;
            victim.suffer(&[victim.ack(0, &[])]);
        }
    }

    /// Acknowledges `bytes` of what is in flight, and names ranges of it.
    fn ack(&self, bytes: u32, ranges: &[(u32, u32)]) -> Vec<u8> {
        let blocks = ranges
            .iter()
            .map(|(left, right)| SackBlock { left: self.sent + *left, right: self.sent + *right });
        self.ack_at(self.sent + bytes, &blocks.collect::<Vec<_>>())
    }

    fn ack_at(&self, ack: SeqNum, blocks: &[SackBlock]) -> Vec<u8> {
        let mut header = self.header(TcpFlags::ACK, self.next);
        header.ack = ack;
        for block in blocks {
            header.options.sack.push(*block);
        }
        frame(0, &header, 0)
    }
}

/// Every second byte, four at a time.
pub(super) fn sack_bytes(victim: &Victim) -> Vec<Vec<u8>> {
    let at = |it: u32| (2 * it + 1, 2 * it + 2);
    let of = |it: u32| victim.ack(0, &[at(4 * it), at(4 * it + 1), at(4 * it + 2), at(4 * it + 3)]);
    numbers().map(of).collect()
}

/// One byte of each segment, from behind.
pub(super) fn sack_backwards(victim: &Victim) -> Vec<Vec<u8>> {
    let of = |it: u32| {
        let left = END - 1 - (it % SEGMENTS) * MSS - it / SEGMENTS;
        victim.ack(0, &[(left, left + 1)])
    };
    numbers().map(of).collect()
}

/// All but a byte is named as held, and once that came, nothing is; again and again.
pub(super) fn renege(victim: &Victim) -> Vec<Vec<u8>> {
    let of = |it: u32| match it % 2 {
        0 => victim.ack(it / 2, &[(it / 2 + 1, END)]),
        _ => victim.ack(it / 2 + 1, &[]),
    };
    numbers().map(of).collect()
}

/// The second half arrived; then what was sent again of the first came twice; and so on with a byte more.
pub(super) fn come_twice(victim: &Victim) -> Vec<Vec<u8>> {
    let half = END / 2;
    let of = |it: u32| match it % 2 {
        0 => victim.ack(0, &[(half - it, END)]),
        _ => victim.ack(0, &[(half, END - 1), (half - it, END)]),
    };
    numbers().map(of).collect()
}

/// A byte at a time.
pub(super) fn ack_bytes(victim: &Victim) -> Vec<Vec<u8>> {
    numbers().map(|it| victim.ack(1 + it, &[])).collect()
}

/// Acknowledgments of single bytes, after three duplicates signalled a loss.
pub(super) fn ack_bytes_of_repair(victim: &Victim) -> Vec<Vec<u8>> {
    numbers().map(|it| victim.ack(it.saturating_sub(3), &[])).collect()
}

/// Acknowledgments of unsent bytes.
pub(super) fn ack_unsent(victim: &Victim) -> Vec<Vec<u8>> {
    numbers().map(|it| victim.ack((64 << 20) + it, &[])).collect()
}

/// Bytes of each segment.
const MSS: u32 = 536;
/// So many are in flight, at least.
const SEGMENTS: u32 = 4_000;
/// One past the last of them.
const END: u32 = SEGMENTS * MSS;
