//! Cost of a hostile peer for a host: instructions for each packet of a stream, in virtual time,
//! compared with the limit in `docs/BOUNDS.md`.
//!
//! Frames are made before anything is counted; counted is that they arrive, a burst at a time, and
//! that their answers leave.

mod datagrams;
mod floods;
mod heads;
mod neighbours;
mod receiver;
mod records;
mod texts;

use std::time::Duration;

use bytes::Bytes;
use whimbrel_base::packet::{RxChecksum, SegMeta};
use whimbrel_base::{Instant, Secrets};
use whimbrel_stack::{
    Capabilities, InterfaceAddress, ListenerId, Medium, RxFrame, Shard, ShardConfig, TxBatch,
};
use whimbrel_tcp::Tunables;
use whimbrel_wire::tcp::{OptionOrder, TcpFlags, TcpHeader};
use whimbrel_wire::{
    Endpoint, Fragment, IcmpMessage, IpHeader, Ipv4Header, Mss, Protocol, RawWindow, SeqNum,
    WindowScale,
};

use crate::Failure;
use crate::churn::{CLIENTS, SERVER, address};
use crate::counts::measured;

/// A stream of packets, and the most instructions that one of them may take on average, its answer
/// included.
pub(crate) struct Stream {
    pub(crate) name: &'static str,
    victim: fn() -> Result<Victim, Failure>,
    frames: fn(&Victim) -> Vec<Vec<u8>>,
    pub(crate) most: u64,
}

impl Stream {
    const fn new(
        name: &'static str,
        victim: fn() -> Result<Victim, Failure>,
        frames: fn(&Victim) -> Vec<Vec<u8>>,
        most: u64,
    ) -> Self {
        Self { name, victim, frames, most }
    }

    /// A stream to a server that does not read.
    const fn sent(name: &'static str, frames: fn(&Victim) -> Vec<Vec<u8>>, most: u64) -> Self {
        Self::new(name, Victim::new, frames, most)
    }

    /// A stream to a server that always sends.
    const fn told(name: &'static str, frames: fn(&Victim) -> Vec<Vec<u8>>, most: u64) -> Self {
        Self::new(name, Victim::sending, frames, most)
    }
}

/// Every stream. Each bound is about half again what was measured when it was set; what must not
/// happen is that packets become dearer the more of them came: while each moved what was held before,
/// one of `descending-bytes` and of `overlapping` took 139,000; while each could have all judged again that
/// is in flight, one of `renege` took millions.
pub(crate) const STREAMS: &[Stream] = &[
    Stream::sent("syn-flood", floods::syn_flood, 7_500),
    Stream::sent("stray-ack-flood", floods::stray_ack_flood, 3_500),
    Stream::sent("ack-flood", floods::ack_flood, 3_000),
    Stream::sent("reset-flood", floods::reset_flood, 3_000),
    Stream::sent("syn-in-window-flood", floods::syn_in_window_flood, 3_500),
    Stream::sent("echo-flood", floods::echo_flood, 4_000),
    Stream::sent("icmp-error-flood", floods::icmp_error_flood, 2_500),
    Stream::sent("fragment-flood", floods::fragment_flood, 22_000),
    Stream::sent("fragments-backwards", floods::fragments_backwards, 3_900),
    Stream::new("arp-requests", Victim::on_ethernet, neighbours::arp_requests, 4_600),
    Stream::new("arp-replies", Victim::on_ethernet, neighbours::arp_replies, 900),
    Stream::new("arp-rivals", Victim::on_ethernet, neighbours::arp_rivals, 1_300),
    Stream::new("ndp-solicitations", Victim::on_ethernet, neighbours::solicitations, 6_800),
    Stream::new("ndp-advertisements", Victim::on_ethernet, neighbours::advertisements, 2_700),
    Stream::new("made-up-neighbours", Victim::on_ethernet, neighbours::made_up, 8_200),
    Stream::sent("ascending-bytes", texts::ascending, 14_000),
    Stream::sent("descending-bytes", texts::descending, 15_000),
    Stream::sent("every-second-byte", texts::every_second, 13_000),
    Stream::sent("descending-second-byte", texts::descending_second, 12_000),
    Stream::sent("triples", texts::triples, 14_000),
    Stream::sent("random-bytes", texts::random, 14_000),
    Stream::sent("overlapping", texts::overlapping, 16_000),
    Stream::sent("sliding-bursts", texts::sliding_bursts, 2_600),
    Stream::sent("bursts-again", texts::bursts_again, 2_100),
    Stream::new("time-wait-fins", Victim::waiting, records::fins_again, 2_800),
    Stream::new("time-wait-texts", Victim::waiting, records::texts, 1_200),
    Stream::new("time-wait-syns", Victim::waiting, records::syns, 6_700),
    Stream::new("time-wait-overflow", Victim::closing, records::fins, 4_200),
    Stream::new("acks-at-full-queue", Victim::crowded, records::third_again, 950),
    Stream::new("syns-at-full-queue", Victim::crowded, floods::syn_flood, 1_250),
    Stream::new("fast-syns", Victim::granting, records::fast_syns, 9_500),
    Stream::new("forged-fast-syns", Victim::granting, records::forged_fast_syns, 6_400),
    Stream::new("http-head-bytes", Victim::serving, heads::bytes, 5_200),
    Stream::new("http-heads-of-16-kib", Victim::serving, heads::of_16_kib, 26_000),
    Stream::new("udp-strays", Victim::receiving, datagrams::strays, 1_500),
    Stream::new("udp-shared-strays", Victim::sharing, datagrams::to_socket, 3_600),
    Stream::new("udp-full-queue", Victim::receiving, datagrams::to_socket, 1_150),
    Stream::new("udp-read", Victim::reading, datagrams::to_socket, 2_000),
    Stream::new("udp-errors", Victim::receiving, datagrams::errors, 7_000),
    Stream::new("echo-reply-errors", Victim::receiving, datagrams::reply_errors, 7_000),
    Stream::new("unclaimed", Victim::observed, datagrams::of_no_protocol, 1_500),
    Stream::new("unclaimed-unread", Victim::unobserved, datagrams::of_no_protocol, 1_150),
    Stream::told("sack-bytes", receiver::sack_bytes, 23_000),
    Stream::told("sack-backwards", receiver::sack_backwards, 11_500),
    Stream::told("renege", receiver::renege, 11_500),
    Stream::told("come-twice", receiver::come_twice, 10_500),
    Stream::told("ack-bytes", receiver::ack_bytes, 3_600),
    Stream::told("ack-unsent", receiver::ack_unsent, 3_300),
    Stream::new(
        "ack-bytes-of-repair",
        Victim::sending_without_sack,
        receiver::ack_bytes_of_repair,
        6_000,
    ),
];

/// Plays the stream of this name: what Callgrind looks at.
pub(crate) fn run(name: &str) -> Result<(), Failure> {
    let stream = STREAMS.iter().find(|it| it.name == name);
    let stream = stream.ok_or_else(|| format!("{name}: not a stream"))?;
    let mut victim = (stream.victim)()?;
    let frames = (stream.frames)(&victim);
    if frames.len() as u64 != PACKETS {
        return Err(format!("{name}: {} packets", frames.len()).into());
    }
    measured(&mut || victim.suffer(&frames));
    Ok(())
}

/// A server, as a rule with one established connection of which its application reads nothing.
pub(crate) struct Victim {
    shard: Shard,
    batch: TxBatch,
    /// RCV.NXT and SND.NXT of the connection.
    next: SeqNum,
    sent: SeqNum,
    /// The ports of other clients, and SND.NXT of each.
    others: Vec<(u16, SeqNum)>,
    /// The host's last packet, which errors are about.
    last: Vec<u8>,
    now: Instant,
    pace: Pace,
    application: Application,
}

/// Work after each burst that arrived.
type Application = Option<Box<dyn FnMut(&mut Shard, Instant)>>;

/// Arrival of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Pace {
    /// In bursts, all at once.
    Bursts,
    /// One packet in each millisecond, and what is due is done.
    Each,
}

impl Victim {
    fn new() -> Result<Self, Failure> {
        let tunables =
            Tunables { recv_buffer: BUFFER, recv_buffer_max: BUFFER, ..Tunables::default() };
        let (mut victim, listener) = Self::listening(tunables, 64)?;
        victim.sent = victim.half_opened(PORT)?;
        victim.suffer(&[victim.segment(TcpFlags::ACK, ISN + 1, 0)]);
        let handle = victim.shard.accept(listener).ok_or("the handshake failed")?;
        // Something is in flight, which acknowledgments and errors can be about.
        victim.shard.send(handle, &mut Bytes::from_static(&[7; 1_000]))?;
        victim.suffer(&[]);
        victim.sent += 1_000;
        Ok(victim)
    }

    /// A server without connections yet.
    fn listening(tunables: Tunables, backlog: u32) -> Result<(Self, ListenerId), Failure> {
        // Timestamps would let a peer that has none of the connection's be dropped early.
        let tunables = Tunables { timestamps: false, ..tunables };
        let own = InterfaceAddress { addr: address(SERVER), prefix_len: 8 };
        let mut shard = shard(tunables, Medium::Ip, vec![own])?;
        let listener = shard.listen(Endpoint::new(address(SERVER), 80), backlog)?;
        Ok((Self::of(shard, Pace::Bursts), listener))
    }

    fn of(shard: Shard, pace: Pace) -> Self {
        Self {
            shard,
            batch: TxBatch::new(BURST),
            next: ISN + 1,
            sent: SeqNum::new(0),
            others: Vec::new(),
            last: Vec::new(),
            now: Instant::from_millis(1),
            pace,
            application: None,
        }
    }

    /// A client asks for a connection from this port, and is answered: SND.NXT.
    fn half_opened(&mut self, port: u16) -> Result<SeqNum, Failure> {
        self.suffer(&[self.segment_from((0, port), TcpFlags::SYN, ISN, 0)]);
        Ok(self.answered()?.seq + 1)
    }

    /// The header of the host's last packet.
    fn answered(&self) -> Result<TcpHeader, Failure> {
        let (_, payload) = IpHeader::parse(&self.last).map_err(|it| format!("{it:?}"))?;
        let (answer, _) = TcpHeader::parse(payload).map_err(|it| format!("{it:?}"))?;
        Ok(answer)
    }

    /// The packets arrive, and what they provoke leaves.
    fn suffer(&mut self, frames: &[Vec<u8>]) {
        const META: SegMeta = SegMeta { checksum: RxChecksum::Verified, ..SegMeta::SINGLE };
        let empty = [[].as_slice()];
        let at_once = if self.pace == Pace::Each { 1 } else { BURST };
        for burst in frames.chunks(at_once).chain(empty) {
            let burst: Vec<_> = burst.iter().map(|frame| RxFrame::new(frame, META)).collect();
            if self.pace == Pace::Each {
                self.now = self.now + Duration::from_millis(1);
                self.shard.advance(self.now, BURST);
            }
            self.shard.rx(self.now, &burst);
            if let Some(act) = &mut self.application {
                act(&mut self.shard, self.now);
            }
            loop {
                let more = self.shard.tx(&mut self.batch);
                if let Some(last) = self.batch.pending().last() {
                    self.last = last.to_vec();
                }
                self.batch.consume(BURST);
                if !more {
                    break;
                }
            }
        }
    }

    /// A segment of the connection's peer.
    fn segment(&self, flags: TcpFlags, seq: SeqNum, text: usize) -> Vec<u8> {
        self.segment_from((0, PORT), flags, seq, text)
    }

    /// A segment of the host with this number, from this port.
    fn segment_from(&self, from: (u32, u16), flags: TcpFlags, seq: SeqNum, text: usize) -> Vec<u8> {
        let (host, port) = from;
        let mut header = TcpHeader { src_port: port, ..self.header(flags, seq) };
        if flags.contains(TcpFlags::SYN) {
            header.options.mss = Some(Mss::new(1_460));
            header.options.sack_permitted = true;
            header.options.window_scale = Some(WindowScale::new(7));
        }
        frame(host, &header, text)
    }

    /// A segment from this port, which acknowledges what its connection sent.
    fn segment_of(&self, of: (u16, SeqNum), flags: TcpFlags, seq: SeqNum, text: usize) -> Vec<u8> {
        let (src_port, ack) = of;
        frame(0, &TcpHeader { src_port, ack, ..self.header(flags, seq) }, text)
    }

    /// The connection's peer acknowledges what is in flight.
    fn header(&self, flags: TcpFlags, seq: SeqNum) -> TcpHeader {
        TcpHeader {
            src_port: PORT,
            dst_port: 80,
            seq,
            ack: if flags.contains(TcpFlags::ACK) { self.sent } else { SeqNum::new(0) },
            flags,
            window: RawWindow::new(60_000),
            ..TcpHeader::default()
        }
    }

    /// Text of so many bytes at each of these places behind RCV.NXT.
    fn texts(&self, len: usize, places: impl Iterator<Item = u32>) -> Vec<Vec<u8>> {
        let at = |place| self.segment(TcpFlags::ACK, self.next + place, len);
        places.take(PACKETS as usize).map(at).collect()
    }
}

/// A host with these addresses.
fn shard(
    tunables: Tunables,
    medium: Medium,
    addresses: Vec<InterfaceAddress>,
) -> Result<Shard, Failure> {
    Ok(Shard::new(ShardConfig {
        tunables,
        secrets: Secrets::from_seed(1),
        capabilities: Capabilities::plain(medium, 1_500),
        addresses,
        routes: Vec::new(),
    })?)
}

/// A segment to the server, with so many bytes of text.
fn frame(host: u32, header: &TcpHeader, text: usize) -> Vec<u8> {
    frame_with(host, header, &vec![7; text])
}

fn frame_with(host: u32, header: &TcpHeader, text: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; TcpHeader::MAX_LEN];
    let len = header.emit(OptionOrder::Linux, &mut bytes);
    bytes.truncate(len);
    bytes.extend_from_slice(text);
    packet(host, Protocol::TCP, None, &bytes)
}

/// A packet to the server.
fn packet(host: u32, protocol: Protocol, fragment: Option<Fragment>, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0; Ipv4Header::LEN];
    Ipv4Header {
        identification: fragment.map_or(0, |it| it.identification as u16),
        dont_fragment: fragment.is_none(),
        fragment,
        ..Ipv4Header::new(
            address(CLIENTS + host).v4_bytes().into(),
            address(SERVER).v4_bytes().into(),
            protocol,
            payload.len(),
        )
    }
    .emit(&mut packet);
    packet.extend_from_slice(payload);
    packet
}

fn message(message: &IcmpMessage<'_>) -> Vec<u8> {
    message_from(9, message)
}

fn message_from(host: u32, message: &IcmpMessage<'_>) -> Vec<u8> {
    let mut bytes = vec![0; message.wire_len()];
    message.emit(&mut bytes);
    packet(host, Protocol::ICMP, None, &bytes)
}

fn numbers() -> std::ops::Range<u32> {
    0..PACKETS as u32
}

/// Packets of a stream.
pub(crate) const PACKETS: u64 = 8_192;
const BURST: usize = 64;
const BUFFER: u32 = 256 << 10;
const ISN: SeqNum = SeqNum::new(1_000);
const PORT: u16 = 5_000;
