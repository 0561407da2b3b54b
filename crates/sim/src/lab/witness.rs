//! One connection that shows what happened: found in a first run, and written down in a second, which is
//! the same to the octet.

use std::collections::VecDeque;
use std::fmt;

use bytes::Bytes;
use whimbrel_base::Instant;
use whimbrel_link::Fate;
use whimbrel_wire::{IpHeader, SeqNum, TcpFlags, TcpView};

use super::hosts::{Enough, Scene, Side};
use crate::capture::Capture;
use crate::path::GoOn;

/// The connection, with the end of the one before it on the same ports.
#[derive(Clone, Debug)]
pub struct Witness {
    /// What it shows.
    pub shows: Shows,
    /// The client's port.
    pub port: u16,
    /// Its packets, the first of the earlier connection's first.
    pub packets: Vec<SeenPacket>,
}

/// What a connection is a witness of, the most telling last.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Shows {
    /// That a connection opens.
    Opening,
    /// That one follows another on the same ports while the server keeps that in TIME-WAIT.
    Reuse,
    /// That a SYN is refused by a reset.
    Refusal,
    /// That a SYN has to be sent again.
    Repetition,
}

/// A packet of the witness.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SeenPacket {
    /// When it was sent.
    pub at: Instant,
    /// Who sent it.
    pub from: Side,
    /// All of it, from the IP header on.
    pub octets: Bytes,
    /// SEG.SEQ, of a client's packet that comes after an earlier connection of the same ports: how far
    /// beyond what the server expected there (RCV.NXT).
    pub beyond: Option<i32>,
}

/// Looks for a witness in what leaves the hosts.
#[derive(Debug)]
pub(super) struct Search {
    ports: Vec<Port>,
    from: Instant,
    found: Option<Sighting>,
}

/// What is known of one of the client's ports.
#[derive(Clone, Copy, Default, Debug)]
struct Port {
    /// When the last connection's first SYN left, and its number.
    began: Instant,
    iss: SeqNum,
    lives: u32,
    is_opening: bool,
}

/// Where a witness is to be found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Sighting {
    shows: Shows,
    port: u16,
    began: Instant,
}

impl Search {
    /// One among what begins from then on.
    pub(super) fn from(from: Instant) -> Self {
        Self { ports: vec![Port::default(); 1 << 16], from, found: None }
    }

    pub(super) fn found(&self) -> Option<Sighting> {
        self.found
    }

    /// A packet left.
    pub(super) fn see(&mut self, now: Instant, from: Side, packet: &[u8]) {
        // Of nearly all packets that is known from one octet.
        let flags = TcpFlags::from_bits(packet.get(33).copied().unwrap_or(0).into());
        if !flags.intersects(TcpFlags::SYN | TcpFlags::RST) {
            return;
        }
        let Some(view) = tcp(packet) else { return };
        let own = if from == Side::Client { view.src_port } else { view.dst_port };
        let Some(port) = self.ports.get_mut(usize::from(own)) else { return };
        let shows = match (from, view.flags.is_syn()) {
            (Side::Client, true) if port.is_opening && port.iss == view.seq => Shows::Repetition,
            (Side::Client, true) => {
                let lives = port.lives + 1;
                *port = Port { began: now, iss: view.seq, lives, is_opening: true };
                if lives > 1 { Shows::Reuse } else { Shows::Opening }
            }
            (Side::Server, true) => {
                port.is_opening = false;
                return;
            }
            (Side::Server, false) if port.is_opening => {
                port.is_opening = false;
                Shows::Refusal
            }
            _ => return,
        };
        let sighting = Sighting { shows, port: own, began: port.began };
        let is_better = self.found.is_none_or(|found| found.shows < shows);
        if is_better && sighting.began >= self.from {
            self.found = Some(sighting);
        }
    }
}

impl Sighting {
    /// Runs the scene again, as far as the witness goes.
    pub(super) fn write_down(self, scene: &Scene, go_on: GoOn<'_>) -> Result<Witness, String> {
        let (mut before, mut packets) = (VecDeque::new(), Vec::new());
        let mut onlooker = |at: Instant, from, octets: &Bytes| {
            let Some(view) = tcp(octets).filter(|view| self.is_of(from, view)) else {
                return Enough::No;
            };
            let packet = SeenPacket { at, from, octets: octets.clone(), beyond: None };
            if at < self.began {
                before.truncate(BEFORE - 1);
                before.push_front(packet);
                return Enough::No;
            }
            packets.push(packet);
            let answers = from == Side::Server && text_len(octets) > 0;
            let refuses = from == Side::Server && view.flags.is_rst();
            let is_over = answers || refuses || packets.len() == MOST;
            if is_over { Enough::Yes } else { Enough::No }
        };
        scene.play(&mut onlooker, go_on)?;
        let mut all: Vec<_> = before.into_iter().rev().collect();
        let expected = all.iter().filter(|packet| packet.from == Side::Client).filter_map(end_of);
        let expected = expected.last();
        all.extend(packets.into_iter().map(|packet| {
            let client = tcp(&packet.octets).filter(|_| packet.from == Side::Client);
            let beyond = expected.zip(client).map(|(next, view)| view.seq.distance_from(next));
            SeenPacket { beyond, ..packet }
        }));
        Ok(Witness { shows: self.shows, port: self.port, packets: all })
    }

    fn is_of(self, from: Side, view: &TcpView<'_>) -> bool {
        self.port == if from == Side::Client { view.src_port } else { view.dst_port }
    }
}

impl Witness {
    /// Its packets as a pcapng file, each at its sender.
    pub fn capture(&self) -> Vec<u8> {
        let mut capture = Capture::new(2);
        for packet in &self.packets {
            let host = usize::from(packet.from == Side::Server);
            capture.on_sent(packet.at, host, &packet.octets, Some(Fate::default()));
        }
        capture.into_file()
    }
}

impl Shows {
    /// What it is, for people.
    pub const fn about(self) -> &'static str {
        match self {
            Self::Opening => "a connection opens",
            Self::Reuse => "a connection follows another on the same ports",
            Self::Refusal => "a SYN is refused",
            Self::Repetition => "a SYN has to be sent again",
        }
    }
}

/// As in `12.345678 client > server  SYN seq 7 (RCV.NXT + 5) len 0`.
impl fmt::Display for SeenPacket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.at.since(Instant::ZERO);
        let way = match self.from {
            Side::Client => "client > server",
            Side::Server => "server > client",
        };
        let Some(view) = tcp(&self.octets) else { return f.write_str(way) };
        write!(
            f,
            "{:>11.6}  {way}  {:<7} seq {}",
            at.as_secs_f64(),
            names(view.flags),
            view.seq.raw()
        )?;
        match self.beyond {
            Some(beyond) if beyond < 0 => write!(f, " (RCV.NXT - {})", beyond.unsigned_abs())?,
            Some(beyond) => write!(f, " (RCV.NXT + {beyond})")?,
            None => {}
        }
        if view.flags.is_ack() {
            write!(f, " ack {}", view.ack.raw())?;
        }
        match text_len(&self.octets) {
            0 => Ok(()),
            len => write!(f, " len {len}"),
        }
    }
}

/// The names of what it does, as in `SYN,ACK`.
fn names(flags: TcpFlags) -> String {
    let all = [
        (TcpFlags::SYN, "SYN"),
        (TcpFlags::FIN, "FIN"),
        (TcpFlags::RST, "RST"),
        (TcpFlags::ACK, "ACK"),
    ];
    let set = all.into_iter().filter(|(flag, _)| flags.contains(*flag)).map(|(_, name)| name);
    set.collect::<Vec<_>>().join(",")
}

/// The number behind all that a packet takes: what its receiver expects next.
fn end_of(packet: &SeenPacket) -> Option<SeqNum> {
    let view = tcp(&packet.octets)?;
    let len = text_len(&packet.octets) + view.flags.sequence_len();
    (!view.flags.is_rst()).then(|| view.seq + len)
}

fn tcp(packet: &[u8]) -> Option<TcpView<'_>> {
    let (_, segment) = IpHeader::parse(packet).ok()?;
    TcpView::parse(segment).ok().map(|(view, _)| view)
}

/// Octets of text in a packet.
fn text_len(packet: &[u8]) -> u32 {
    let text = IpHeader::parse(packet).ok().and_then(|(_, segment)| {
        let (_, header) = TcpView::parse(segment).ok()?;
        Some(segment.len() - header)
    });
    text.map_or(0, |len| len as u32)
}

/// Packets of the earlier connection that are kept: its end.
const BEFORE: usize = 5;
/// The most packets of the witness.
const MOST: usize = 24;
