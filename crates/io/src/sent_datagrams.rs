//! Errors of the kernel's datagrams that come back from their way, and their permission to be cut.

use std::io;
use std::os::fd::AsFd;

use crate::socket_option::{PlainOption, set};
pub use crate::sys::error_queue::{QueuedError, clear as clear_error, take as take_error};

/// Keeps the errors about what `socket` sends for [`take_error`] (`IP_RECVERR`).
pub fn keep_errors(socket: &impl AsFd, is_v4: bool) -> io::Result<()> {
    let (level, number) = match is_v4 {
        true => (libc::IPPROTO_IP, libc::IP_RECVERR),
        false => (libc::IPPROTO_IPV6, libc::IPV6_RECVERR),
    };
    set_number(socket, level, number, 1)
}

/// Sets whether the packets of an IPv4 socket carry DF whatever their size (`IP_PMTUDISC_DO`), or never.
pub fn set_dont_fragment(socket: &impl AsFd, whole: bool) -> io::Result<()> {
    let value = if whole { libc::IP_PMTUDISC_DO } else { libc::IP_PMTUDISC_DONT };
    set_number(socket, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, value)
}

/// Sets the hop limit (1 to 255) of a socket's packets (`IP_TTL`, `IPV6_UNICAST_HOPS`).
pub fn set_hop_limit(socket: &impl AsFd, is_v4: bool, hops: u8) -> io::Result<()> {
    let (level, number) = match is_v4 {
        true => (libc::IPPROTO_IP, libc::IP_TTL),
        false => (libc::IPPROTO_IPV6, libc::IPV6_UNICAST_HOPS),
    };
    set_number(socket, level, number, hops.into())
}

fn set_number(socket: &impl AsFd, level: i32, number: i32, value: i32) -> io::Result<()> {
    let option = PlainOption::new(level, number).ok_or(io::ErrorKind::Unsupported)?;
    set(socket.as_fd(), option, &value.to_ne_bytes())
}
