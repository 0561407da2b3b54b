//! Captures as hosts make them by hand: of one end, of both, one behind another; and SYNs without an answer at first.

use whimbrel_explain::{Evidence, Explainer, Finding, Report};
use whimbrel_link::pcapng::LinkType;
use whimbrel_link::reader::{Block, Packet, Reader};
use whimbrel_sim::labelled::{Damage, Spot, scene};

/// Times and packets.
type Frames = Vec<(u64, Vec<u8>)>;

/// The frames of a scene's capture there.
fn frames(label: &str, seed: u64, spots: &[Spot]) -> Frames {
    let [with, _] = scene(label, seed).expect("the label is known");
    let played = with.play().expect("the scene is valid");
    let mut all = Vec::new();
    for spot in spots {
        let file = played.capture(*spot, Damage::None, seed);
        let (mut reader, mut rest) = (Reader::of_any_link(), &file[..]);
        while !rest.is_empty() {
            let Block { len, packet } = reader.block(rest).expect("a whole capture");
            all.extend(packet.map(|packet| (packet.at, packet.bytes.to_vec())));
            rest = &rest[len..];
        }
    }
    all
}

fn explain(frames: &Frames) -> Report {
    let mut explainer = Explainer::new();
    for (at, bytes) in frames {
        let wire_len = bytes.len() as u32;
        explainer.take(&Packet {
            at: *at,
            direction: None,
            link_type: LinkType::Raw,
            wire_len,
            bytes,
        });
    }
    explainer.finish()
}

fn names(report: &Report, with_info: bool) -> Vec<&'static str> {
    let found = report.findings.iter().filter(|it| with_info || !it.is_info);
    found.map(|it| it.id.name()).collect()
}

/// As `mergecap` writes them: each frame twice, a delay apart, and more in flight than between.
#[test]
fn captures_of_both_ends_in_one_count_each_frame_once() {
    for (label, seed) in [("RWND_LIMITED", 2), ("SENDER_LIMITED", 2), ("CWND_LIMITED", 4)] {
        let one = explain(&frames(label, seed, &[Spot::Server]));
        let mut both = frames(label, seed, &[Spot::Client, Spot::Server]);
        both.sort_by_key(|(at, _)| *at);
        // Also without the handshake.
        for skipped in [0, 12] {
            let report = explain(&both[skipped..].to_vec());
            let found = names(&report, false);
            assert!(found.is_empty(), "{label} from {skipped}: {found:?}");
            let doubled = report.findings.iter().find(|it| it.id.name() == "CAPTURE_DUPLICATES");
            assert_eq!(doubled.map(|it| it.kind), Some("of two places"), "{label}");
            let repeated =
                |report: &Report| report.flows.iter().map(|it| it.repeated[1]).sum::<u64>();
            assert_eq!(repeated(&report), repeated(&one), "{label}");
        }
    }
}

#[test]
fn capture_behind_a_later_one_is_explained_for_itself() {
    let [mut first, second] = ["APP_SLOW", "ZERO_WINDOW"].map(|it| frames(it, 2, &[Spot::Server]));
    let alone = explain(&first).findings.into_iter().chain(explain(&second).findings);
    let mut expected: Vec<_> =
        alone.filter(|it| !it.is_info).map(|it| (it.id.name(), it.time_lost)).collect();
    first.extend(second);
    let report = explain(&first);
    let mut found: Vec<_> = report.worst().map(|it| (it.id.name(), it.time_lost)).collect();
    [&mut expected, &mut found].into_iter().for_each(|all| all.sort_unstable());
    assert_eq!(found, expected);
    assert!(names(&report, true).contains(&"CAPTURE_UNORDERED"), "{:?}", names(&report, true));
    // The same hosts again, as two files of one run: the same twice, and nothing else.
    let server = frames("APP_SLOW", 2, &[Spot::Server]);
    let twice = explain(&[server.clone(), server].concat());
    assert_eq!(names(&twice, false), ["APP_SLOW"]);
    assert_eq!(twice.findings[0].flows, 2);
    let Finding { time_lost, time_lost_most, .. } = twice.findings[0];
    assert_eq!(time_lost, 2 * time_lost_most);
}

#[test]
fn time_of_a_sender_far_away_is_not_known() {
    for (spot, expected) in
        [(Spot::Client, [true, false]), (Spot::Server, [false, true]), (Spot::Between, [false; 2])]
    {
        let report = explain(&frames("RWND_LIMITED", 2, &[spot]));
        assert_eq!(report.flows[0].are_shares_known, expected, "{spot:?}");
    }
}

/// A segment between port 80 of 10.0.0.2 and a client's port, with timestamps.
fn segment(
    port: u16,
    is_server: bool,
    [seq, ack]: [u32; 2],
    flags: u8,
    stamps: [u32; 2],
) -> Vec<u8> {
    let mut bytes = vec![0; 52];
    bytes[..4].copy_from_slice(&[0x45, 0, 0, 52]);
    (bytes[8], bytes[9]) = (64, 6);
    bytes[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
    bytes[20..22].copy_from_slice(&port.to_be_bytes());
    bytes[23] = 80;
    if is_server {
        bytes[12..20].rotate_left(4);
        bytes[20..24].rotate_left(2);
    }
    bytes[24..28].copy_from_slice(&seq.to_be_bytes());
    bytes[28..32].copy_from_slice(&ack.to_be_bytes());
    (bytes[32], bytes[33]) = (0x80, flags);
    bytes[34..36].copy_from_slice(&60_000_u16.to_be_bytes());
    bytes[40..44].copy_from_slice(&[1, 1, 8, 10]);
    bytes[44..48].copy_from_slice(&stamps[0].to_be_bytes());
    bytes[48..52].copy_from_slice(&stamps[1].to_be_bytes());
    bytes
}

/// Connections, 100 ms apart, each with three SYNs of which the last is answered. From here the client is
/// `to_client` nanoseconds away, there and back, and the server `to_server`.
fn unheeded(count: u16, to_client: u64, to_server: u64) -> Frames {
    let mut all = Vec::new();
    for port in 40_000..40_000 + count {
        let begin = 1_000_000_000 + u64::from(port - 40_000) * 100_000_000;
        let syns = [0, 1_000, 3_000].map(|millis: u32| {
            let at = begin + u64::from(millis) * 1_000_000;
            (at, segment(port, false, [99, 0], 2, [millis + 7, 0]))
        });
        let (last, stamps) = (syns[2].0, [5, 3_007]);
        all.extend(syns);
        all.push((last + to_server, segment(port, true, [499, 100], 18, stamps)));
        let end = last + to_server + to_client;
        all.push((end, segment(port, false, [100, 500], 16, [3_030, 5])));
    }
    all.sort_by_key(|(at, _)| *at);
    all
}

fn first(report: &Report) -> (&'static str, &'static str, &'static str) {
    let first = &report.findings[0];
    assert!(!first.is_info, "{first:?}");
    (first.id.name(), first.kind, first.confidence.name())
}

#[test]
fn syns_that_a_server_drops_are_no_loss_of_the_path() {
    const FULL: (&str, &str) = ("ACCEPT_OVERFLOW", "SYNs are dropped");
    const EITHER: (&str, &str) = ("LOSS", "of SYNs: the path, or a full queue");
    let (near, far) = (20_000, 20_000_000);
    let at = |count, to_client, to_server| explain(&unheeded(count, to_client, to_server));
    let expect = |report: &Report, (id, kind), sure| assert_eq!(first(report), (id, kind, sure));
    // The server's end had all SYNs: it dropped them.
    expect(&at(1, far, near), FULL, "medium");
    // At the client several at once say so, and one alone does not.
    expect(&at(3, near, far), FULL, "low");
    expect(&at(2, near, far), EITHER, "low");
    let told = |overflows: u64| {
        let mut evidence = Evidence::default();
        let counts = [
            ("TcpPassiveOpens", 1),
            ("TcpExtListenOverflows", overflows),
            ("TcpExtListenDrops", overflows),
        ];
        evidence.counters.extend(counts.map(|(name, count)| (name.to_owned(), count)));
        evidence
    };
    // The server's counters decide, wherever the capture was taken.
    for (count, to_client, to_server) in [(1, far, near), (3, near, far), (2, near, far)] {
        let mut report = at(count, to_client, to_server);
        report.settle(&told(5));
        expect(&report, FULL, "high");
        assert_eq!(report.findings[0].evidence, ["TcpExtListenOverflows is 5"]);
        assert!(report.findings[0].linux().contains("somaxconn"));
        let mut report = at(count, to_client, to_server);
        report.settle(&told(0));
        expect(&report, ("LOSS", "of SYNs: the path, or a filter"), "medium");
    }
}

/// A path that loses text as often as SYNs leaves no blame for a queue.
#[test]
fn syns_of_a_path_that_loses_text_are_lost() {
    let mut all = unheeded(3, 20_000, 20_000_000);
    let end = all.last().unwrap().0;
    for number in 0..6 {
        // Text of which each is sent twice, half a second later.
        let seqs = [100 + number * 12, 500];
        for again in 0..2 {
            let at = end + u64::from(number * 2 + again + 1) * 500_000_000;
            let mut text =
                segment(40_000, false, seqs, 24, [4_000 + number * 1_000 + again * 500, 5]);
            text[3] = 64;
            all.push((at, text));
            if again == 1 {
                let ack = [500, 112 + number * 12];
                all.push((at + 20_000_000, segment(40_000, true, ack, 16, [6, 4_000])));
            }
        }
    }
    let report = explain(&all);
    let syns = report.findings.iter().find(|it| it.kind.starts_with("of SYNs")).unwrap();
    assert_eq!((syns.id.name(), syns.flows), ("LOSS", 3), "{:?}", report.findings);
}

#[test]
fn advice_is_that_of_the_kind_which_was_found() {
    let told = |label: &str| {
        let report = explain(&frames(label, 2, &[Spot::Server]));
        let found = report.findings.iter().find(|it| it.id.name() == "LOSS");
        let found = found.unwrap_or_else(|| panic!("{label}: {:?}", report.findings));
        (found.kind, found.linux())
    };
    let all = ["LOSS:congestion", "LOSS:policer", "LOSS:by chance"].map(told);
    let words = ["fq_codel", "maxrate", "ethtool"];
    for (number, (kind, advice)) in all.into_iter().enumerate() {
        let has = words.map(|word| advice.contains(word));
        assert_eq!(has, [0, 1, 2].map(|it| it == number), "{kind}: {advice}");
    }
}
