//! Two interfaces of smoltcp in one thread. Its applications write into and read from the buffers of its
//! sockets: where they do not copy, what is sent is what lies there.

use smoltcp::iface::{Config, Interface, PollIngressSingleResult, SocketHandle, SocketSet};
use smoltcp::phy::{self, ChecksumCapabilities, DeviceCapabilities, Medium};
use smoltcp::socket::tcp::{Socket, SocketBuffer};
use smoltcp::time::{Duration, Instant};
use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr};

use super::link::Link;
use super::text::{COPIED, PIECE, Source};
use super::{Case, Check, Copies, Pair, Stamps};
use crate::Failure;

/// A client that sends, a server that reads, and the connections between them.
pub(super) struct Smoltcp {
    now: Instant,
    client: Side,
    server: Side,
    source: Source,
    copies: Copies,
    written: Vec<u8>,
    read: Vec<u8>,
    carried: u64,
    frames: u64,
}

struct Side {
    interface: Interface,
    device: Device,
    sockets: SocketSet<'static>,
    /// Each connection, and how far its stream is.
    flows: Vec<(SocketHandle, u64)>,
}

impl Smoltcp {
    /// Two hosts, with all connections of `case` between them.
    pub(super) fn new(case: Case) -> Result<Self, Failure> {
        let (mut client, mut server) = (Side::new(2, case)?, Side::new(1, case)?);
        for flow in 0..case.flows {
            let port = SERVICE + flow as u16;
            let mut listening = socket(case);
            listening.listen(port).map_err(|error| error.to_string())?;
            server.flows.push((server.sockets.add(listening), 0));
            let mut opening = socket(case);
            let (remote, local) = ((address(1), port), (address(2), 40_000 + flow as u16));
            let context = client.interface.context();
            opening.connect(context, remote, local).map_err(|error| error.to_string())?;
            client.flows.push((client.sockets.add(opening), 0));
        }
        Ok(Self {
            now: Instant::ZERO,
            client,
            server,
            source: Source::new(case.copies),
            copies: case.copies,
            written: Vec::with_capacity(COPIED),
            read: vec![0; PIECE],
            carried: 0,
            frames: 0,
        })
    }

    fn turn(&mut self, check: Check) -> Result<(), Failure> {
        self.client.transmit(self.now);
        let sent = self.client.device.carry(&mut self.server.device);
        self.frames += self.server.device.with_text();
        self.server.receive(self.now);
        self.serve(check)?;
        self.server.transmit(self.now);
        let answered = self.server.device.carry(&mut self.client.device);
        self.client.receive(self.now);
        let written = self.drive(check)?;
        if sent + answered == 0 && written == 0 {
            // No host has a frame to send: advance to the next timer.
            let next = [&mut self.client, &mut self.server]
                .map(|side| side.interface.poll_at(self.now, &side.sockets));
            let next = next.into_iter().flatten().min().ok_or("both hosts wait for nothing")?;
            self.now = self.now.max(next);
        }
        self.now += TURN;
        Ok(())
    }

    fn serve(&mut self, check: Check) -> Result<(), Failure> {
        for (handle, read) in &mut self.server.flows {
            let socket = self.server.sockets.get_mut::<Socket>(*handle);
            while socket.can_recv() {
                let len = if self.copies == Copies::Both {
                    let len = socket.recv_slice(&mut self.read).map_err(|it| it.to_string())?;
                    let text = std::hint::black_box(&self.read[..len]);
                    self.source.check(*read, text, check)?;
                    len
                } else {
                    let source = &self.source;
                    let looked = socket.recv(|text| {
                        (text.len(), source.check(*read, text, check).map(|()| text.len()))
                    });
                    looked.map_err(|it| it.to_string())??
                };
                *read += len as u64;
                self.carried += len as u64;
            }
        }
        Ok(())
    }

    fn drive(&mut self, check: Check) -> Result<usize, Failure> {
        let mut written = 0;
        for (handle, sent) in &mut self.client.flows {
            let socket = self.client.sockets.get_mut::<Socket>(*handle);
            while socket.can_send() {
                let piece = self.source.piece(*sent);
                let len = if self.copies == Copies::Both {
                    // No more than there is room for.
                    let room = socket.send_capacity() - socket.send_queue();
                    self.written.clear();
                    self.written.extend_from_slice(&piece[..room.min(piece.len())]);
                    socket.send_slice(&self.written).map_err(|it| it.to_string())?
                } else {
                    let filled = socket.send(|room| {
                        let len = room.len().min(piece.len());
                        if check == Check::Every {
                            room[..len].copy_from_slice(&piece[..len]);
                        }
                        (len, len)
                    });
                    filled.map_err(|it| it.to_string())?
                };
                *sent += len as u64;
                written += len;
            }
        }
        Ok(written)
    }
}

impl Pair for Smoltcp {
    fn carry(&mut self, bytes: u64, check: Check) -> Result<(), Failure> {
        let goal = self.carried + bytes;
        while self.carried < goal {
            self.turn(check)?;
        }
        Ok(())
    }

    fn carried(&self) -> u64 {
        self.carried
    }

    fn frames(&self) -> u64 {
        self.frames
    }
}

impl Side {
    fn new(host: u32, case: Case) -> Result<Self, Failure> {
        let mut device = Device::new(case.link);
        let config = Config::new(HardwareAddress::Ip);
        let mut interface = Interface::new(config, &mut device, Instant::ZERO);
        let mut full = false;
        interface.update_ip_addrs(|list| full = list.push(IpCidr::new(address(host), 8)).is_err());
        if full {
            return Err("an interface without room for an address".into());
        }
        Ok(Self { interface, device, sockets: SocketSet::new(Vec::new()), flows: Vec::new() })
    }

    /// A burst of what the sockets have to send.
    fn transmit(&mut self, now: Instant) {
        let mut before = usize::MAX;
        while before != self.device.sent.filled {
            before = self.device.sent.filled;
            self.interface.poll_egress(now, &mut self.device, &mut self.sockets);
        }
    }

    fn receive(&mut self, now: Instant) {
        let Self { interface, device, sockets, .. } = self;
        while interface.poll_ingress_single(now, device, sockets) != PollIngressSingleResult::None {
        }
    }
}

/// One end of a wire: frames are written once, by the sender, and read where they are.
struct Device {
    link: Link,
    received: Queue,
    sent: Queue,
}

/// Frames in buffers that are used again and again.
#[derive(Default)]
struct Queue {
    buffers: Vec<Vec<u8>>,
    filled: usize,
    taken: usize,
}

impl Device {
    fn new(link: Link) -> Self {
        Self { link, received: Queue::default(), sent: Queue::default() }
    }

    /// Delivers the sent frames to `other`, which has read all earlier ones.
    fn carry(&mut self, other: &mut Self) -> usize {
        std::mem::swap(&mut self.sent, &mut other.received);
        (self.sent.filled, self.sent.taken) = (0, 0);
        other.received.filled
    }

    /// Number of received frames with text.
    fn with_text(&self) -> u64 {
        let frames = self.received.buffers.iter().take(self.received.filled);
        frames.filter(|frame| frame.len() > 100).count() as u64
    }
}

impl phy::Device for Device {
    type RxToken<'a> = Received<'a>;
    type TxToken<'a> = Sent<'a>;

    fn receive(&mut self, _: Instant) -> Option<(Received<'_>, Sent<'_>)> {
        let Queue { buffers, filled, taken } = &mut self.received;
        let frame = buffers.get(*taken).filter(|_| *taken < *filled)?;
        *taken += 1;
        Some((Received(frame), Sent(&mut self.sent)))
    }

    fn transmit(&mut self, _: Instant) -> Option<Sent<'_>> {
        let has_room = self.sent.filled < self.link.burst();
        has_room.then_some(Sent(&mut self.sent))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = self.link.frame();
        if !self.link.has_checksums() {
            capabilities.checksum = ChecksumCapabilities::ignored();
        }
        capabilities
    }
}

/// A frame to be read.
struct Received<'a>(&'a [u8]);

impl phy::RxToken for Received<'_> {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, read: F) -> R {
        read(self.0)
    }
}

/// A frame to be written.
struct Sent<'a>(&'a mut Queue);

impl phy::TxToken for Sent<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, write: F) -> R {
        let queue = self.0;
        if queue.filled == queue.buffers.len() {
            queue.buffers.push(Vec::new());
        }
        let buffer = &mut queue.buffers[queue.filled];
        buffer.resize(len, 0);
        queue.filled += 1;
        write(buffer)
    }
}

fn socket(case: Case) -> Socket<'static> {
    let size = case.buffer.bytes().unwrap_or(1 << 20);
    let buffer = || SocketBuffer::new(vec![0; size]);
    let mut socket = Socket::new(buffer(), buffer());
    if case.stamps == Stamps::On {
        socket.set_tsval_generator(Some(stamp));
    }
    socket
}

/// A clock for timestamps that stands still: to read one would cost what Whimbrel does not pay either.
fn stamp() -> u32 {
    1
}

/// The host with this number, in 10.0.0.0/8.
fn address(host: u32) -> IpAddress {
    IpAddress::from(std::net::Ipv4Addr::from_bits(0x0a00_0000 + host))
}

/// The port of the first connection.
const SERVICE: u16 = 10_000;
/// Virtual time that a turn takes.
const TURN: Duration = Duration::from_micros(20);
