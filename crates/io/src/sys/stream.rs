//! Stream sockets of the kernel's, call by call: what the standard library hides behind its own
//! types, because here each call and each of its errors is the thing that is looked at.
//!
//! A call that is interrupted is not made again.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd, BorrowedFd, IntoRawFd, OwnedFd};

use libc::{c_int, c_short, c_void, socklen_t};
use whimbrel_posix::SocketOption;

use super::{check, own};

/// `struct sockaddr_in` or `sockaddr_in6`, as octets; of any other what had room, which is none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawAddress {
    octets: [u8; RawAddress::ROOM],
    /// Octets of it that count, [`RawAddress::ROOM`] at most.
    len: socklen_t,
}

impl RawAddress {
    /// The longer of the two.
    const ROOM: usize = 28;

    /// Nothing, to be filled by a call.
    const fn empty() -> Self {
        Self { octets: [0; Self::ROOM], len: Self::ROOM as socklen_t }
    }

    /// The address that a call filled in, if it is of one of the two families.
    pub(crate) fn to_std(self) -> Option<SocketAddr> {
        let octets = self.octets.get(..self.len as usize)?;
        let port = u16::from_be_bytes(*octets.get(2..)?.first_chunk()?);
        let ip = match i32::from(u16::from_ne_bytes(*octets.first_chunk()?)) {
            libc::AF_INET => IpAddr::from(*octets.get(4..)?.first_chunk::<4>()?),
            libc::AF_INET6 => IpAddr::from(*octets.get(8..)?.first_chunk::<16>()?),
            _ => return None,
        };
        Some(SocketAddr::new(ip, port))
    }

    fn pointer(&self) -> *const libc::sockaddr {
        (&raw const self.octets).cast()
    }
}

impl From<SocketAddr> for RawAddress {
    fn from(address: SocketAddr) -> Self {
        let mut raw = Self::empty();
        let (family, at, len, ip): (_, usize, _, &[u8]) = match address.ip() {
            IpAddr::V4(ip) => (libc::AF_INET, 4, 16, &ip.octets()),
            IpAddr::V6(ip) => (libc::AF_INET6, 8, 28, &ip.octets()),
        };
        raw.octets[..2].copy_from_slice(&(family as u16).to_ne_bytes());
        raw.octets[2..4].copy_from_slice(&address.port().to_be_bytes());
        raw.octets[at..at + ip.len()].copy_from_slice(ip);
        raw.len = len;
        raw
    }
}

/// Binds the socket to an address, as bind(2) does.
pub(crate) fn bind(fd: BorrowedFd<'_>, to: &RawAddress) -> io::Result<()> {
    // SAFETY: the pointer leads to at least `len` octets that outlive the call.
    check(unsafe { libc::bind(fd.as_raw_fd(), to.pointer(), to.len) }).map(|_| ())
}

/// Begins to connect, as connect(2) does.
pub(crate) fn connect(fd: BorrowedFd<'_>, to: &RawAddress) -> io::Result<()> {
    // SAFETY: the pointer leads to at least `len` octets that outlive the call.
    check(unsafe { libc::connect(fd.as_raw_fd(), to.pointer(), to.len) }).map(|_| ())
}

/// Begins to listen, as listen(2) does.
pub(crate) fn listen(fd: BorrowedFd<'_>, backlog: c_int) -> io::Result<()> {
    // SAFETY: listen takes no pointer.
    check(unsafe { libc::listen(fd.as_raw_fd(), backlog) }).map(|_| ())
}

/// The next connection that waits, and its peer, as accept4(2) has it.
pub(crate) fn accept(fd: BorrowedFd<'_>, flags: c_int) -> io::Result<(OwnedFd, RawAddress)> {
    let mut from = RawAddress::empty();
    let (place, len) = ((&raw mut from.octets).cast(), &raw mut from.len);
    // SAFETY: the kernel writes `len` octets at most, which are there, and then their number.
    let accepted = unsafe { libc::accept4(fd.as_raw_fd(), place, len, flags) };
    // That of the whole address, also of one that was cut: of a family that this is not made for.
    from.len = from.len.min(RawAddress::ROOM as socklen_t);
    Ok((own(accepted)?, from))
}

/// Ends a direction, as shutdown(2) does.
pub(crate) fn shutdown(fd: BorrowedFd<'_>, how: c_int) -> io::Result<()> {
    // SAFETY: shutdown takes no pointer.
    check(unsafe { libc::shutdown(fd.as_raw_fd(), how) }).map(|_| ())
}

/// close(2), which says what dropping the descriptor does not.
pub(crate) fn close(fd: OwnedFd) -> io::Result<()> {
    // SAFETY: the descriptor is owned, and from here on nobody's.
    check(unsafe { libc::close(fd.into_raw_fd()) }).map(|_| ())
}

/// Reads into several buffers, as readv(2) does.
pub(crate) fn readv(fd: BorrowedFd<'_>, buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
    let count = buffers.len() as c_int;
    // SAFETY: an `IoSliceMut` is an `iovec`, and `count` of them are lent exclusively.
    let read = unsafe { libc::readv(fd.as_raw_fd(), buffers.as_mut_ptr().cast(), count) };
    check_len(read)
}

/// Writes from several buffers, as writev(2) does.
pub(crate) fn writev(fd: BorrowedFd<'_>, buffers: &[IoSlice<'_>]) -> io::Result<usize> {
    let count = buffers.len() as c_int;
    // SAFETY: an `IoSlice` is an `iovec`, and `count` of them outlive the call.
    check_len(unsafe { libc::writev(fd.as_raw_fd(), buffers.as_ptr().cast(), count) })
}

/// recvmsg(2): octets and `msg_flags`. recv(2) and recvfrom(2) are the same to a stream.
pub(crate) fn recvmsg(
    fd: BorrowedFd<'_>,
    buffers: &mut [IoSliceMut<'_>],
    flags: c_int,
) -> io::Result<(usize, c_int)> {
    let mut message = empty_message();
    message.msg_iov = buffers.as_mut_ptr().cast();
    message.msg_iovlen = buffers.len();
    // SAFETY: the message leads to buffers that are lent exclusively, and to nothing else.
    let read = unsafe { libc::recvmsg(fd.as_raw_fd(), &raw mut message, flags) };
    Ok((check_len(read)?, message.msg_flags))
}

/// sendmsg(2). send(2) and sendto(2) are the same to a stream.
pub(crate) fn sendmsg(
    fd: BorrowedFd<'_>,
    buffers: &[IoSlice<'_>],
    to: Option<&RawAddress>,
    flags: c_int,
) -> io::Result<usize> {
    let mut message = empty_message();
    // The kernel reads what it is given to send.
    message.msg_iov = buffers.as_ptr().cast_mut().cast();
    message.msg_iovlen = buffers.len();
    if let Some(to) = to {
        message.msg_name = to.pointer().cast_mut().cast();
        message.msg_namelen = to.len;
    }
    // SAFETY: the message leads to buffers and perhaps an address that outlive the call.
    check_len(unsafe { libc::sendmsg(fd.as_raw_fd(), &raw const message, flags) })
}

/// getsockopt(2): the value, as octets.
pub(crate) fn getsockopt(fd: BorrowedFd<'_>, option: SocketOption) -> io::Result<Vec<u8>> {
    if option == SocketOption::ZeroCopyReceive {
        // It takes addresses, and puts pages of the kernel's there.
        return Err(io::Error::from_raw_os_error(libc::ENOPROTOOPT));
    }
    let mut value = vec![0; VALUE];
    let mut len = VALUE as socklen_t;
    let place = value.as_mut_ptr().cast::<c_void>();
    let (level, name) = (option.level(), option.number());
    // SAFETY: of all options of the type the kernel writes `len` octets at most, which are lent
    // exclusively. (There are others: SO_GET_FILTER takes `len` for a number of instructions.)
    check(unsafe { libc::getsockopt(fd.as_raw_fd(), level, name, place, &raw mut len) })?;
    value.truncate(len as usize);
    Ok(value)
}

/// setsockopt(2), of a value as octets.
pub(crate) fn setsockopt(fd: BorrowedFd<'_>, option: SocketOption, value: &[u8]) -> io::Result<()> {
    if option == SocketOption::ZeroCopy {
        // From then on the kernel might read what it was given to send when that is gone.
        return Err(io::Error::from_raw_os_error(libc::ENOPROTOOPT));
    }
    let (place, len) = (value.as_ptr().cast::<c_void>(), value.len() as socklen_t);
    let (level, name) = (option.level(), option.number());
    // SAFETY: the kernel reads `len` octets, which are there; of no option of the type do they lead
    // to others.
    check(unsafe { libc::setsockopt(fd.as_raw_fd(), level, name, place, len) }).map(|_| ())
}

/// The flags of the open file: fcntl(2), F_GETFL.
pub(crate) fn file_flags(fd: BorrowedFd<'_>) -> io::Result<c_int> {
    // SAFETY: F_GETFL takes no argument.
    check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_GETFL) })
}

/// Sets the flags of the open file: fcntl(2), F_SETFL.
pub(crate) fn set_file_flags(fd: BorrowedFd<'_>, flags: c_int) -> io::Result<()> {
    // SAFETY: F_SETFL takes its argument by value.
    check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETFL, flags) }).map(|_| ())
}

/// Those requests of ioctl(2) that answer a number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Question {
    /// Bytes that wait to be read: FIONREAD, SIOCINQ.
    Unread,
    /// Bytes that are not acknowledged: SIOCOUTQ.
    Unacknowledged,
    /// Bytes that are not sent: SIOCOUTQNSD.
    Unsent,
    /// Whether reading is at the urgent mark: SIOCATMARK.
    AtMark,
}

/// ioctl(2) with one of these requests.
pub(crate) fn ask(fd: BorrowedFd<'_>, question: Question) -> io::Result<c_int> {
    let request = match question {
        Question::Unread => libc::FIONREAD,
        Question::Unacknowledged => libc::TIOCOUTQ,
        Question::Unsent => SIOCOUTQNSD,
        Question::AtMark => SIOCATMARK,
    };
    let mut number: c_int = 0;
    // SAFETY: each of the requests writes one `int`, which is lent exclusively.
    check(unsafe { libc::ioctl(fd.as_raw_fd(), request, &raw mut number) })?;
    Ok(number)
}

/// One of poll(2)'s descriptors: what is asked, and what is so.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Polled<'a> {
    /// The descriptor that is asked about.
    pub(crate) whom: Whom<'a>,
    /// The events that are asked about.
    pub(crate) events: c_short,
    /// The events that were found.
    pub(crate) revents: c_short,
}

/// What a place of poll(2)'s list stands for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Whom<'a> {
    /// The descriptor that is asked about.
    Descriptor(BorrowedFd<'a>),
    /// A number that is none: answered by POLLNVAL.
    Nobody,
    /// A negative number, which is passed over.
    Ignored,
}

/// Waits until something is ready, so many milliseconds at most, as poll(2) does.
pub(crate) fn poll(fds: &mut [Polled<'_>], milliseconds: c_int) -> io::Result<usize> {
    let raw = |polled: &Polled<'_>| {
        let fd = match polled.whom {
            Whom::Descriptor(fd) => fd.as_raw_fd(),
            // No process has as many.
            Whom::Nobody => c_int::MAX,
            Whom::Ignored => -1,
        };
        libc::pollfd { fd, events: polled.events, revents: 0 }
    };
    let mut raws: Vec<_> = fds.iter().map(raw).collect();
    let count = raws.len() as libc::nfds_t;
    // SAFETY: the pointer leads to `count` structures that are lent exclusively.
    let ready = check(unsafe { libc::poll(raws.as_mut_ptr(), count, milliseconds) })?;
    for (polled, raw) in fds.iter_mut().zip(raws) {
        polled.revents = raw.revents;
    }
    Ok(ready.unsigned_abs() as usize)
}

/// A set of descriptors to be watched, as epoll_create1(2) makes it.
pub(crate) fn epoll_create() -> io::Result<OwnedFd> {
    // SAFETY: epoll_create1 takes no pointer.
    own(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })
}

/// Changes what is watched, as epoll_ctl(2) does.
pub(crate) fn epoll_ctl(
    epoll: BorrowedFd<'_>,
    op: c_int,
    fd: BorrowedFd<'_>,
    events: u32,
    data: u64,
) -> io::Result<()> {
    let mut event = libc::epoll_event { events, u64: data };
    let place = &raw mut event;
    // SAFETY: the kernel reads one structure, which outlives the call.
    check(unsafe { libc::epoll_ctl(epoll.as_raw_fd(), op, fd.as_raw_fd(), place) }).map(|_| ())
}

/// epoll_wait(2), milliseconds: events and data of up to `most`, and of no more than 4,096.
pub(crate) fn epoll_wait(
    epoll: BorrowedFd<'_>,
    most: u32,
    milliseconds: c_int,
) -> io::Result<Vec<(u32, u64)>> {
    // As the kernel has it: of a room of so many octets nobody can have two.
    if most as usize > c_int::MAX as usize / size_of::<libc::epoll_event>() {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    let most = most.min(EVENTS);
    let mut events = vec![libc::epoll_event { events: 0, u64: 0 }; most as usize];
    let (place, most) = (events.as_mut_ptr(), most as c_int);
    // SAFETY: the kernel writes `most` structures at most, which are lent exclusively.
    let ready = unsafe { libc::epoll_wait(epoll.as_raw_fd(), place, most, milliseconds) };
    events.truncate(check(ready)?.unsigned_abs() as usize);
    Ok(events.into_iter().map(|event| (event.events, event.u64)).collect())
}

fn empty_message() -> libc::msghdr {
    // SAFETY: `msghdr` is a C structure of integers and pointers, for which zeroes are a value.
    unsafe { std::mem::zeroed() }
}

fn check_len(result: isize) -> io::Result<usize> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result.unsigned_abs()) }
}

/// More than any option's value here, also in kernels to come.
const VALUE: usize = 1024;
/// Events that one call tells of.
const EVENTS: u32 = 4_096;
// From linux/sockios.h and asm-generic/sockios.h.
const SIOCOUTQNSD: libc::Ioctl = 0x894b;
const SIOCATMARK: libc::Ioctl = 0x8905;

#[cfg(test)]
mod tests;
