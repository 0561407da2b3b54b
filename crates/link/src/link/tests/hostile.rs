//! Malformed packets on links with every key.

use bytes::Bytes;
use fastrand::Rng;
use whimbrel_base::Instant;
use whimbrel_base::packet::{TxChecksum, TxSegment};
use whimbrel_wire::tcp::TcpView;
use whimbrel_wire::{IpHeader, Protocol, Sum};

use super::link;
use crate::Link;
use crate::pure_ack::is_pure_ack;

/// Links on which packets are read, changed or replaced, without loss by chance.
const LINKS: [&str; 8] = [
    "ecn-bleach,mtu=65535",
    "accecn-strip,mtu=65535",
    "ecn=0,mtu=65535",
    "ecn-bleach,accecn-strip,ecn=0,rate=1G,queue=10p,mtu=65535",
    "rate=10M,ack-filter,mtu=65535",
    "ack-batch=3ms,mtu=65535",
    "rate=10M,ack-batch=1ms,ack-filter,dup=20%,reorder=20%:2ms,jitter=1ms,corrupt=5%,mtu=65535",
    "police=1M:3k,rate=10M,ack-filter,ack-batch=1ms,mtu=68,at=20ms:down,at=40ms:up,at=60ms:rate=1k",
];

/// Makes packets that are wrong in each way that a parser may overlook, and some right ones.
struct Attacker(Rng);

impl Attacker {
    fn packet(&mut self) -> Vec<u8> {
        let protocol = self.pick(&[6, 6, 6, 6, 17, 1, 58, 255]);
        let segment = self.segment();
        let mut packet =
            if self.0.bool() { self.v4(protocol, &segment) } else { self.v6(protocol, &segment) };
        if self.one_in(4) {
            packet.truncate(self.0.usize(..=packet.len()));
        }
        if self.one_in(4) && !packet.is_empty() {
            let place = self.0.usize(..packet.len().min(100));
            packet[place] = self.0.u8(..);
        }
        packet
    }

    /// A right acknowledgment of this number.
    fn acknowledgment(number: u32) -> Vec<u8> {
        let mut segment = vec![0; 20];
        segment[8..12].copy_from_slice(&number.to_be_bytes());
        (segment[12], segment[13]) = (5 << 4, 0x10);
        let mut packet = vec![0; 40];
        packet[..10].copy_from_slice(&[0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6]);
        packet[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
        packet[20..].copy_from_slice(&segment);
        let checksum = Sum::new().add_bytes(&packet[..20]).finish();
        packet[10..12].copy_from_slice(&checksum.to_be_bytes());
        packet
    }

    /// A TCP segment, most often an acknowledgment, without checksum.
    fn segment(&mut self) -> Vec<u8> {
        let words = self.pick(&[5, 5, 6, 8, 10, 15, 0, 4]);
        let flags = self.pick(&[0x10, 0x10, 0x10, 0x50, 0x11, 0x02, 0xff, 0]);
        let mut segment = vec![0; 20];
        segment[1] = self.0.u8(..3);
        segment[11] = self.0.u8(..8);
        segment[12] = words << 4 | self.pick(&[0, 0, 1]);
        segment[13] = flags;
        let options = usize::from(words.saturating_sub(5)) * 4;
        while segment.len() < 20 + options {
            let kind = self.pick(&[0, 1, 1, 2, 3, 4, 5, 8, 34, 172, 172, 174, 254, 255]);
            let len = self.pick(&[0, 1, 2, 5, 8, 10, 11, 40, 255]);
            segment.push(kind);
            if kind > 1 {
                segment.push(len);
                segment.extend((2..len).map(|_| self.0.u8(..)));
            }
        }
        segment.truncate(20 + options);
        let text = self.pick(&[0, 0, 0, 0, 0, 1, 3, 100, 1_400, 1_400, 1_400, 60_000]);
        segment.resize(segment.len() + text, 7);
        segment
    }

    fn v4(&mut self, protocol: u8, segment: &[u8]) -> Vec<u8> {
        let words = self.pick(&[5, 5, 5, 6, 15]);
        let header = usize::from(words) * 4;
        let mut packet = vec![1; header];
        packet[..20].fill(0);
        packet[0] = 0x40 | self.likely(words);
        packet[1] = self.0.u8(..);
        let len = (header + segment.len()) as u16;
        packet[2..4].copy_from_slice(&self.likely(len).to_be_bytes());
        packet[6..8]
            .copy_from_slice(&self.pick(&[0_u16, 0, 0, 0x4000, 0x2000, 1, 0xffff]).to_be_bytes());
        packet[8..10].copy_from_slice(&[64, protocol]);
        packet[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
        packet.extend_from_slice(segment);
        if !self.one_in(8) {
            let checksum = Sum::new().add_bytes(&packet[..header]).finish();
            packet[10..12].copy_from_slice(&checksum.to_be_bytes());
        }
        self.finish(packet)
    }

    /// With up to four extension headers.
    fn v6(&mut self, protocol: u8, segment: &[u8]) -> Vec<u8> {
        let mut packet = vec![0; 40];
        packet[0] = 0x60 | self.0.u8(..16);
        packet[1] = self.0.u8(..);
        (packet[23], packet[39]) = (1, 2);
        let mut pointer = 6;
        for _ in 0..self.pick(&[0, 0, 0, 1, 2, 4]) {
            packet[pointer] = self.pick(&[0, 43, 44, 51, 60, 59, 135]);
            pointer = packet.len();
            let units = self.pick(&[0, 0, 1, 2, 255]);
            packet.extend([0, units, 0, 0, 0, 0, 0, 0]);
            packet.resize(packet.len() + usize::from(units).min(2) * 8, 0);
        }
        packet[pointer] = protocol;
        packet.extend_from_slice(segment);
        let len = (packet.len() - 40) as u16;
        packet[4..6].copy_from_slice(&self.likely(len).to_be_bytes());
        self.finish(packet)
    }

    /// Most often with the right checksum of TCP, where there is one.
    fn finish(&mut self, mut packet: Vec<u8>) -> Vec<u8> {
        if let Some((at, sum)) = tcp_sum(&packet).filter(|_| !self.one_in(8)) {
            packet[at + 16..at + 18].copy_from_slice(&sum.finish().to_be_bytes());
        }
        packet
    }

    fn likely<T: From<u8>>(&mut self, right: T) -> T {
        if self.one_in(8) { T::from(self.0.u8(..)) } else { right }
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.0.usize(..from.len())]
    }

    fn one_in(&mut self, count: u32) -> bool {
        self.0.u32(..count) == 0
    }
}

/// Place of a segment of TCP that has a whole header, and the sum over it.
fn tcp_sum(packet: &[u8]) -> Option<(usize, Sum)> {
    let (ip, segment) = IpHeader::parse(packet).ok()?;
    let is_whole = ip.protocol == Protocol::TCP && ip.fragment.is_none() && segment.len() >= 20;
    let sum = Sum::pseudo_header(ip.src, ip.dst, ip.protocol.0, segment.len() as u32);
    is_whole.then(|| (ip.header_len.into(), sum.add_bytes(segment)))
}

fn is_valid_tcp(packet: &[u8]) -> Option<bool> {
    tcp_sum(packet).map(|(_, sum)| sum.is_valid())
}

fn is_valid_v4(packet: &[u8]) -> bool {
    let header = usize::from(packet.first().map_or(0, |first| first & 15)) * 4;
    packet.get(..header).is_some_and(|header| Sum::new().add_bytes(header).is_valid())
}

/// Checks that a link changed nothing but the codepoint, the options of TCP, and both checksums.
fn check_changes(before: &[u8], after: &[u8]) {
    assert_eq!(before.len(), after.len());
    let ip = IpHeader::parse(before).ok();
    let is_v4 = before.first().is_some_and(|first| first >> 4 == 4);
    let tcp = tcp_sum(before).and_then(|(at, _)| {
        let (_, header) = TcpView::parse(&before[at..]).ok()?;
        Some((at, header))
    });
    for (place, (old, new)) in before.iter().zip(after).enumerate() {
        let may_change = match (&ip, place) {
            (None, _) => 0,
            (_, 1) if is_v4 => 0x03,
            (_, 1) => 0x30,
            (_, 10 | 11) if is_v4 => 0xff,
            _ => match tcp {
                Some((at, header)) if (at + 20..at + header).contains(&place) => 0xff,
                Some((at, _)) if (at + 16..at + 18).contains(&place) => 0xff,
                _ => 0,
            },
        };
        assert_eq!(
            (old ^ new) & !may_change,
            0,
            "byte {place} of {:02x?}",
            &before[..before.len().min(120)]
        );
    }
    if ip.is_some() && is_v4 {
        assert_eq!(
            is_valid_v4(before),
            is_valid_v4(after),
            "{:02x?}",
            &before[..60.min(before.len())]
        );
    }
    if is_valid_tcp(before).is_some() {
        assert_eq!(
            is_valid_tcp(before),
            is_valid_tcp(after),
            "{:02x?}",
            &before[..120.min(before.len())]
        );
    }
}

/// Checks that each frame is delivered, lost or under way, and that their memory is known.
fn check_counts(link: &Link) {
    let (all, on_way) = (link.counters(), link.in_flight() as u64);
    assert_eq!(all.sent + all.duplicated, all.delivered + all.lost() + on_way, "{all:?}");
    let batched = link.ack_batch.as_ref().map_or(0, crate::ack_batch::AckBatch::len);
    let travelling = link.in_order.iter().chain(link.out_of_order.iter().map(|it| &it.0));
    let held: u64 = travelling.map(|it| super::super::held(&it.frame)).sum();
    assert!(link.held >= held && (link.held == held || batched > 0), "{} {held}", link.held);
}

#[test]
fn malformed_packets_are_carried_and_counted() {
    for (number, text) in LINKS.into_iter().enumerate() {
        let (mut link, mut attacker) = (link(text), Attacker(Rng::with_seed(number as u64)));
        for step in 0..3_000 {
            let now = Instant::from_nanos(step * 50_000);
            link.push_frame(now, attacker.packet().into());
            check_counts(&link);
            while link.pop(now).is_some() {}
        }
        while let Some(at) = link.next_arrival() {
            assert!(link.pop(at).is_some() || link.next_arrival() != Some(at) || link.is_empty());
        }
        check_counts(&link);
        assert!(link.is_empty() && link.held == 0, "{text}");
    }
}

#[test]
fn only_ecn_and_checksums_of_malformed_packets_change() {
    let (mut changed, mut attacker) = ([0; 3], Attacker(Rng::with_seed(9)));
    for _ in 0..5_000 {
        let packet = Bytes::from(attacker.packet());
        for (text, changed) in LINKS.into_iter().zip(&mut changed) {
            let mut link = link(text);
            link.push_frame(Instant::ZERO, packet.clone());
            let arrived = link.pop(Instant::ZERO).expect("nothing is lost");
            check_changes(&packet, &arrived);
            *changed += u32::from(arrived != packet);
        }
    }
    assert!(changed.iter().all(|count| *count > 40), "{changed:?}");
}

#[test]
fn filter_and_batch_lose_nothing_but_pure_acknowledgments() {
    for text in ["rate=1G,ack-filter,queue=1000p,mtu=65535", "ack-batch=3ms,mtu=65535"] {
        let (mut link, mut attacker) = (link(text), Attacker(Rng::with_seed(3)));
        let (mut sent, mut arrived) = (Vec::new(), Vec::new());
        for step in 0..2_000 {
            let packet = match attacker.0.bool() {
                true => attacker.packet(),
                false => Attacker::acknowledgment(step),
            };
            let packet = Bytes::from(packet);
            let now = Instant::from_nanos(u64::from(step) * 30_000);
            if link.push_frame(now, packet.clone()).lost.is_none() {
                sent.push(packet);
            }
        }
        while let Some(at) = link.next_arrival() {
            arrived.extend(std::iter::from_fn(|| link.pop(at)));
        }
        let replaced = link.counters().lost_replaced as usize;
        assert!(text.contains("batch") || replaced > 20, "{replaced}");
        assert_eq!(sent.len(), arrived.len() + replaced);
        let others = |all: &[Bytes]| -> Vec<Bytes> {
            all.iter().filter(|packet| !is_pure_ack(packet)).cloned().collect()
        };
        assert!(others(&sent) == others(&arrived), "{text}: others keep their order");
    }
}

#[test]
fn super_segments_are_cut_before_keys_act() {
    let mut attacker = Attacker(Rng::with_seed(5));
    for _ in 0..2_000 {
        let mut link = link("rate=1G,ecn-bleach,accecn-strip,ack-filter,ack-batch=1ms,mtu=65535");
        let header = attacker.packet();
        let header = &header[..header.len().min(120)];
        let text = Bytes::from(vec![1; attacker.0.usize(..60_000)]);
        let mut segment = TxSegment::new();
        segment.header_room()[..header.len()].copy_from_slice(header);
        segment.set_header_len(header.len());
        segment.transport_offset = attacker.pick(&[0, 20, 40, 60, 119, 255]);
        segment.checksum = attacker.pick(&[TxChecksum::Done, TxChecksum::Partial(16)]);
        segment.gso_size = attacker.pick(&[0, 500, 1_448, u16::MAX]);
        segment.payload.push(text).expect("room for a slice");
        link.push(Instant::ZERO, &segment);
        check_counts(&link);
    }
}
