//! Lists the kernel's TCP sockets and closes them, as `ss` does (sock_diag(7)).

use std::io;

use super::{Netlink, Request};
use crate::sys;

/// A netlink socket that lists the TCP sockets of a network namespace: that of the thread that
/// opens it.
#[derive(Debug)]
pub struct SocketDiag(Netlink);

/// A TCP socket, or a record of a connection that has none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DiagSocket {
    /// State, by Linux's numbers.
    pub state: u8,
    /// Port at this machine's end.
    pub local_port: u16,
    /// Port of the peer; 0 if there is none.
    pub remote_port: u16,
    family: u8,
    id: [u8; ID_LEN],
}

impl SocketDiag {
    /// Opens the netlink socket. Needs no privilege; destroying sockets does.
    pub fn open() -> io::Result<Self> {
        Ok(Self(Netlink { socket: sys::diag_socket()?, sequence: 0 }))
    }

    /// Returns the sockets of both families whose state has its bit (`1 << state`) set in `states`.
    pub fn sockets(&mut self, states: u32) -> io::Result<Vec<DiagSocket>> {
        let mut found = self.sockets_of(libc::AF_INET as u8, states)?;
        found.extend(self.sockets_of(libc::AF_INET6 as u8, states)?);
        Ok(found)
    }

    /// Closes a socket: its user gets `ECONNABORTED`, and the peer an RST.
    pub fn destroy(&mut self, socket: &DiagSocket) -> io::Result<()> {
        self.0.send(request(SOCK_DESTROY, 0, socket.family, ALL, &socket.id))
    }

    fn sockets_of(&mut self, family: u8, states: u32) -> io::Result<Vec<DiagSocket>> {
        let request = request(SOCK_DIAG_BY_FAMILY, libc::NLM_F_DUMP, family, states, &[0; ID_LEN]);
        let mut found = Vec::new();
        self.0.ask(request, |body| found.extend(socket_in(body)))?;
        Ok(found)
    }
}

/// Builds a `struct inet_diag_req_v2`: family, protocol, extensions, padding, states, id.
fn request(kind: u16, flags: libc::c_int, family: u8, states: u32, id: &[u8; ID_LEN]) -> Request {
    let mut request = Request::new(kind, flags);
    request.put(&[family, libc::IPPROTO_TCP as u8, 0, 0]);
    request.put(&states.to_ne_bytes());
    request.put(id);
    request
}

/// Parses a `struct inet_diag_msg`: family, state, timer, retransmissions, id, …; `struct
/// inet_diag_sockid` begins with both ports.
fn socket_in(body: &[u8]) -> Option<DiagSocket> {
    let id: [u8; ID_LEN] = *body.get(4..)?.first_chunk()?;
    Some(DiagSocket {
        state: *body.get(1)?,
        local_port: u16::from_be_bytes([id[0], id[1]]),
        remote_port: u16::from_be_bytes([id[2], id[3]]),
        family: *body.first()?,
        id,
    })
}

// From linux/sock_diag.h and linux/inet_diag.h.
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const SOCK_DESTROY: u16 = 21;
/// Length of `struct inet_diag_sockid`, by which the kernel finds a socket again, in bytes.
const ID_LEN: usize = 48;
/// A mask with the bit of every state.
const ALL: u32 = u32::MAX;

#[cfg(test)]
mod tests;
