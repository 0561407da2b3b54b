use pcap_parser::pcapng::{Block, OptionCode, parse_block_le};
use whimbrel_base::Secrets;
use whimbrel_base::packet::SegMeta;
use whimbrel_link::LinkConfig;
use whimbrel_stack::{InterfaceAddress, Medium, ShardConfig};
use whimbrel_wire::{Address, Endpoint};

use super::*;
use crate::outputs::{Full, Shared};
use crate::pair::mem_capabilities;
use crate::{Activity, MemPair, MemTime, Port, Stop};

/// An application that connects once to a closed port.
struct Caller {
    called: bool,
}

/// An application that does nothing.
struct Idle;

impl Port for Caller {
    fn drain(&mut self, _: Instant, shard: &mut Shard) -> Activity {
        if !std::mem::replace(&mut self.called, true) {
            shard.connect(Endpoint::new(address(2), 7), None).unwrap();
        }
        Activity::Idle
    }

    fn flush(&mut self, _: Instant, _: &mut Shard) -> Activity {
        Activity::Idle
    }
}

impl Port for Idle {
    fn drain(&mut self, _: Instant, _: &mut Shard) -> Activity {
        Activity::Idle
    }

    fn flush(&mut self, _: Instant, _: &mut Shard) -> Activity {
        Activity::Idle
    }
}

fn address(host: u8) -> Address {
    Address::from_v4_bytes([10, 0, 0, host])
}

fn shard(host: u8) -> Shard {
    Shard::new(ShardConfig {
        tunables: Default::default(),
        secrets: Secrets::from_seed(host.into()),
        capabilities: mem_capabilities(&LinkConfig::default()),
        addresses: vec![InterfaceAddress { addr: address(host), prefix_len: 24 }],
        routes: Vec::new(),
    })
    .unwrap()
}

fn tap(out: impl Write + Send + 'static, snap: usize) -> Tap {
    let config = TapConfig::new("wire", Medium::Ip);
    Tap::begin(TapConfig { snap, zero: 1_000, ..config }, out)
}

/// A packet as it was read back: nanoseconds, bytes stored and on the wire, flags, comment.
type Line = (u64, u32, u32, u32, String);

fn packets(file: &Shared) -> Vec<Line> {
    let file = file.0.lock().unwrap();
    let (mut rest, mut lines) = (file.as_slice(), Vec::new());
    while !rest.is_empty() {
        let (after, block) = parse_block_le(rest).unwrap();
        rest = after;
        let Block::EnhancedPacket(packet) = block else { continue };
        let option = |code| packet.options.iter().find(|option| option.code == code);
        let flags = &option(OptionCode(2)).unwrap().value;
        let comment = option(OptionCode(1)).map_or("", |comment| {
            std::str::from_utf8(&comment.value[..comment.len.into()]).unwrap()
        });
        lines.push((
            (u64::from(packet.ts_high) << 32) | u64::from(packet.ts_low),
            packet.caplen,
            packet.origlen,
            u32::from_le_bytes(flags[..4].try_into().unwrap()),
            comment.to_owned(),
        ));
    }
    lines
}

#[test]
fn a_call_that_nobody_takes_is_shown_with_its_states() {
    let file = Shared::default();
    let hosts = ((shard(1), Caller { called: false }), (shard(2), Idle));
    let link = "delay=1ms".parse().unwrap();
    let mut pair = MemPair::new(&link, 1, hosts, MemTime::Virtual(Instant::ZERO))
        .with_tap(Some(tap(file.clone(), 40)));
    pair.run(&Stop::new().unwrap()).unwrap();
    assert_eq!(pair.take_tap().unwrap().finish().unwrap(), 2);

    let lines = packets(&file);
    let [(sent, caplen, origlen, out, opened), (heard, _, _, inward, closed)] = &lines[..] else {
        panic!("{lines:?}")
    };
    assert_eq!((*sent, *caplen, *out), (1_000, 40, 2));
    assert!(*origlen > 40, "a SYN has options");
    assert_eq!(opened, "state: SYN-SENT");
    assert_eq!((heard - sent, *inward), (2_000_000, 1));
    assert_eq!(closed, "state: SYN-SENT -> CLOSED");
}

#[test]
fn each_frame_of_a_burst_bears_the_reason_of_its_own_drop() {
    let file = Shared::default();
    let (mut tap, mut shard) = (tap(file.clone(), 64), shard(1));
    let frames: [&[u8]; 3] = [&[0x45], &[0x45; 24], &[]];
    tap.rx(Instant::ZERO, &mut shard, &frames.map(|bytes| RxFrame::new(bytes, SegMeta::SINGLE)));
    tap.finish().unwrap();
    let lines = packets(&file);
    assert_eq!(lines.len(), 3);
    for line in lines {
        assert_eq!(line.4.matches("drop: ").count(), 1, "{line:?}");
    }
}

#[test]
fn a_full_disk_ends_the_capture_and_not_the_stack() {
    let (mut tap, mut shard) = (tap(Full, 64), shard(1));
    tap.rx(Instant::ZERO, &mut shard, &[RxFrame::new(&[0x45], SegMeta::SINGLE)]);
    assert_eq!(shard.ip_counters().in_receives, 1);
    assert_eq!(tap.finish().unwrap_err().kind(), io::ErrorKind::StorageFull);
}

#[test]
fn write_error_of_a_capture_is_reported_once_and_at_once() {
    let reported: Arc<Mutex<Vec<io::ErrorKind>>> = Arc::default();
    let handler: ErrorHandler = {
        let reported = Arc::clone(&reported);
        Box::new(move |failure| reported.lock().unwrap().push(failure.kind()))
    };
    let mut first = Tap::begin_with(Some(handler), TapConfig::new("wire", Medium::Ip), Full);
    assert_eq!(*reported.lock().unwrap(), [io::ErrorKind::StorageFull]);
    let (mut second, mut shard) = (first.of_another_shard(), shard(1));
    for tap in [&mut first, &mut second] {
        tap.rx(Instant::ZERO, &mut shard, &[RxFrame::new(&[0x45; 30], SegMeta::SINGLE)]);
    }
    assert!(first.finish().is_err());
    assert_eq!(second.finish().unwrap(), 1, "the reason was reported already");
    assert_eq!(reported.lock().unwrap().len(), 1);
}

#[test]
fn the_taps_of_several_shards_write_one_file() {
    let file = Shared::default();
    let mut first = tap(file.clone(), 64);
    let mut second = first.of_another_shard();
    let (mut one, mut other) = (shard(1), shard(1));
    for _ in 0..3 {
        first.rx(Instant::ZERO, &mut one, &[RxFrame::new(&[0x45; 30], SegMeta::SINGLE)]);
        second.rx(Instant::ZERO, &mut other, &[RxFrame::new(&[0x45; 40], SegMeta::SINGLE); 2]);
    }
    assert_eq!((first.finish().unwrap(), second.finish().unwrap()), (3, 6));
    let lens: Vec<_> = packets(&file).iter().map(|line| line.2).collect();
    assert_eq!(lens, [30, 40, 40, 30, 40, 40, 30, 40, 40]);
}

#[test]
fn capture_rotates_files_and_ends_at_its_frame_limit() {
    let files: Arc<Mutex<Vec<Shared>>> = Arc::default();
    let (more, first) = (files.clone(), Shared::default());
    let next = move || -> io::Result<Box<dyn Write + Send>> {
        let file = Shared::default();
        more.lock().unwrap().push(file.clone());
        Ok(Box::new(file))
    };
    let stop = Stop::new().unwrap();
    let config = TapConfig { most: 5, ..TapConfig::new("wire", Medium::Ip) };
    let mut tap = Tap::begin(config, first.clone())
        .with_rotation(Some(Rotation { bytes: 300, next: Box::new(next) }))
        .until(stop.clone());
    let mut shard = shard(1);
    for _ in 0..7 {
        tap.rx(Instant::ZERO, &mut shard, &[RxFrame::new(&[0x45; 100], SegMeta::SINGLE)]);
    }
    assert!(stop.is_set());
    assert_eq!(tap.finish().unwrap(), 5);
    let counts = |file: &Shared| packets(file).len();
    let later: Vec<_> = files.lock().unwrap().iter().map(counts).collect();
    assert_eq!((counts(&first), later), (2, vec![2, 1]));
}
