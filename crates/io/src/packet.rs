//! AF_PACKET: a station of the stack's own on an interface of the machine (packet(7)).
//!
//! The kernel keeps the interface. The stack takes the frames sent to its own station, and answers
//! for its own addresses. Its station is not the interface's, so the kernel's stack ignores those
//! frames and sends no RST. It cannot reach the machine that it runs on, whose frames leave by the
//! cable and do not come back.
//!
//! # Receiving
//!
//! Frames arrive in a ring of TPACKET_V2, whose slots are visible as soon as each is filled.
//! TPACKET_V3 hides frames until their block is full or its time is over. With the shortest time,
//! frames sent every 3 ms over veth were seen after a median of 620 us (613 to 628 in three runs),
//! with V2 after 42 us (42 to 44). The MTU decides the size of slots. Super-frames exceed them:
//! they wait in the socket's queue (`PACKET_COPY_THRESH`) and cost a system call each, as on TUN.
//! Slots for 64 kB each would take 270 MB for the same burst.
//!
//! # Sending
//!
//! One sendmmsg(2) sends up to [`AT_ONCE`] segments, each with its offload header
//! (`PACKET_VNET_HDR`). The kernel completes checksums and segments what the interface does not.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};

use libc::TP_STATUS_COPY;
use whimbrel_base::Foreign;
use whimbrel_base::packet::{MAX_SLICES, SegMeta, TxSegment};
use whimbrel_stack::{Capabilities, InterfaceAddress, Medium, RxFrame, TxBatch};
use whimbrel_wire::{EthernetHeader, MacAddress};

use crate::device::{Device, DeviceCounters, MAX_BURST, TxOutcome, interface_is_gone};
use crate::sys::packet::{InterfaceState, PacketOption, PacketSocket, Ring};
use crate::sys::ring::{RingShape, RingSlot};
use crate::tun::Offload;
use crate::tun::vnet::{self, VnetHeader};
use crate::{entropy, packet_filter};

pub mod config;
pub mod error;
pub mod fanout;
mod passed;

pub use config::PacketConfig;
pub use error::PacketError;

/// One socket on the interface, with its ring.
#[derive(Debug)]
pub struct PacketWire {
    // Dropped before the socket, so that nothing is mapped when it closes.
    ring: Ring,
    socket: PacketSocket,
    index: u32,
    name: String,
    capabilities: Capabilities,
    /// Memory for the super-frames of one burst.
    arena: Box<[u8]>,
    counters: DeviceCounters,
}

impl PacketWire {
    /// Attaches to the interface in the network namespace of the calling thread. The interface must
    /// exist and be up.
    pub fn open(config: &PacketConfig) -> Result<Self, PacketError> {
        if config.fanout() > 1 {
            return Err(PacketError::Fanout(config.fanout()));
        }
        let mac = station(config)?;
        let wire = Self::attach(config, mac)?;
        wire.listen(config)?;
        Ok(wire)
    }

    /// Attaches like [`PacketWire::open`], with the number of sockets in `config`: one for each
    /// worker, to be [joined](crate::Steered::join). The kernel computes the socket of a segment.
    pub fn open_fanout(config: &PacketConfig) -> Result<Vec<Self>, PacketError> {
        if config.fanout() > 1 && config.socket().is_some() {
            return Err(PacketError::Fanout(config.fanout()));
        }
        let mac = station(config)?;
        let wires: Vec<_> =
            (0..config.fanout()).map(|_| Self::attach(config, mac)).collect::<Result<_, _>>()?;
        let refused = |error| PacketError::on_setup("share frames", config, error);
        for (at, wire) in wires.iter().enumerate() {
            wire.listen(config)?;
            if wires.len() > 1 {
                let first = wires.first().filter(|_| at > 0).map(|first| &first.socket);
                fanout::join(&wire.socket, first).map_err(refused)?;
            }
        }
        if let [first, _, ..] = wires.as_slice() {
            fanout::deal(&first.socket, config.fanout()).map_err(refused)?;
        }
        Ok(wires)
    }

    /// Creates a socket with its ring. It receives no frame yet.
    fn attach(config: &PacketConfig, mac: MacAddress) -> Result<Self, PacketError> {
        let socket = match config.socket() {
            None => PacketSocket::new().map_err(PacketError::on_socket)?,
            Some(passed) => passed.open().map_err(PacketError::on_socket)?,
        };
        let state = judge_interface(config, &socket)?;
        let refused = |doing| move |error| PacketError::on_setup(doing, config, error);
        let set = |option| socket.set(option, 1);
        set(PacketOption::IgnoreOutgoing).map_err(refused("ignore what it sends"))?;
        set(PacketOption::VnetHeader).map_err(refused("ask for offload headers"))?;
        set(PacketOption::CopyThreshold).map_err(refused("keep super-frames"))?;
        socket.set_receive_buffer(SUPER_BYTES);
        let slot = (SLOT_HEAD + usize::from(mtu(&state))).next_power_of_two().max(LEAST_SLOT);
        let ring = RingShape::new(slot, RING_FRAMES).and_then(|shape| socket.ring(shape));
        let ring = ring.map_err(refused("make a ring"))?;
        let program = packet_filter::own_frames(mac);
        socket.attach_filter(&program).map_err(refused("filter frames"))?;
        Ok(Self {
            ring,
            socket,
            index: state.index,
            name: format!("packet:{}", Foreign::new(config.name().to_bytes())),
            capabilities: capabilities(config, mac, mtu(&state)),
            arena: vec![0; ARENA].into_boxed_slice(),
            counters: DeviceCounters::default(),
        })
    }

    /// Starts the arrival of frames.
    fn listen(&self, config: &PacketConfig) -> Result<(), PacketError> {
        let refused = |doing| move |error| PacketError::on_setup(doing, config, error);
        let Medium::Ethernet { mac } = self.capabilities.medium else { return Ok(()) };
        // Without this, the interface's own filter might withhold them.
        let join = |kind| self.socket.add_membership(self.index, kind, mac.0);
        join(libc::PACKET_MR_UNICAST).map_err(refused("take frames for the stack's station"))?;
        // Neighbour Discovery asks groups of stations.
        join(libc::PACKET_MR_ALLMULTI).map_err(refused("take frames for groups"))?;
        self.socket.bind(self.index).map_err(refused("bind"))
    }

    /// Sends some of the pending segments. Returns how many, or the error for the first.
    fn send(&self, pending: &[TxSegment]) -> io::Result<usize> {
        let mut offloads = [[0; VnetHeader::LEN]; AT_ONCE];
        for (offload, segment) in offloads.iter_mut().zip(pending) {
            *offload = VnetHeader::of_segment(segment, EthernetHeader::LEN).encode();
        }
        let mut slices = [[IoSlice::new(&[]); MAX_SLICES + 2]; AT_ONCE];
        let mut frames: [&[IoSlice<'_>]; AT_ONCE] = [&[]; AT_ONCE];
        let mut count = 0;
        let places = slices.iter_mut().zip(&mut frames);
        for (((slices, frame), segment), offload) in places.zip(pending).zip(&offloads) {
            let text = segment.payload.as_slice();
            let parts = [offload.as_slice(), segment.header()].into_iter();
            for (slice, part) in slices.iter_mut().zip(parts.chain(text.iter().map(AsRef::as_ref)))
            {
                *slice = IoSlice::new(part);
            }
            *frame = slices.get(..text.len() + 2).unwrap_or_default();
            count += 1;
        }
        self.socket.send(frames.get(..count).unwrap_or_default())
    }

    /// Handles a refused send. Returns the reason to stop, or `None` if the first segment was
    /// dropped.
    fn on_refusal(
        &mut self,
        error: io::Error,
        batch: &mut TxBatch,
    ) -> io::Result<Option<TxOutcome>> {
        if let Some(outcome) = self.counters.on_busy(&error) {
            return Ok(Some(outcome));
        }
        match error.raw_os_error() {
            Some(libc::ENXIO | libc::ENODEV) => Err(error),
            errno => {
                self.counters.consume_refused(batch, 1, errno);
                Ok(None)
            }
        }
    }
}

impl Device for PacketWire {
    fn name(&self) -> String {
        self.name.clone()
    }

    /// `packet:eth0 (mac 02:…; offload on; mtu 1500)`.
    fn about(&self) -> String {
        let Capabilities { medium, mtu, tx_checksum, .. } = self.capabilities;
        let mac = match medium {
            Medium::Ip => String::new(),
            Medium::Ethernet { mac } => format!("mac {mac}; "),
        };
        let offload = if tx_checksum { "on" } else { "off" };
        format!("{} ({mac}offload {offload}; mtu {mtu})", self.name)
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn rx_burst(&mut self, deliver: &mut dyn FnMut(&[RxFrame<'_>])) -> io::Result<usize> {
        let Self { ring, socket, arena, counters, .. } = self;
        let mut frames = [RxFrame::new(&[], SegMeta::SINGLE); MAX_BURST];
        let (mut taken, mut good, mut room) = (0, 0, &mut arena[..]);
        while taken < MAX_BURST
            && room.len() >= LARGEST
            && let Some(slot) = ring.waiting(taken)
        {
            taken += 1;
            if slot.status & libc::TP_STATUS_LOSING != 0 {
                counters.rx_missed += u64::from(socket.take_drops()?);
            }
            let whole = match slot.status & TP_STATUS_COPY {
                0 => in_slot(&slot),
                _ => in_queue(socket, &mut room),
            };
            let Some((head, bytes)) = whole else {
                counters.rx_oversized += 1;
                continue;
            };
            let ip_at = vnet::ip_offset(ETHERNET, bytes);
            let (Ok(meta), Some(free)) =
                (VnetHeader::decode(head).meta(bytes, ip_at), frames.get_mut(good))
            else {
                counters.rx_malformed += 1;
                continue;
            };
            *free = RxFrame::new(bytes, meta);
            good += 1;
            counters.rx_frames += 1;
            counters.rx_segments += u64::from(meta.segs);
            counters.rx_bytes += bytes.len() as u64;
        }
        if good > 0 {
            deliver(frames.get(..good).unwrap_or_default());
        }
        ring.release(taken);
        Ok(taken)
    }

    fn tx_burst(&mut self, batch: &mut TxBatch) -> io::Result<TxOutcome> {
        while !batch.is_empty() {
            match self.send(batch.pending()) {
                Ok(sent) => self.counters.consume_sent(batch, sent),
                Err(error) => {
                    if let Some(outcome) = self.on_refusal(error, batch)? {
                        return Ok(outcome);
                    }
                }
            }
        }
        Ok(TxOutcome::Drained)
    }

    fn counters(&self) -> &DeviceCounters {
        &self.counters
    }

    /// Handles an interface that went down, for a while or for good.
    fn on_poll_error(&mut self) -> io::Result<()> {
        let _why = self.socket.take_error()?;
        if self.socket.is_there(self.index) {
            return Ok(());
        }
        Err(interface_is_gone())
    }
}

impl AsFd for PacketWire {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Returns a frame that fitted into its slot, with its offload header.
fn in_slot<'a>(slot: &RingSlot<'a>) -> Option<(&'a [u8; VnetHeader::LEN], &'a [u8])> {
    let head = slot.head.last_chunk()?;
    (slot.frame.len() == slot.len).then_some((head, slot.frame))
}

/// Receives a frame that waits in the socket's queue into the front of `room`.
fn in_queue<'a>(
    socket: &PacketSocket,
    room: &mut &'a mut [u8],
) -> Option<(&'a [u8; VnetHeader::LEN], &'a [u8])> {
    let len = socket.receive(room).ok()?;
    let end = len.next_multiple_of(16).min(room.len());
    let (bytes, rest) = std::mem::take(room).split_at_mut(end);
    *room = rest;
    let bytes: &'a [u8] = bytes;
    // One byte is filled only if the frame is larger still.
    if len >= LARGEST {
        return None;
    }
    bytes.get(..len)?.split_first_chunk()
}

/// Returns the station in `config`, or a random one.
fn station(config: &PacketConfig) -> Result<MacAddress, PacketError> {
    match config.mac() {
        Some(mac) => Ok(mac),
        None => Ok(entropy::station()?),
    }
}

/// Checks that the stack can use this interface with these addresses.
fn judge_interface(
    config: &PacketConfig,
    socket: &PacketSocket,
) -> Result<InterfaceState, PacketError> {
    let name = || Foreign::new(config.name().to_bytes()).to_string();
    let state = socket.interface(config.name()).map_err(|error| match error.raw_os_error() {
        Some(libc::ENODEV) => PacketError::NoInterface(name()),
        _ => PacketError::on_setup("ask about", config, error),
    })?;
    if state.hardware != libc::ARPHRD_ETHER {
        return Err(PacketError::NotEthernet { name: name(), hardware: state.hardware });
    }
    if !state.up {
        return Err(PacketError::Down(name()));
    }
    config.check_mtu(mtu(&state))?;
    // A socket opened elsewhere may be of a namespace that this thread cannot look at.
    let is_here = config.socket().is_none();
    let taken = |own: &&InterfaceAddress| is_here && error::is_address_of_machine(own.addr);
    match config.addresses().iter().find(taken) {
        Some(own) => Err(PacketError::MachinesAddress(own.addr)),
        None => Ok(state),
    }
}

fn mtu(state: &InterfaceState) -> u16 {
    let most = u16::MAX - EthernetHeader::LEN as u16;
    u16::try_from(state.mtu).unwrap_or(most).min(most)
}

fn capabilities(config: &PacketConfig, mac: MacAddress, mtu: u16) -> Capabilities {
    let on = config.offload() == Offload::On;
    let plain = Capabilities::plain(Medium::Ethernet { mac }, mtu);
    if on { plain.with_segmentation(65_535) } else { plain }
}

/// Any Ethernet medium: the offset of an IP header does not depend on the station.
const ETHERNET: Medium = Medium::Ethernet { mac: MacAddress([2, 0, 0, 0, 0, 0]) };
/// Limit of waiting frames, after which the kernel drops frames and
/// [counts](DeviceCounters::rx_missed) them: the length of TUN's queue; 8 MiB at an MTU of 1500.
pub const RING_FRAMES: usize = 4096;
/// Bytes in front of a packet in its slot: the kernel's own header (76 bytes with the offload
/// header), a tagged Ethernet header, and a reserve.
const SLOT_HEAD: usize = 128;
/// Least size of a slot in bytes: two of them fit the kernel's page.
const LEAST_SLOT: usize = 2048;
/// Bytes of super-frames that may wait, with the kernel's overhead.
const SUPER_BYTES: i32 = 16 << 20;
/// Size of the largest frame in bytes: offload header, Ethernet header with a tag, the largest IPv6
/// packet, and one byte that is filled only if the frame is larger still.
const LARGEST: usize = VnetHeader::LEN + EthernetHeader::LEN + 4 + 40 + 65_535 + 1;
/// Memory for the super-frames of a burst in bytes: what stays in the second-level cache until the
/// stack reads it, and one frame more.
const ARENA: usize = 256 * 1024 + LARGEST;
/// Limit of segments in one system call: their slices take 5 kB of stack.
pub const AT_ONCE: usize = 16;
