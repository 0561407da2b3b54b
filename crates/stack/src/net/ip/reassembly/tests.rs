//! Tests of `reassembly`. What hosts do with it is in `shard/tests/fragments.rs`.

use proptest::collection::vec as vec_of;
use proptest::prelude::*;

use super::*;

const BOUNDS: Bounds =
    Bounds { datagrams: 8, bytes: 16_384, source_datagrams: 4, source_bytes: 8_192, fragments: 5 };

fn piece(id: u16, offset: u16, bytes: &[u8], more: bool) -> Vec<u8> {
    piece_of(1, id, offset, bytes, more)
}

/// A fragment of the host of this number.
fn piece_of(host: u8, id: u16, offset: u16, bytes: &[u8], more: bool) -> Vec<u8> {
    let mut packet = vec![0; Ipv4Header::LEN];
    let header = Ipv4Header {
        src: [192, 0, 2, host].into(),
        dst: [198, 51, 100, 2].into(),
        protocol: Protocol::TCP,
        ttl: 9,
        tos: TrafficClass::default(),
        identification: id,
        dont_fragment: false,
        fragment: Some(Fragment { identification: u32::from(id), offset, more }),
        total_len: (Ipv4Header::LEN + bytes.len()) as u16,
        header_len: 20,
    };
    header.emit(&mut packet);
    packet.extend_from_slice(bytes);
    packet
}

fn take(
    reassembly: &mut Reassembly,
    millis: u64,
    packet: &[u8],
) -> Result<Option<Vec<u8>>, FrameDrop> {
    let (ip, _) = IpHeader::parse(packet).expect("a fragment");
    reassembly.take(Instant::from_millis(millis), &ip, packet)
}

/// Datagrams refused, crowded and evicted since this was last asked.
fn given_up(reassembly: &mut Reassembly) -> (u64, u64, u64) {
    let Abandoned { refused, crowded, evicted } = reassembly.take_given_up();
    (refused, crowded, evicted)
}

/// A fragment with this ECN field.
fn marked(ecn: Ecn, offset: u16, more: bool) -> Vec<u8> {
    let mut packet = piece(1, offset, &[7; 8], more);
    let (header, _) = Ipv4Header::parse(&packet).expect("a fragment");
    Ipv4Header { tos: TrafficClass::new(10, ecn), ..header }.emit(&mut packet);
    packet
}

#[test]
fn mark_of_a_fragment_is_of_the_whole_or_drops_it() {
    use Ecn::{Ce, Ect0, NotEct};
    for (ecns, expected) in [
        ([Ect0, Ect0, Ect0], Ok(Ect0)),
        ([Ect0, Ce, Ect0], Ok(Ce)),
        ([Ce, Ect0, Ect0], Ok(Ce)),
        ([Ce, Ce, Ce], Ok(Ce)),
        ([NotEct, Ce, Ect0], Err(FrameDrop::FragmentEcn)),
        ([Ect0, Ce, NotEct], Err(FrameDrop::FragmentEcn)),
    ] {
        let mut reassembly = Reassembly::new(BOUNDS);
        let [first, second, last] = ecns;
        assert_eq!(take(&mut reassembly, 0, &marked(first, 0, true)), Ok(None));
        assert_eq!(take(&mut reassembly, 0, &marked(second, 8, true)), Ok(None));
        let whole = take(&mut reassembly, 0, &marked(last, 16, false));
        let class = whole.map(|whole| {
            let (header, _) =
                IpHeader::parse(&whole.expect("the last one came")).expect("a packet");
            header.traffic_class
        });
        assert_eq!(class, expected.map(|ecn| TrafficClass::new(10, ecn)), "{ecns:?}");
        assert_eq!(reassembly.len(), 0);
    }
}

#[test]
fn the_oldest_of_a_source_goes_at_each_of_its_bounds() {
    let mut reassembly = Reassembly::new(BOUNDS);
    for id in 0..6 {
        assert_eq!(take(&mut reassembly, u64::from(id), &piece(id, 8, &[0; 8], true)), Ok(None));
    }
    assert_eq!((reassembly.len(), given_up(&mut reassembly)), (4, (0, 2, 0)));
    // The oldest that is left came third.
    assert_eq!(reassembly.next_deadline(), Some(Instant::from_millis(2) + TIME_OUT));
    assert_eq!(take(&mut reassembly, 9, &piece(9, 8, &[0; 4_800], true)), Ok(None));
    assert!(reassembly.bytes() <= BOUNDS.source_bytes);
    assert_eq!(take(&mut reassembly, 9, &piece(10, 8, &[0; 2_800], true)), Ok(None));
    assert!(reassembly.bytes() <= BOUNDS.source_bytes);
    assert_eq!(reassembly.len(), 1);
}

#[test]
fn at_the_bounds_of_all_whoever_has_the_most_gives_way() {
    for each in [8, 1_600] {
        let mut reassembly = Reassembly::new(BOUNDS);
        // An honest host's, the oldest of all.
        assert_eq!(take(&mut reassembly, 0, &piece_of(9, 1, 8, &[7; 8], true)), Ok(None));
        for id in 0..100 {
            for host in 1..4 {
                let bytes = std::vec![0; each];
                let packet = piece_of(host, id, 8, &bytes, true);
                assert_eq!(take(&mut reassembly, 1, &packet), Ok(None));
                assert!(reassembly.len() <= BOUNDS.datagrams);
                assert!(reassembly.bytes() <= BOUNDS.bytes);
            }
        }
        let (_, _, evicted) = given_up(&mut reassembly);
        assert!(evicted > 0);
        let whole = take(&mut reassembly, 2, &piece_of(9, 1, 0, &[7; 8], true));
        assert_eq!(whole, Ok(None), "nothing of the honest host's is whole yet");
        let whole = take(&mut reassembly, 2, &piece_of(9, 1, 16, &[7; 8], false));
        assert_eq!(whole.expect("no overlap").expect("it is whole")[20..], [7; 24]);
    }
}

/// True if a datagram of one host, in two pieces of so many bytes, becomes whole though fragments of
/// `host`, as many bytes each, come between them until some are given up.
fn becomes_whole_beside(host: impl Fn(u16) -> u8, each: usize, own: usize) -> bool {
    let mut reassembly = Reassembly::new(BOUNDS);
    let bytes = std::vec![7; own];
    assert_eq!(take(&mut reassembly, 0, &piece_of(99, 1, 0, &bytes, true)), Ok(None));
    for id in 0..6 {
        let junk = piece_of(host(id), id, 8, &std::vec![0; each], true);
        assert_eq!(take(&mut reassembly, 1, &junk), Ok(None));
    }
    let _ = given_up(&mut reassembly);
    for id in 6..9 {
        let junk = piece_of(host(id), id, 8, &std::vec![0; each], true);
        assert_eq!(take(&mut reassembly, 1, &junk), Ok(None));
    }
    let (_, _, evicted) = given_up(&mut reassembly);
    assert!(evicted > 0, "a bound is hit");
    let whole = take(&mut reassembly, 2, &piece_of(99, 1, own as u16, &bytes, false));
    whole.expect("no overlap").is_some()
}

#[test]
fn bounds_on_number_and_bytes_give_up_by_their_own_measure() {
    let pairs = |id: u16| 1 + (id / 2) as u8;
    // More bytes than each of the others, and fewer datagrams; then the other way round.
    assert!(becomes_whole_beside(pairs, 8, 1_600));
    assert!(becomes_whole_beside(|id| 1 + id as u8, 4_000, 800));
    // As many datagrams as each of the others: the oldest gives way, and this one is.
    assert!(!becomes_whole_beside(|id| 1 + id as u8, 8, 1_600));
}

#[test]
fn large_datagram_outlives_older_small_ones() {
    let mut reassembly = Reassembly::new(BOUNDS);
    for id in 0..8 {
        let junk = piece_of(1 + id, 1, 8, &[0; 8], true);
        assert_eq!(take(&mut reassembly, 0, &junk), Ok(None));
    }
    let bytes = std::vec![7; 1_600];
    assert_eq!(take(&mut reassembly, 1, &piece_of(99, 1, 0, &bytes, true)), Ok(None));
    for id in 8..15 {
        let junk = piece_of(1 + id, 1, 8, &[0; 8], true);
        assert_eq!(take(&mut reassembly, 1, &junk), Ok(None));
    }
    assert_eq!(given_up(&mut reassembly), (0, 0, 8));
    let whole = take(&mut reassembly, 2, &piece_of(99, 1, 1_600, &bytes, false));
    assert!(whole.expect("no overlap").is_some());
}

#[test]
fn whoever_takes_many_addresses_of_one_network_counts_once() {
    let networks = ["2001:db8::1", "2001:db8::2:0:0:9", "2001:db8:0:1::1", "192.0.2.1"];
    let [one, same, other, v4] = networks
        .map(|addr| Source::of(&addr.parse::<core::net::IpAddr>().expect("an address").into()));
    assert_eq!(one, same);
    assert!(one != other && other != v4);
}

#[test]
fn what_is_refused_pushes_nobody_out() {
    let mut reassembly = Reassembly::new(BOUNDS);
    for id in 0..4 {
        assert_eq!(take(&mut reassembly, 0, &piece(id, 8, &[0; 896], true)), Ok(None));
    }
    let (len, bytes) = (reassembly.len(), reassembly.bytes());
    for _ in 0..10 {
        let duplicate = take(&mut reassembly, 1, &piece(3, 8, &[0; 896], true));
        assert_eq!(duplicate, Err(FrameDrop::FragmentDuplicate));
    }
    assert_eq!((reassembly.len(), reassembly.bytes()), (len, bytes));
    let overlap = take(&mut reassembly, 1, &piece(3, 16, &[0; 4_000], true));
    assert_eq!(overlap, Err(FrameDrop::FragmentOverlap));
    assert_eq!((reassembly.len(), given_up(&mut reassembly)), (3, (1, 0, 0)));
}

#[test]
fn largest_datagram_in_smallest_fragments_becomes_whole() {
    let mut reassembly = Reassembly::new(Bounds::DEFAULT);
    let bytes = std::vec![3; 65_515];
    let pieces = bytes.chunks(552).count();
    for (at, part) in bytes.chunks(552).enumerate().rev() {
        let packet = piece(1, (at * 552) as u16, part, at + 1 < pieces);
        let whole = take(&mut reassembly, 0, &packet).expect("no overlap");
        assert_eq!(whole.is_some(), at == 0);
    }
    assert_eq!((reassembly.len(), reassembly.bytes()), (0, 0));
}

#[test]
fn a_datagram_of_too_many_pieces_is_given_up() {
    let mut reassembly = Reassembly::new(BOUNDS);
    for at in 0..5 {
        assert_eq!(take(&mut reassembly, 0, &piece(1, at * 8, &[0; 8], true)), Ok(None));
    }
    let sixth = take(&mut reassembly, 0, &piece(1, 40, &[0; 8], false));
    assert_eq!(sixth, Err(FrameDrop::FragmentCount));
    assert_eq!((reassembly.len(), reassembly.bytes()), (0, 0));
}

#[test]
fn what_is_empty_or_ends_beyond_the_largest_packet_is_refused() {
    let mut reassembly = Reassembly::new(BOUNDS);
    for refused in [piece(1, 8, &[], true), piece(1, 65_512, &[0; 8], false)] {
        assert_eq!(take(&mut reassembly, 0, &refused), Err(FrameDrop::FragmentLength));
    }
    assert_eq!(reassembly.len(), 0);
}

#[test]
fn time_counts_from_the_fragment_that_came_first() {
    let mut reassembly = Reassembly::new(BOUNDS);
    let _ = take(&mut reassembly, 5, &piece(1, 8, &[0; 8], true));
    let _ = take(&mut reassembly, 50_000, &piece(1, 0, &[7; 8], true));
    assert!(reassembly.pop_expired(Instant::from_millis(60_004)).is_none());
    let expired = reassembly.pop_expired(Instant::from_millis(60_005)).expect("it is time");
    assert_eq!(expired.first, Some(piece(1, 0, &[7; 8], true)));
    assert_eq!((reassembly.len(), reassembly.bytes()), (0, 0));
    assert_eq!(reassembly.next_deadline(), None);
}

proptest! {
    #[test]
    fn books_balance_and_what_becomes_whole_is_what_was_cut(
        pieces in vec_of((0u8..6, 0u16..3, 0u16..6, any::<bool>(), 1u16..4), 0..300),
    ) {
        let mut reassembly = Reassembly::new(BOUNDS);
        for (now, (host, id, at, more, len)) in (0..).zip(pieces) {
            let bytes: Vec<u8> = (at * 8..(at + len) * 8).map(|at| at as u8).collect();
            let packet = piece_of(host, id, at * 8, &bytes, more);
            if let Ok(Some(whole)) = take(&mut reassembly, now, &packet) {
                let (ip, payload) = IpHeader::parse(&whole).expect("a whole packet");
                prop_assert!(ip.fragment.is_none());
                let expected: Vec<u8> = (0..payload.len()).map(|at| at as u8).collect();
                prop_assert_eq!(payload, expected);
            }
            prop_assert_eq!(reassembly.datagrams.len(), reassembly.by_age.len());
            let cost: usize = reassembly.datagrams.values().map(Datagram::cost).sum();
            prop_assert_eq!(reassembly.bytes, cost);
            prop_assert!(reassembly.len() <= BOUNDS.datagrams && cost <= BOUNDS.bytes);
            for host in 0..6 {
                let of_host = reassembly.datagrams.iter().filter(|(key, _)| {
                    key.src == Address::from_v4_bytes([192, 0, 2, host])
                });
                let costs: Vec<usize> = of_host.map(|(_, datagram)| datagram.cost()).collect();
                prop_assert!(costs.len() <= BOUNDS.source_datagrams);
                prop_assert!(costs.iter().sum::<usize>() <= BOUNDS.source_bytes);
            }
            if reassembly.is_empty() {
                prop_assert!(reassembly.sources.is_empty());
            }
        }
    }
}
