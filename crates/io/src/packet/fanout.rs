//! Sharing of one interface's frames among several sockets (packet(7), `PACKET_FANOUT`). The kernel
//! computes the socket of each frame.

use std::io;

use crate::packet_filter;
use crate::steering::program;
use crate::sys::packet::{PacketOption, PacketSocket};

/// Makes `socket` share the frames of `first`, or begins a group with it. The socket is bound
/// already.
pub(super) fn join(socket: &PacketSocket, first: Option<&PacketSocket>) -> io::Result<()> {
    let group = match first {
        // The kernel finds a number that no group has yet.
        None => (libc::PACKET_FANOUT_FLAG_UNIQUEID << 16).cast_signed(),
        Some(first) => first.option(PacketOption::Fanout)? & 0xffff,
    };
    let how = (libc::PACKET_FANOUT_CBPF << 16).cast_signed();
    socket.set(PacketOption::Fanout, group | how)
}

/// Sets the program that selects one of `sockets` sockets by a segment's ports.
pub(super) fn deal(first: &PacketSocket, sockets: u16) -> io::Result<()> {
    first.set_fanout_program(&program::classic(sockets))
}

/// Checks whether this process can have sockets that share frames, by creating two that receive
/// none.
pub fn attempt() -> io::Result<()> {
    let (first, second) = (PacketSocket::new()?, PacketSocket::new()?);
    for socket in [&first, &second] {
        socket.attach_filter(&packet_filter::nothing())?;
        socket.bind(ANY_INTERFACE)?;
    }
    join(&first, None)?;
    join(&second, Some(&first))?;
    deal(&first, 2)
}

/// The interface number that stands for all.
const ANY_INTERFACE: u32 = 0;
