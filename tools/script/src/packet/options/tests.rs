use super::*;

#[test]
fn options_survive_the_wire_in_order() {
    let list = [
        TcpOption::Mss(1460),
        TcpOption::Nop,
        TcpOption::WindowScale(200),
        TcpOption::SackPermitted,
        TcpOption::Timestamps { val: 1, ecr: 0xffff_fffe },
        TcpOption::Nop,
        TcpOption::FastOpen(Vec::new()),
        TcpOption::FastOpenExperimental([1, 2, 3, 4].to_vec()),
        TcpOption::Nop,
    ];
    assert_eq!(decode(&encode(&list)), list);
    let sack = [TcpOption::Nop, TcpOption::Nop, TcpOption::Sack([(1, 2), (5, 9)].to_vec())];
    assert_eq!(decode(&encode(&sack)), sack);
}

#[test]
fn list_that_is_not_padded_ends_in_zeros() {
    assert_eq!(encode(&[TcpOption::SackPermitted]), [4, 2, 0, 0]);
    assert_eq!(encode(&[TcpOption::WindowScale(7)]), [3, 3, 7, 0]);
}

#[test]
fn raw_bytes_are_sent_as_they_are() {
    assert_eq!(encode(&[TcpOption::Raw([3, 0, 9].to_vec()), TcpOption::Nop]), [3, 0, 9, 1]);
}

#[test]
fn length_that_leads_nowhere_takes_all_that_is_left() {
    assert_eq!(decode(&[3, 0, 9, 9]), [TcpOption::Other { kind: 3, data: [0, 9, 9].to_vec() }]);
    assert_eq!(decode(&[8, 10, 1]), [TcpOption::Other { kind: 8, data: [10, 1].to_vec() }]);
}
