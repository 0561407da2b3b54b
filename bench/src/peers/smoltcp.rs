//! smoltcp: two interfaces in one thread. Its sockets are its records: one in TIME-WAIT is a whole
//! socket with its buffers, which the application keeps until it is over.
//!
//! As it comes: no timestamps, no SACK blocks, ISNs that are random and follow no clock, and the
//! choice of ports left to applications. Where none is to be in TIME-WAIT, the server aborts a
//! socket that comes there, and so does less than a server should.

mod device;
mod echo;

use std::collections::VecDeque;

use smoltcp::iface::{Config, Interface, PollIngressSingleResult, SocketHandle, SocketSet};
use smoltcp::socket::tcp::{Socket, SocketBuffer, State};
use smoltcp::time::{Duration, Instant};
use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr};

use self::device::Device;
pub(crate) use self::echo::SmoltcpEcho;
use super::Unable;
use super::frames::{Kept, NOT_KEPT, syn};
use super::host::Hosts;
use crate::Failure;
use crate::case::{
    AT_A_TIME, Case, FEW_AT_A_TIME, Kind, PORTS, REQUEST, RESPONSE, Tally, client_addresses,
};

/// Two interfaces, and the other state of a case.
pub(crate) struct Smoltcp {
    now: Instant,
    client: Side,
    server: Side,
    /// Sockets of the server in TIME-WAIT, oldest first.
    waiting: VecDeque<SocketHandle>,
    /// True if sockets stay in TIME-WAIT.
    waits: bool,
    /// Virtual time that passes with each connection.
    pace: Duration,
    sources: u32,
    opened: u64,
    tally: Tally,
    kept: Option<Kept>,
    syns: u32,
}

/// An interface and the sockets of its application.
struct Side {
    interface: Interface,
    device: Device,
    sockets: SocketSet<'static>,
    /// Those that the application looks at.
    live: Vec<Live>,
}

/// A socket that is used again and again, and how far the work on its connection is.
struct Live {
    handle: SocketHandle,
    under_way: bool,
    asked: bool,
    read: usize,
}

impl Live {
    fn new(handle: SocketHandle) -> Self {
        Self { handle, under_way: false, asked: false, read: 0 }
    }
}

impl Smoltcp {
    /// Two hosts for this case.
    pub(crate) fn new(case: Case) -> Result<Self, Failure> {
        let waits = case.kind == Kind::TimeWait || (case.kind == Kind::Churn && case.scale > 0);
        let at_a_time = if case.kind == Kind::Few { FEW_AT_A_TIME } else { AT_A_TIME };
        let sources = client_addresses(case.scale).min(MOST_ADDRESSES);
        let mut server = Side::new(1, 1)?;
        for _ in 0..at_a_time {
            let handle = server.listen()?;
            server.live.push(Live::new(handle));
        }
        let mut client = Side::new(2, sources)?;
        for _ in 0..at_a_time {
            let handle = client.sockets.add(socket());
            client.live.push(Live::new(handle));
        }
        // Records of which the memory is measured outlive the measurement.
        let expiring = if case.kind == Kind::TimeWait { 2 * case.scale } else { case.scale };
        Ok(Self {
            now: Instant::ZERO,
            client,
            server,
            waiting: VecDeque::new(),
            waits,
            pace: if waits { TIME_WAIT / expiring } else { Duration::ZERO },
            sources,
            opened: 0,
            tally: Tally::default(),
            kept: matches!(case.kind, Kind::Packet | Kind::Burst).then(Kept::default),
            syns: 0,
        })
    }

    /// Delivers each host's frames to the other; returns their number.
    fn exchange(&mut self) -> usize {
        self.client.transmit(self.now);
        let sent = self.client.device.carry(&mut self.server.device);
        if let Some(kept) = &mut self.kept {
            self.server.device.received.frames().for_each(|frame| kept.keep(frame));
        }
        self.server.receive(self.now);
        self.server.transmit(self.now);
        let answered = self.server.device.carry(&mut self.client.device);
        self.client.receive(self.now);
        sent + answered
    }

    /// On to the next timer.
    fn wait(&mut self) -> Result<(), Failure> {
        let next = [self.client.next(self.now), self.server.next(self.now)];
        let next = next.into_iter().flatten().min().ok_or("both hosts wait for nothing")?;
        self.now = self.now.max(next);
        Ok(())
    }

    /// Ends what is over at the client and opens what may be opened; returns how many ended.
    fn renew(&mut self, mut open: u64) -> Result<u64, Failure> {
        let mut over = 0;
        for index in 0..self.client.live.len() {
            let live = &mut self.client.live[index];
            let socket = self.client.sockets.get_mut::<Socket>(live.handle);
            if socket.state() != State::Closed {
                continue;
            }
            over += u64::from(std::mem::take(&mut live.under_way));
            if open > 0 {
                open -= 1;
                *live = Live { under_way: true, ..Live::new(live.handle) };
                let handle = live.handle;
                self.connect_from(handle)?;
            }
        }
        Ok(over)
    }

    /// The application chooses the port: in turn, from each address in turn.
    fn connect_from(&mut self, handle: SocketHandle) -> Result<(), Failure> {
        let turn = self.opened / u64::from(self.sources);
        let port = PORTS.start() + (turn % PORTS.len() as u64) as u16;
        let local = (address(2 + (self.opened % u64::from(self.sources)) as u32), port);
        let context = self.client.interface.context();
        let socket = self.client.sockets.get_mut::<Socket>(handle);
        socket.connect(context, (address(1), SERVICE), local).map_err(|error| error.to_string())?;
        self.opened += 1;
        Ok(())
    }

    fn serve(&mut self) -> Result<(), Failure> {
        for live in &mut self.server.live {
            let socket = self.server.sockets.get_mut::<Socket>(live.handle);
            let new = receive(socket, &mut live.read, &REQUEST)?;
            self.tally.up += new;
            if new > 0 && live.read == REQUEST.len() {
                send(socket, &RESPONSE)?;
                socket.close();
            }
            if socket.state() != State::TimeWait {
                continue;
            }
            live.read = 0;
            if self.waits {
                self.waiting.push_back(live.handle);
                live.handle = listener(&mut self.server.sockets, &mut self.waiting)?;
            } else {
                socket.abort();
                listen(socket)?;
            }
        }
        Ok(())
    }

    fn drive(&mut self) -> Result<(), Failure> {
        for live in &mut self.client.live {
            let socket = self.client.sockets.get_mut::<Socket>(live.handle);
            if socket.state() == State::Established && !live.asked {
                send(socket, &REQUEST)?;
                live.asked = true;
            }
            self.tally.down += receive(socket, &mut live.read, &RESPONSE)?;
            if socket.state() == State::CloseWait {
                socket.close();
            }
        }
        Ok(())
    }
}

impl Side {
    fn new(first: u32, addresses: u32) -> Result<Self, Failure> {
        let mut device = Device::default();
        let config = Config::new(HardwareAddress::Ip);
        let mut interface = Interface::new(config, &mut device, Instant::ZERO);
        let mut full = false;
        interface.update_ip_addrs(|list| {
            for host in first..first + addresses {
                full |= list.push(IpCidr::new(address(host), 8)).is_err();
            }
        });
        if full {
            return Err(format!("{addresses} addresses are too many").into());
        }
        let sockets = SocketSet::new(Vec::new());
        Ok(Self { interface, device, sockets, live: Vec::new() })
    }

    /// One more socket that listens.
    fn listen(&mut self) -> Result<SocketHandle, Failure> {
        let mut socket = socket();
        listen(&mut socket)?;
        Ok(self.sockets.add(socket))
    }

    fn transmit(&mut self, now: Instant) {
        self.interface.poll_egress(now, &mut self.device, &mut self.sockets);
    }

    fn receive(&mut self, now: Instant) {
        let Self { interface, device, sockets, .. } = self;
        while interface.poll_ingress_single(now, device, sockets) != PollIngressSingleResult::None {
        }
    }

    fn next(&mut self, now: Instant) -> Option<Instant> {
        self.interface.poll_at(now, &self.sockets)
    }
}

impl Hosts for Smoltcp {
    type Handle = SocketHandle;

    fn churn(&mut self, connections: u32) -> Result<(), Failure> {
        let goal = self.tally.connections + u64::from(connections);
        loop {
            let over = self.renew(goal - self.opened)?;
            self.tally.connections += over;
            if self.tally.connections == goal {
                return Ok(());
            }
            self.now += Duration::from_micros(1) + self.pace * over as u32;
            if self.exchange() == 0 {
                self.wait()?;
            }
            self.serve()?;
            self.drive()?;
        }
    }

    fn tally(&self) -> Tally {
        self.tally
    }

    fn waiting(&self) -> Result<u64, Failure> {
        let still =
            |it: &&SocketHandle| self.server.sockets.get::<Socket>(**it).state() == State::TimeWait;
        Ok(self.waiting.iter().filter(still).count() as u64)
    }

    fn connect(&mut self) -> Result<Option<SocketHandle>, Failure> {
        Err(Unable::from("its applications choose the ports").into())
    }

    fn abort(&mut self, _: SocketHandle) -> Result<(), Failure> {
        Ok(())
    }

    fn open_idle(&mut self, count: u32) -> Result<(), Failure> {
        // None but these are looked at any more.
        self.client.live.clear();
        for _ in 0..count {
            self.server.listen()?;
            let handle = self.client.sockets.add(socket());
            self.client.live.push(Live::new(handle));
            self.connect_from(handle)?;
        }
        while self.exchange() > 0 {}
        let client = &self.client;
        let open = client.live.iter().map(|it| client.sockets.get::<Socket>(it.handle).state());
        if open.filter(|state| *state == State::Established).count() != count as usize {
            return Err("not every connection was opened".into());
        }
        Ok(())
    }

    fn receive_syns(&mut self, count: u32) -> Result<(), Failure> {
        for _ in 0..count {
            self.server.listen()?;
            self.server.device.inject(&syn(self.syns));
            self.syns += 1;
        }
        self.server.receive(self.now);
        self.server.transmit(self.now);
        let answered = self.server.device.sent.frames().count();
        self.server.device.sent.clear();
        if answered != count as usize {
            return Err(format!("{answered} answers to {count} SYNs").into());
        }
        Ok(())
    }

    fn stage(&mut self, connections: &[u32]) -> Result<(), Failure> {
        self.kept.as_mut().ok_or(NOT_KEPT)?.stage(connections);
        Ok(())
    }

    fn deliver(&mut self, at_a_time: usize) -> Result<(), Failure> {
        let kept = self.kept.as_ref().ok_or(NOT_KEPT)?;
        let Side { interface, device, sockets, .. } = &mut self.server;
        let mut packets = kept.staged().peekable();
        while packets.peek().is_some() {
            packets.by_ref().take(at_a_time).for_each(|packet| device.inject(packet));
            interface.poll(self.now, device, sockets);
        }
        match self.server.device.sent.frames().count() {
            0 => Ok(()),
            answers => Err(format!("{answers} acknowledgments were answered").into()),
        }
    }
}

fn socket() -> Socket<'static> {
    let buffer = || SocketBuffer::new(vec![0; BUFFER]);
    Socket::new(buffer(), buffer())
}

fn listen(socket: &mut Socket<'_>) -> Result<(), Failure> {
    Ok(socket.listen(SERVICE).map_err(|error| error.to_string())?)
}

/// A socket that listens: the one longest in TIME-WAIT if that is over, else a new one.
fn listener(
    sockets: &mut SocketSet<'static>,
    waiting: &mut VecDeque<SocketHandle>,
) -> Result<SocketHandle, Failure> {
    if let Some(&oldest) = waiting.front()
        && sockets.get::<Socket>(oldest).state() == State::Closed
    {
        waiting.pop_front();
        listen(sockets.get_mut(oldest))?;
        return Ok(oldest);
    }
    let mut socket = socket();
    listen(&mut socket)?;
    Ok(sockets.add(socket))
}

fn send(socket: &mut Socket<'_>, bytes: &[u8]) -> Result<(), Failure> {
    match socket.send_slice(bytes) {
        Ok(taken) if taken == bytes.len() => Ok(()),
        other => Err(format!("{other:?} of {} bytes were taken", bytes.len()).into()),
    }
}

/// Reads what is there and compares it with what is to come; returns how many bytes that were.
fn receive(socket: &mut Socket<'_>, read: &mut usize, wanted: &[u8]) -> Result<u64, Failure> {
    if !socket.can_recv() {
        return Ok(0);
    }
    let before = *read;
    let same = socket.recv(|bytes| {
        let same = wanted[before..].starts_with(bytes);
        (bytes.len(), (same, bytes.len()))
    });
    match same.map_err(|error| error.to_string())? {
        (true, count) => {
            *read += count;
            Ok(count as u64)
        }
        (false, count) => Err(format!("{count} bytes arrived that were not sent").into()),
    }
}

/// The host with this number, in 10.0.0.0/8.
fn address(host: u32) -> IpAddress {
    IpAddress::from(std::net::Ipv4Addr::from_bits(0x0a00_0000 + host))
}

/// Bytes of each of a socket's two buffers: as small as the work allows.
const BUFFER: usize = 256;
const SERVICE: u16 = 80;
/// Limit of addresses of a smoltcp interface, as built here.
const MOST_ADDRESSES: u32 = 8;
/// Time of a socket in TIME-WAIT; a constant in smoltcp.
const TIME_WAIT: Duration = Duration::from_secs(10);
