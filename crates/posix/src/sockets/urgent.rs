//! Urgent data by Linux' rules: of what the peer marks, the last byte is urgent, and an ordinary
//! `recv` passes it over unless `SO_OOBINLINE` is set. Beneath, all of it stays in the stream
//! (RFC 6093).

use bytes::Bytes;
use whimbrel_stack::Recv;
use whimbrel_tcp::conn::Snapshot;
use whimbrel_wire::SeqNum;

use super::Sockets;
use crate::socket::{Phase, Socket, Stream};
use crate::transfer::Keep;
use crate::{Errno, Fd, Incoming, MsgFlags, PollEvents};

impl Sockets {
    /// `recv` with `MSG_OOB`: the urgent byte, once. `EINVAL` if there is none, or if it is in the
    /// stream; `EAGAIN` if it was announced and is not here yet. It never blocks.
    pub(super) fn recv_urgent(
        &mut self,
        fd: Fd,
        into: &mut Incoming,
        flags: MsgFlags,
    ) -> Result<usize, Errno> {
        let inline = self.get(fd)?.settings.oob_inline;
        let Some((stream, snapshot)) = self.connection(fd)? else {
            let listens = matches!(self.get(fd)?.phase, Phase::Listening(_));
            return Err(if listens { Errno::ENOTCONN } else { Errno::EINVAL });
        };
        if inline {
            return Err(Errno::EINVAL);
        }
        let peeks = flags.has(MsgFlags::MSG_PEEK);
        let byte = match (stream.oob, self.mark(&stream, &snapshot)) {
            (_, Some((left, end))) if stream.oob_read != Some(end) => {
                let byte = self.byte(&stream, left - 1).ok_or(Errno::EAGAIN)?;
                if let Some(stream) = self.stream_mut(fd).filter(|_| !peeks) {
                    stream.oob_read = Some(end);
                }
                byte
            }
            (Some(byte), _) => byte,
            _ => return Err(Errno::EINVAL),
        };
        if let Some(stream) = self.stream_mut(fd).filter(|_| !peeks) {
            stream.oob = None;
        }
        into.take(Bytes::copy_from_slice(&[byte]), Keep::Octets);
        Ok(into.len)
    }

    /// Takes the urgent byte out of the stream if it is the next: it waits for `MSG_OOB`.
    pub(super) fn set_urgent_aside(&mut self, fd: Fd) {
        let Ok(Some((stream, snapshot))) = self.connection(fd) else { return };
        let Some((1, end)) = self.mark(&stream, &snapshot) else { return };
        if self.get(fd).is_ok_and(|socket| socket.settings.oob_inline) {
            return;
        }
        let Recv::Data(byte) = self.shard.recv_up_to(stream.handle, 1) else { return };
        if let Some(stream) = self.stream_mut(fd).filter(|stream| stream.oob_read != Some(end)) {
            stream.oob = byte.first().copied();
        }
    }

    /// An ordinary `recv` took bytes from behind the urgent one that stands aside: that is gone, as it
    /// is on Linux.
    pub(super) fn pass_urgent(&mut self, fd: Fd, taken: usize) {
        if let Some(stream) = self.stream_mut(fd).filter(|_| taken > 0) {
            stream.oob = None;
        }
    }

    /// What `poll` says of urgent data, and how many bytes an ordinary `recv` would get.
    pub(super) fn look(
        &self,
        socket: &Socket,
        stream: &Stream,
        snapshot: &Snapshot,
    ) -> (PollEvents, u32) {
        let mark = self.mark(stream, snapshot);
        let aside = mark.is_some_and(|(left, _)| left == 1) && !socket.settings.oob_inline;
        let text = snapshot.unread.saturating_sub(u32::from(aside));
        let news = mark.is_some_and(|(_, end)| stream.oob_read != Some(end));
        let urgent = news || stream.oob.is_some();
        (if urgent { PollEvents::POLLPRI } else { PollEvents::NONE }, text)
    }

    /// Bytes that can be read in front of the urgent one, if that is there and set apart.
    pub(super) fn before_urgent(
        &self,
        fd: Fd,
        stream: &Stream,
        snapshot: &Snapshot,
    ) -> Result<u32, Errno> {
        let apart = !self.get(fd)?.settings.oob_inline;
        let mark =
            self.mark(stream, snapshot).filter(|(left, _)| apart && *left <= snapshot.unread);
        Ok(mark.map_or(snapshot.unread, |(left, _)| left - 1))
    }

    /// Bytes to be read up to the end of the urgent data (>= 1), and where they end.
    fn mark(&self, stream: &Stream, snapshot: &Snapshot) -> Option<(u32, SeqNum)> {
        let left = self.shard.urgent_mark(stream.handle).filter(|left| *left > 0)?;
        Some((left, snapshot.rcv.nxt - snapshot.unread + left))
    }

    /// The byte that stands so far in front of what was read, if it is here.
    fn byte(&self, stream: &Stream, ahead: u32) -> Option<u8> {
        let mut ahead = ahead as usize;
        for piece in self.shard.peek(stream.handle) {
            match piece.get(ahead) {
                Some(byte) => return Some(*byte),
                None => ahead -= piece.len(),
            }
        }
        None
    }
}
