//! The error queue of a datagram socket (ip(7), `IP_RECVERR`): which datagram could not be delivered, and
//! why.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd, BorrowedFd};

use super::check;

/// An error about a datagram that was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct QueuedError {
    /// Destination of the datagram.
    pub to: SocketAddr,
    /// The system's number of the error, such as `ECONNREFUSED`.
    pub errno: i32,
    /// With `EMSGSIZE`, the longest packet that passes, in bytes.
    pub mtu: u32,
    /// Bytes of the datagram that came back, from its first on.
    pub len: usize,
    /// True if its hop limit ran out.
    pub is_expired: bool,
    /// Host that reported it by ICMP, if one did.
    pub reporter: Option<IpAddr>,
}

/// Takes the oldest error, with the front of its datagram in `data`; `None` if there is none.
pub fn take(socket: BorrowedFd<'_>, data: &mut [u8]) -> io::Result<Option<QueuedError>> {
    let mut name = [0_u8; size_of::<libc::sockaddr_in6>()];
    let mut control = [0_u64; CONTROL / 8];
    let mut slice = libc::iovec { iov_base: data.as_mut_ptr().cast(), iov_len: data.len() };
    // SAFETY: `msghdr` is a C structure of integers and pointers, for which zeroes are a value.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    header.msg_name = name.as_mut_ptr().cast();
    header.msg_namelen = name.len() as libc::socklen_t;
    header.msg_iov = &raw mut slice;
    header.msg_iovlen = 1;
    header.msg_control = control.as_mut_ptr().cast();
    header.msg_controllen = CONTROL;
    let flags = libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT;
    // SAFETY: the header leads to a name, a slice and control data with their lengths, all of them lent
    // exclusively beyond the call.
    let len = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut header, flags) };
    let len = match usize::try_from(len) {
        Ok(len) => len,
        Err(_) => {
            let error = io::Error::last_os_error();
            return if error.kind() == io::ErrorKind::WouldBlock { Ok(None) } else { Err(error) };
        }
    };
    let control: Vec<u8> = control.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let control = control.get(..header.msg_controllen).unwrap_or_default();
    let (Some(to), Some(error)) = (address(&name), extended_error(control)) else {
        return Err(io::ErrorKind::InvalidData.into());
    };
    let ExtendedError { errno, mtu, is_expired, reporter } = error;
    Ok(Some(QueuedError { to, errno, mtu, len, is_expired, reporter }))
}

/// Takes the error that the next call on the socket would return (`SO_ERROR`), so that none does.
pub fn clear(socket: BorrowedFd<'_>) -> io::Result<()> {
    let mut error: libc::c_int = 0;
    let mut len = size_of::<libc::c_int>() as libc::socklen_t;
    let place = (&raw mut error).cast();
    let fd = socket.as_raw_fd();
    // SAFETY: SO_ERROR writes one `int`, which is lent exclusively.
    check(unsafe { libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_ERROR, place, &raw mut len) })?;
    Ok(())
}

/// Parses a `sockaddr_in` or `sockaddr_in6`.
fn address(name: &[u8]) -> Option<SocketAddr> {
    let family = i32::from(u16::from_ne_bytes(*name.first_chunk()?));
    let port = u16::from_be_bytes(*name.get(2..)?.first_chunk()?);
    let ip: IpAddr = match family {
        libc::AF_INET => Ipv4Addr::from(*name.get(4..)?.first_chunk::<4>()?).into(),
        libc::AF_INET6 => Ipv6Addr::from(*name.get(8..)?.first_chunk::<16>()?).into(),
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

/// `struct sock_extended_err`, and the address behind it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct ExtendedError {
    errno: i32,
    mtu: u32,
    is_expired: bool,
    reporter: Option<IpAddr>,
}

/// Finds `struct sock_extended_err` in control data.
fn extended_error(mut control: &[u8]) -> Option<ExtendedError> {
    // struct cmsghdr: length with this header, level, kind.
    loop {
        let len = usize::from_ne_bytes(*control.first_chunk()?);
        let word = |at: usize| Some(i32::from_ne_bytes(*control.get(at..)?.first_chunk()?));
        let found = (word(WORD)?, word(WORD + 4)?);
        if found == (libc::SOL_IP, libc::IP_RECVERR)
            || found == (libc::SOL_IPV6, libc::IPV6_RECVERR)
        {
            // Number, origin, type, code, a filler, and information.
            let (errno, mtu) = (word(HEADER)?, word(HEADER + 8)?.cast_unsigned());
            let [origin, kind] = *control.get(HEADER + 4..)?.first_chunk()?;
            let is_expired = matches!((origin, kind), (ICMP, 11) | (ICMPV6, 3));
            let reporter = control.get(HEADER + EXTENDED..).and_then(address);
            return Some(ExtendedError {
                errno,
                mtu,
                is_expired,
                reporter: reporter.map(|at| at.ip()).filter(|_| matches!(origin, ICMP | ICMPV6)),
            });
        }
        control = control.get(len.max(HEADER).next_multiple_of(WORD)..)?;
    }
}

/// Origins of an error (`SO_EE_ORIGIN_ICMP`, `SO_EE_ORIGIN_ICMP6`).
const ICMP: u8 = 2;
const ICMPV6: u8 = 3;
/// Bytes of `struct sock_extended_err`.
const EXTENDED: usize = 16;
/// Bytes of the length in `struct cmsghdr`, to whose multiples it is aligned.
const WORD: usize = size_of::<usize>();
/// Bytes of `struct cmsghdr`.
const HEADER: usize = WORD + 8;
/// Room for control data, in bytes: an error with the address of its sender takes 64.
const CONTROL: usize = 256;

#[cfg(test)]
mod tests;
