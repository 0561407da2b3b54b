use std::path::PathBuf;
use std::time::Duration;

use whimbrel_link::pcapng::{PacketNote, Section};
use whimbrel_wire::Address;

use super::*;

/// A file that is removed with the test.
struct File(PathBuf);

impl File {
    /// Writes a capture of frames: time, direction, bytes.
    fn new(name: &str, link_type: LinkType, frames: &[(u64, Direction, &[u8])]) -> Self {
        let mut out = Vec::new();
        let mut section = Section::begin(&mut out);
        let interface = section.describe(&mut out, "wire", link_type);
        for (at, direction, bytes) in frames {
            let (at, wire_len) = (Instant::from_nanos(*at), 64);
            let note = PacketNote { interface, at, direction: *direction, wire_len, comment: "" };
            section.packet(&mut out, &note, bytes);
        }
        let path = std::env::temp_dir().join(format!("whim-{}-{name}", std::process::id()));
        std::fs::write(&path, out).unwrap();
        Self(path)
    }

    fn config(&self) -> PcapConfig {
        let addr = Address::from_v4_bytes([10, 9, 0, 2]);
        PcapConfig::new(&self.0, vec![InterfaceAddress { addr, prefix_len: 24 }]).unwrap()
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn open(config: &PcapConfig) -> (PcapWire, Stop) {
    let done = Stop::new().unwrap();
    (PcapWire::open(config, Clock::start(), done.clone()).unwrap(), done)
}

/// Returns the first bytes of a burst's frames.
fn burst(wire: &mut PcapWire) -> Vec<u8> {
    let mut first = Vec::new();
    wire.rx_burst(&mut |frames| first.extend(frames.iter().map(|frame| frame.bytes[0]))).unwrap();
    first
}

#[test]
fn frames_that_came_in_come_again_and_then_it_is_done() {
    let frames: [(u64, Direction, &[u8]); 3] =
        [(5, Direction::In, &[1; 64]), (6, Direction::Out, &[2; 64]), (7, Direction::In, &[3; 9])];
    let file = File::new("again", LinkType::Raw, &frames);
    let (mut wire, done) = open(&file.config().with_speed(Speed::Max));
    assert_eq!(wire.contents(), Contents { inward: 2, outward: 1, cut: 1 });
    assert_eq!(wire.capabilities().medium, Medium::Ip);
    assert_eq!(burst(&mut wire), [1, 3]);
    assert!(!done.is_set() && wire.next_deadline().is_none());
    assert_eq!(burst(&mut wire), Vec::<u8>::new());
    assert!(done.is_set());
    assert_eq!(wire.counters().rx_frames, 2);
}

#[test]
fn frames_keep_their_distances() {
    let hour = 3_600_000_000_000;
    let frames: [(u64, Direction, &[u8]); 3] = [
        (hour, Direction::In, &[1; 64]),
        (2 * hour, Direction::In, &[2; 64]),
        // Older than the one before it: it arrives together with that one.
        (hour / 2, Direction::In, &[3; 64]),
    ];
    let file = File::new("distances", LinkType::Raw, &frames);
    let (mut wire, done) = open(&file.config());
    let begun = wire.next_deadline().unwrap();
    assert_eq!(burst(&mut wire), [1]);
    assert_eq!(wire.next_deadline().unwrap().since(begun), Duration::from_nanos(hour));
    assert_eq!(burst(&mut wire), Vec::<u8>::new());
    assert!(!done.is_set());
}

#[test]
fn the_station_is_the_one_that_frames_are_for() {
    let mut frame = vec![2, 0, 0, 0, 0, 7, 2, 0, 0, 0, 0, 8, 8, 0];
    frame.extend([0x45, 0, 0, 20, 0, 0, 0, 0, 64, 6, 0, 0, 10, 9, 0, 1, 10, 9, 0, 2]);
    let sum = whimbrel_wire::Sum::new().add_bytes(&frame[14..34]).finish();
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
    let file = File::new("station", LinkType::Ethernet, &[(0, Direction::In, &frame)]);
    let mac = |config: &PcapConfig| match open(config).0.capabilities().medium {
        Medium::Ethernet { mac } => mac,
        Medium::Ip => panic!("no Ethernet"),
    };
    assert_eq!(mac(&file.config()), MacAddress([2, 0, 0, 0, 0, 7]));
    let given = MacAddress([2, 0, 0, 0, 0, 9]);
    assert_eq!(mac(&file.config().with_mac(given).unwrap()), given);
    assert!(file.config().with_mac(MacAddress([1; 6])).is_err());
}

#[test]
fn a_file_that_is_none_says_which_and_why() {
    let error = |config: &PcapConfig| {
        let done = Stop::new().unwrap();
        PcapWire::open(config, Clock::start(), done).unwrap_err().to_string()
    };
    let file = File::new("damaged", LinkType::Raw, &[]);
    std::fs::write(&file.0, b"GIF89a").unwrap();
    let text = error(&file.config());
    assert!(text.contains("damaged") && text.contains("block 1, at byte 0"), "{text}");
    std::fs::remove_file(&file.0).unwrap();
    assert!(error(&file.config()).contains("No such file"));
}

#[test]
fn a_capture_longer_than_a_piece_arrives_whole_and_in_order() {
    let bytes: Vec<Vec<u8>> = (0..3_000u16).map(|n| [n as u8; 200].to_vec()).collect();
    let frames: Vec<_> = bytes.iter().map(|bytes| (7, Direction::In, bytes.as_slice())).collect();
    let file = File::new("long", LinkType::Raw, &frames);
    assert!(std::fs::metadata(&file.0).unwrap().len() > 600_000);
    let (mut wire, done) = open(&file.config().with_speed(Speed::Max));
    assert_eq!(wire.contents().inward, 3_000);
    let mut arrived = Vec::new();
    while !done.is_set() {
        arrived.extend(burst(&mut wire));
    }
    assert!(arrived.iter().copied().eq((0..3_000u16).map(|n| n as u8)), "{}", arrived.len());
}

#[test]
fn a_capture_is_replayed_out_of_a_pipe_too() {
    let frames: [(u64, Direction, &[u8]); 2] =
        [(5, Direction::In, &[1; 64]), (6, Direction::In, &[2; 64])];
    let file = File::new("whole", LinkType::Raw, &frames);
    let pipe = File(file.0.with_extension("pipe"));
    assert!(std::process::Command::new("mkfifo").arg(&pipe.0).status().unwrap().success());
    let (from, to) = (file.0.clone(), pipe.0.clone());
    let writer = std::thread::spawn(move || std::fs::copy(from, to).unwrap());
    let (mut wire, _done) = open(&pipe.config().with_speed(Speed::Max));
    writer.join().unwrap();
    assert_eq!(burst(&mut wire), [1, 2]);
}
