//! Urgent data by Linux' rules: the last marked byte is urgent, and an ordinary `recv` skips it
//! unless `SO_OOBINLINE` is set. In the stack all of it stays in the stream (RFC 6093).

use bytes::Bytes;
use whimbrel_stack::{Recv, Shard};
use whimbrel_tcp::conn::Snapshot;
use whimbrel_wire::SeqNum;

use super::{Phase, Socket, Stream};
use crate::transfer::Keep;
use crate::{Errno, Incoming, MsgFlags, PollEvents};

impl Socket {
    /// `recv` with `MSG_OOB`: returns the urgent byte once. `EINVAL` if there is none, or if it is
    /// in the stream; `EAGAIN` if it was announced and has not arrived. It never blocks.
    pub(super) fn recv_urgent(
        &mut self,
        shard: &Shard,
        into: &mut Incoming,
        flags: MsgFlags,
    ) -> Result<usize, Errno> {
        let Some((stream, snapshot)) = self.connection(shard) else {
            let listens = matches!(self.phase, Phase::Listening(_));
            return Err(if listens { Errno::ENOTCONN } else { Errno::EINVAL });
        };
        if self.settings.oob_inline {
            return Err(Errno::EINVAL);
        }
        let peeks = flags.has(MsgFlags::MSG_PEEK);
        let byte = match (stream.oob, stream.mark(shard, &snapshot)) {
            (_, Some((left, end))) if stream.oob_read != Some(end) => {
                let byte = stream.byte(shard, left - 1).ok_or(Errno::EAGAIN)?;
                if let Some(stream) = self.stream_mut().filter(|_| !peeks) {
                    stream.oob_read = Some(end);
                }
                byte
            }
            (Some(byte), _) => byte,
            _ => return Err(Errno::EINVAL),
        };
        if let Some(stream) = self.stream_mut().filter(|_| !peeks) {
            stream.oob = None;
        }
        into.take(Bytes::copy_from_slice(&[byte]), Keep::Bytes);
        Ok(into.len)
    }

    /// Takes the urgent byte out of the stream if it is next: it waits for `MSG_OOB`.
    pub(super) fn set_urgent_aside(&mut self, shard: &mut Shard) {
        let Some((stream, snapshot)) = self.connection(shard) else { return };
        let Some((1, end)) = stream.mark(shard, &snapshot) else { return };
        if self.settings.oob_inline {
            return;
        }
        let Recv::Data(byte) = shard.recv_up_to(stream.handle, 1) else { return };
        if let Some(stream) = self.stream_mut().filter(|stream| stream.oob_read != Some(end)) {
            stream.oob = byte.first().copied();
        }
    }

    /// Drops the urgent byte after an ordinary `recv` beyond it, as on Linux.
    pub(super) fn pass_urgent(&mut self, taken: usize) {
        if let Some(stream) = self.stream_mut().filter(|_| taken > 0) {
            stream.oob = None;
        }
    }

    /// Events for urgent data as `poll` reports them, and the number of bytes that an ordinary
    /// `recv` would return.
    pub(super) fn look(
        &self,
        shard: &Shard,
        stream: &Stream,
        snapshot: &Snapshot,
    ) -> (PollEvents, u32) {
        let mark = stream.mark(shard, snapshot);
        let aside = mark.is_some_and(|(left, _)| left == 1) && !self.settings.oob_inline;
        let text = snapshot.unread.saturating_sub(u32::from(aside));
        let news = mark.is_some_and(|(_, end)| stream.oob_read != Some(end));
        let urgent = news || stream.oob.is_some();
        (if urgent { PollEvents::POLLPRI } else { PollEvents::NONE }, text)
    }

    /// Bytes that can be read before the urgent one, if that has arrived and is not in the stream.
    pub(super) fn before_urgent(&self, shard: &Shard, stream: &Stream, snapshot: &Snapshot) -> u32 {
        let apart = !self.settings.oob_inline;
        let mark = stream.mark(shard, snapshot);
        let mark = mark.filter(|(left, _)| apart && *left <= snapshot.unread);
        mark.map_or(snapshot.unread, |(left, _)| left - 1)
    }
}

impl Stream {
    /// Bytes to read up to the end of the urgent data (>= 1), and the number of that end.
    fn mark(&self, shard: &Shard, snapshot: &Snapshot) -> Option<(u32, SeqNum)> {
        let left = shard.urgent_mark(self.handle).filter(|left| *left > 0)?;
        Some((left, snapshot.rcv.nxt - snapshot.unread + left))
    }

    /// The byte `ahead` of the read position, if it has arrived.
    fn byte(&self, shard: &Shard, ahead: u32) -> Option<u8> {
        let mut ahead = ahead as usize;
        for piece in shard.peek(self.handle) {
            match piece.get(ahead) {
                Some(byte) => return Some(*byte),
                None => ahead -= piece.len(),
            }
        }
        None
    }
}
