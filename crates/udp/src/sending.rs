//! The way out of a socket.

use alloc::collections::VecDeque;

use whimbrel_base::cold_path;
use whimbrel_wire::Endpoint;

use crate::Counters;
use crate::datagram::{ALLOCATOR, OutgoingDatagram, Room, SendOptions};
use crate::error::QueueError;
use crate::handle::UdpHandle;
use crate::key::{Key, Local};
use crate::socket::Socket;

/// A socket that is looked up once for a datagram that it sends.
#[derive(Debug)]
pub struct Sending<'a> {
    pub(crate) handle: UdpHandle,
    pub(crate) socket: &'a mut Socket,
    pub(crate) out: &'a mut VecDeque<Leaving>,
    pub(crate) held: &'a mut usize,
    pub(crate) counters: &'a mut Counters,
}

impl Sending<'_> {
    /// Returns the ends and options of what the socket sends, where a datagram says nothing else.
    #[inline]
    pub fn sender(&self) -> Sender<'_> {
        let Socket { key: Key { local, remote }, port, options, .. } = &*self.socket;
        Sender { local, port: *port, remote: remote.as_ref(), options }
    }

    /// Queues a datagram to be sent, if the socket has room for it. If not, an event follows when
    /// it has.
    #[inline]
    pub fn queue(self, datagram: OutgoingDatagram, room: Room) -> Result<(), QueueError> {
        let Self { handle, socket, out, held, counters } = self;
        if socket.unsent >= socket.most_unsent {
            cold_path();
            socket.awaits_room = true;
            counters.sndbuf_errors += 1;
            return Err(QueueError::Full { most: socket.most_unsent });
        }
        if room == Room::None {
            counters.mem_errors += 1;
            return Err(QueueError::Memory);
        }
        let bytes = datagram.data.len() + Leaving::OVERHEAD;
        socket.unsent += bytes;
        *held += bytes;
        out.push_back(Leaving { of: handle, datagram });
        Ok(())
    }
}

/// Ends and options of what a socket sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sender<'a> {
    /// Addresses of this host at which the socket receives.
    pub local: &'a Local,
    /// Local port; 0 stands for all ports.
    pub port: u16,
    /// Peer, if the socket is connected.
    pub remote: Option<&'a Endpoint>,
    /// Options of its packets.
    pub options: &'a SendOptions,
}

impl Sender<'_> {
    /// True if it is the socket for any destination.
    pub const fn is_any(&self) -> bool {
        self.port == 0
    }
}

/// A datagram to be sent, and whose it is.
#[derive(Debug)]
pub(crate) struct Leaving {
    pub(crate) of: UdpHandle,
    pub(crate) datagram: OutgoingDatagram,
}

impl Leaving {
    /// Bytes that one counts in addition to its data: its place in a half-empty queue, and the
    /// allocator's overhead.
    pub(crate) const OVERHEAD: usize = 2 * size_of::<Self>() + ALLOCATOR;
}
