//! Tests of `reassembly`. What hosts do with it is in `shard/tests/fragments.rs`.

use proptest::collection::vec as vec_of;
use proptest::prelude::*;

use super::*;

const BOUNDS: Bounds = Bounds { datagrams: 4, octets: 4_096, fragments: 5 };

fn piece(id: u16, offset: u16, octets: &[u8], more: bool) -> Vec<u8> {
    let mut packet = vec![0; Ipv4Header::LEN];
    let header = Ipv4Header {
        src: [192, 0, 2, 1].into(),
        dst: [192, 0, 2, 2].into(),
        protocol: Protocol::TCP,
        ttl: 9,
        tos: TrafficClass::default(),
        identification: id,
        dont_fragment: false,
        fragment: Some(Fragment { identification: u32::from(id), offset, more }),
        total_len: (Ipv4Header::LEN + octets.len()) as u16,
        header_len: 20,
    };
    header.emit(&mut packet);
    packet.extend_from_slice(octets);
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

#[test]
fn the_oldest_goes_at_each_bound() {
    let mut reassembly = Reassembly::new(BOUNDS);
    for id in 0..6 {
        assert_eq!(take(&mut reassembly, u64::from(id), &piece(id, 8, &[0; 8], true)), Ok(None));
    }
    assert_eq!((reassembly.len(), reassembly.take_given_up()), (4, 2));
    // The oldest that is left came third.
    assert_eq!(reassembly.next_deadline(), Some(Instant::from_millis(2) + TIME_OUT));
    assert_eq!(take(&mut reassembly, 9, &piece(9, 8, &[0; 2_400], true)), Ok(None));
    assert!(reassembly.octets() <= BOUNDS.octets);
    assert_eq!(take(&mut reassembly, 9, &piece(10, 8, &[0; 1_400], true)), Ok(None));
    assert!(reassembly.octets() <= BOUNDS.octets);
    assert_eq!(reassembly.len(), 1);
}

#[test]
fn a_datagram_of_too_many_pieces_is_given_up() {
    let mut reassembly = Reassembly::new(BOUNDS);
    for at in 0..5 {
        assert_eq!(take(&mut reassembly, 0, &piece(1, at * 8, &[0; 8], true)), Ok(None));
    }
    let sixth = take(&mut reassembly, 0, &piece(1, 40, &[0; 8], false));
    assert_eq!(sixth, Err(FrameDrop::FragmentCount));
    assert_eq!((reassembly.len(), reassembly.octets()), (0, 0));
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
    assert_eq!((reassembly.len(), reassembly.octets()), (0, 0));
    assert_eq!(reassembly.next_deadline(), None);
}

proptest! {
    #[test]
    fn books_balance_and_what_becomes_whole_is_what_was_cut(
        pieces in vec_of((0u16..3, 0u16..6, any::<bool>(), 1u16..4), 0..200),
    ) {
        let mut reassembly = Reassembly::new(BOUNDS);
        for (now, (id, at, more, len)) in (0..).zip(pieces) {
            let octets: Vec<u8> = (at * 8..(at + len) * 8).map(|at| at as u8).collect();
            let packet = piece(id, at * 8, &octets, more);
            if let Ok(Some(whole)) = take(&mut reassembly, now, &packet) {
                let (ip, payload) = IpHeader::parse(&whole).expect("a whole packet");
                prop_assert!(ip.fragment.is_none());
                let expected: Vec<u8> = (0..payload.len()).map(|at| at as u8).collect();
                prop_assert_eq!(payload, expected);
            }
            prop_assert_eq!(reassembly.datagrams.len(), reassembly.by_age.len());
            let cost: usize = reassembly.datagrams.values().map(Datagram::cost).sum();
            prop_assert_eq!(reassembly.octets, cost);
            prop_assert!(reassembly.len() <= BOUNDS.datagrams && cost <= BOUNDS.octets);
        }
    }
}
