//! Options of the kernel's sockets as bytes, by the names that scripts have for them.

use std::io;
use std::os::fd::AsFd;

use whimbrel_io::socket_option::{self, PlainOption};
use whimbrel_posix::SocketOption;

/// Returns the value of an option, as getsockopt(2) does.
pub(crate) fn get(socket: &impl AsFd, option: SocketOption) -> io::Result<Vec<u8>> {
    let mut value = vec![0; VALUE];
    let len = socket_option::get(socket.as_fd(), plain(option)?, &mut value)?;
    value.truncate(len);
    Ok(value)
}

/// Sets an option, as setsockopt(2) does.
pub(crate) fn set(socket: &impl AsFd, option: SocketOption, value: &[u8]) -> io::Result<()> {
    socket_option::set(socket.as_fd(), plain(option)?, value)
}

fn plain(option: SocketOption) -> io::Result<PlainOption> {
    let plain = PlainOption::new(option.level(), option.number());
    plain.ok_or_else(|| io::Error::from_raw_os_error(libc::ENOPROTOOPT))
}

/// Size of the buffer in bytes: more than any option's value here, also in later kernels.
const VALUE: usize = 1024;

#[cfg(test)]
mod tests;
