use whimbrel_wire::tcp::TcpFlags;

use super::*;

#[test]
fn control_bits_as_in_scripts() {
    assert_eq!(flags(TcpFlags::NONE), "-");
    assert_eq!(flags(TcpFlags::SYN_ACK), "S.");
    assert_eq!(flags(TcpFlags::SYN | TcpFlags::ECE | TcpFlags::CWR), "SEW");
    assert_eq!(flags(TcpFlags::FIN | TcpFlags::PSH | TcpFlags::ACK), "FP.");
}

#[test]
fn options_as_in_scripts() {
    let list = [
        TcpOption::Mss(1460),
        TcpOption::Sack([(1, 2), (3, 4)].to_vec()),
        TcpOption::SomeTimestamps { val: None, ecr: Some(4) },
        TcpOption::FastOpen([0xab, 1].to_vec()),
        TcpOption::FastOpen([].to_vec()),
        TcpOption::Other { kind: 200, data: [1].to_vec() },
    ];
    assert_eq!(options(&list), "mss 1460,sack 1:2 3:4,TS val ... ecr 4,FO ab01,FO,kind 200 01");
}
