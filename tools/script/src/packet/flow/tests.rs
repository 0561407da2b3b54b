use super::super::super::ast::Seq;
use super::super::super::setup::{Dialect, IpVersion};
use super::*;

fn setup() -> Setup {
    Setup::new(IpVersion::V4, Dialect::Linux)
}

fn flow() -> FlowState {
    let setup = setup();
    let remote = Endpoint::new(setup.network.remote, 40_001);
    FlowState::new(Flow { local: setup.bind, remote })
}

fn segment(flow: &FlowState, flags: TcpFlags, numbers: (u32, u32), win: u16) -> Segment {
    Segment {
        src: flow.live.local,
        dst: flow.live.remote,
        traffic_class: Default::default(),
        hop_limit: 64,
        flags,
        seq: SeqNum::new(numbers.0),
        ack: SeqNum::new(numbers.1),
        win,
        urg: 0,
        options: Vec::new(),
        text: Vec::new(),
    }
}

fn written(flags: TcpFlags, win: u16, options: &[TcpOption]) -> TcpPacket {
    TcpPacket {
        flags,
        seq: Seq::Relative(0),
        len: 0,
        ack: Some(Ack::Relative(1)),
        win: Some(win),
        urg: None,
        options: OptionList::These(options.to_vec()),
    }
}

/// A connection whose host's ISN is 5000 and whose peer's is 100.
fn open(scripted: u16, live: u16) -> FlowState {
    let mut flow = flow();
    flow.on_received(&segment(&flow, TcpFlags::SYN, (100, 0), 9));
    let syn_ack = segment(&flow, TcpFlags::SYN_ACK, (5000, 101), live);
    flow.on_sent(&written(TcpFlags::SYN_ACK, scripted, &[]), &syn_ack);
    flow
}

#[test]
fn isns_are_learned_from_the_syns() {
    let flow = open(1, 1);
    assert_eq!((flow.local(1).raw(), flow.remote(1).raw()), (5001, 101));
    assert_eq!(flow.local_relative(SeqNum::new(5010)), 10);
    assert_eq!(flow.remote_relative(SeqNum::new(101)), 1);
}

#[test]
fn syn_that_is_refused_changes_nothing() {
    let mut flow = open(1, 1);
    flow.on_received(&segment(&flow, TcpFlags::SYN, (900, 0), 9));
    let challenge = segment(&flow, TcpFlags::ACK, (5001, 101), 9);
    flow.on_sent(&written(TcpFlags::ACK, 9, &[]), &challenge);
    assert_eq!((flow.local(1).raw(), flow.remote(1).raw()), (5001, 101));
}

#[test]
fn syn_that_is_answered_opens_another_connection() {
    let mut flow = open(1, 1);
    flow.on_received(&segment(&flow, TcpFlags::SYN, (900, 0), 9));
    let syn_ack = segment(&flow, TcpFlags::SYN_ACK, (7000, 901), 9);
    flow.on_sent(&written(TcpFlags::SYN_ACK, 9, &[]), &syn_ack);
    assert_eq!((flow.local(1).raw(), flow.remote(1).raw()), (7001, 901));
}

#[test]
fn repeated_syn_asks_for_the_same_answer() {
    let mut flow = open(1, 1);
    flow.on_received(&segment(&flow, TcpFlags::SYN, (100, 0), 9));
    assert!(!flow.may_learn);
}

#[test]
fn syn_behind_a_reset_may_be_answered_anew() {
    let mut flow = open(1, 1);
    flow.on_received(&segment(&flow, TcpFlags::RST, (101, 0), 9));
    flow.on_received(&segment(&flow, TcpFlags::SYN, (100, 0), 9));
    assert!(flow.may_learn);
}

#[test]
fn echo_stands_for_the_segment_that_was_written_so() {
    let mut flow = flow();
    for (script, live) in [(100, 7000), (110, 7300)] {
        let stamps = |val| [TcpOption::Timestamps { val, ecr: 0 }];
        let sent =
            Segment { options: stamps(live).to_vec(), ..segment(&flow, TcpFlags::ACK, (1, 1), 1) };
        flow.on_sent(&written(TcpFlags::ACK, 1, &stamps(script)), &sent);
    }
    let live = |ecr| flow.live_ecr(ecr, &setup());
    assert_eq!((live(100), live(110)), (7000, 7300));
    // After a written one, at the same distance; before all, at the distance from the first.
    assert_eq!((live(112), live(99)), (7302, 6999));
    assert_eq!(live(0), 0);
    let scaled = Setup { scaled_ecr: true, ..setup() };
    assert_eq!(flow.live_ecr(110, &scaled), 7010);
}

#[test]
fn echo_without_timestamps_is_as_written() {
    assert_eq!(flow().live_ecr(7, &setup()), 7);
}

#[test]
fn aims_at_the_edge_are_moved_and_others_are_not() {
    let flow = open(1000, 3000);
    // The scripted edge is 1001, ours 3001.
    assert_eq!(flow.aim(1001, 0, None), Some(2000));
    assert_eq!(flow.aim(1000, 0, None), Some(2000));
    assert_eq!(flow.aim(1500, 10, None), Some(2000));
    assert_eq!(flow.aim(999, 0, None), None);
    assert_eq!(flow.aim(1, 2000, None), None);
    assert_eq!(open(1000, 1000).aim(1001, 0, None), None);
}

#[test]
fn omitted_window_has_no_edge_or_moves_with_the_ack() {
    let unwritten = |flow: &mut FlowState, ack: u32| {
        let segment = segment(flow, TcpFlags::ACK, (5001, 100 + ack), 3000);
        let written = TcpPacket { win: None, ..written(TcpFlags::ACK, 0, &[]) };
        flow.on_owed(&TcpPacket { ack: Some(Ack::Relative(ack)), ..written.clone() });
        flow.on_sent(&written, &segment);
    };
    let mut never = flow();
    unwritten(&mut never, 1);
    assert_eq!(never.aim(101, 10, None), None);

    let mut once = open(1000, 3000);
    unwritten(&mut once, 501);
    assert_eq!(once.aim(1002, 0, None), None);
    assert_eq!(once.aim(1501, 0, None), Some(2000));
}

#[test]
fn buffer_beyond_the_window_ends_at_the_scripts_edge() {
    let mut flow = open(65_535, 3_000);
    flow.on_buffer(66_240);
    // Before the connection is established, the window is the one in the SYN.
    assert_eq!(flow.aim(65_536, 0, None), Some(3_000_u32.wrapping_sub(65_535)));
    flow.on_received(&segment(&flow, TcpFlags::ACK, (101, 5001), 9));
    flow.on_buffer(66_240);
    assert_eq!(flow.aim(66_240, 0, None), Some(3_000_u32.wrapping_sub(66_240)));
    assert_eq!(flow.aim(66_000, 0, None), None);
}

#[test]
fn buffer_set_during_open_moves_segments_at_its_end() {
    let mut flow = open(65_535, 3_000);
    flow.on_opening_buffer(66_240);
    let to = |edge: u32| Some(3_000_u32.wrapping_sub(edge));
    assert_eq!([66_240, 66_241].map(|begin| flow.aim(begin, 0, None)), [to(66_240); 2]);
    assert_eq!([65_535, 65_536].map(|begin| flow.aim(begin, 0, None)), [to(65_535); 2]);
    // Both ends: the SYN announced them.
    flow.on_opening_buffer(65_536);
    assert_eq!([65_535, 65_536].map(|begin| flow.aim(begin, 0, None)), [to(65_535); 2]);
}

#[test]
fn probe_of_a_closed_window_is_not_moved() {
    let flow = open(0, 3000);
    assert_eq!(flow.aim(1, 1, None), None);
    assert_eq!(flow.aim(0, 0, None), None);
}

#[test]
fn segment_beyond_scaled_edge_moves_beyond_the_live_one() {
    let mut flow = flow();
    let scale = |shift| [TcpOption::Mss(9), TcpOption::WindowScale(shift)];
    let syn = Segment { options: scale(2).to_vec(), ..segment(&flow, TcpFlags::SYN, (100, 0), 9) };
    flow.on_received(&syn);
    let syn_ack = Segment {
        options: scale(4).to_vec(),
        ..segment(&flow, TcpFlags::SYN_ACK, (5000, 101), 100)
    };
    flow.on_sent(&written(TcpFlags::SYN_ACK, 100, &scale(0)), &syn_ack);
    let ack = segment(&flow, TcpFlags::ACK, (5001, 101), 100);
    flow.on_sent(&written(TcpFlags::ACK, 200, &[]), &ack);
    // The scripted edge is 1 + 200, ours 1 + 100 * 16 and up to 15 more.
    assert_eq!(flow.aim(200, 0, None), Some(1400));
    assert_eq!(flow.aim(201, 0, None), Some(1415));
}

#[test]
fn each_listeners_connection_has_its_own_peer_port() {
    let mut flows = Flows::new(&setup());
    flows.on_listen(8080);
    let first = flows.receiving(None, TcpFlags::SYN);
    assert_eq!(flows.receiving(None, TcpFlags::ACK), first);
    assert_eq!(flows.receiving(None, TcpFlags::SYN), first);
    flows.on_listen(8081);
    let second = flows.receiving(None, TcpFlags::SYN);
    assert_ne!(flows.at(first).live.remote, flows.at(second).live.remote);
    assert_eq!(flows.at(second).live.local.port, 8081);
    assert_eq!(flows.current(), Some(second));
}
