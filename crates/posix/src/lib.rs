//! BSD sockets over one [`Shard`](whimbrel_stack::Shard): descriptors, `errno`, options by their C
//! names, and the semantics of Linux' calls.
//!
//! There is no thread here and so nothing that could sleep. A call that would block says what it
//! waits for ([`Outcome::Block`]), and whoever drives the shard makes the same call again when that
//! may have happened: a packet script in virtual time, or a library whose caller sleeps meanwhile.
//!
//! What the stack beneath cannot do is refused (`ENOPROTOOPT`, `EOPNOTSUPP`), never accepted and
//! ignored. Only stream sockets exist.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

#[macro_use]
mod names;

pub mod constants;
pub mod descriptor;
pub mod domain;
mod epoll;
pub mod errno;
mod fd;
pub mod flags;
pub mod option;
pub mod outcome;
mod socket;
pub mod sockets;
pub mod state;
pub mod tcp_info;
pub mod transfer;

pub use domain::{Domain, Protocol, SocketType};
pub use errno::Errno;
pub use fd::Fd;
pub use flags::{EpollEvents, FileFlags, MsgFlags, PollEvents, SocketFlags};
pub use option::{Linger, OptionValue, SocketOption};
pub use outcome::{Outcome, Wait};
pub use sockets::{Accepted, EpollOp, EpollReport, Fcntl, Ioctl, PollFd, Shut, Sockets};
pub use tcp_info::TcpInfo;
pub use transfer::{Incoming, Outgoing};

#[cfg(test)]
mod tests;
