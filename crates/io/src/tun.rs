//! TUN and TAP: an interface whose other end is this process (Linux
//! `Documentation/networking/tuntap.rst`).
//!
//! Frames begin with their IP header (TUN) or an Ethernet header (TAP). Each costs one system call
//! (0.7 to 1.0 us), but may stand for up to 64 kB of segments, in both directions ([`vnet`]).

use std::fs::File;
use std::io::{self, IoSlice, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use whimbrel_base::Foreign;
use whimbrel_base::packet::{MAX_SLICES, SegMeta, TxSegment};
use whimbrel_stack::{Capabilities, Medium, RxFrame, Steering, TxBatch};
use whimbrel_tcp::recv::ChunkPool;
use whimbrel_wire::EthernetHeader;

use crate::device::{Device, DeviceCounters, MAX_BURST, TxOutcome, interface_is_gone};
use crate::netlink::Netlink;
use crate::steering::program;
use crate::sys::tun::TunFile;
use crate::{entropy, sys};

pub mod config;
pub mod error;
mod long_frames;
pub mod vnet;

use config::TunHandle;
pub use config::{Layer, Offload, TunConfig};
pub use error::TunError;
use long_frames::{LongFrames, ReadTo};
use vnet::VnetHeader;

/// One queue of a TUN or TAP interface. The interface exists as long as its queues, unless it was
/// made persistent before.
#[derive(Debug)]
pub struct Tun {
    file: TunFile,
    name: String,
    capabilities: Capabilities,
    framing: Framing,
    offloads: Offloads,
    arena: Box<[u8]>,
    long: LongFrames,
    counters: DeviceCounters,
}

/// Offloads that the kernel may leave to the stack (`TUN_F_*`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Offloads(u32);

impl Offloads {
    /// True if the kernel supports super-frames of datagrams: it takes them if it delivers them.
    const fn cut_datagrams(self) -> bool {
        const BOTH: u32 = libc::TUN_F_USO4 | libc::TUN_F_USO6;
        self.0 & BOTH == BOTH
    }

    /// Returns their names, for messages: `csum tso4 tso6 ecn uso4 uso6`.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        const NAMES: [(u32, &str); 6] = [
            (libc::TUN_F_CSUM, "csum"),
            (libc::TUN_F_TSO4, "tso4"),
            (libc::TUN_F_TSO6, "tso6"),
            (libc::TUN_F_TSO_ECN, "ecn"),
            (libc::TUN_F_USO4, "uso4"),
            (libc::TUN_F_USO6, "uso6"),
        ];
        NAMES.into_iter().filter(move |(bit, _)| self.0 & bit != 0).map(|(_, name)| name)
    }
}

impl Tun {
    /// Creates the interface, or attaches to it, in the network namespace of the calling thread.
    /// Sets its MTU, queue length, addresses and routes, and brings it up. The interface of a
    /// [descriptor](TunConfig::from_fd) is not changed.
    pub fn open(config: &TunConfig) -> Result<Self, TunError> {
        if config.queues() > 1 {
            return Err(TunError::Queues(config.queues()));
        }
        let tun = Self::attach(config)?;
        set_up(config)?;
        Ok(tun)
    }

    /// Returns the descriptor, for a process without the privilege to open one; that process makes
    /// a device of it with [`TunConfig::from_fd`].
    pub fn into_fd(self) -> OwnedFd {
        self.file.into()
    }

    /// Opens every queue in `config`, as [`Tun::open`] does: one for each worker, to be
    /// [joined](crate::Steered::join). The kernel computes the queue of a segment. If it takes no
    /// program for that (no CAP_BPF), a flow stays on the queue that last sent for it.
    pub fn open_queues(config: &TunConfig) -> Result<Vec<Self>, TunError> {
        let queues: Vec<_> =
            (0..config.queues()).map(|_| Self::attach(config)).collect::<Result<_, _>>()?;
        if let [first, _, ..] = queues.as_slice() {
            let program = sys::bpf::load(&program::extended(config.queues()));
            // Without the program frames are forwarded between shards, at the cost of a copy.
            let _ = program.and_then(|program| first.file.set_steering(&program));
        }
        set_up(config)?;
        Ok(queues)
    }

    /// Returns the offloads that the kernel may leave to the stack: no USO on kernels before 6.2.
    pub fn offloads(&self) -> Offloads {
        self.offloads
    }

    /// Sends one segment, or drops it if the kernel refuses it. Returns the reason if it must be
    /// sent later. An error means that the interface is gone.
    pub fn send(&mut self, segment: &TxSegment) -> io::Result<Option<TxOutcome>> {
        let vnet = VnetHeader::of_segment(segment, self.link_header_len()).encode();
        let vnet = self.framing.of(&vnet);
        let Err(error) = write_segment(self.file.file(), vnet, segment) else {
            self.counters.count_sent(segment);
            return Ok(None);
        };
        if let Some(outcome) = self.counters.on_busy(&error) {
            return Ok(Some(outcome));
        }
        if is_lost(&error) {
            return Err(error);
        }
        self.counters.tx_dropped += 1;
        self.counters.tx_last_error = error.raw_os_error();
        Ok(None)
    }

    /// Sends one finished packet to the machine. Returns false if memory is short or the interface
    /// is down. An error means that the interface is gone.
    pub fn send_packet(&mut self, packet: &[u8]) -> io::Result<bool> {
        let vnet = VnetHeader::default().encode();
        let vnet = IoSlice::new(self.framing.of(&vnet));
        let sent = (&mut self.file.file()).write_vectored(&[vnet, IoSlice::new(packet)]);
        match sent {
            Ok(_) => {
                self.counters.tx_frames += 1;
                self.counters.tx_bytes += packet.len() as u64;
                Ok(true)
            }
            Err(error) if is_lost(&error) => Err(error),
            Err(error) => {
                self.counters.tx_dropped += 1;
                self.counters.tx_last_error = error.raw_os_error();
                Ok(false)
            }
        }
    }

    fn attach(config: &TunConfig) -> Result<Self, TunError> {
        if let Some(given) = config.given() {
            return Self::adopt(config, given);
        }
        let file = TunFile::open().map_err(TunError::on_open)?;
        let name = Foreign::new(config.name().to_bytes()).to_string();
        let medium = medium(config.layer())?;
        let mut flags = libc::IFF_NO_PI | libc::IFF_VNET_HDR;
        flags |= match medium {
            Medium::Ip => libc::IFF_TUN,
            Medium::Ethernet { .. } => libc::IFF_TAP,
        };
        if config.queues() > 1 {
            flags |= libc::IFF_MULTI_QUEUE;
        }
        file.set_interface(config.name(), flags)
            .map_err(|error| TunError::on_attach(&name, error))?;
        let steering = if config.queues() > 1 { Steering::Consistent } else { Steering::None };
        Self::of_queue(config, file, Framing::Vnet, medium, steering)
    }

    /// Opens a queue from an existing descriptor.
    fn adopt(config: &TunConfig, given: &TunHandle) -> Result<Self, TunError> {
        let file = given.file()?;
        // The other queues may belong to other programs: a flow stays with the queue that last sent
        // for it.
        let steering = if given.is_multi_queue() { Steering::Consistent } else { Steering::None };
        Self::of_queue(config, file, given.framing(), medium(config.layer())?, steering)
    }

    /// Creates a queue of an interface.
    fn of_queue(
        config: &TunConfig,
        file: TunFile,
        framing: Framing,
        medium: Medium,
        steering: Steering,
    ) -> Result<Self, TunError> {
        let name = Foreign::new(config.name().to_bytes()).to_string();
        let refused = |doing| {
            let name = name.clone();
            move |error| TunError::on_setup(doing, &name, error)
        };
        let offloads = match framing {
            Framing::Vnet => {
                file.set_vnet_header_size(VnetHeader::LEN as i32)
                    .map_err(refused("set the offload header's size"))?;
                accept_offloads(&file, config.offload()).map_err(refused("set offloads"))?
            }
            Framing::Bare => {
                // Offloads may have been left on by the descriptor's previous owner; frames would
                // not announce them.
                let _ = file.set_offload(0);
                Offloads(0)
            }
        };
        Ok(Self {
            file,
            name: format!("{}:{name}", config.layer().kind()),
            capabilities: capabilities(config, medium, framing, offloads).with_steering(steering),
            framing,
            offloads,
            arena: vec![0; ARENA].into_boxed_slice(),
            long: LongFrames::default(),
            counters: DeviceCounters::default(),
        })
    }

    /// Reads frames: one behind the other into the arena, or long ones into chunks. Records the
    /// valid ones in `places`.
    fn read_burst(&mut self, places: &mut [Place; MAX_BURST]) -> io::Result<Burst> {
        let mut burst = Burst::default();
        let (mut start, mut long) = (FIRST, 0);
        while burst.taken < MAX_BURST && start + long < BURST_BYTES {
            let Some(buffer) = self.arena.get_mut(start..start + SLOT) else { break };
            let read = self.long.read(&self.file, buffer);
            if read.as_ref().is_err_and(ends_burst) {
                match read {
                    Err(error) if burst.taken == 0 && !is_transient(&error) => return Err(error),
                    _ => break,
                }
            }
            burst.taken += 1;
            // Length zero stands for a frame that the kernel could not deliver.
            let place = match read.unwrap_or(ReadTo::Buffer(0)) {
                ReadTo::Buffer(len) => Place { start, len, ..Place::EMPTY },
                ReadTo::Chunk { index, len } => Place { chunk: Some(index), len, ..Place::EMPTY },
            };
            if self.framing == Framing::Bare
                && self.capabilities.medium == Medium::Ip
                && has_packet_information(self.bytes(&place))
            {
                return Err(packet_information());
            }
            let place = self.take_frame(place);
            if let Some((place, free)) = place.zip(places.get_mut(burst.good)) {
                *free = place;
                burst.good += 1;
                match place.chunk {
                    None => start = next_start(place.start + place.len),
                    Some(_) => long += place.len,
                }
            }
        }
        Ok(burst)
    }

    /// Checks that the bytes read are a frame; returns its place and metadata.
    fn take_frame(&mut self, read: Place) -> Option<Place> {
        if read.len == SLOT {
            self.counters.rx_oversized += 1;
            return None;
        }
        let bytes = self.bytes(&read);
        let frame = match self.framing {
            Framing::Bare => Some((bytes, SegMeta::SINGLE)),
            Framing::Vnet => bytes.split_first_chunk().and_then(|(header, frame)| {
                let ip_at = vnet::ip_offset(self.capabilities.medium, frame);
                Some((frame, VnetHeader::decode(header).meta(frame, ip_at).ok()?))
            }),
        };
        let Some((frame, meta)) = frame.filter(|(frame, _)| !frame.is_empty()) else {
            self.counters.rx_malformed += 1;
            return None;
        };
        let len = frame.len();
        self.counters.rx_frames += 1;
        self.counters.rx_segments += u64::from(meta.segs);
        self.counters.rx_bytes += len as u64;
        Some(Place { start: read.start + read.len - len, len, meta, ..read })
    }

    fn bytes(&self, place: &Place) -> &[u8] {
        let memory = match place.chunk {
            None => &self.arena[..],
            Some(chunk) => self.long.chunks().get(chunk).map_or(&[][..], |chunk| chunk),
        };
        memory.get(place.start..place.start + place.len).unwrap_or_default()
    }

    fn link_header_len(&self) -> usize {
        match self.capabilities.medium {
            Medium::Ip => 0,
            Medium::Ethernet { .. } => EthernetHeader::LEN,
        }
    }
}

impl Device for Tun {
    fn name(&self) -> String {
        self.name.clone()
    }

    /// `tap:whim0 (mac 02:…; offloads: csum tso4; mtu 1500)`.
    fn about(&self) -> String {
        let mac = match self.capabilities.medium {
            Medium::Ip => String::new(),
            Medium::Ethernet { mac } => format!("mac {mac}; "),
        };
        let offloads: Vec<_> = self.offloads.names().collect();
        let offloads = if offloads.is_empty() { "none".into() } else { offloads.join(" ") };
        format!("{} ({mac}offloads: {offloads}; mtu {})", self.name, self.capabilities.mtu)
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn take_room(&mut self, chunks: &mut ChunkPool) {
        self.long.take_room(chunks);
    }

    fn rx_burst(&mut self, deliver: &mut dyn FnMut(&[RxFrame<'_>])) -> io::Result<usize> {
        let mut places = [Place::EMPTY; MAX_BURST];
        let burst = self.read_burst(&mut places).map_err(|error| match is_lost(&error) {
            true => interface_is_gone(),
            false => error,
        })?;
        if burst.good > 0 {
            let mut frames = [RxFrame::new(&[], SegMeta::SINGLE); MAX_BURST];
            for (frame, place) in frames.iter_mut().zip(&places).take(burst.good) {
                let chunk = place.chunk.and_then(|chunk| self.long.chunks().get(chunk));
                *frame = RxFrame { bytes: self.bytes(place), meta: place.meta, chunk };
            }
            deliver(frames.get(..burst.good).unwrap_or_default());
        }
        self.long.release();
        Ok(burst.taken)
    }

    fn tx_burst(&mut self, batch: &mut TxBatch) -> io::Result<TxOutcome> {
        while let Some(segment) = batch.pending().first() {
            if let Some(outcome) = self.send(segment)? {
                return Ok(outcome);
            }
            batch.consume(1);
        }
        Ok(TxOutcome::Drained)
    }

    fn counters(&self) -> &DeviceCounters {
        &self.counters
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Header in front of each frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Framing {
    /// An offload header.
    Vnet,
    /// None: each frame is one segment with its checksum.
    Bare,
}

impl Framing {
    /// Returns the bytes of an offload header that are written.
    fn of(self, vnet: &[u8; VnetHeader::LEN]) -> &[u8] {
        match self {
            Self::Vnet => vnet,
            Self::Bare => &[],
        }
    }
}

/// Position of a frame, without its offload header.
#[derive(Clone, Copy)]
struct Place {
    /// Index of its [chunk](LongFrames::chunks). `None`: in the arena.
    chunk: Option<usize>,
    start: usize,
    len: usize,
    meta: SegMeta,
}

impl Place {
    const EMPTY: Self = Self { chunk: None, start: 0, len: 0, meta: SegMeta::SINGLE };
}

/// Numbers of frames read, and of frames to deliver.
#[derive(Default)]
struct Burst {
    taken: usize,
    good: usize,
}

/// Returns the medium of an interface; for Ethernet with a random station, if none is given.
fn medium(layer: Layer) -> Result<Medium, TunError> {
    Ok(match layer {
        Layer::Ip => Medium::Ip,
        Layer::Ethernet(Some(mac)) => Medium::Ethernet { mac },
        Layer::Ethernet(None) => Medium::Ethernet { mac: entropy::station()? },
    })
}

fn capabilities(
    config: &TunConfig,
    medium: Medium,
    framing: Framing,
    offloads: Offloads,
) -> Capabilities {
    let on = config.offload() == Offload::On && framing == Framing::Vnet;
    let mtu = config.mtu();
    let plain = Capabilities::plain(medium, mtu);
    match (on, offloads.cut_datagrams()) {
        (false, _) => plain,
        (true, false) => plain.with_segmentation(65_535),
        (true, true) => plain.with_segmentation(65_535).with_udp_segmentation(),
    }
}

/// Requests all offloads, then fewer, until the kernel accepts.
fn accept_offloads(tun: &TunFile, offload: Offload) -> io::Result<Offloads> {
    let tso = libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6;
    let all = tso | libc::TUN_F_TSO_ECN | libc::TUN_F_USO4 | libc::TUN_F_USO6;
    let ladder: &[u32] = match offload {
        Offload::On => &[all, tso | libc::TUN_F_TSO_ECN, tso, libc::TUN_F_CSUM],
        Offload::Off => &[],
    };
    for &features in ladder {
        if tun.set_offload(features).is_ok() {
            return Ok(Offloads(features));
        }
    }
    tun.set_offload(0)?;
    Ok(Offloads(0))
}

/// Sets up the machine's side of the interface.
fn set_up(config: &TunConfig) -> Result<(), TunError> {
    if config.given().is_some() {
        return Ok(());
    }
    let name = &Foreign::new(config.name().to_bytes()).to_string();
    let refused = |doing| move |error| TunError::on_setup(doing, name, error);
    let index = sys::interface_index(config.name()).map_err(refused("find the number"))?;
    let mut netlink = Netlink::open().map_err(refused("open a routing socket"))?;
    // This fails if IPv6 is switched off, and then it is not needed.
    let _ = netlink.no_generated_addresses(index);
    netlink.bring_up(index, config.mtu(), QUEUE_FRAMES).map_err(refused("set the link up"))?;
    for &host in config.hosts() {
        netlink.add_address(index, host).map_err(refused("add the machine's address"))?;
    }
    for address in config.lone_addresses() {
        netlink.add_route(index, address).map_err(refused("add a route to the stack"))?;
    }
    Ok(())
}

fn write_segment(mut tun: &File, vnet: &[u8], segment: &TxSegment) -> io::Result<()> {
    let mut slices = [IoSlice::new(&[]); MAX_SLICES + 2];
    let parts = [vnet, segment.header()];
    let parts = parts.into_iter().chain(segment.payload.as_slice().iter().map(AsRef::as_ref));
    let mut count = 0;
    for (slice, part) in slices.iter_mut().zip(parts) {
        *slice = IoSlice::new(part);
        count += 1;
    }
    // A packet is taken whole or not at all.
    tun.write_vectored(slices.get(..count).unwrap_or_default()).map(|_| ())
}

/// True if no more can be read now. EINVAL concerns one frame, which the kernel could not describe
/// by an offload header and dropped: the next may be readable.
fn ends_burst(error: &io::Error) -> bool {
    error.raw_os_error() != Some(libc::EINVAL)
}

/// True if the interface is gone, and not only the packet refused.
fn is_lost(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EBADFD | libc::EBADF))
}

/// An interrupted read loses nothing: the descriptor stays readable.
fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// True if a frame begins with `struct tun_pi` (linux/if_tun.h): flags and a protocol, where an IP
/// header has its version.
fn has_packet_information(frame: &[u8]) -> bool {
    match frame {
        [0, _, 0x08, 0x00, first, ..] => first >> 4 == 4,
        [0, _, 0x86, 0xdd, first, ..] => first >> 4 == 6,
        _ => false,
    }
}

fn packet_information() -> io::Error {
    let text =
        "it puts four bytes of packet information in front of each frame: make it with IFF_NO_PI";
    io::Error::new(io::ErrorKind::InvalidData, text)
}

/// Returns the offset of the next frame's offload header, so that the frame is aligned to 16 bytes.
fn next_start(end: usize) -> usize {
    (end + VnetHeader::LEN).next_multiple_of(16) - VnetHeader::LEN
}

/// Bytes after which a burst ends, so that they are still in the second-level cache when the stack
/// reads them: 128 KiB.
const BURST_BYTES: usize = 128 * 1024;
/// Bytes of memory for one read: the largest IPv6 packet (a header of 40 bytes and 65,535 of
/// payload), its offload header, an Ethernet header with a tag, and one byte that is filled only if
/// the frame is larger still.
const SLOT: usize = VnetHeader::LEN + EthernetHeader::LEN + 4 + 40 + 65_535 + 1;
/// Offset of the first frame's offload header.
const FIRST: usize = 16 - VnetHeader::LEN;
/// Bytes of memory for a burst that ends with a frame of the largest size.
const ARENA: usize = BURST_BYTES + SLOT;
/// Length of the interface's queue towards the stack, in frames. The kernel's 500 hold 1.5 ms of
/// short connections at full rate, less than a busy machine may let a thread wait. Much longer
/// queues only add delay, because a sender cannot see them.
const QUEUE_FRAMES: u32 = 4096;
