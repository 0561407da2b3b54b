use bytes::Bytes;

use super::TxSegment;

#[test]
fn a_packet_is_copied_whole_or_not_at_all() {
    let mut segment = TxSegment::new();
    segment.header_room()[..3].copy_from_slice(b"abc");
    segment.set_header_len(3);
    for slice in ["de", "", "fgh"] {
        segment.payload.push(Bytes::from_static(slice.as_bytes())).expect("there is a place");
    }
    let mut room = [b'.'; 10];
    assert_eq!(segment.copy_to(&mut room[..7]), None);
    assert_eq!(&room, b"..........", "nothing was written");
    assert_eq!(segment.copy_to(&mut room[..8]), Some(8), "as much room as it needs");
    assert_eq!(segment.copy_to(&mut room), Some(8));
    assert_eq!(&room, b"abcdefgh..");
    assert_eq!(segment.to_vec(), b"abcdefgh");

    segment.clear();
    assert_eq!(segment.copy_to(&mut []), Some(0), "an empty one needs no room");
}
