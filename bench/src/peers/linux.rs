//! Linux over veth: a client and a server in this process, in network namespaces of their own, on
//! sockets that one epoll watches. `unshare --net` makes the client's namespace, a child that waits
//! for the end of its input holds the server's: both go with the process.

mod namespaces;

use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use rustix::event::epoll;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType};

use self::namespaces::Namespaces;
pub(super) use self::namespaces::ready;
use super::host::Hosts;
use super::{SIXTY_FOUR, Unable};
use crate::Failure;
use crate::case::{AT_A_TIME, Case, Kind, REQUEST, RESPONSE, Tally};

/// Sockets of both hosts, and where they live.
pub(crate) struct Linux {
    namespaces: Namespaces,
    listener: OwnedFd,
    epoll: OwnedFd,
    /// By the number of the socket.
    ends: Vec<Option<End>>,
    /// Addresses of the server, which take turns.
    addresses: u32,
    idle: bool,
    opened: u64,
    connected: u64,
    accepted: u64,
    tally: Tally,
}

/// One end of a connection.
struct End {
    socket: OwnedFd,
    role: Role,
    read: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Server,
    /// The connection is not there yet.
    Connecting,
    Client,
}

impl Linux {
    /// Two hosts for this case.
    pub(crate) fn new(case: Case) -> Result<Self, Failure> {
        match case.kind {
            Kind::Syn => {
                return Err(Unable::from("its SYNs would have to come from a raw socket").into());
            }
            Kind::Packet | Kind::Burst => {
                let reason = "a packet comes through a device, of which the cost would be measured";
                return Err(Unable::from(reason).into());
            }
            Kind::Few => return Err(Unable::from(SIXTY_FOUR).into()),
            Kind::Churn | Kind::Ports | Kind::TimeWait | Kind::Idle | Kind::Datagrams => {}
        }
        let namespaces = Namespaces::new(case)?;
        let listener = namespaces.at_server(|| {
            let listener = socket()?;
            rustix::net::bind(&listener, &SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, SERVICE))?;
            rustix::net::listen(&listener, i32::from(u16::MAX))?;
            Ok(listener)
        })?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        watch(&epoll, &listener)?;
        Ok(Self {
            namespaces,
            listener,
            epoll,
            ends: Vec::new(),
            addresses: 1 + case.scale / PORTS_OF_ONE,
            idle: case.kind == Kind::Idle,
            opened: 0,
            connected: 0,
            accepted: 0,
            tally: Tally::default(),
        })
    }

    fn open(&mut self) -> Result<(), Failure> {
        let turn = (self.opened % u64::from(self.addresses)) as u32;
        let client = socket()?;
        start(&client, Ipv4Addr::from_bits(namespaces::SERVER.to_bits() + turn))?;
        self.add(client, Role::Connecting)?;
        self.opened += 1;
        Ok(())
    }

    fn add(&mut self, socket: OwnedFd, role: Role) -> Result<(), Failure> {
        watch(&self.epoll, &socket)?;
        let place = socket.as_raw_fd() as usize;
        if place >= self.ends.len() {
            self.ends.resize_with(place + 1, || None);
        }
        self.ends[place] = Some(End { socket, role, read: 0 });
        Ok(())
    }

    /// Waits for events and does what they call for.
    fn step(&mut self) -> Result<(), Failure> {
        let mut events = Vec::with_capacity(4 * AT_A_TIME as usize);
        let patience = rustix::time::Timespec { tv_sec: 10, tv_nsec: 0 };
        epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), Some(&patience))?;
        if events.is_empty() {
            return Err("nothing happened for 10 s".into());
        }
        for event in events {
            let place = event.data.u64() as usize;
            if place == self.listener.as_raw_fd() as usize {
                self.accept()?;
            } else if let Some(end) = self.ends.get_mut(place).and_then(Option::take) {
                self.ends[place] = self.serve(end)?;
            }
        }
        Ok(())
    }

    fn accept(&mut self) -> Result<(), Failure> {
        loop {
            match rustix::net::accept_with(&self.listener, SocketFlags::NONBLOCK) {
                Ok(socket) => self.add(socket, Role::Server)?,
                Err(Errno::AGAIN) => return Ok(()),
                Err(other) => return Err(other.into()),
            }
            self.accepted += 1;
        }
    }

    /// Reads and answers; the end, unless it is over.
    fn serve(&mut self, mut end: End) -> Result<Option<End>, Failure> {
        if end.role == Role::Connecting {
            rustix::net::sockopt::socket_error(&end.socket)??;
            end.role = Role::Client;
            self.connected += 1;
            if !self.idle {
                write(&end.socket, &REQUEST)?;
            }
        }
        let wanted: &[u8] = if end.role == Role::Server { &REQUEST } else { &RESPONSE };
        let mut buffer = [0; RESPONSE.len()];
        loop {
            match rustix::io::read(&end.socket, &mut buffer) {
                Err(Errno::AGAIN) => return Ok(Some(end)),
                Err(other) => return Err(other.into()),
                Ok(0) if end.role == Role::Client && end.read == wanted.len() => {
                    self.tally.connections += 1;
                    return Ok(None);
                }
                Ok(count) if count > 0 && wanted[end.read..].starts_with(&buffer[..count]) => {
                    end.read += count;
                    if end.role == Role::Client {
                        self.tally.down += count as u64;
                        continue;
                    }
                    self.tally.up += count as u64;
                    if end.read == wanted.len() {
                        write(&end.socket, &RESPONSE)?;
                        return Ok(None);
                    }
                }
                Ok(count) => return Err(format!("{count} bytes that were not sent").into()),
            }
        }
    }
}

impl Hosts for Linux {
    type Handle = OwnedFd;

    fn churn(&mut self, connections: u32) -> Result<(), Failure> {
        let goal = self.tally.connections + u64::from(connections);
        while self.tally.connections < goal {
            let under_way = self.opened - self.tally.connections;
            let open = (u64::from(AT_A_TIME) - under_way).min(goal - self.opened);
            for _ in 0..open {
                self.open()?;
            }
            self.step()?;
        }
        Ok(())
    }

    fn tally(&self) -> Tally {
        self.tally
    }

    fn waiting(&self) -> Result<u64, Failure> {
        self.namespaces.waiting()
    }

    fn connect(&mut self) -> Result<Option<OwnedFd>, Failure> {
        let client = socket()?;
        match start(&client, namespaces::SILENT) {
            Ok(()) => Ok(Some(client)),
            Err(Errno::ADDRNOTAVAIL) => Ok(None),
            Err(other) => Err(other.into()),
        }
    }

    fn abort(&mut self, handle: OwnedFd) -> Result<(), Failure> {
        drop(handle);
        Ok(())
    }

    fn open_idle(&mut self, count: u32) -> Result<(), Failure> {
        for _ in 0..count {
            self.open()?;
        }
        while self.connected < self.opened || self.accepted < self.opened {
            self.step()?;
        }
        Ok(())
    }

    fn receive_syns(&mut self, _: u32) -> Result<(), Failure> {
        Err("it was not to be asked".into())
    }

    fn stage(&mut self, _: &[u32]) -> Result<(), Failure> {
        Err("it was not to be asked".into())
    }

    fn deliver(&mut self, _: usize) -> Result<(), Failure> {
        Err("it was not to be asked".into())
    }

    fn cpu_time_elsewhere(&self) -> Result<Duration, Failure> {
        self.namespaces.softirq_time()
    }

    fn memory(&self) -> Result<u64, Failure> {
        namespaces::kernel_memory()
    }

    fn most_idle(&self) -> u32 {
        self.namespaces.most_sockets / 2
    }
}

fn socket() -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::NONBLOCK;
    rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)
}

fn start(client: &OwnedFd, server: Ipv4Addr) -> Result<(), Errno> {
    match rustix::net::connect(client, &SocketAddrV4::new(server, SERVICE)) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(()),
        Err(other) => Err(other),
    }
}

fn watch(epoll: &OwnedFd, socket: &OwnedFd) -> Result<(), Errno> {
    let data = epoll::EventData::new_u64(socket.as_raw_fd() as u64);
    let flags = epoll::EventFlags::IN | epoll::EventFlags::OUT | epoll::EventFlags::ET;
    epoll::add(epoll, socket, data, flags)
}

fn write(socket: &OwnedFd, bytes: &[u8]) -> Result<(), Failure> {
    let count = rustix::io::write(socket, bytes)?;
    if count == bytes.len() {
        return Ok(());
    }
    Err(format!("{count} of {} bytes were taken", bytes.len()).into())
}

const SERVICE: u16 = 80;
/// Connections to one address: a port that is chosen at random is then rarely one in TIME-WAIT.
const PORTS_OF_ONE: u32 = 2_000;
