use alloc::vec;

use super::*;
use whimbrel_wire::Address;

fn v4(last: u8) -> Destination {
    Endpoint::new(Address::from_v4_bytes([10, 0, 0, last]), 80).into()
}

fn v6(last: u8) -> Destination {
    let mut bytes = [0; 16];
    (bytes[0], bytes[15]) = (0xfd, last);
    Endpoint::new(Address::from_bytes(bytes), 80).into()
}

#[test]
fn families_take_turns_beginning_with_first() {
    let cases = [
        (vec![], vec![]),
        (vec![v6(1), v6(2), v6(3), v4(1)], vec![v6(1), v4(1), v6(2), v6(3)]),
        (vec![v4(1), v4(2), v6(1), v6(2)], vec![v4(1), v6(1), v4(2), v6(2)]),
        (vec![v4(1), v4(2)], vec![v4(1), v4(2)]),
    ];
    for (found, ordered) in cases {
        assert_eq!(interleave(found), ordered);
    }
}
