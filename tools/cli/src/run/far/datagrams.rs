//! The machine's sockets for datagrams.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use bytes::Bytes;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use whimbrel_io::sent_datagrams::{
    QueuedError, clear_error, keep_errors, set_dont_fragment, set_hop_limit, take_error,
};
use whimbrel_stack::ip::Unreachable;
use whimbrel_stack::udp::Received;
use whimbrel_wire::{Address, Endpoint};

use super::{FarDatagrams, ReadySocket, Refusal, SentError};
use crate::drive::KernelNet;
use crate::failure::Failure;

/// The machine's sockets for datagrams.
pub(in crate::run) struct MachineDatagrams {
    epoll: OwnedFd,
    buffer: Box<[u8]>,
}

/// A socket of the machine.
pub(in crate::run) struct MachineSocket {
    socket: UdpSocket,
    /// DF of its packets, if it was set.
    dont_fragment: Option<bool>,
    /// Their hop limit, if it was set.
    hops: Option<u8>,
}

impl FarDatagrams<KernelNet> for MachineDatagrams {
    type Socket = MachineSocket;

    fn new() -> Result<Self, Failure> {
        let epoll = epoll::create(CreateFlags::CLOEXEC).map_err(Failure::run)?;
        Ok(Self { epoll, buffer: vec![0; LONGEST].into_boxed_slice() })
    }

    fn bind(&mut self, _: &mut KernelNet, at: Endpoint) -> io::Result<MachineSocket> {
        let socket = UdpSocket::bind(SocketAddr::from(at))?;
        socket.set_nonblocking(true)?;
        keep_errors(&socket, at.addr.is_v4())?;
        Ok(MachineSocket { socket, dont_fragment: None, hops: None })
    }

    fn watch(&mut self, socket: &MachineSocket, number: u32) -> io::Result<()> {
        let event = EventData::new_u64(number.into());
        Ok(epoll::add(&self.epoll, &socket.socket, event, EventFlags::IN)?)
    }

    fn close(&mut self, _: &mut KernelNet, socket: MachineSocket) {
        drop(socket);
    }

    fn send(
        &mut self,
        _: &mut KernelNet,
        socket: &mut MachineSocket,
        datagram: &Received,
        to: Endpoint,
        hops: Option<u8>,
    ) -> Result<(), Refusal> {
        let sent = socket.send(datagram, to, hops);
        sent.map_err(|error| refusal_of(&error, socket.socket.as_fd(), &mut self.buffer))
    }

    fn ready(&mut self, _: &mut KernelNet) -> Vec<ReadySocket> {
        let mut room = [std::mem::MaybeUninit::uninit(); READY];
        let ready = epoll::wait(&self.epoll, &mut room, Some(&Timespec::default()));
        let Ok((ready, _)) = ready else { return Vec::new() };
        let ready = ready.iter().map(|event| {
            let (data, flags) = (event.data, event.flags);
            let has_errors = flags.contains(EventFlags::ERR);
            ReadySocket { number: data.u64() as u32, has_errors }
        });
        ready.collect()
    }

    fn receive(&mut self, _: &mut KernelNet, socket: &MachineSocket) -> Option<(Bytes, Endpoint)> {
        let (len, from) = socket.socket.recv_from(&mut self.buffer).ok()?;
        Some((Bytes::copy_from_slice(self.buffer.get(..len)?), from.into()))
    }

    fn take_error(&mut self, _: &mut KernelNet, socket: &MachineSocket) -> Option<SentError> {
        let Ok(Some(error)) = take_error(socket.socket.as_fd(), &mut self.buffer) else {
            // The next call would return the error once more.
            let _ = clear_error(socket.socket.as_fd());
            return None;
        };
        let data = Bytes::copy_from_slice(self.buffer.get(..error.len).unwrap_or_default());
        let reporter = error.reporter.map(Address::from);
        Some(SentError { to: error.to.into(), meaning: meaning(&error), reporter, data })
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.epoll.as_fd())
    }
}

impl MachineSocket {
    fn send(&mut self, datagram: &Received, to: Endpoint, hops: Option<u8>) -> io::Result<()> {
        // What the program does not let others cut is not cut behind the gateway either.
        if to.addr.is_v4() && self.dont_fragment != Some(datagram.dont_fragment) {
            set_dont_fragment(&self.socket, datagram.dont_fragment)?;
            self.dont_fragment = Some(datagram.dont_fragment);
        }
        if let Some(hops) = hops.filter(|_| hops != self.hops) {
            set_hop_limit(&self.socket, to.addr.is_v4(), hops)?;
            self.hops = Some(hops);
        }
        self.socket.send_to(&datagram.data, SocketAddr::from(to)).map(drop)
    }
}

/// Answer to the program for an error of sending by `socket`.
pub(in crate::run) fn refusal_of(
    error: &io::Error,
    socket: BorrowedFd<'_>,
    buffer: &mut [u8],
) -> Refusal {
    match error.kind() {
        io::ErrorKind::WouldBlock => (None, "no room for a datagram"),
        io::ErrorKind::NetworkUnreachable => (Some(Unreachable::Network), "network unreachable"),
        io::ErrorKind::PermissionDenied => {
            (Some(Unreachable::Prohibited), "forbidden by the machine")
        }
        _ if error.raw_os_error() == Some(EMSGSIZE) => (too_big(socket, buffer), TOO_LONG),
        _ => (Some(Unreachable::Host), "host unreachable"),
    }
}

/// The MTU for which a call was refused. It is in the error queue, without the destination that it is of: so
/// it is taken at once. What the queue held before is lost, as errors are on their way.
fn too_big(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> Option<Unreachable> {
    let queue = std::iter::from_fn(|| take_error(socket, buffer).ok()?).take(MOST_QUEUED);
    let told = queue.filter_map(|queued| Some(meaning(&queued)?.0)).last();
    let _ = clear_error(socket);
    told.filter(|what| matches!(what, Unreachable::TooBig { .. }))
}

/// Answer to the program for an error of the machine's.
pub(in crate::run) fn meaning(error: &QueuedError) -> Option<(Unreachable, &'static str)> {
    let kind = io::Error::from_raw_os_error(error.errno).kind();
    Some(match kind {
        _ if error.is_expired => (Unreachable::HopLimit, EXPIRED),
        io::ErrorKind::ConnectionRefused => (Unreachable::Port, "port unreachable"),
        io::ErrorKind::HostUnreachable => (Unreachable::Host, "host unreachable"),
        io::ErrorKind::NetworkUnreachable => (Unreachable::Network, "network unreachable"),
        io::ErrorKind::PermissionDenied => (Unreachable::Prohibited, "forbidden on the way"),
        _ if error.errno == EMSGSIZE => {
            let mtu = u16::try_from(error.mtu).unwrap_or(u16::MAX);
            (Unreachable::TooBig { mtu }, TOO_LONG)
        }
        _ => return None,
    })
}

/// Room for the data of any datagram, in bytes (RFC 768).
const LONGEST: usize = 65_535;
/// Sockets looked at in one turn.
const READY: usize = 64;
/// Errors read for one.
const MOST_QUEUED: usize = 1024;
/// Reason of the refusal of a packet that has no hop left.
pub(in crate::run) const EXPIRED: &str = "hop limit ran out";
/// Linux' number for a message that is too long.
const EMSGSIZE: i32 = 90;
/// Reason of the refusal then.
pub(in crate::run) const TOO_LONG: &str = "datagram too long for the path";
