//! Tests of `tcp::flags`.

use std::format;

use super::*;

#[test]
fn sets_print_as_packet_dumps_print_them() {
    for (flags, text) in [
        (TcpFlags::NONE, "none"),
        (TcpFlags::SYN, "S"),
        (TcpFlags::SYN_ACK, "S."),
        (TcpFlags::PSH | TcpFlags::ACK, "P."),
        (TcpFlags::FIN | TcpFlags::PSH | TcpFlags::ACK, "FP."),
        (TcpFlags::SYN | TcpFlags::ECE | TcpFlags::CWR | TcpFlags::AE, "SEWe"),
    ] {
        assert_eq!(format!("{flags:?}"), text);
    }
}

#[test]
fn reserved_bits_and_the_data_offset_are_ignored() {
    assert_eq!(TcpFlags::from_bits(0x5e02), TcpFlags::SYN);
}

#[test]
fn containing_takes_all_bits_and_intersecting_one() {
    let flags = TcpFlags::SYN_ACK;
    assert!(flags.contains(TcpFlags::ACK) && !flags.contains(TcpFlags::ACK | TcpFlags::FIN));
    assert!(flags.intersects(TcpFlags::ACK | TcpFlags::FIN) && !flags.intersects(TcpFlags::FIN));
    assert_eq!(flags.without(TcpFlags::ACK), TcpFlags::SYN);
    assert!(flags.without(flags).is_empty());
}

#[test]
fn syn_and_fin_occupy_a_sequence_number_each() {
    assert_eq!(TcpFlags::ACK.sequence_len(), 0);
    assert_eq!(TcpFlags::SYN_ACK.sequence_len(), 1);
    assert_eq!((TcpFlags::SYN | TcpFlags::FIN).sequence_len(), 2);
}
