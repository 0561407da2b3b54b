//! Resources, limits and child processes of this process.

use std::io;

pub use crate::sys::bpf::pin_to;
pub use crate::sys::namespace::{Namespace, ProcessIds, isolate};
pub use crate::sys::process::{CpuTime, context_switches, cpu_time, end_with_starter, fork};
pub use crate::sys::run_in_real_time;
use crate::sys::socket;

/// A kind of socket that carries frames, which needs a privilege.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FrameSocket {
    /// A packet socket, packet(7).
    Packet,
    /// AF_XDP, which a kernel may lack.
    Xdp,
}

/// Tries to create a socket of that kind; returns the error if this process may not.
pub fn attempt_socket(kind: FrameSocket) -> io::Result<()> {
    let family = match kind {
        FrameSocket::Packet => libc::AF_PACKET,
        FrameSocket::Xdp => libc::AF_XDP,
    };
    socket(family, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0).map(drop)
}
