//! Evidence: one connection that shows the failure. It is found in a first run, and recorded in a
//! second, which is the same to the byte.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use whimbrel_base::Instant;
use whimbrel_link::LinkOutcome;
use whimbrel_sim::capture::Capture;
use whimbrel_sim::path::GoOn;
use whimbrel_stack::shard::SocketState;
use whimbrel_wire::{IpHeader, SeqNum, TcpFlags, TcpView};

use super::hosts::{Observer, ObserverStatus, Scene, Side};
use super::packet_verdict::PacketVerdict;

/// The connection, with the end of the one before it on the same ports.
#[derive(Clone, Debug)]
pub struct Evidence {
    /// Kind of evidence.
    pub shows: EvidenceKind,
    /// The client's port.
    pub port: u16,
    /// Its packets, those of the earlier connection first.
    pub packets: Vec<SeenPacket>,
}

/// Kind of evidence that a connection gives, the strongest last.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum EvidenceKind {
    /// A connection opens.
    Opening,
    /// A connection ends and keeps its port, and later ones find none.
    KeptPort,
    /// A connection follows another on the same ports while the server keeps that in TIME-WAIT.
    Reuse,
    /// A SYN is refused by a reset.
    Refusal,
    /// A SYN has to be sent again.
    Repetition,
}

/// A packet of the evidence.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SeenPacket {
    /// Time when it was sent.
    pub at: Instant,
    /// Sender.
    pub from: Side,
    /// The packet, from the IP header on.
    pub bytes: Bytes,
    /// SEG.SEQ relative to the receiver's next expected number (RCV.NXT) at its arrival, of the
    /// connection or of that in TIME-WAIT; `None` if there was none.
    pub beyond: Option<i32>,
    /// Difference of its timestamp to the last that its receiver had from these ports; `None` if
    /// either is missing.
    pub newer: Option<Duration>,
    /// Verdict of its receiver; `None` if it did not arrive before the record ends.
    pub ruling: Option<PacketVerdict>,
}

/// Searches the hosts' packets for evidence.
#[derive(Debug)]
pub(super) struct Search {
    ports: Vec<Port>,
    from: Instant,
    found: Option<EvidenceAt>,
}

/// State of one of the client's ports.
#[derive(Clone, Copy, Default, Debug)]
struct Port {
    /// Time and number of the last connection's first SYN.
    began: Instant,
    iss: SeqNum,
    lives: u32,
    is_opening: bool,
}

/// Position of evidence in the record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct EvidenceAt {
    shows: EvidenceKind,
    port: u16,
    began: Instant,
}

impl Search {
    /// Searches the connections that begin from `from` on.
    pub(super) fn from(from: Instant) -> Self {
        Self { ports: vec![Port::default(); 1 << 16], from, found: None }
    }

    pub(super) fn found(&self) -> Option<EvidenceAt> {
        self.found
    }

    /// Examines a packet that left.
    fn see(&mut self, now: Instant, from: Side, packet: &[u8]) {
        // One byte decides for nearly all packets.
        let flags = TcpFlags::from_bits(packet.get(33).copied().unwrap_or(0).into());
        if !flags.intersects(TcpFlags::SYN | TcpFlags::RST) {
            return;
        }
        let Some(view) = tcp(packet) else { return };
        let own = if from == Side::Client { view.src_port } else { view.dst_port };
        let Some(port) = self.ports.get_mut(usize::from(own)) else { return };
        let shows = match (from, view.flags.is_syn()) {
            (Side::Client, true) if port.is_opening && port.iss == view.seq => {
                EvidenceKind::Repetition
            }
            (Side::Client, true) => {
                let lives = port.lives + 1;
                *port = Port { began: now, iss: view.seq, lives, is_opening: true };
                if lives > 1 { EvidenceKind::Reuse } else { EvidenceKind::Opening }
            }
            (Side::Server, true) => {
                port.is_opening = false;
                return;
            }
            (Side::Server, false) if port.is_opening => {
                port.is_opening = false;
                EvidenceKind::Refusal
            }
            _ => return,
        };
        let sighting = EvidenceAt { shows, port: own, began: port.began };
        let is_better = self.found.is_none_or(|found| found.shows < shows);
        if is_better && sighting.began >= self.from {
            self.found = Some(sighting);
        }
    }
}

impl Observer for Search {
    fn on_sent(&mut self, at: Instant, from: Side, packet: &Bytes) -> ObserverStatus {
        self.see(at, from, packet);
        ObserverStatus::No
    }
}

impl EvidenceAt {
    /// Evidence of a kept port for this connection, if there is no stronger evidence.
    pub(super) fn keeping_its_port(self) -> Self {
        Self { shows: self.shows.max(EvidenceKind::KeptPort), ..self }
    }

    /// Runs the scene again, up to the end of the evidence.
    pub(super) fn write_down(self, scene: &Scene, go_on: GoOn<'_>) -> Result<Evidence, String> {
        let mut notes =
            Notes { of: self, before: VecDeque::new(), packets: Vec::new(), is_over: false };
        scene.play(&mut notes, go_on)?;
        let mut packets: Vec<_> = notes.before.into_iter().rev().chain(notes.packets).collect();
        let (mut next, mut stamps) = ([None; 2], [None; 2]);
        for packet in &mut packets {
            let Some(view) = tcp(&packet.bytes) else { continue };
            let side = usize::from(packet.from == Side::Server);
            let stamp = view.options.timestamps.map(|stamps| stamps.val);
            packet.newer = stamp.zip(stamps[side]).and_then(|(now, last)| later(now, last));
            // A refused packet changes no state of its receiver.
            if packet.ruling.as_ref().is_none_or(|ruling| ruling.dropped.is_none()) {
                stamps[side] = stamp.or(stamps[side]);
            }
            let ruling = packet.ruling.as_ref();
            // A TIME-WAIT record expects the number after all that was sent.
            let waits = ruling.is_some_and(|it| it.states[0] == Some(SocketState::TimeWait));
            let known = ruling.and_then(|ruling| ruling.expected);
            let expected = known.or(next[side].filter(|_| waits));
            packet.beyond = expected.map(|next| view.seq.distance_from(next));
            if !view.flags.is_syn() {
                next[side] = end_of(packet).or(next[side]);
            }
        }
        Ok(Evidence { shows: self.shows, port: self.port, packets })
    }

    fn is_of(self, from: Side, view: &TcpView<'_>) -> bool {
        self.port == if from == Side::Client { view.src_port } else { view.dst_port }
    }
}

/// Notes on a connection.
struct Notes {
    of: EvidenceAt,
    /// End of the connection before it, the last packet first.
    before: VecDeque<SeenPacket>,
    packets: Vec<SeenPacket>,
    /// True once the last packet was sent: only its verdict is missing.
    is_over: bool,
}

impl Observer for Notes {
    fn on_sent(&mut self, at: Instant, from: Side, bytes: &Bytes) -> ObserverStatus {
        let Some(view) = tcp(bytes).filter(|view| self.of.is_of(from, view)) else {
            return self.enough();
        };
        if self.is_over {
            return ObserverStatus::Yes;
        }
        let packet =
            SeenPacket { at, from, bytes: bytes.clone(), beyond: None, newer: None, ruling: None };
        if at < self.of.began {
            self.before.truncate(BEFORE - 1);
            self.before.push_front(packet);
            return ObserverStatus::No;
        }
        self.packets.push(packet);
        let answers = from == Side::Server && text_len(bytes) > 0;
        let refuses = from == Side::Server && view.flags.is_rst();
        let is_shown = match self.of.shows {
            EvidenceKind::KeptPort => self.has_ended(),
            _ => answers || refuses,
        };
        self.is_over = is_shown || self.packets.len() == MOST;
        ObserverStatus::No
    }

    fn follows(&self, to: Side, packet: &Bytes) -> bool {
        tcp(packet).is_some_and(|view| self.of.is_of(to.other(), &view))
    }

    fn on_taken(&mut self, packet: &Bytes, ruling: PacketVerdict) {
        let all = self.packets.iter_mut().rev().chain(&mut self.before);
        let from = |it: &SeenPacket| it.ruling.is_none() && it.bytes == *packet;
        if let Some(own) = all.filter(|it| from(it)).last() {
            own.ruling = Some(ruling);
        }
    }
}

impl Notes {
    /// True if the last packet confirms the second FIN.
    fn has_ended(&self) -> bool {
        let flags = |packet: &SeenPacket| tcp(&packet.bytes).map(|view| view.flags);
        let fins = self.packets.iter().filter_map(flags).filter(|flags| flags.is_fin()).count();
        fins == 2 && self.packets.last().and_then(flags).is_some_and(|flags| !flags.is_fin())
    }

    /// Complete once the last packet has been taken, too.
    fn enough(&self) -> ObserverStatus {
        let is_taken = self.packets.last().is_some_and(|last| last.ruling.is_some());
        if self.is_over && is_taken { ObserverStatus::Yes } else { ObserverStatus::No }
    }
}

impl Evidence {
    /// Its packets as a pcapng file, each at its sender.
    pub fn capture(&self) -> Vec<u8> {
        let mut capture = Capture::new(2);
        for packet in &self.packets {
            let host = usize::from(packet.from == Side::Server);
            capture.on_sent(packet.at, host, &packet.bytes, Some(LinkOutcome::default()));
        }
        capture.into_file()
    }
}

impl EvidenceKind {
    /// Description, for people.
    pub const fn about(self) -> &'static str {
        match self {
            Self::Opening => "a connection opens",
            Self::KeptPort => {
                "a connection ends; the client keeps its port, and with all ports kept the next \
                 connection sends no packet at all"
            }
            Self::Reuse => "a connection follows another on the same ports",
            Self::Refusal => "a SYN is refused",
            Self::Repetition => "a SYN has to be sent again",
        }
    }
}

/// For example `12.345678 client > server  SYN seq 7 (RCV.NXT + 5) len 0`.
impl fmt::Display for SeenPacket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.at.since(Instant::ZERO);
        let way = match self.from {
            Side::Client => "client > server",
            Side::Server => "server > client",
        };
        let Some(view) = tcp(&self.bytes) else { return f.write_str(way) };
        write!(
            f,
            "{:>11.6}  {way}  {:<7} seq {}",
            at.as_secs_f64(),
            names(view.flags),
            view.seq.raw()
        )?;
        // The expected number is not shown, except for a reset.
        match self.beyond.filter(|it| *it != 0 || view.flags.is_rst()) {
            Some(beyond) if beyond < 0 => write!(f, " (RCV.NXT - {})", beyond.unsigned_abs())?,
            Some(beyond) => write!(f, " (RCV.NXT + {beyond})")?,
            None => {}
        }
        if view.flags.is_ack() {
            write!(f, " ack {}", view.ack.raw())?;
        }
        match text_len(&self.bytes) {
            0 => Ok(()),
            len => write!(f, " len {len}"),
        }
    }
}

impl SeenPacket {
    /// Its header; `None` if it is no segment.
    pub fn header(&self) -> Option<(TcpView<'_>, u32)> {
        Some((tcp(&self.bytes)?, text_len(&self.bytes)))
    }

    /// Names of its flags, for example `SYN,ACK`.
    pub fn flags(&self) -> String {
        tcp(&self.bytes).map_or_else(String::new, |view| names(view.flags))
    }
}

/// Names of flags, for example `SYN,ACK`.
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

/// Time by which a timestamp is newer than another, with ticks of a millisecond (RFC 7323 5.4);
/// `None` if it is older.
fn later(now: u32, last: u32) -> Option<Duration> {
    let ticks = now.wrapping_sub(last).cast_signed();
    u64::try_from(ticks).ok().map(Duration::from_millis)
}

/// Number after the packet, which its receiver expects next.
fn end_of(packet: &SeenPacket) -> Option<SeqNum> {
    let view = tcp(&packet.bytes)?;
    let len = text_len(&packet.bytes) + view.flags.sequence_len();
    (!view.flags.is_rst()).then(|| view.seq + len)
}

fn tcp(packet: &[u8]) -> Option<TcpView<'_>> {
    let (_, segment) = IpHeader::parse(packet).ok()?;
    TcpView::parse(segment).ok().map(|(view, _)| view)
}

/// Bytes of text in a packet.
fn text_len(packet: &[u8]) -> u32 {
    let text = IpHeader::parse(packet).ok().and_then(|(_, segment)| {
        let (_, header) = TcpView::parse(segment).ok()?;
        Some(segment.len() - header)
    });
    text.map_or(0, |len| len as u32)
}

/// Most packets of the earlier connection, from its end.
const BEFORE: usize = 5;
/// Most packets of the evidence.
const MOST: usize = 24;
