//! Datagrams there and back between two interfaces of smoltcp, as `datagrams` has it.

use smoltcp::iface::{PollIngressSingleResult, PollResult, SocketHandle, SocketSet};
use smoltcp::socket::udp::{PacketBuffer, PacketMetadata, Socket};
use smoltcp::time::{Duration, Instant};

use super::{Side, address};
use crate::Failure;
use crate::case::{DATAGRAM, Tally};
use crate::datagrams::{Echo, PORT, content, number_of};

/// Two interfaces, a socket at one, and many at the other.
pub(crate) struct SmoltcpEcho {
    now: Instant,
    client: Side,
    server: Side,
    listening: SocketHandle,
    /// Each socket of the client's, and what it sent last.
    sockets: Vec<(SocketHandle, u64)>,
    next: u64,
    tally: Tally,
}

impl SmoltcpEcho {
    pub(crate) fn new(at_a_time: u32) -> Result<Self, Failure> {
        let (mut client, mut server) = (Side::new(CLIENT, 1)?, Side::new(SERVER, 1)?);
        let listening = bound(&mut server.sockets, PORT, at_a_time as usize)?;
        let mut sockets = Vec::new();
        for port in (FIRST_PORT..).take(at_a_time as usize) {
            sockets.push((bound(&mut client.sockets, port, 1)?, 0));
        }
        let (now, tally) = (Instant::ZERO, Tally::default());
        let mut hosts = Self { now, client, server, listening, sockets, next: 0, tally };
        for place in 0..hosts.sockets.len() {
            hosts.send(place)?;
        }
        Ok(hosts)
    }

    fn send(&mut self, place: usize) -> Result<(), Failure> {
        let (handle, sent) = &mut self.sockets[place];
        *sent = self.next;
        let socket = self.client.sockets.get_mut::<Socket>(*handle);
        let to = (address(SERVER), PORT);
        socket.send_slice(&content(self.next), to).map_err(|error| error.to_string())?;
        self.next += 1;
        Ok(())
    }

    fn serve(&mut self) -> Result<(), Failure> {
        let socket = self.server.sockets.get_mut::<Socket>(self.listening);
        while socket.can_recv() {
            let (data, from) = socket.recv().map_err(|error| error.to_string())?;
            number_of(data)?;
            self.tally.up += data.len() as u64;
            let mut returned = [0; DATAGRAM];
            returned.copy_from_slice(data);
            socket.send_slice(&returned, from.endpoint).map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    fn drive(&mut self) -> Result<(), Failure> {
        for place in 0..self.sockets.len() {
            let (handle, sent) = self.sockets[place];
            let socket = self.client.sockets.get_mut::<Socket>(handle);
            if !socket.can_recv() {
                continue;
            }
            let (data, _) = socket.recv().map_err(|error| error.to_string())?;
            if number_of(data)? != sent {
                return Err("a datagram that another socket sent".into());
            }
            self.tally.down += data.len() as u64;
            self.tally.connections += 1;
            self.send(place)?;
        }
        Ok(())
    }
}

impl Echo for SmoltcpEcho {
    fn round_trips(&mut self, count: u64) -> Result<(), Failure> {
        let goal = self.tally.connections + count;
        while self.tally.connections < goal {
            let before = self.tally.connections;
            transmit(&mut self.client, self.now);
            self.client.device.carry(&mut self.server.device);
            receive(&mut self.server, self.now);
            self.serve()?;
            transmit(&mut self.server, self.now);
            self.server.device.carry(&mut self.client.device);
            receive(&mut self.client, self.now);
            self.drive()?;
            if self.tally.connections == before {
                return Err("nothing comes back any more".into());
            }
            self.now += TURN;
        }
        Ok(())
    }

    fn tally(&self) -> Tally {
        self.tally
    }
}

fn transmit(side: &mut Side, now: Instant) {
    let Side { interface, device, sockets, .. } = side;
    // One of each socket at a time.
    while interface.poll_egress(now, device, sockets) == PollResult::SocketStateChanged {}
}

fn receive(side: &mut Side, now: Instant) {
    let Side { interface, device, sockets, .. } = side;
    while interface.poll_ingress_single(now, device, sockets) != PollIngressSingleResult::None {}
}

/// A socket at this port, with room for so many datagrams each way.
fn bound(
    sockets: &mut SocketSet<'static>,
    port: u16,
    datagrams: usize,
) -> Result<SocketHandle, Failure> {
    let buffer = || {
        let places = vec![PacketMetadata::EMPTY; datagrams];
        PacketBuffer::new(places, vec![0; datagrams * DATAGRAM])
    };
    let mut socket = Socket::new(buffer(), buffer());
    socket.bind(port).map_err(|error| error.to_string())?;
    Ok(sockets.add(socket))
}

const SERVER: u32 = 1;
const CLIENT: u32 = 2;
const FIRST_PORT: u16 = 40_000;
/// Virtual time of a turn.
const TURN: Duration = Duration::from_micros(20);
