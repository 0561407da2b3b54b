//! The system calls that the standard library does not have, each behind a safe wrapper: whatever a
//! caller passes, the kernel reads and writes what was lent for it, and nothing else. What a call needs
//! for that it takes by types: options and requests are closed enums where their values differ in size,
//! and a descriptor is of the kind that the request is for.
//!
//! Descriptors are owned or borrowed by the standard library's types, reading and writing is its
//! too; what is left are eventfd(2), ppoll(2), socket(2), if_nametoindex(3), TUN ([`tun`]),
//! sockets that keep the bounds of messages ([`seqpacket`]) or carry whole frames ([`packet`]), programs
//! that run in the kernel ([`bpf`]),
//! the allocator's free memory ([`allocator`]), bounds of this process ([`limits`]), second signals ([`signal`]),
//! what children live by ([`process`]), network namespaces ([`namespace`]), and options of sockets by their numbers
//! ([`option`]).
#![allow(unsafe_code)]

pub(crate) mod allocator;
pub(crate) mod bpf;
pub(crate) mod limits;
pub(crate) mod namespace;
pub(crate) mod option;
pub(crate) mod packet;
pub(crate) mod process;
pub(crate) mod ring;
pub(crate) mod seqpacket;
#[cfg(feature = "signals")]
pub(crate) mod signal;
pub(crate) mod tun;

pub(crate) use bpf::pin_to;

use std::ffi::CStr;
use std::fs::File;
use std::io::{self, IoSlice, Read, Write};
use std::marker::PhantomData;
pub(crate) use std::os::fd::AsFd;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

use libc::c_int;

/// A counter in the kernel that can be waited on. Non-blocking.
#[derive(Debug)]
pub(crate) struct Event(File);

impl Event {
    /// An eventfd whose count is zero.
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: eventfd takes no pointer.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        Ok(Self(File::from(own(fd)?)))
    }

    /// Adds to its count, so that it can be read.
    pub(crate) fn signal(&self) {
        // Fails only when the counter is at its end, and it is readable then.
        let _ = (&self.0).write(&1u64.to_ne_bytes());
    }

    /// Sets its count to zero, so that it cannot be read.
    pub(crate) fn clear(&self) {
        // Fails only when it is unreadable already.
        let _ = (&self.0).read(&mut [0; 8]);
    }
}

impl AsFd for Event {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// What to wait for; errors are always waited for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Interest {
    /// There is something to be read.
    Read,
    /// There is something to be read, or room to write.
    ReadWrite,
}

/// A descriptor to wait on. It is borrowed, so it cannot be closed (and its number taken by
/// another) while somebody waits.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct PollFd<'a> {
    raw: libc::pollfd,
    lent: PhantomData<BorrowedFd<'a>>,
}

impl<'a> PollFd<'a> {
    /// Waits on `fd` for `interest`.
    pub fn new(fd: &'a impl AsFd, interest: Interest) -> Self {
        let events = match interest {
            Interest::Read => libc::POLLIN,
            Interest::ReadWrite => libc::POLLIN | libc::POLLOUT,
        };
        let fd = fd.as_fd().as_raw_fd();
        Self { raw: libc::pollfd { fd, events, revents: 0 }, lent: PhantomData }
    }

    /// Whether something can be read.
    pub fn is_readable(&self) -> bool {
        self.raw.revents & libc::POLLIN != 0
    }

    /// Whether it erred or hung up.
    pub fn is_broken(&self) -> bool {
        self.raw.revents & (libc::POLLERR | libc::POLLHUP | libc::POLLNVAL) != 0
    }
}

/// Waits until one of `fds` is ready, or `timeout` is over (`None`: for ever). Returns how many are
/// ready; a signal ends it early with 0.
pub fn ppoll(fds: &mut [PollFd<'_>], timeout: Option<Duration>) -> io::Result<usize> {
    let timeout = timeout.map(|timeout| libc::timespec {
        tv_sec: libc::time_t::try_from(timeout.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_nsec: timeout.subsec_nanos().into(),
    });
    let timeout = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    let count = fds.len() as libc::nfds_t;
    // SAFETY: `PollFd` is a transparent `pollfd`, so the pointer leads to `count` of them, lent
    // exclusively; the time-out is null or leads to a value that outlives the call.
    let ready = unsafe { libc::ppoll(fds.as_mut_ptr().cast(), count, timeout, std::ptr::null()) };
    match check(ready) {
        Ok(ready) => Ok(ready.unsigned_abs() as usize),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(0),
        Err(error) => Err(error),
    }
}

/// A socket to the kernel's routing tables. Blocking: the kernel answers within the request.
pub(crate) fn route_socket() -> io::Result<File> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
    Ok(File::from(socket(libc::AF_NETLINK, kind, libc::NETLINK_ROUTE)?))
}

/// A socket to what the kernel says of its sockets. Blocking, as [`route_socket`].
pub(crate) fn diag_socket() -> io::Result<File> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
    Ok(File::from(socket(libc::AF_NETLINK, kind, libc::NETLINK_SOCK_DIAG)?))
}

/// A socket, as socket(2) makes it of these numbers.
pub(crate) fn socket(domain: c_int, kind: c_int, protocol: c_int) -> io::Result<OwnedFd> {
    // SAFETY: socket takes no pointer.
    own(unsafe { libc::socket(domain, kind, protocol) })
}

/// The number of the interface called `name`, in this thread's network namespace.
pub fn interface_index(name: &CStr) -> io::Result<u32> {
    // SAFETY: a `CStr` ends with a zero byte.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    if index == 0 { Err(io::Error::last_os_error()) } else { Ok(index) }
}

/// Whether the interface called `name` is asked to complete the checksums of what it sends
/// (`ethtool -k`: tx-checksumming), in this thread's network namespace.
pub(crate) fn leaves_checksums(name: &CStr) -> io::Result<bool> {
    let socket = socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0)?;
    // struct ethtool_value: what is asked, and the answer.
    let mut value: [u32; 2] = [ETHTOOL_GTXCSUM, 0];
    let mut request = interface_request(name);
    request.ifr_ifru.ifru_data = value.as_mut_ptr().cast();
    // SAFETY: SIOCETHTOOL reads one `ifreq`, and reads and writes the two numbers that it leads to;
    // both are lent exclusively.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL, &raw mut request) })?;
    Ok(value[1] != 0)
}

/// The commands of SIOCETHTOOL, from linux/ethtool.h.
const ETHTOOL_GTXCSUM: u32 = 0x16;

/// Lets the calling thread, and those that it starts from now on, run before all that is not
/// real-time (SCHED_RR, the least of its priorities). Needs CAP_SYS_NICE.
pub fn run_in_real_time() -> io::Result<()> {
    let least = libc::sched_param { sched_priority: 1 };
    // SAFETY: the kernel reads one structure, which outlives the call; 0 is the calling thread.
    check(unsafe { libc::sched_setscheduler(0, libc::SCHED_RR, &raw const least) }).map(|_| ())
}

/// A request of ioctl(2) about the interface called `name`.
fn interface_request(name: &CStr) -> libc::ifreq {
    // SAFETY: `ifreq` is a C structure of integers and arrays, for which zeroes are a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // One place stays zero, so the name is terminated.
    let room = request.ifr_name.len() - 1;
    for (place, octet) in request.ifr_name[..room].iter_mut().zip(name.to_bytes()) {
        *place = octet.cast_signed();
    }
    request
}

/// sendmmsg(2): sends messages, each of several slices, and none of more than `seqpacket::MOST`.
/// Returns how many were taken: one at least.
fn send_messages(socket: BorrowedFd<'_>, messages: &[&[IoSlice<'_>]]) -> io::Result<usize> {
    // SAFETY: `mmsghdr` is a C structure of integers and pointers, for which zeroes are a value.
    let mut headers: [libc::mmsghdr; seqpacket::MOST] = unsafe { std::mem::zeroed() };
    let mut count = 0;
    for (header, slices) in headers.iter_mut().zip(messages) {
        // `IoSlice` is an `iovec` on Unix; the kernel reads what it is given to send.
        header.msg_hdr.msg_iov = slices.as_ptr().cast_mut().cast();
        header.msg_hdr.msg_iovlen = slices.len();
        count += 1;
    }
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: the first `count` headers lead to slices that are borrowed beyond the call.
    let sent = unsafe { libc::sendmmsg(socket.as_raw_fd(), headers.as_mut_ptr(), count, flags) };
    check(sent).map(|sent| sent.unsigned_abs() as usize)
}

fn check(result: c_int) -> io::Result<c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

fn own(fd: c_int) -> io::Result<OwnedFd> {
    let fd = check(fd)?;
    // SAFETY: the descriptor is valid, it was made just now, and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
