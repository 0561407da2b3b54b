//! Calls that never block.

use whimbrel_posix::{EpollReport, Errno, Fcntl, Fd, FileFlags, Sockets};

use super::blocked::failure;
use crate::call::{Call, Filled, Returned};

/// Makes a call. Returns `EINVAL` for those that may block.
pub(super) fn make(sockets: &mut Sockets, call: Call) -> Returned {
    attempt(sockets, call).unwrap_or_else(failure)
}

fn attempt(sockets: &mut Sockets, call: Call) -> Result<Returned, Errno> {
    match call {
        Call::Socket { domain, kind, flags, protocol } => {
            sockets.socket(domain, kind, flags, protocol).map(descriptor)
        }
        Call::Bind { fd, to } => sockets.bind(Fd(fd), to).map(zero),
        Call::Listen { fd, backlog } => sockets.listen(Fd(fd), backlog).map(zero),
        Call::Shutdown { fd, how } => sockets.shutdown(Fd(fd), how).map(zero),
        Call::EpollCreate => sockets.epoll_create().map(descriptor),
        Call::EpollCtl { epoll, op, fd, events, data } => {
            let watch = EpollReport { events, data };
            sockets.epoll_ctl(Fd(epoll), op, Fd(fd), watch).map(zero)
        }
        Call::FcntlGetFl { fd } => sockets.fcntl(Fd(fd), Fcntl::GetFl).map(flags),
        Call::FcntlSetFl { fd, flags: wanted } => {
            sockets.fcntl(Fd(fd), Fcntl::SetFl(wanted)).map(flags)
        }
        Call::Ioctl { fd, request } => {
            sockets.ioctl(Fd(fd), request).map(|number| returned(0, Filled::Number(number)))
        }
        Call::GetSockOpt { fd, option } => {
            sockets.getsockopt(Fd(fd), option).map(|value| returned(0, Filled::Option(value)))
        }
        Call::SetSockOpt { fd, option, value } => {
            sockets.setsockopt(Fd(fd), option, &value).map(zero)
        }
        Call::Accept { .. }
        | Call::Connect { .. }
        | Call::Close { .. }
        | Call::Receive { .. }
        | Call::Send { .. }
        | Call::Poll { .. }
        | Call::EpollWait { .. } => Err(Errno::EINVAL),
    }
}

fn returned(value: i64, out: Filled) -> Returned {
    Returned { value: Ok(value), out }
}

fn zero((): ()) -> Returned {
    returned(0, Filled::Nothing)
}

fn descriptor(fd: Fd) -> Returned {
    returned(i64::from(fd.0), Filled::Nothing)
}

fn flags(flags: FileFlags) -> Returned {
    returned(i64::from(flags.bits()), Filled::Nothing)
}
