//! What this process and its threads take of the machine, what they may have of it, and what they start.

use std::io;

pub use crate::sys::bpf::pin_to;
pub use crate::sys::namespace::Namespace;
pub use crate::sys::process::{CpuTime, context_switches, cpu_time, end_with_starter};
pub use crate::sys::run_in_real_time;
use crate::sys::socket;

/// A kind of socket that carries frames, which takes a privilege.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FrameSocket {
    /// A packet socket, packet(7).
    Packet,
    /// AF_XDP, which a kernel may lack.
    Xdp,
}

/// Why this process may have no socket of that kind, if it may not: tried.
pub fn attempt_socket(kind: FrameSocket) -> io::Result<()> {
    let family = match kind {
        FrameSocket::Packet => libc::AF_PACKET,
        FrameSocket::Xdp => libc::AF_XDP,
    };
    socket(family, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0).map(drop)
}
