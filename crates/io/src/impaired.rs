//! A path of our making between a device and its stack: what passes is queued, delayed and lost by a
//! [`Link`] in each direction.
//!
//! The device's super-segments of TCP are cut in front of it (super-frames of UDP are dropped, and counted
//! as malformed), and the stack sees a device that cuts none:
//! a path carries packets. Frames that are no IP packets, such as ARP's, pass at once.

use std::io;
#[cfg(target_os = "linux")]
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use whimbrel_base::Instant;
use whimbrel_base::packet::{RxChecksum, SegMeta, TxChecksum, TxSegment};
use whimbrel_link::{Link, LinkConfig, LinkCounters, cut};
use whimbrel_stack::{Capabilities, Medium, RxFrame, TxBatch};
use whimbrel_tcp::recv::ChunkPool;
use whimbrel_wire::tcp::TcpHeader;
use whimbrel_wire::{EthernetHeader, IpHeader, Protocol};

use crate::Clock;
use crate::device::{AnyDevice, Device, DeviceCounters, MAX_BURST, TxOutcome};

/// A device behind an impaired path.
#[derive(Debug)]
pub struct ImpairedDevice {
    device: AnyDevice,
    clock: Clock,
    links: ImpairedLinks,
    capabilities: Capabilities,
    /// Packets that have left the path, and the device had no room for; as many as one burst.
    out: TxBatch,
    /// Frames in front of the stack that are no IP packets.
    passing: Vec<Bytes>,
    /// Those of the device, and super-frames that are not cut here as malformed ones.
    counters: DeviceCounters,
    uncut: u64,
    /// The next attempt to send what the device had no room for.
    retry: Option<Instant>,
}

/// Both directions of a path, out of the stack and into it. Clones are the same path.
#[derive(Clone, Debug)]
pub struct ImpairedLinks(Arc<Mutex<[Link; 2]>>);

impl ImpairedDevice {
    /// Puts a path in front of `device`: `out` is its direction from the stack, `into` the other. The
    /// same seed makes the same choices.
    pub fn new(device: AnyDevice, clock: Clock, [out, into]: [LinkConfig; 2], seed: u64) -> Self {
        let Capabilities { medium, mtu, steering, .. } = device.capabilities();
        let header = header_len(medium) as u16;
        let link = |mut config: LinkConfig, seed| {
            // Frames on the path have their link's header behind them.
            config.mtu = config.mtu.saturating_add(header);
            Link::new(config, seed)
        };
        let links = [link(out, seed), link(into, seed.wrapping_add(1))];
        Self {
            device,
            clock,
            links: ImpairedLinks(Arc::new(Mutex::new(links))),
            capabilities: Capabilities::plain(medium, mtu).with_steering(steering),
            out: TxBatch::new(MAX_BURST),
            passing: Vec::new(),
            counters: DeviceCounters::default(),
            uncut: 0,
            retry: None,
        }
    }

    /// Returns the path, to be read while the device is in use.
    pub fn links(&self) -> ImpairedLinks {
        self.links.clone()
    }

    /// Puts the device's frames on the path. Returns how many there were.
    fn take_in(&mut self, now: Instant) -> io::Result<usize> {
        let (links, passing, uncut) = (&self.links, &mut self.passing, &mut self.uncut);
        let header = header_len(self.capabilities.medium);
        let taken = self.device.rx_burst(&mut |burst| {
            let [_, into] = &mut *links.lock();
            for frame in burst {
                match OnPath::of(frame, header) {
                    OnPath::Packet(segment, trailer) => cut(&segment, |packet| {
                        into.push_frame(now, with_trailer(packet, &trailer));
                    }),
                    // They are delivered in this turn.
                    OnPath::Passing => passing.push(Bytes::copy_from_slice(frame.bytes)),
                    OnPath::Uncut => *uncut += 1,
                }
            }
        })?;
        self.counters = self.device.counters().clone();
        self.counters.rx_malformed += self.uncut;
        Ok(taken)
    }

    /// Passes to the stack what has crossed the path.
    fn deliver(&mut self, now: Instant, deliver: &mut dyn FnMut(&[RxFrame<'_>])) -> usize {
        let mut frames: Vec<_> = self.passing.drain(..).collect();
        let header = header_len(self.capabilities.medium);
        {
            let [_, into] = &mut *self.links.lock();
            let crossed = std::iter::from_fn(|| into.pop(now));
            frames.extend(crossed.take(MAX_BURST).map(|frame| without_trailer(frame, header)));
        }
        for burst in frames.chunks(MAX_BURST) {
            let burst: Vec<_> =
                burst.iter().map(|frame| RxFrame::new(frame, SegMeta::SINGLE)).collect();
            deliver(&burst);
        }
        frames.len()
    }

    /// Passes to the device what has crossed the path.
    fn send_out(&mut self, now: Instant) -> io::Result<usize> {
        self.retry = None;
        let header = header_len(self.capabilities.medium);
        let mut sent = 0;
        loop {
            while !self.out.is_full() {
                let [out, _] = &mut *self.links.lock();
                let Some(frame) = out.pop(now) else { break };
                self.out.fill(|place| put_frame(place, &without_trailer(frame, header)));
            }
            let before = self.out.pending().len();
            if before == 0 || sent > MAX_BURST {
                return Ok(sent);
            }
            let outcome = self.device.tx_burst(&mut self.out)?;
            sent += before - self.out.pending().len();
            if outcome != TxOutcome::Drained {
                self.retry = Some(now + PAUSE);
                return Ok(sent);
            }
        }
    }
}

impl ImpairedLinks {
    /// Counters of both directions.
    pub fn counters(&self) -> [LinkCounters; 2] {
        let [out, into] = &*self.lock();
        [*out.counters(), *into.counters()]
    }

    /// True if nothing is on the path.
    pub fn is_empty(&self) -> bool {
        self.lock().iter().all(Link::is_empty)
    }

    fn next_arrival(&self) -> Option<Instant> {
        self.lock().iter().filter_map(Link::next_arrival).min()
    }

    /// Locks the path. No code panics while it holds the lock, so a poisoned path is whole.
    fn lock(&self) -> MutexGuard<'_, [Link; 2]> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Device for ImpairedDevice {
    fn name(&self) -> String {
        self.device.name()
    }

    fn about(&self) -> String {
        format!("{}, behind an impaired path", self.device.about())
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn take_room(&mut self, chunks: &mut ChunkPool) {
        self.device.take_room(chunks);
    }

    fn rx_burst(&mut self, deliver: &mut dyn FnMut(&[RxFrame<'_>])) -> io::Result<usize> {
        let now = self.clock.now();
        let taken = self.take_in(now)?;
        let sent = self.send_out(now)?;
        Ok(taken + sent + self.deliver(now, deliver))
    }

    /// All of it is put on the path, which loses what is too much.
    fn tx_burst(&mut self, batch: &mut TxBatch) -> io::Result<TxOutcome> {
        let now = self.clock.now();
        let header = header_len(self.capabilities.medium);
        for segment in batch.pending() {
            let frame = Bytes::from(segment.to_vec());
            match is_ip(&frame, header) {
                true => {
                    let trailer = frame.slice(..header);
                    let [out, _] = &mut *self.links.lock();
                    out.push_frame(now, with_trailer(frame.slice(header..), &trailer));
                }
                // Room is left: it is emptied in each turn, or the device is full.
                false => drop(self.out.fill(|place| put_frame(place, &frame))),
            }
        }
        batch.consume(batch.pending().len());
        self.send_out(now)?;
        Ok(TxOutcome::Drained)
    }

    fn counters(&self) -> &DeviceCounters {
        &self.counters
    }

    fn next_deadline(&self) -> Option<Instant> {
        let arrival = self.links.next_arrival();
        Instant::earliest([arrival, self.device.next_deadline(), self.retry])
    }

    fn on_poll_error(&mut self) -> io::Result<()> {
        self.device.on_poll_error()
    }
}

#[cfg(target_os = "linux")]
impl AsFd for ImpairedDevice {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}

const fn header_len(medium: Medium) -> usize {
    match medium {
        Medium::Ip => 0,
        Medium::Ethernet { .. } => EthernetHeader::LEN,
    }
}

/// True if an IP packet lies behind a link's header of this length.
fn is_ip(frame: &[u8], header: usize) -> bool {
    let kind = header.checked_sub(2).and_then(|at| frame.get(at..header));
    kind.is_none_or(|kind| kind == [0x08, 0x00] || kind == [0x86, 0xdd])
}

/// A device's frame on a path.
enum OnPath {
    /// An IP packet or super-segment, which begins with its IP header, and the link's header.
    Packet(Box<TxSegment>, Bytes),
    /// No IP packet.
    Passing,
    /// A super-frame of a kind that is not cut here.
    Uncut,
}

impl OnPath {
    fn of(frame: &RxFrame<'_>, header: usize) -> Self {
        if !is_ip(frame.bytes, header) {
            return Self::Passing;
        }
        let (trailer, packet) = frame.bytes.split_at(header.min(frame.bytes.len()));
        let trailer = Bytes::copy_from_slice(trailer);
        let mut segment = Box::new(TxSegment::new());
        let RxFrame { meta, .. } = frame;
        if meta.gso_size == 0 && meta.checksum != RxChecksum::Partial {
            put_frame(&mut segment, packet);
            return Self::Packet(segment, trailer);
        }
        let Some(Transport { at, len, checksum }) = Transport::of(packet, meta.gso_size) else {
            return Self::Uncut;
        };
        let Some((headers, text)) = packet.split_at_checked(at + len) else { return Self::Uncut };
        let Some(room) = segment.header_room().get_mut(..headers.len()) else { return Self::Uncut };
        room.copy_from_slice(headers);
        segment.set_header_len(headers.len());
        segment.transport_offset = at as u8;
        segment.gso_size = meta.gso_size;
        if meta.checksum == RxChecksum::Partial {
            segment.checksum = TxChecksum::Partial(checksum);
        }
        // It is the first of them.
        let _has_room = segment.payload.push(Bytes::copy_from_slice(text));
        Self::Packet(segment, trailer)
    }
}

/// Place of a transport header in a packet.
struct Transport {
    /// Its offset and its length.
    at: usize,
    len: usize,
    /// Offset of the checksum in it.
    checksum: u8,
}

impl Transport {
    /// That of TCP, or of UDP in one datagram.
    fn of(packet: &[u8], gso_size: u16) -> Option<Self> {
        let (ip, _) = IpHeader::parse(packet).ok()?;
        let first = usize::from(*packet.first()?);
        let at = if first >> 4 == 4 { (first & 0xf) * 4 } else { V6_HEADER };
        match ip.protocol {
            Protocol::TCP => {
                let len = usize::from(*packet.get(at + TCP_OFFSET)? >> 4) * 4;
                Some(Self { at, len, checksum: TcpHeader::CHECKSUM_OFFSET as u8 })
            }
            Protocol::UDP if gso_size == 0 => Some(Self { at, len: 8, checksum: 6 }),
            _ => None,
        }
    }
}

/// Writes a finished frame.
fn put_frame(place: &mut TxSegment, frame: &[u8]) -> bool {
    place.clear();
    place.payload.push(Bytes::copy_from_slice(frame)).is_ok()
}

fn with_trailer(packet: Bytes, trailer: &[u8]) -> Bytes {
    if trailer.is_empty() { packet } else { [&packet, trailer].concat().into() }
}

/// The frame of which the link's header stands at the end.
fn without_trailer(frame: Bytes, header: usize) -> Bytes {
    if header == 0 {
        return frame;
    }
    let (packet, trailer) = frame.split_at(frame.len().saturating_sub(header));
    [trailer, packet].concat().into()
}

/// Length of the header of IPv6, without others behind it.
const V6_HEADER: usize = 40;
/// Offset of the length of the header of TCP.
const TCP_OFFSET: usize = 12;
/// Time until the device may have room again, which nothing reports.
const PAUSE: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests;
