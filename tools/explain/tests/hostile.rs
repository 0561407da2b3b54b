//! Captures are hostile input: no panic, and bounded memory.

use whimbrel_explain::{Explainer, Report};
use whimbrel_link::pcapng::LinkType;
use whimbrel_link::reader::{Block, Packet, Reader};
use whimbrel_sim::labelled::{Damage, LABELS, Spot, scene};

/// Any bytes: as much of them as a reader takes.
fn explain(file: &[u8]) -> Report {
    let (mut reader, mut explainer, mut rest) = (Reader::of_any_link(), Explainer::new(), file);
    while let Ok(Block { len, packet }) = reader.block(rest)
        && !rest.is_empty()
    {
        if let Some(packet) = packet {
            explainer.take(&packet);
        }
        rest = &rest[len..];
    }
    explainer.finish()
}

#[test]
fn changed_bytes_of_captures_cause_no_panic() {
    let mut random = fastrand::Rng::with_seed(3);
    for (number, label) in LABELS.into_iter().enumerate() {
        let [with, _] = scene(label, number as u64).unwrap();
        let file = with.play().unwrap().capture(Spot::Client, Damage::None, 1);
        let file = &file[..file.len().min(200_000)];
        for _ in 0..8 {
            let mut file = file.to_vec();
            for _ in 0..random.usize(1..400) {
                let at = random.usize(40..file.len());
                file[at] = random.u8(..);
            }
            explain(&file);
        }
    }
}

/// A segment of these fields.
fn segment(client: u32, port: u16, seq: u32, flags: u8, text: u16) -> [u8; 40] {
    let mut bytes = [0; 40];
    bytes[..2].copy_from_slice(&[0x45, 0]);
    bytes[2..4].copy_from_slice(&(40 + text).to_be_bytes());
    (bytes[8], bytes[9]) = (64, 6);
    bytes[12..16].copy_from_slice(&client.to_be_bytes());
    bytes[16..20].copy_from_slice(&[10, 0, 0, 2]);
    bytes[20..22].copy_from_slice(&port.to_be_bytes());
    bytes[23] = 80;
    bytes[24..28].copy_from_slice(&seq.to_be_bytes());
    (bytes[32], bytes[33]) = (0x50, flags);
    bytes
}

fn packet(at: u64, bytes: &[u8]) -> Packet<'_> {
    Packet { at, direction: None, link_type: LinkType::Raw, wire_len: 40, bytes }
}

#[test]
fn flows_beyond_the_bound_are_summed_up() {
    let mut explainer = Explainer::new();
    let count = 2 * Explainer::MOST_FLOWS as u64;
    for number in 0..count {
        let (client, port) = (0x0b00_0000 + (number >> 8) as u32, 1_024 + (number & 0xff) as u16);
        explainer.take(&packet(number * 1_000, &segment(client, port, 7, 2, 0)));
        explainer.take(&packet(number * 1_000 + 500, &segment(client, port, 7, 2, 0)));
    }
    let report = explainer.finish();
    assert_eq!(
        (report.flow_count, report.summed_up),
        (count, count - Explainer::MOST_FLOWS as u64)
    );
    assert!(report.findings.len() <= 1_100 && report.flows.len() <= Report::MOST_FLOWS);
    assert_eq!(report.findings.iter().map(|it| it.flows).sum::<u64>(), count);
}

/// Flows with much in flight take their memory from the same bound.
#[test]
fn text_in_flight_is_bounded_over_all_flows() {
    let mut explainer = Explainer::new();
    for flow in 0..2_000u32 {
        for number in 0..4_100 {
            let bytes = segment(0x0b00_0000 + flow, 1_024, number * 100, 16, 100);
            explainer.take(&packet(u64::from(number), &bytes));
        }
    }
    let report = explainer.finish();
    assert_eq!(report.flow_count, 2_000);
    assert!(report.summed_up > 500, "{}", report.summed_up);
}

/// The report on these frames, each changed by `change`, which returns when it is there: not at all, or
/// twice.
fn changed(file: &[u8], mut change: impl FnMut(u64, &mut Vec<u8>) -> Vec<u64>) -> Report {
    let (mut reader, mut explainer, mut rest) = (Reader::of_any_link(), Explainer::new(), file);
    let mut number = 0;
    while !rest.is_empty() {
        let Block { len, packet } = reader.block(rest).expect("a whole capture");
        if let Some(packet) = packet {
            number += 1;
            let mut bytes = packet.bytes.to_vec();
            for later in change(number, &mut bytes) {
                explainer.take(&Packet { at: packet.at + later, bytes: &bytes, ..packet });
            }
        }
        rest = &rest[len..];
    }
    explainer.finish()
}

fn names(report: &Report) -> Vec<&'static str> {
    report.findings.iter().map(|it| it.id.name()).collect()
}

/// A capture at the server of a sender that the receiver's window limits.
fn window_limited() -> Vec<u8> {
    let [with, _] = scene("RWND_LIMITED", 2).expect("the label is known");
    with.play().expect("the scene is valid").capture(Spot::Server, Damage::None, 1)
}

#[test]
fn options_that_the_capture_cuts_are_not_missing() {
    let file = window_limited();
    let report = changed(&file, |_, bytes| {
        bytes.truncate(40);
        vec![0]
    });
    let found = names(&report);
    assert!(!found.contains(&"OPTIONS_MISSING"), "{found:?}");
    assert!(report.worst().next().is_none(), "windows of an unknown scale: {found:?}");
}

/// As `-s 60` does it with IPv6 over Ethernet.
#[test]
fn segments_cut_within_the_header_are_counted() {
    let file = window_limited();
    let mut count = 0;
    let report = changed(&file, |_, bytes| {
        count += 1;
        bytes.truncate(39);
        vec![0]
    });
    assert_eq!((report.segments, report.cut), (0, count));
}

/// As a router's captures of both of its interfaces have them: IPv4 ids of 0 in SYNs, another TTL.
#[test]
fn frames_of_two_interfaces_count_once() {
    let file = window_limited();
    let report = changed(&file, |_, bytes| {
        if bytes[33] & 2 != 0 {
            bytes[4..6].fill(0);
        }
        vec![0, 30_000]
    });
    let found = names(&report);
    assert!(found.contains(&"RWND_LIMITED") && found.contains(&"CAPTURE_DUPLICATES"), "{found:?}");
    assert!(!found.contains(&"LOSS"), "{found:?}");
}

#[test]
fn frames_missing_in_the_middle_make_a_capture_lossy() {
    let file = window_limited();
    let report = changed(&file, |number, _| if number % 50 == 0 { Vec::new() } else { vec![0] });
    let found = names(&report);
    assert!(found.contains(&"RWND_LIMITED") && found.contains(&"CAPTURE_LOSSY"), "{found:?}");
    assert!(!found.contains(&"LOSS"), "{found:?}");
}

/// A segment of a connection to port 80, from the client or from the server.
fn said(is_server: bool, seq: u32, ack: u32, flags: u8, text: u16) -> [u8; 40] {
    let mut bytes = segment(0x0a00_0001, 40_000, seq, flags, text);
    bytes[28..32].copy_from_slice(&ack.to_be_bytes());
    bytes[34..36].copy_from_slice(&60_000_u16.to_be_bytes());
    if is_server {
        bytes[12..20].rotate_left(4);
        bytes[20..24].rotate_left(2);
    }
    bytes
}

/// Explains what a server sends after a request: for each, its place, its bytes and the milliseconds before it.
fn answered(texts: impl Iterator<Item = (u32, u16, u64)>) -> Report {
    let (mut explainer, mut at) = (Explainer::new(), 0);
    let mut take = |after: u64, bytes: &[u8]| {
        at += after;
        explainer.take(&packet(at, bytes));
    };
    take(0, &said(false, 99, 0, 0x02, 0));
    take(100_000, &said(true, 499, 100, 0x12, 0));
    take(100_000, &said(false, 100, 500, 0x10, 0));
    take(100_000, &said(false, 100, 500, 0x18, 80));
    let mut end = 0;
    for (place, text, millis) in texts {
        end = end.max(place + u32::from(text));
        take(millis * 1_000_000, &said(true, 500 + place, 180, 0x18, text));
        take(100_000, &said(false, 180, 500 + end, 0x10, 0));
    }
    explainer.finish()
}

#[test]
fn events_that_a_server_pushes_cost_nothing() {
    let report = answered((0..20).map(|number| (number * 75, 75, 250 * u64::from(number > 0))));
    let slow = report.findings.iter().find(|it| it.id.name() == "APP_SLOW").unwrap();
    assert!(slow.is_info, "{slow:?}");
}

/// As a receiver sees an outage: what it has comes again.
#[test]
fn silence_that_a_repeat_ends_is_no_application() {
    let sent = [(0, 500, 0), (500, 500, 1), (500, 500, 4_000), (1_000, 500, 1), (1_500, 500, 1)];
    let report = answered(sent.into_iter());
    assert!(!names(&report).contains(&"APP_SLOW"), "{:?}", names(&report));
}
