//! Errors that a shard never makes; the others are in `run/tests/mismatches.rs`.

use whimbrel_wire::{Address, Endpoint, TrafficClass};

use super::super::super::ast::{Direction, PacketBody};
use super::super::super::setup::{Dialect, IpVersion};
use super::*;

fn segment(flags: TcpFlags, seq: u32, ack: u32, text: &[u8]) -> Segment {
    let end = |last, port| Endpoint::new(Address::from_v4_bytes([10, 0, 0, last]), port);
    Segment {
        src: end(1, 80),
        dst: end(2, 4000),
        traffic_class: TrafficClass(0),
        hop_limit: 64,
        flags,
        seq: SeqNum::new(seq),
        ack: SeqNum::new(ack),
        win: 9,
        urg: 0,
        options: Vec::new(),
        text: text.to_vec(),
    }
}

fn written(flags: TcpFlags, seq: u32, len: u32, ack: u32) -> TcpPacket {
    TcpPacket {
        flags,
        seq: Seq::Relative(seq),
        len,
        ack: Some(Ack::Relative(ack)),
        win: None,
        urg: None,
        options: OptionList::These(Vec::new()),
    }
}

/// A connection whose host's ISN is 5000 and whose peer's is 100.
fn flow() -> FlowState {
    let mut flow = FlowState::new(segment(TcpFlags::ACK, 0, 0, &[]).flow());
    flow.local_isn = Some(SeqNum::new(5000));
    flow.remote_isn = Some(SeqNum::new(100));
    flow.may_learn = false;
    flow
}

fn judged(
    flow: &FlowState,
    setup: &Setup,
    body: &TcpPacket,
    came: &Segment,
) -> Result<Fit, String> {
    let packet = Packet {
        direction: Direction::Out,
        marks: IpMarks::default(),
        ends: None,
        body: PacketBody::Tcp(body.clone()),
    };
    let (mode, text) = (Mode::Strict, Text::Zeros);
    let judge = Judge { flow, setup, mode, text, is_bound: false, isns: &BTreeSet::new() };
    let fit = judge.judge(&packet, body, came);
    fit.map(|(fit, _)| fit).map_err(|mismatch| mismatch.to_string())
}

fn strict(body: &TcpPacket, came: &Segment) -> Result<Fit, String> {
    judged(&flow(), &Setup::new(IpVersion::V4, Dialect::Linux), body, came)
}

const PSH_ACK: TcpFlags = TcpFlags::from_bits(TcpFlags::PSH.bits() | TcpFlags::ACK.bits());

#[test]
fn unwritten_text_is_a_mismatch() {
    let said = strict(&written(PSH_ACK, 1, 3, 1), &segment(PSH_ACK, 5001, 101, &[0, 0, 7]));
    assert_eq!(said.unwrap_err(), "text: expected zeros, came 0x07 at byte 2");
}

#[test]
fn smaller_segment_is_a_part() {
    let body = written(PSH_ACK, 1, 5, 1);
    let fit = strict(&body, &segment(TcpFlags::ACK, 5001, 101, &[0, 0]));
    assert_eq!(fit, Ok(Fit::Part(written(PSH_ACK, 3, 3, 1))));
}

#[test]
fn larger_segment_meets_more_than_one_line() {
    let fit = strict(&written(TcpFlags::ACK, 1, 2, 1), &segment(PSH_ACK, 5001, 101, &[0; 5]));
    assert_eq!(fit, Ok(Fit::More(segment(PSH_ACK, 5003, 101, &[0; 3]))));
}

#[test]
fn part_cannot_have_the_fin() {
    let flags = PSH_ACK | TcpFlags::FIN;
    let said = strict(&written(flags, 1, 5, 1), &segment(flags, 5001, 101, &[0, 0]));
    assert_eq!(said.unwrap_err(), "flags: expected P., came FP.");
}

#[test]
fn repeated_syn_ack_with_another_number() {
    let body = written(TcpFlags::SYN_ACK, 0, 0, 101);
    assert_eq!(strict(&body, &segment(TcpFlags::SYN_ACK, 5000, 101, &[])), Ok(Fit::Whole));
    let said = strict(&body, &segment(TcpFlags::SYN_ACK, 5009, 101, &[]));
    assert_eq!(said.unwrap_err(), "sequence number: expected 0, came 9");
}

#[test]
fn absolute_numbers_are_those_of_the_header() {
    let body = TcpPacket {
        seq: Seq::Absolute(0),
        ack: Some(Ack::Absolute(8)),
        ..written(TcpFlags::RST | TcpFlags::ACK, 0, 0, 0)
    };
    let reset = |seq, ack| segment(TcpFlags::RST | TcpFlags::ACK, seq, ack, &[]);
    assert_eq!(strict(&body, &reset(0, 8)), Ok(Fit::Whole));
    assert_eq!(
        strict(&body, &reset(0, 9)).unwrap_err(),
        "acknowledgment number: expected 8, came 9"
    );
    assert_eq!(
        strict(&body, &reset(5000, 8)).unwrap_err(),
        "sequence number: expected 0, came 5000"
    );
}

#[test]
fn clock_of_another_pace() {
    let stamped = |val| [TcpOption::Timestamps { val, ecr: 0 }].to_vec();
    let body = |val| TcpPacket {
        options: OptionList::These(stamped(val)),
        ..written(TcpFlags::ACK, 1, 0, 1)
    };
    let came = |val| Segment { options: stamped(val), ..segment(TcpFlags::ACK, 5001, 101, &[]) };
    let mut flow = flow();
    flow.on_sent(&body(100), &came(7_000));
    let setup = Setup::new(IpVersion::V4, Dialect::Linux);
    let ticking = Setup { timestamp_tick_usecs: Some(1_000), ..setup.clone() };
    assert_eq!(judged(&flow, &ticking, &body(200), &came(7_104)), Ok(Fit::Whole));
    assert_eq!(judged(&flow, &setup, &body(200), &came(7_900)), Ok(Fit::Whole));
    assert_eq!(
        judged(&flow, &ticking, &body(200), &came(7_106)).unwrap_err(),
        "options: expected <TS val 200 ecr 0>, came <TS val 7106 ecr 0>"
    );
}
