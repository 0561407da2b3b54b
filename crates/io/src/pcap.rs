//! A capture as a wire: its frames arrive as they stand there, and whatever the stack answers goes
//! nowhere.
//!
//! The stack answers by its own numbers, which are not those of the capture: connections that were
//! opened in the capture do not come about. What a replay shows is how the stack judges every frame
//! of a capture on its own, and that none brings it down.
//!
//! Frames that the capture says went out are left out: they were the host's own. The frames of a
//! capture are in memory all at once.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use bytes::Bytes;
use whimbrel_link::pcapng::{Direction, LinkType};
use whimbrel_link::reader::{self, Packet};
use whimbrel_stack::{Capabilities, InterfaceAddress, Medium, RxFrame, Steering, TxBatch};
use whimbrel_tcp::{Instant, SegMeta};
use whimbrel_wire::{EthernetHeader, IpHeader, MacAddress};

use crate::device::{Device, DeviceCounters, MAX_BURST, TxOutcome};
use crate::sys::EventFd;
use crate::{Clock, Stop, entropy};

pub mod config;
pub mod error;

pub use config::{PcapConfig, Speed};
pub use error::PcapError;

/// A capture that is being replayed.
#[derive(Debug)]
pub struct PcapWire {
    frames: Vec<Frame>,
    /// The next to arrive.
    next: usize,
    medium: Medium,
    clock: Clock,
    /// Set behind the last frame.
    done: Stop,
    contents: Contents,
    counters: DeviceCounters,
    /// Never readable: frames come by the clock.
    silent: EventFd,
}

/// What a capture holds.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Contents {
    /// Frames that arrive.
    pub inward: usize,
    /// Frames that went out, and are left out.
    pub outward: usize,
    /// Frames of those that arrive that the capture has cut short: the stack finds that they
    /// contradict themselves.
    pub cut: usize,
}

#[derive(Clone, Debug)]
struct Frame {
    due: Instant,
    /// A part of the file.
    octets: Bytes,
}

impl PcapWire {
    /// Reads the capture, whose first frame is due now, by the `clock` of the worker. `done` is set
    /// once the worker has had time to answer the last.
    pub fn open(config: &PcapConfig, clock: Clock, done: Stop) -> Result<Self, PcapError> {
        let path = config.path();
        let unreadable = |error| PcapError::Unreadable { path: path.into(), error };
        let file = Bytes::from(std::fs::read(path).map_err(unreadable)?);
        let capture = reader::read(&file);
        let capture = capture.map_err(|error| PcapError::Damaged { path: path.into(), error })?;
        let medium = match capture.link_type {
            None | Some(LinkType::Raw) => Medium::Ip,
            Some(LinkType::Ethernet) => Medium::Ethernet {
                mac: match config.mac().or_else(|| station(&capture.packets, config.addresses())) {
                    Some(mac) => mac,
                    None => entropy::station()?,
                },
            },
        };
        let now = clock.now();
        let (frames, contents) = schedule(&file, &capture.packets, config.speed(), now);
        Ok(Self {
            frames,
            next: 0,
            medium,
            clock,
            done,
            contents,
            counters: DeviceCounters::default(),
            silent: EventFd::new().map_err(unreadable)?,
        })
    }

    /// What the capture holds.
    pub fn contents(&self) -> Contents {
        self.contents
    }
}

impl Device for PcapWire {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            medium: self.medium,
            mtu: MTU,
            max_super: MTU.into(),
            tx_checksum: false,
            steering: Steering::None,
        }
    }

    fn rx_burst(&mut self, deliver: &mut dyn FnMut(&[RxFrame<'_>])) -> io::Result<usize> {
        let rest = self.frames.get(self.next..).unwrap_or_default();
        if rest.is_empty() {
            self.done.set();
            return Ok(0);
        }
        let now = self.clock.now();
        let mut burst = [RxFrame::new(&[], SegMeta::SINGLE); MAX_BURST];
        let mut count = 0;
        for (place, frame) in burst.iter_mut().zip(rest).take_while(|(_, it)| it.due <= now) {
            *place = RxFrame::new(&frame.octets, SegMeta::SINGLE);
            self.counters.rx_octets += frame.octets.len() as u64;
            count += 1;
        }
        if count > 0 {
            deliver(burst.get(..count).unwrap_or_default());
        }
        self.next += count;
        self.counters.rx_frames += count as u64;
        self.counters.rx_segments += count as u64;
        Ok(count)
    }

    fn tx_burst(&mut self, batch: &mut TxBatch) -> io::Result<TxOutcome> {
        let pending = batch.pending();
        self.counters.tx_frames += pending.len() as u64;
        self.counters.tx_octets += pending.iter().map(|segment| segment.len() as u64).sum::<u64>();
        batch.consume(pending.len());
        Ok(TxOutcome::Drained)
    }

    fn counters(&self) -> &DeviceCounters {
        &self.counters
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.frames.get(self.next).map(|frame| frame.due)
    }
}

impl AsFd for PcapWire {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.silent.as_fd()
    }
}

/// When each frame arrives, the first one `now`. None arrives before one that stands before it.
fn schedule(
    file: &Bytes,
    packets: &[Packet<'_>],
    speed: Speed,
    now: Instant,
) -> (Vec<Frame>, Contents) {
    let mut contents = Contents::default();
    let mut frames = Vec::with_capacity(packets.len());
    let mut first = None;
    let mut due = now;
    for packet in packets {
        if packet.direction == Some(Direction::Out) {
            contents.outward += 1;
            continue;
        }
        contents.inward += 1;
        contents.cut += usize::from((packet.octets.len() as u64) < packet.wire_len.into());
        if speed == Speed::Captured {
            let since = packet.at.saturating_sub(*first.get_or_insert(packet.at));
            due = due.max(Instant::from_nanos(now.as_nanos().saturating_add(since)));
        }
        frames.push(Frame { due, octets: file.slice_ref(packet.octets) });
    }
    (frames, contents)
}

/// The station that frames for one of `addresses` were sent to.
fn station(packets: &[Packet<'_>], addresses: &[InterfaceAddress]) -> Option<MacAddress> {
    packets.iter().find_map(|packet| {
        let (ethernet, rest) = EthernetHeader::parse(packet.octets).ok()?;
        let (ip, _) = IpHeader::parse(rest).ok()?;
        let ours = addresses.iter().any(|address| address.addr == ip.dst);
        (ours && !ethernet.dst.is_multicast()).then_some(ethernet.dst)
    })
}

/// The largest packet that the stack sends, octets: as on a cable.
const MTU: u16 = 1500;

#[cfg(test)]
mod tests;
