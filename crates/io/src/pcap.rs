//! A capture as a wire: its frames arrive as recorded, and the stack's replies are discarded.
//!
//! The stack answers with its own sequence numbers, which differ from the capture's, so connections
//! opened in the capture do not establish. A replay shows how the stack treats every frame of a
//! capture on its own, and that none brings it down.
//!
//! Frames that the capture marks as outgoing are skipped: they were the host's own. A file is read
//! twice: as a whole before the replay, to report damage, and then piece by piece.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;

use whimbrel_base::Instant;
use whimbrel_base::packet::SegMeta;
use whimbrel_link::pcapng::{Direction, LinkType};
use whimbrel_link::reader::Packet;
use whimbrel_stack::{Capabilities, InterfaceAddress, Medium, RxFrame, TxBatch};
use whimbrel_wire::{EthernetHeader, IpHeader, MacAddress};

use crate::device::{Device, DeviceCounters, MAX_BURST, TxOutcome};
use crate::sys::Event;
use crate::text::thousands;
use crate::{Clock, Stop, entropy};

pub mod config;
pub mod error;
mod reader;

pub use config::{PcapConfig, Speed};
pub use error::PcapError;
use reader::{CaptureReader, Pass, Place, Source};

/// A capture that is being replayed.
#[derive(Debug)]
pub struct PcapWire {
    path: PathBuf,
    reader: CaptureReader,
    /// Frames of the piece in memory: the time and place of each.
    frames: VecDeque<(Instant, Place)>,
    /// True if the file may hold more frames.
    more: bool,
    schedule: Schedule,
    medium: Medium,
    clock: Clock,
    /// Set after the last frame.
    done: Stop,
    contents: Contents,
    counters: DeviceCounters,
    /// A descriptor that is never readable: the clock decides when frames arrive.
    silent: Event,
}

/// Contents of a capture.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Contents {
    /// Frames that arrive at the stack.
    pub inward: usize,
    /// Outgoing frames, which are skipped.
    pub outward: usize,
    /// Arriving frames that the capture has truncated: the stack finds that they contradict
    /// themselves.
    pub cut: usize,
}

impl PcapWire {
    /// Opens the capture. Its first frame is due now, by the worker's `clock`. `done` is set once
    /// the worker has had time to answer the last.
    pub fn open(config: &PcapConfig, clock: Clock, done: Stop) -> Result<Self, PcapError> {
        let path = config.path();
        let unreadable = |error| PcapError::Unreadable { path: path.into(), error };
        let mut source = Source::find(path).map_err(unreadable)?;
        let Survey { link_type, station, contents } =
            Survey::of(source.rewind(path, Pass::First).map_err(unreadable)?, config)?;
        let medium = match link_type {
            Some(LinkType::Ethernet) => Medium::Ethernet {
                mac: match config.mac().or(station) {
                    Some(mac) => mac,
                    None => entropy::station()?,
                },
            },
            // The reader refuses those that no device has.
            _ => Medium::Ip,
        };
        let mut wire = Self {
            path: path.into(),
            reader: source.rewind(path, Pass::Last).map_err(unreadable)?,
            frames: VecDeque::new(),
            more: true,
            schedule: Schedule::begin(config.speed(), clock.now()),
            medium,
            clock,
            done,
            contents,
            counters: DeviceCounters::default(),
            silent: Event::new().map_err(unreadable)?,
        };
        wire.read_next()?;
        Ok(wire)
    }

    /// Returns the contents of the capture.
    pub fn contents(&self) -> Contents {
        self.contents
    }

    /// Reads the next frames into memory, if any are left.
    fn read_next(&mut self) -> Result<(), PcapError> {
        let Self { reader, frames, schedule, .. } = self;
        while frames.is_empty() && self.more {
            self.more = reader.read_next(&self.path, |packet, place| {
                if packet.direction != Some(Direction::Out) {
                    frames.push_back((schedule.due(packet.at), place));
                }
            })?;
        }
        Ok(())
    }
}

impl Device for PcapWire {
    fn name(&self) -> String {
        format!("pcap:{}", crate::text::path(&self.path))
    }

    /// `pcap:a.pcapng (mac 02:…; 120 frames; 4 outward ones left out)`.
    fn about(&self) -> String {
        let Contents { inward, outward, cut } = self.contents;
        let kind = match self.medium {
            Medium::Ip => "IP".to_owned(),
            Medium::Ethernet { mac } => format!("mac {mac}"),
        };
        let mut text = format!("{} ({kind}; {} frames", self.name(), thousands(inward as u64));
        if outward > 0 {
            text += &format!("; {} outward ones left out", thousands(outward as u64));
        }
        if cut > 0 {
            text += &format!("; {} cut short by the capture", thousands(cut as u64));
        }
        text + ")"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::plain(self.medium, MTU)
    }

    fn rx_burst(&mut self, deliver: &mut dyn FnMut(&[RxFrame<'_>])) -> io::Result<usize> {
        if self.frames.is_empty() {
            self.done.set();
            return Ok(0);
        }
        let now = self.clock.now();
        let mut burst = [RxFrame::new(&[], SegMeta::SINGLE); MAX_BURST];
        let mut count = 0;
        let due = self.frames.iter().take_while(|(due, _)| *due <= now);
        for (frame, (_, place)) in burst.iter_mut().zip(due) {
            *frame = RxFrame::new(self.reader.bytes(place), SegMeta::SINGLE);
            self.counters.rx_bytes += frame.bytes.len() as u64;
            count += 1;
        }
        if count > 0 {
            deliver(burst.get(..count).unwrap_or_default());
        }
        self.frames.drain(..count);
        self.counters.rx_frames += count as u64;
        self.counters.rx_segments += count as u64;
        // The file may have changed since the survey.
        self.read_next().map_err(io::Error::other)?;
        Ok(count)
    }

    fn tx_burst(&mut self, batch: &mut TxBatch) -> io::Result<TxOutcome> {
        self.counters.tx_frames +=
            batch.drain(|segment| self.counters.tx_bytes += segment.len() as u64) as u64;
        Ok(TxOutcome::Drained)
    }

    fn counters(&self) -> &DeviceCounters {
        &self.counters
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.frames.front().map(|(due, _)| *due)
    }
}

impl AsFd for PcapWire {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.silent.as_fd()
    }
}

/// Result of reading a capture from beginning to end.
#[derive(Default)]
struct Survey {
    link_type: Option<LinkType>,
    /// Station that frames for the stack's addresses were sent to.
    station: Option<MacAddress>,
    contents: Contents,
}

impl Survey {
    fn of(mut reader: CaptureReader, config: &PcapConfig) -> Result<Self, PcapError> {
        let mut survey = Self::default();
        let mut count = |packet: &Packet<'_>, _| {
            if survey.station.is_none() {
                survey.station = station(packet, config.addresses());
            }
            if packet.direction == Some(Direction::Out) {
                survey.contents.outward += 1;
                return;
            }
            let cut = (packet.bytes.len() as u64) < packet.wire_len.into();
            survey.contents.inward += 1;
            survey.contents.cut += usize::from(cut);
        };
        while reader.read_next(config.path(), &mut count)? {}
        Ok(Self { link_type: reader.link_type(), ..survey })
    }
}

/// Arrival times of frames. None arrives before one that precedes it in the file.
#[derive(Debug)]
struct Schedule {
    speed: Speed,
    /// Arrival time of the first.
    began: Instant,
    /// Recorded time of the first, nanoseconds since 1970.
    first: Option<u64>,
    /// Arrival time of the last.
    due: Instant,
}

impl Schedule {
    const fn begin(speed: Speed, now: Instant) -> Self {
        Self { speed, began: now, first: None, due: now }
    }

    /// Returns the arrival time of a frame recorded at `at`.
    fn due(&mut self, at: u64) -> Instant {
        if self.speed == Speed::Captured {
            let since = at.saturating_sub(*self.first.get_or_insert(at));
            let due = Instant::from_nanos(self.began.as_nanos().saturating_add(since));
            self.due = self.due.max(due);
        }
        self.due
    }
}

/// Returns the station that a frame for one of `addresses` was sent to.
fn station(packet: &Packet<'_>, addresses: &[InterfaceAddress]) -> Option<MacAddress> {
    let (ethernet, rest) = EthernetHeader::parse(packet.bytes).ok()?;
    let (ip, _) = IpHeader::parse(rest).ok()?;
    let ours = addresses.iter().any(|address| address.addr == ip.dst);
    (ours && !ethernet.dst.is_multicast()).then_some(ethernet.dst)
}

/// The largest packet that the stack sends, in bytes: as on a cable.
const MTU: u16 = 1500;

#[cfg(test)]
mod tests;
