//! Safe wrappers of system calls that the standard library does not have. With any arguments, the
//! kernel accesses only memory that was borrowed for the call. Types ensure this: options and
//! requests are closed enums where their values differ in size, and a descriptor has the kind that
//! a request needs.
//!
//! The standard library's types own or borrow descriptors, and read and write them. This module
//! adds eventfd(2), ppoll(2), socket(2), if_nametoindex(3), TUN ([`tun`]), sockets that preserve
//! message boundaries ([`seqpacket`]), connect within a time (`unix_stream`) or carry whole frames ([`packet`]), programs that run in the
//! kernel ([`bpf`]), the allocator's free memory ([`allocator`]), limits of this process
//! ([`limits`]), second signals ([`signal`]), child processes ([`process`]), network namespaces
//! ([`namespace`]), socket options by number ([`option`]), and errors of datagrams ([`error_queue`]).
#![allow(unsafe_code)]

pub(crate) mod allocator;
pub(crate) mod bpf;
pub(crate) mod error_queue;
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
#[cfg(feature = "control")]
pub(crate) mod unix_stream;

pub(crate) use bpf::pin_to;

use std::ffi::CStr;
use std::fs::File;
use std::io::{self, IoSlice, Read, Write};
use std::marker::PhantomData;
pub(crate) use std::os::fd::AsFd;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

use libc::c_int;

/// An eventfd: a counter in the kernel that can be waited for. Non-blocking.
#[derive(Debug)]
pub(crate) struct Event(File);

impl Event {
    /// Creates an eventfd whose count is zero.
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: eventfd takes no pointer.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        Ok(Self(File::from(own(fd)?)))
    }

    /// Adds to the count, which makes the descriptor readable.
    pub(crate) fn signal(&self) {
        // This fails only at the counter's maximum, where it is readable already.
        let _ = (&self.0).write(&1u64.to_ne_bytes());
    }

    /// Sets the count to zero, which makes the descriptor unreadable.
    pub(crate) fn clear(&self) {
        // This fails only if it is unreadable already.
        let _ = (&self.0).read(&mut [0; 8]);
    }
}

impl AsFd for Event {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Conditions to wait for. Errors always end a wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Interest {
    /// Data can be read.
    Read,
    /// Data can be read, or written.
    ReadWrite,
}

/// A descriptor to wait for. It is borrowed, so that it cannot be closed (and its number reused)
/// during the wait.
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

    /// True if data can be read.
    pub fn is_readable(&self) -> bool {
        self.raw.revents & libc::POLLIN != 0
    }

    /// True after an error or a hang-up.
    pub fn is_broken(&self) -> bool {
        self.raw.revents & (libc::POLLERR | libc::POLLHUP | libc::POLLNVAL) != 0
    }
}

/// Waits until one of `fds` is ready, or `timeout` has passed (`None`: no limit). Returns the
/// number of ready ones; a signal ends the wait early with 0.
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

/// Opens a netlink socket to the kernel's routing tables. Blocking: the kernel replies within the
/// request.
pub(crate) fn route_socket() -> io::Result<File> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
    Ok(File::from(socket(libc::AF_NETLINK, kind, libc::NETLINK_ROUTE)?))
}

/// Opens a netlink socket to the kernel's list of sockets. Blocking, as [`route_socket`].
pub(crate) fn diag_socket() -> io::Result<File> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
    Ok(File::from(socket(libc::AF_NETLINK, kind, libc::NETLINK_SOCK_DIAG)?))
}

/// Calls socket(2) with these numbers.
pub(crate) fn socket(domain: c_int, kind: c_int, protocol: c_int) -> io::Result<OwnedFd> {
    // SAFETY: socket takes no pointer.
    own(unsafe { libc::socket(domain, kind, protocol) })
}

/// Returns the number of the interface called `name`, in this thread's network namespace.
pub fn interface_index(name: &CStr) -> io::Result<u32> {
    // SAFETY: a `CStr` ends with a zero byte.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    if index == 0 { Err(io::Error::last_os_error()) } else { Ok(index) }
}

/// True if the interface called `name` is set to complete the checksums of what it sends (`ethtool
/// -k`: tx-checksumming), in this thread's network namespace.
pub(crate) fn leaves_checksums(name: &CStr) -> io::Result<bool> {
    let socket = socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0)?;
    // struct ethtool_value: the command, and the result.
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

/// Gives the calling thread, and those that it starts later, precedence over all threads that are
/// not real-time (SCHED_RR, lowest priority). Needs CAP_SYS_NICE.
pub fn run_in_real_time() -> io::Result<()> {
    let least = libc::sched_param { sched_priority: 1 };
    // SAFETY: the kernel reads one structure, which outlives the call; 0 is the calling thread.
    check(unsafe { libc::sched_setscheduler(0, libc::SCHED_RR, &raw const least) }).map(|_| ())
}

/// Returns a request of ioctl(2) about the interface called `name`.
fn interface_request(name: &CStr) -> libc::ifreq {
    // SAFETY: `ifreq` is a C structure of integers and arrays, for which zeroes are a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // The last byte stays zero, so the name is terminated.
    let room = request.ifr_name.len() - 1;
    for (place, byte) in request.ifr_name[..room].iter_mut().zip(name.to_bytes()) {
        *place = byte.cast_signed();
    }
    request
}

/// Calls sendmmsg(2) with messages of several slices each, and at most `seqpacket::MOST` messages.
/// Returns how many were taken, at least one.
fn send_messages(socket: BorrowedFd<'_>, messages: &[&[IoSlice<'_>]]) -> io::Result<usize> {
    // SAFETY: `mmsghdr` is a C structure of integers and pointers, for which zeroes are a value.
    let mut headers: [libc::mmsghdr; seqpacket::MOST] = unsafe { std::mem::zeroed() };
    let mut count = 0;
    for (header, slices) in headers.iter_mut().zip(messages) {
        // `IoSlice` is an `iovec` on Unix; the kernel only reads what it sends.
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
    // SAFETY: the descriptor is valid and was just created, so nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
