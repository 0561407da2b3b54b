//! A path around a device of vectors.

use std::collections::VecDeque;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex};

use whimbrel_base::packet::{RxChecksum, SegMeta};
use whimbrel_link::LinkConfig;
use whimbrel_stack::{Capabilities, Medium, RxFrame, TxBatch};
use whimbrel_wire::{IpHeader, MacAddress, Protocol, Sum};

use super::{ImpairedDevice, put_frame};
use crate::Clock;
use crate::device::{Device, DeviceCounters, TxOutcome};
use crate::sys::{AsFd, Event};

#[derive(Debug)]
struct VecDevice {
    medium: Medium,
    arriving: VecDeque<(Vec<u8>, SegMeta)>,
    sent: Arc<Mutex<Vec<Vec<u8>>>>,
    counters: DeviceCounters,
    event: Event,
}

impl Device for VecDevice {
    fn name(&self) -> String {
        "vec".into()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::plain(self.medium, 1500).with_segmentation(65_535)
    }

    fn rx_burst(&mut self, deliver: &mut dyn FnMut(&[RxFrame<'_>])) -> io::Result<usize> {
        let Some((frame, meta)) = self.arriving.pop_front() else { return Ok(0) };
        deliver(&[RxFrame::new(&frame, meta)]);
        Ok(1)
    }

    fn tx_burst(&mut self, batch: &mut TxBatch) -> io::Result<TxOutcome> {
        let frames = batch.pending().iter().map(whimbrel_base::packet::TxSegment::to_vec);
        self.sent.lock().unwrap().extend(frames);
        batch.consume(batch.pending().len());
        Ok(TxOutcome::Drained)
    }

    fn counters(&self) -> &DeviceCounters {
        &self.counters
    }
}

impl AsFd for VecDevice {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}

/// A path with this configuration around a device from which these frames come, what that sent, and the
/// clock.
fn impaired(
    config: &str,
    medium: Medium,
    arriving: Vec<(Vec<u8>, SegMeta)>,
) -> (ImpairedDevice, Arc<Mutex<Vec<Vec<u8>>>>, Clock) {
    let (sent, clock) = (Arc::default(), Clock::start());
    let counters = DeviceCounters::default();
    let event = Event::new().unwrap();
    let device =
        VecDevice { medium, arriving: arriving.into(), sent: Arc::clone(&sent), counters, event };
    let config: LinkConfig = config.parse().unwrap();
    let path = [config.clone(), config.back()];
    (ImpairedDevice::new(Box::new(device), clock, path, 1), sent, clock)
}

/// Calls the device until `count` frames have come to the stack.
fn receive(device: &mut ImpairedDevice, count: usize) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    while frames.len() < count {
        device
            .rx_burst(&mut |burst| frames.extend(burst.iter().map(|it| it.bytes.to_vec())))
            .unwrap();
    }
    frames
}

/// An IPv4 packet of TCP with this many bytes of text, its checksum left to the device.
fn unfinished(text: usize) -> Vec<u8> {
    let mut packet = vec![0; 40 + text];
    packet[..10].copy_from_slice(&[0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 6]);
    packet[2..4].copy_from_slice(&((40 + text) as u16).to_be_bytes());
    packet[12..20].copy_from_slice(&[10, 0, 2, 100, 203, 0, 113, 9]);
    let checksum = Sum::new().add_bytes(&packet[..20]).finish();
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
    packet[20..24].copy_from_slice(&[0x12, 0x34, 0, 80]);
    packet[32..34].copy_from_slice(&[0x50, 0x10]);
    let (ip, _) = IpHeader::parse(&packet).unwrap();
    let pseudo = Sum::pseudo_header(ip.src, ip.dst, Protocol::TCP.0, 20 + text as u32);
    packet[36..38].copy_from_slice(&(!pseudo.finish()).to_be_bytes());
    packet
}

/// True if the checksum of TCP is right.
fn is_right(packet: &[u8]) -> bool {
    let (ip, tcp) = IpHeader::parse(packet).unwrap();
    let pseudo = Sum::pseudo_header(ip.src, ip.dst, ip.protocol.0, tcp.len() as u32);
    pseudo.add_bytes(tcp).finish() == 0
}

const UNFINISHED: SegMeta = SegMeta { segs: 3, gso_size: 1000, checksum: RxChecksum::Partial };

#[test]
fn frames_cross_in_both_directions_after_the_delay() {
    let arriving = vec![(vec![0x45; 40], SegMeta::SINGLE)];
    let (mut device, sent, clock) = impaired("delay=20ms", Medium::Ip, arriving);
    assert_eq!(device.capabilities(), Capabilities::plain(Medium::Ip, 1500));
    let mut batch = TxBatch::new(1);
    batch.fill(|place| put_frame(place, &[0x46; 50]));
    let began = clock.now();
    assert_eq!(device.tx_burst(&mut batch).unwrap(), TxOutcome::Drained);
    assert!(batch.is_empty() && sent.lock().unwrap().is_empty());
    assert_eq!(receive(&mut device, 1), [vec![0x45; 40]]);
    assert!(clock.now() >= began + std::time::Duration::from_millis(20));
    assert_eq!(*sent.lock().unwrap(), [vec![0x46; 50]]);
    assert!(device.links().is_empty() && device.next_deadline().is_none());
}

#[test]
fn super_segment_is_cut_in_front_of_the_path() {
    let arriving = vec![(unfinished(2500), UNFINISHED)];
    let (mut device, _, _) = impaired("delay=0s", Medium::Ip, arriving);
    let packets = receive(&mut device, 3);
    let lens: Vec<_> = packets.iter().map(Vec::len).collect();
    assert_eq!(lens, [1040, 1040, 540]);
    assert!(packets.iter().all(|packet| is_right(packet)));
    assert_eq!(device.links().counters()[1].sent, 3);
}

#[test]
fn queue_of_the_path_drops_what_is_too_much() {
    let packet = || (vec![0x45; 1000], SegMeta::SINGLE);
    let arriving = (0..10).map(|_| packet()).collect();
    let (mut device, _, _) = impaired("rate=1M,queue=3p", Medium::Ip, arriving);
    while !device.rx_burst(&mut |_| {}).is_ok_and(|count| count == 0) {}
    let [_, into] = device.links().counters();
    assert_eq!((into.sent, into.lost_queue), (10, 7));
}

#[test]
fn ethernet_keeps_its_header_and_other_frames_pass_at_once() {
    let medium = Medium::Ethernet { mac: MacAddress([2, 0, 0, 0, 0, 1]) };
    let header = [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2][..], &[8, 0]].concat();
    let frame = [&header[..], &unfinished(100)].concat();
    let mut arp = header.clone();
    arp[12..].copy_from_slice(&[8, 6]);
    let single = SegMeta { segs: 1, gso_size: 0, ..UNFINISHED };
    let arriving = vec![(frame.clone(), single), (arp.clone(), SegMeta::SINGLE)];
    let (mut device, sent, _) = impaired("delay=20ms", medium, arriving);
    let frames = receive(&mut device, 2);
    // The packet was on its way for longer.
    assert_eq!(frames[0], arp);
    assert_eq!((&frames[1][..36], frames[1].len()), (&frame[..36], frame.len()));
    assert!(is_right(&frames[1][14..]));
    let mut batch = TxBatch::new(2);
    batch.fill(|place| put_frame(place, &arp));
    batch.fill(|place| put_frame(place, &frame));
    device.tx_burst(&mut batch).unwrap();
    assert_eq!(*sent.lock().unwrap(), [arp.clone()]);
    while sent.lock().unwrap().len() < 2 {
        device.rx_burst(&mut |_| {}).unwrap();
    }
    assert_eq!(sent.lock().unwrap()[1], frame);
}

#[test]
fn malformed_super_frames_are_counted() {
    let mut datagram = unfinished(2500);
    datagram[9] = 17;
    let cut_short = unfinished(0)[..30].to_vec();
    let arriving = vec![(datagram, UNFINISHED), (cut_short, UNFINISHED), (Vec::new(), UNFINISHED)];
    let (mut device, _, _) = impaired("delay=0s", Medium::Ip, arriving);
    while !device.rx_burst(&mut |_| panic!("nothing passes")).is_ok_and(|count| count == 0) {}
    assert_eq!(device.counters().rx_malformed, 3);
}
