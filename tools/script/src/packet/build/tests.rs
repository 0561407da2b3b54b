use whimbrel_wire::tcp::TcpFlags;
use whimbrel_wire::{Address, Endpoint, Flow};

use super::super::super::setup::{Dialect, IpVersion};
use super::*;

fn flow() -> FlowState {
    let end = |last, port| Endpoint::new(Address::from_v4_bytes([10, 0, 0, last]), port);
    let mut flow = FlowState::new(Flow { local: end(1, 80), remote: end(2, 4000) });
    flow.local_isn = Some(SeqNum::new(0xffff_fff0));
    flow.remote_isn = Some(SeqNum::new(123));
    flow
}

fn written(flags: TcpFlags, seq: Seq, options: &[TcpOption]) -> TcpPacket {
    TcpPacket {
        flags,
        seq,
        len: 3,
        ack: Some(Ack::Relative(0x20)),
        win: Some(9),
        urg: None,
        options: OptionList::These(options.to_vec()),
    }
}

fn built(packet: &TcpPacket) -> Segment {
    let setup = Setup::new(IpVersion::V4, Dialect::Linux);
    segment(packet, IpMarks::default(), &flow(), &setup, 0).unwrap()
}

#[test]
fn numbers_count_from_the_isns() {
    let sack = TcpOption::Sack([(0x10, 0x20)].to_vec());
    let segment = built(&written(TcpFlags::ACK, Seq::Relative(1), &[sack]));
    assert_eq!((segment.seq.raw(), segment.ack.raw()), (124, 0x10));
    assert_eq!(segment.options, [TcpOption::Sack([(0, 0x10)].to_vec())]);
    assert_eq!((segment.text.len(), segment.hop_limit), (3, 255));
}

#[test]
fn numbers_of_a_syn_and_absolute_ones_are_as_written() {
    let number = |flags, seq| built(&written(flags, seq, &[])).seq.raw();
    assert_eq!(number(TcpFlags::SYN_ACK, Seq::Relative(7)), 7);
    assert_eq!(number(TcpFlags::ACK, Seq::Absolute(7)), 7);
}

#[test]
fn packet_beyond_its_limits_is_refused() {
    let refused = |packet: &TcpPacket| {
        let setup = Setup::new(IpVersion::V4, Dialect::Linux);
        segment(packet, IpMarks::default(), &flow(), &setup, 0).unwrap_err()
    };
    let long = written(TcpFlags::ACK, Seq::Any, &[const { TcpOption::Nop }; 41]);
    assert_eq!(refused(&long), "options take more than 40 bytes");
    let open = TcpPacket { options: OptionList::Any, ..long.clone() };
    assert_eq!(refused(&open), "options of a packet that is sent cannot be left open");
    let huge = TcpPacket { len: 65_500, options: OptionList::These([].to_vec()), ..long };
    assert_eq!(refused(&huge), "65500 bytes of text are more than a packet holds");
}

#[test]
fn marks_make_the_traffic_class() {
    let class = |ecn, tos| traffic_class(IpMarks { ecn, tos, ttl: None }).0;
    assert_eq!(class(None, None), 0);
    assert_eq!(class(Some(ast::Ecn::Ce), Some(0x10)), 0x13);
    assert_eq!(class(None, Some(0x12)), 0x12);
}
