//! AF_UNIX sockets of type SOCK_SEQPACKET: connected, in order, and each message whole.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use libc::{c_int, c_uint};

use super::{check, own, send_messages};

/// A connected, non-blocking socket that preserves message boundaries.
#[derive(Debug)]
pub(crate) struct SeqPacket(OwnedFd);

/// The size of a received message, and whether it was whole.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Received {
    /// Length in bytes, more than its place if it was truncated. 0 from a socket whose peer is
    /// gone.
    pub(crate) len: usize,
}

impl SeqPacket {
    /// Creates a socket without a peer.
    pub(crate) fn new() -> io::Result<Self> {
        let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: socket takes no pointer.
        Ok(Self(own(unsafe { libc::socket(libc::AF_UNIX, kind, 0) })?))
    }

    /// Connects to the process that listens at `path`.
    pub(crate) fn connect(&self, path: &Path) -> io::Result<()> {
        let (address, len) = address(path)?;
        // SAFETY: the address outlives the call, and `len` bytes of it are its own.
        let result = unsafe { libc::connect(self.0.as_raw_fd(), (&raw const address).cast(), len) };
        check(result).map(|_| ())
    }

    /// Creates a socket file at `path` and listens there, with up to `backlog` waiting connections.
    pub(crate) fn listen(&self, path: &Path, backlog: c_int) -> io::Result<()> {
        let (address, len) = address(path)?;
        // SAFETY: the address outlives the call, and `len` bytes of it are its own.
        let result = unsafe { libc::bind(self.0.as_raw_fd(), (&raw const address).cast(), len) };
        check(result)?;
        // SAFETY: listen takes no pointer.
        check(unsafe { libc::listen(self.0.as_raw_fd(), backlog) }).map(|_| ())
    }

    /// Accepts the next connection.
    pub(crate) fn accept(&self) -> io::Result<Self> {
        let flags = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: with null pointers, accept4 writes no address.
        let fd = unsafe {
            let nowhere = std::ptr::null_mut();
            libc::accept4(self.0.as_raw_fd(), nowhere, std::ptr::null_mut(), flags)
        };
        Ok(Self(own(fd)?))
    }

    /// Sends messages, each of several slices and at most [`MOST`] of them. Returns how many were
    /// taken, at least one.
    pub(crate) fn send(&self, messages: &[&[IoSlice<'_>]]) -> io::Result<usize> {
        send_messages(self.0.as_fd(), messages)
    }

    /// Receives up to `received.len()` messages, at most [`MOST`], into `arena`: the first into its
    /// first `place` bytes, and so on. Returns their number, at least one.
    pub(crate) fn receive(
        &self,
        arena: &mut [u8],
        place: usize,
        received: &mut [Received],
    ) -> io::Result<usize> {
        // SAFETY: `iovec` and `mmsghdr` are C structures of integers and pointers, for which zeroes
        // are a value.
        let (mut slices, mut headers): ([libc::iovec; MOST], [libc::mmsghdr; MOST]) =
            unsafe { std::mem::zeroed() };
        let mut count: c_uint = 0;
        let places = arena.chunks_exact_mut(place.max(1)).take(received.len());
        for ((header, slice), bytes) in headers.iter_mut().zip(&mut slices).zip(places) {
            slice.iov_base = bytes.as_mut_ptr().cast();
            slice.iov_len = bytes.len();
            header.msg_hdr.msg_iov = slice;
            header.msg_hdr.msg_iovlen = 1;
            count += 1;
        }
        // With MSG_TRUNC the length returned is the message's own, even if it was truncated.
        let flags = libc::MSG_DONTWAIT | libc::MSG_TRUNC;
        let nowhen = std::ptr::null_mut();
        // SAFETY: the first `count` headers lead to slices of their own, these to places of `arena`
        // that do not overlap and are lent exclusively; the time-out may be null.
        let taken = unsafe {
            libc::recvmmsg(self.0.as_raw_fd(), headers.as_mut_ptr(), count, flags, nowhen)
        };
        let taken = check(taken)?.unsigned_abs() as usize;
        for (received, header) in received.iter_mut().zip(&headers).take(taken) {
            received.len = header.msg_len as usize;
        }
        Ok(taken)
    }
}

impl AsFd for SeqPacket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

pub(super) fn address(path: &Path) -> io::Result<(libc::sockaddr_un, libc::socklen_t)> {
    // SAFETY: `sockaddr_un` is a C structure of integers, for which zeroes are a value.
    let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    let bytes = path.as_os_str().as_bytes();
    // The last byte stays zero, so the path is terminated.
    if bytes.len() >= address.sun_path.len() || bytes.contains(&0) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (place, byte) in address.sun_path.iter_mut().zip(bytes) {
        *place = byte.cast_signed();
    }
    Ok((address, size_of::<libc::sockaddr_un>() as libc::socklen_t))
}

/// Limit of messages in one call.
pub(crate) const MOST: usize = 64;
