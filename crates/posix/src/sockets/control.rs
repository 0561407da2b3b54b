//! `fcntl`, `ioctl`, and the names of both ends.

use whimbrel_tcp::conn::State;
use whimbrel_wire::Endpoint;

use super::readiness::{is_opening, is_over};
use super::{Sockets, file_flags};
use crate::descriptor::File;
use crate::socket::{Blocking, Phase};
use crate::{Errno, Fd, FileFlags};

/// What `fcntl` is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fcntl {
    /// The flags of the open file: `F_GETFL`.
    GetFl,
    /// Sets the flags of the open file that can change: `F_SETFL`.
    SetFl(FileFlags),
}

impl Fcntl {
    /// Linux' number of `F_GETFL`.
    pub const GETFL: i32 = 3;
    /// Linux' number of `F_SETFL`.
    pub const SETFL: i32 = 4;
}

c_enum! {
    /// What `ioctl` is asked for: each answers a number.
    Ioctl {
        /// Bytes that can be read.
        Fionread = 0x541b, "FIONREAD";
        /// Bytes that wait to be read, by Linux' other name for it.
        Inq = 0x541b, "SIOCINQ";
        /// Numbers sent and not acknowledged, bytes to be sent included.
        Outq = 0x5411, "SIOCOUTQ";
        /// Bytes that were not sent yet.
        OutqUnsent = 0x894b, "SIOCOUTQNSD";
        /// Whether the next byte of the stream is the urgent one (`sockatmark`).
        AtMark = 0x8905, "SIOCATMARK";
    }
}

impl Sockets {
    /// `fcntl(2)`. Of the flags only `O_NONBLOCK` can be set; the access mode is ignored, others
    /// are refused.
    pub fn fcntl(&mut self, fd: Fd, command: Fcntl) -> Result<FileFlags, Errno> {
        if let File::Epoll(_) = self.files.get(fd)? {
            return match command {
                Fcntl::GetFl => Ok(FileFlags::O_RDWR),
                Fcntl::SetFl(_) => Err(Errno::EINVAL),
            };
        }
        let blocking = match self.files.get_mut(fd)? {
            File::Datagrams(socket) => &mut socket.blocking,
            _ => &mut self.get_mut(fd)?.blocking,
        };
        if let Fcntl::SetFl(flags) = command {
            let ignored = FileFlags::O_WRONLY | FileFlags::O_RDWR;
            if !flags.without(ignored | FileFlags::O_NONBLOCK).is_empty() {
                return Err(Errno::EINVAL);
            }
            let nonblocking = flags.has(FileFlags::O_NONBLOCK);
            *blocking = if nonblocking { Blocking::No } else { Blocking::Yes };
            return Ok(FileFlags::NONE);
        }
        Ok(file_flags(*blocking))
    }

    /// Answers a question about a stream, as `ioctl(2)` does: ENOTTY for what is none about sockets.
    pub fn ioctl(&self, fd: Fd, request: Ioctl) -> Result<i32, Errno> {
        if let File::Epoll(_) = self.files.get(fd)? {
            return Err(Errno::ENOTTY);
        }
        if self.is_datagrams(fd) {
            return match request {
                Ioctl::Fionread | Ioctl::Inq => self.next_datagram_len(fd),
                _ => Err(Errno::ENOTTY),
            };
        }
        if let Phase::Listening(_) = self.get(fd)?.phase {
            return Err(Errno::EINVAL);
        }
        let connection = self.connection(fd)?.filter(|(_, it)| !is_opening(it));
        let Some((stream, snapshot)) = connection else { return Ok(0) };
        let bytes = match request {
            Ioctl::Fionread | Ioctl::Inq => self.before_urgent(fd, &stream, &snapshot)?,
            Ioctl::Outq => snapshot.send_queued + u32::from(snapshot.fin_unacked),
            Ioctl::OutqUnsent => snapshot.unsent,
            Ioctl::AtMark => u32::from(self.shard.urgent_mark(stream.handle) == Some(1)),
        };
        Ok(i32::try_from(bytes).unwrap_or(i32::MAX))
    }

    /// `getsockname(2)`: unspecified, port 0, before the socket is bound.
    pub fn getsockname(&self, fd: Fd) -> Result<Endpoint, Errno> {
        if self.is_datagrams(fd) {
            return self.datagrams_name(fd);
        }
        let socket = self.get(fd)?;
        let flow = socket.stream().and_then(|stream| self.shard.flow(stream.handle));
        let unbound = Endpoint::new(socket.domain.unspecified(), 0);
        Ok(flow.map(|flow| flow.local).or(socket.local).unwrap_or(unbound))
    }

    /// `getpeername(2)`: while there is a connection.
    pub fn getpeername(&self, fd: Fd) -> Result<Endpoint, Errno> {
        if self.is_datagrams(fd) {
            return self.datagrams_peer(fd);
        }
        let connected =
            |state: &whimbrel_tcp::conn::Snapshot| state.state != State::SynSent && !is_over(state);
        let connection = self.connection(fd)?.filter(|(_, snapshot)| connected(snapshot));
        let flow = connection.and_then(|(stream, _)| self.shard.flow(stream.handle));
        flow.map(|flow| flow.remote).ok_or(Errno::ENOTCONN)
    }
}
