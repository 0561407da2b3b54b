//! getsockopt(2) and setsockopt(2) for options whose values are plain bytes, and the requests of
//! ioctl(2) about a socket that return a number.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use libc::c_int;

use super::check;

/// An option whose value is plain bytes: the kernel treats none of them as an address, and counts
/// them as bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PlainOption {
    level: c_int,
    number: c_int,
}

impl PlainOption {
    /// Returns the option of this level and number (socket(7), ip(7), ipv6(7), tcp(7), udp(7)).
    /// `None` for filters, tables and mapped pages, whose values contain addresses, and for unknown
    /// options.
    pub const fn new(level: i32, number: i32) -> Option<Self> {
        let is_plain = match level {
            // A filter is attached by a pointer, and read by the number of its instructions.
            libc::SOL_SOCKET => {
                number != libc::SO_ATTACH_FILTER
                    && number != libc::SO_ATTACH_REUSEPORT_CBPF
                    && number <= libc::SO_ZEROCOPY
            }
            libc::IPPROTO_TCP => number != libc::TCP_ZEROCOPY_RECEIVE && number <= TCP_TX_DELAY,
            // Behind these are groups, which may be lists, and from 64 on the tables of netfilter.
            libc::IPPROTO_IP => number <= libc::IP_BIND_ADDRESS_NO_PORT,
            libc::IPPROTO_IPV6 => number <= libc::IPV6_V6ONLY || number == libc::IPV6_TCLASS,
            libc::IPPROTO_UDP => number == libc::UDP_SEGMENT,
            _ => false,
        };
        if is_plain && number >= 0 { Some(Self { level, number }) } else { None }
    }
}

/// Returns the value of an option, as getsockopt(2) does: the front of `place`. An older kernel may
/// return fewer bytes.
pub fn get(socket: BorrowedFd<'_>, option: PlainOption, place: &mut [u8]) -> io::Result<usize> {
    let mut len = place.len() as libc::socklen_t;
    let PlainOption { level, number } = option;
    let pointer = place.as_mut_ptr().cast();
    // SAFETY: of an option of the type the kernel writes `len` bytes at most, which are lent exclusively.
    check(unsafe { libc::getsockopt(socket.as_raw_fd(), level, number, pointer, &raw mut len) })?;
    Ok((len as usize).min(place.len()))
}

/// Sets an option, as setsockopt(2) does. `SO_ZEROCOPY` is refused with `ENOPROTOOPT`.
pub fn set(socket: BorrowedFd<'_>, option: PlainOption, value: &[u8]) -> io::Result<()> {
    let PlainOption { level, number } = option;
    if (level, number) == (libc::SOL_SOCKET, libc::SO_ZEROCOPY) {
        // The kernel could read a buffer after the call that lent it.
        return Err(io::Error::from_raw_os_error(libc::ENOPROTOOPT));
    }
    let (pointer, len) = (value.as_ptr().cast(), value.len() as libc::socklen_t);
    // SAFETY: the kernel reads the `len` bytes of `value`, which hold no address in options of this type.
    check(unsafe { libc::setsockopt(socket.as_raw_fd(), level, number, pointer, len) }).map(drop)
}

/// Requests of ioctl(2) about a socket that return a number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SocketRequest {
    /// Bytes that can be read: FIONREAD, SIOCINQ.
    Unread,
    /// Bytes sent and not acknowledged: SIOCOUTQ.
    Unacknowledged,
    /// Bytes not sent: SIOCOUTQNSD.
    Unsent,
    /// Tells whether reading is at the urgent mark: SIOCATMARK.
    AtMark,
}

/// Calls ioctl(2) with one of these requests.
pub fn request_number(socket: BorrowedFd<'_>, question: SocketRequest) -> io::Result<i32> {
    let request = match question {
        SocketRequest::Unread => libc::FIONREAD,
        SocketRequest::Unacknowledged => libc::TIOCOUTQ,
        SocketRequest::Unsent => SIOCOUTQNSD,
        SocketRequest::AtMark => SIOCATMARK,
    };
    let mut number: c_int = 0;
    // SAFETY: each of the requests writes one `int`, which is lent exclusively.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), request, &raw mut number) })?;
    Ok(number)
}

// From linux/tcp.h, linux/sockios.h and asm-generic/sockios.h.
const TCP_TX_DELAY: c_int = 37;
const SIOCOUTQNSD: libc::Ioctl = 0x894b;
const SIOCATMARK: libc::Ioctl = 0x8905;
