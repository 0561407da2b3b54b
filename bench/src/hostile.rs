//! What a peer that means no good can make a host do: instructions for each packet of a stream, in
//! virtual time, against the bound that `docs/BOUNDS.md` names.
//!
//! Frames are made before anything is counted; counted is that they arrive, a burst at a time, and
//! that their answers leave.

mod receiver;

use std::time::Duration;

use bytes::Bytes;
use whimbrel_base::{Instant, Secrets};
use whimbrel_stack::{
    Capabilities, InterfaceAddress, Medium, RxFrame, Shard, ShardConfig, TxBatch,
};
use whimbrel_tcp::segment::RxChecksum;
use whimbrel_tcp::{SegMeta, Tunables};
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
    /// What a server is sent that reads nothing.
    const fn sent(name: &'static str, frames: fn(&Victim) -> Vec<Vec<u8>>, most: u64) -> Self {
        Self { name, victim: Victim::new, frames, most }
    }

    /// What a server is told that sends all the time.
    const fn told(name: &'static str, frames: fn(&Victim) -> Vec<Vec<u8>>, most: u64) -> Self {
        Self { name, victim: Victim::sending, frames, most }
    }
}

/// Every stream. Each bound is about half again what was measured when it was set; what must not
/// happen is that packets become dearer the more of them came: while each moved what was held before,
/// one of `descending-octets` and of `overlapping` took 139,000; while each could have all judged again that
/// is in flight, one of `renege` took millions.
pub(crate) const STREAMS: &[Stream] = &[
    Stream::sent("syn-flood", syn_flood, 7_500),
    Stream::sent("stray-ack-flood", stray_ack_flood, 3_500),
    Stream::sent("ack-flood", ack_flood, 3_000),
    Stream::sent("reset-flood", reset_flood, 3_000),
    Stream::sent("syn-in-window-flood", syn_in_window_flood, 3_500),
    Stream::sent("echo-flood", echo_flood, 4_000),
    Stream::sent("icmp-error-flood", icmp_error_flood, 2_500),
    Stream::sent("fragment-flood", fragment_flood, 22_000),
    Stream::sent("ascending-octets", ascending, 14_000),
    Stream::sent("descending-octets", descending, 15_000),
    Stream::sent("every-second-octet", every_second, 13_000),
    Stream::sent("descending-second-octet", descending_second, 12_000),
    Stream::sent("triples", triples, 14_000),
    Stream::sent("random-octets", random, 14_000),
    Stream::sent("overlapping", overlapping, 16_000),
    Stream::sent("sliding-bursts", sliding_bursts, 2_600),
    Stream::sent("bursts-again", bursts_again, 2_100),
    Stream::told("sack-octets", receiver::sack_octets, 23_000),
    Stream::told("sack-backwards", receiver::sack_backwards, 11_500),
    Stream::told("renege", receiver::renege, 11_500),
    Stream::told("come-twice", receiver::come_twice, 10_500),
    Stream::told("ack-octets", receiver::ack_octets, 3_600),
    Stream::told("ack-unsent", receiver::ack_unsent, 3_300),
    Stream {
        name: "ack-octets-of-repair",
        victim: Victim::sending_without_sack,
        frames: receiver::ack_octets_of_repair,
        most: 6_000,
    },
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

/// A server with one established connection, of which its application reads nothing.
pub(crate) struct Victim {
    shard: Shard,
    batch: TxBatch,
    /// RCV.NXT and SND.NXT of the connection.
    next: SeqNum,
    sent: SeqNum,
    /// The host's last packet, which errors are about.
    last: Vec<u8>,
    now: Instant,
    pace: Pace,
}

/// How a stream arrives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Pace {
    /// In bursts, all at once.
    Bursts,
    /// One packet in each millisecond, and what is due is done.
    Each,
}

impl Victim {
    fn new() -> Result<Self, Failure> {
        let own = InterfaceAddress { addr: address(SERVER), prefix_len: 8 };
        let mut shard = Shard::new(ShardConfig {
            // Timestamps would let a peer that has none of the connection's be dropped early.
            tunables: Tunables {
                timestamps: false,
                recv_buffer: BUFFER,
                recv_buffer_max: BUFFER,
                ..Tunables::default()
            },
            secrets: Secrets::from_seed(1),
            capabilities: Capabilities::plain(Medium::Ip, 1_500),
            addresses: vec![own],
            routes: Vec::new(),
        })?;
        let listener = shard.listen(Endpoint::new(address(SERVER), 80), 64)?;
        let mut victim = Self::of(shard, Pace::Bursts);
        victim.suffer(&[victim.segment(TcpFlags::SYN, ISN, 0)]);
        victim.sent = victim.answered()?.seq + 1;
        victim.suffer(&[victim.segment(TcpFlags::ACK, ISN + 1, 0)]);
        let handle = victim.shard.accept(listener).ok_or("the handshake failed")?;
        // Something is in flight, which acknowledgments and errors can be about.
        victim.shard.send(handle, &mut Bytes::from_static(&[7; 1_000]))?;
        victim.suffer(&[]);
        victim.sent += 1_000;
        Ok(victim)
    }

    fn of(shard: Shard, pace: Pace) -> Self {
        Self {
            shard,
            batch: TxBatch::new(BURST),
            next: ISN + 1,
            sent: SeqNum::new(0),
            last: Vec::new(),
            now: Instant::from_millis(1),
            pace,
        }
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

    /// Text of so many octets at each of these places behind RCV.NXT.
    fn texts(&self, len: usize, places: impl Iterator<Item = u32>) -> Vec<Vec<u8>> {
        let at = |place| self.segment(TcpFlags::ACK, self.next + place, len);
        places.take(PACKETS as usize).map(at).collect()
    }
}

/// A segment to the server.
fn frame(host: u32, header: &TcpHeader, text: usize) -> Vec<u8> {
    let mut octets = vec![0; TcpHeader::MAX_LEN];
    let len = header.emit(OptionOrder::Linux, &mut octets);
    octets.truncate(len);
    octets.resize(len + text, 7);
    packet(host, Protocol::TCP, None, &octets)
}

/// A packet to the server.
fn packet(host: u32, protocol: Protocol, fragment: Option<Fragment>, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0; Ipv4Header::LEN];
    Ipv4Header {
        identification: fragment.map_or(0, |it| it.identification as u16),
        dont_fragment: fragment.is_none(),
        fragment,
        ..Ipv4Header::new(
            address(CLIENTS + host).v4_octets().into(),
            address(SERVER).v4_octets().into(),
            protocol,
            payload.len(),
        )
    }
    .emit(&mut packet);
    packet.extend_from_slice(payload);
    packet
}

fn message(message: &IcmpMessage<'_>) -> Vec<u8> {
    let mut octets = vec![0; message.wire_len()];
    message.emit(&mut octets);
    packet(9, Protocol::ICMP, None, &octets)
}

fn numbers() -> std::ops::Range<u32> {
    0..PACKETS as u32
}

fn syn_flood(victim: &Victim) -> Vec<Vec<u8>> {
    let of = |number| (1 + number / 60_000, 1_024 + (number % 60_000) as u16);
    numbers().map(|it| victim.segment_from(of(it), TcpFlags::SYN, ISN, 0)).collect()
}

fn stray_ack_flood(victim: &Victim) -> Vec<Vec<u8>> {
    numbers().map(|it| victim.segment_from((1 + it, 9), TcpFlags::ACK, ISN, 0)).collect()
}

/// The same acknowledgment again and again, as of something lost.
fn ack_flood(victim: &Victim) -> Vec<Vec<u8>> {
    let old = |_| victim.segment(TcpFlags::ACK, victim.next, 0);
    numbers().map(old).collect()
}

fn reset_flood(victim: &Victim) -> Vec<Vec<u8>> {
    numbers().map(|it| victim.segment(TcpFlags::RST, victim.next + 1 + it, 0)).collect()
}

fn syn_in_window_flood(victim: &Victim) -> Vec<Vec<u8>> {
    numbers().map(|it| victim.segment(TcpFlags::SYN, victim.next + 1 + it, 0)).collect()
}

fn echo_flood(_: &Victim) -> Vec<Vec<u8>> {
    let data = [7; 56];
    let ask = |it| IcmpMessage::EchoRequest { identifier: 1, sequence: it as u16, data: &data };
    numbers().map(|it| message(&ask(it))).collect()
}

/// About the segment in flight: a path that carries ever less.
fn icmp_error_flood(victim: &Victim) -> Vec<Vec<u8>> {
    let quoted = &victim.last[..28];
    let error = |it: u32| {
        let next_hop_mtu = 1_400 - (it % 1_000) as u16;
        message(&IcmpMessage::FragmentationNeeded { next_hop_mtu, quoted })
    };
    numbers().map(error).collect()
}

/// Fragments of ever other datagrams and senders, none of which becomes whole.
fn fragment_flood(_: &Victim) -> Vec<Vec<u8>> {
    let of = |it: u32| {
        let fragment = Fragment { identification: it, offset: 8, more: true };
        packet(1 + it % 50, Protocol::UDP, Some(fragment), &[7; 64])
    };
    numbers().map(of).collect()
}

fn ascending(victim: &Victim) -> Vec<Vec<u8>> {
    victim.texts(1, 1..)
}

fn descending(victim: &Victim) -> Vec<Vec<u8>> {
    victim.texts(1, numbers().rev().map(|it| 1 + it))
}

fn every_second(victim: &Victim) -> Vec<Vec<u8>> {
    victim.texts(1, (1..).step_by(2))
}

fn descending_second(victim: &Victim) -> Vec<Vec<u8>> {
    victim.texts(1, numbers().rev().map(|it| 1 + 2 * it))
}

/// A hole at RCV.NXT, then three octets of each four.
fn triples(victim: &Victim) -> Vec<Vec<u8>> {
    victim.texts(3, (1..).step_by(4))
}

fn random(victim: &Victim) -> Vec<Vec<u8>> {
    let mut state = 1_u32;
    let draw = |_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        1 + (state >> 8) % (BUFFER - 2)
    };
    victim.texts(1, numbers().map(draw))
}

/// Each begins within the one before.
fn overlapping(victim: &Victim) -> Vec<Vec<u8>> {
    victim.texts(64, numbers().rev().map(|it| 1 + 16 * it))
}

/// Long enough to be joined, in order, and each nearly all of what came before.
fn sliding_bursts(victim: &Victim) -> Vec<Vec<u8>> {
    victim.texts(600, numbers().map(|it| 31 * it))
}

/// A burst that is joined, and the same again and again.
fn bursts_again(victim: &Victim) -> Vec<Vec<u8>> {
    victim.texts(1_460, numbers().map(|it| 1_460 * (it % BURST as u32)))
}

/// Packets of a stream.
pub(crate) const PACKETS: u64 = 8_192;
const BURST: usize = 64;
const BUFFER: u32 = 256 << 10;
const ISN: SeqNum = SeqNum::new(1_000);
const PORT: u16 = 5_000;
