//! Each state and its ends, as in the draft's "BBR Example Test Cases".

mod path;

use std::collections::BTreeSet;
use std::time::Duration;

use whimbrel_base::Micros;

use self::path::{Flow, MSS, Path};
use super::states::State;
use super::{Bandwidth, Bbr, INFINITY, UNKNOWN};
use crate::cc::{Algorithm, Algorithms, CongestionControl, Window};

const PATH: Path = Path::new(100, 40);
const SECOND: Duration = Duration::from_secs(1);

/// `bandwidth`, of a rate in bytes per second.
fn share(bandwidth: Bandwidth, rate: u64) -> f64 {
    bandwidth.bytes_per_second() as f64 / rate as f64
}

#[test]
fn it_is_made_by_its_name_and_boxed() {
    let algorithms = Algorithms::default();
    assert_eq!(algorithms.find("bbr"), Some(Algorithm::BBR));
    assert!(Algorithm::BBR.is_ours() && !Algorithm::BBR.is_in_place());
    assert!(algorithms.make(Algorithm::BBR).is_some_and(|bbr| bbr.samples_rate()));
}

#[test]
fn bandwidth_of_bytes_in_time_is_these_bytes_in_that_time() {
    let rate = Bandwidth::of(1_448_000, Micros::from_millis(100));
    assert_eq!(rate.bytes_per_second(), 14_480_000);
    assert_eq!(rate.bytes_in(Micros::from_millis(100)), 1_448_000);
    assert_eq!(rate.percent(50).bytes_per_second(), 7_240_000);
}

#[test]
fn measured_bandwidth_is_never_infinite() {
    assert!(Bandwidth::of(u64::MAX, Micros::new(1)) < Bandwidth::INFINITY);
    assert!(Bandwidth::INFINITY.percent(277) < Bandwidth::INFINITY);
    assert_eq!(Bandwidth::INFINITY.bytes_in(Micros::new(u32::MAX)), u32::MAX);
}

#[test]
fn first_pacing_rate_is_of_the_initial_window_in_a_millisecond() {
    let mut window = Window::new(Algorithm::BBR, MSS);
    let mut bbr = Bbr::default();
    bbr.begin(&mut window, MSS);
    // "BBR.StartupPacingGain * nominal_bandwidth", in units of 8 bytes.
    let expected = u64::from(window.cwnd) * 1_000 * 277 / 100;
    let rate = bbr.pacing_rate(&window).expect("it paces");
    assert!(expected - rate < 8, "{rate} of {expected}");
}

#[test]
fn startup_ends_when_the_rate_grows_no_more() {
    let mut flow = Flow::new(PATH);
    flow.run_to(State::Drain);
    assert!(flow.bbr.full_bw_now && flow.bbr.full_bw_reached);
    assert_eq!(flow.bbr.full_bw_count, 3);
    let found = share(flow.bbr.max_bw(), PATH.rate);
    assert!((0.98..=1.02).contains(&found), "{found}");
    assert_eq!(flow.bbr.inflight_longterm, INFINITY, "nothing was lost");
}

#[test]
fn startup_doubles_its_rate_in_each_round_trip() {
    let mut flow = Flow::new(Path::new(1_000, 100));
    flow.run(Duration::from_millis(400));
    let before = flow.bbr.max_bw().bytes_per_second();
    flow.run(Duration::from_millis(100));
    let grown = flow.bbr.max_bw().bytes_per_second() as f64 / before as f64;
    assert!((1.7..=2.8).contains(&grown), "{grown}");
    assert_eq!(flow.bbr.state, State::Startup);
}

#[test]
fn startup_ends_by_losses_in_a_round_trip() {
    let queue = u64::from(PATH.product()) / 10;
    let mut flow = Flow::new(Path { queue, ..PATH });
    flow.run_to(State::Drain);
    assert!(!flow.bbr.full_bw_now, "the rate grew");
    assert_eq!(flow.bbr.undo_state, Some(State::Startup));
    let (longterm, product) = (flow.bbr.inflight_longterm, PATH.product());
    assert!(longterm >= product / 2 && longterm <= 2 * product, "{longterm} of {product}");
}

#[test]
fn startup_ends_by_one_loss_without_sack() {
    let queue = u64::from(PATH.product()) * 2;
    let path = Path { queue, lost_of: 400, ..PATH };
    let with_sack = Flow::new(path).run_to(State::Drain);
    let mut flow = Flow::new(Path { sack: false, ..path });
    let without = flow.run_to(State::Drain);
    assert!(without < with_sack, "{without:?}, {with_sack:?}");
    assert!(!flow.bbr.full_bw_now && flow.bbr.inflight_longterm != INFINITY);
}

#[test]
fn any_loss_of_a_probe_is_too_much_without_sack() {
    for sack in [true, false] {
        assert_eq!(Bbr::is_inflight_too_high(MSS, 100 * MSS, sack), !sack);
        assert!(!Bbr::is_inflight_too_high(0, 100 * MSS, sack));
    }
}

#[test]
fn application_that_sends_little_stays_in_startup() {
    let mut flow = Flow::new(Path { app_rate: Some(PATH.rate / 100), ..PATH });
    flow.run(4 * SECOND);
    assert_eq!(flow.entered, [State::Startup]);
}

#[test]
fn drain_ends_when_the_queue_is_empty() {
    let mut flow = Flow::at(PATH, State::Drain);
    assert_eq!((State::Drain.pacing_gain(), State::Drain.cwnd_gain()), (50, 200));
    assert!(flow.in_flight() > PATH.product() * 3 / 2);
    // ProbeBW_DOWN, whose end is the same, passes with the same acknowledgment.
    let took = flow.run_to(State::ProbeBwCruise);
    assert!(took <= 3 * PATH.trip, "{took:?}");
    assert!(flow.in_flight() <= flow.bbr.inflight(flow.bbr.bw(), MSS));
}

#[test]
fn drain_ends_after_three_rounds_though_the_queue_is_not_empty() {
    let mut flow = Flow::at(PATH, State::Drain);
    flow.path.rate /= 4;
    flow.run_to(State::ProbeBwDown);
    assert!(flow.bbr.drain_rounds > 3);
    assert!(flow.in_flight() > flow.bbr.inflight(flow.bbr.bw(), MSS));
}

#[test]
fn probe_bw_goes_around_its_states() {
    let mut flow = Flow::at(PATH, State::ProbeBwCruise);
    let before = flow.entered.len();
    flow.run(4 * SECOND);
    let around = [State::ProbeBwRefill, State::ProbeBwUp, State::ProbeBwDown, State::ProbeBwCruise];
    let entered = &flow.entered[before..];
    assert!(entered.len() >= 4, "{entered:?}");
    assert!(entered.iter().zip(around.iter().cycle()).all(|(is, it)| is == it), "{entered:?}");
}

#[test]
fn states_of_probe_bw_have_the_drafts_gains() {
    let gains = |state: State| (state.pacing_gain(), state.cwnd_gain());
    assert_eq!(gains(State::Startup), (277, 200));
    assert_eq!(gains(State::ProbeBwDown), (90, 200));
    assert_eq!(gains(State::ProbeBwCruise), (100, 200));
    assert_eq!(gains(State::ProbeBwRefill), (100, 200));
    assert_eq!(gains(State::ProbeBwUp), (125, 225));
    assert_eq!(gains(State::ProbeRtt), (100, 50));
}

#[test]
fn down_ends_when_the_queue_is_empty() {
    let mut flow = Flow::at(PATH, State::ProbeBwUp);
    flow.run_to(State::ProbeBwDown);
    flow.run_to(State::ProbeBwCruise);
    assert!(flow.in_flight() <= flow.bbr.inflight(flow.bbr.max_bw(), MSS));
}

#[test]
fn up_ends_when_the_rate_grows_no_more() {
    let mut flow = Flow::at(PATH, State::ProbeBwUp);
    flow.run_to(State::ProbeBwDown);
    assert!(flow.bbr.full_bw_now && !flow.bbr.prev_probe_too_high);
    assert_eq!(flow.bbr.full_bw_count, 3);
}

#[test]
fn up_ends_by_losses_that_bound_what_is_in_flight() {
    let mut flow = Flow::at(PATH, State::ProbeBwUp);
    flow.path.lost_of = 10;
    let took = flow.run_to(State::ProbeBwDown);
    assert!(took <= 2 * PATH.trip, "{took:?}");
    assert!(flow.bbr.prev_probe_too_high && flow.bbr.undo_state == Some(State::ProbeBwUp));
    let least = PATH.product() / 2;
    let longterm = flow.bbr.inflight_longterm;
    assert!((least..3 * PATH.product()).contains(&longterm), "{longterm}");
}

#[test]
fn few_losses_bound_nothing_while_it_probes() {
    let mut flow = Flow::at(PATH, State::ProbeBwUp);
    flow.path.lost_of = 200;
    flow.run_to(State::ProbeBwDown);
    assert!(!flow.bbr.prev_probe_too_high);
    assert_eq!(flow.bbr.inflight_longterm, INFINITY);
}

#[test]
fn cruise_leaves_headroom_below_what_losses_allow() {
    let mut flow = Flow::at(PATH, State::ProbeBwUp);
    flow.path.lost_of = 10;
    flow.run_to(State::ProbeBwDown);
    flow.path.lost_of = 0;
    flow.run_to(State::ProbeBwCruise);
    flow.run_round();
    let longterm = flow.bbr.inflight_longterm;
    let most = longterm - longterm * 15 / 100 + MSS;
    assert!(flow.window.cwnd <= most, "{} of {longterm}", flow.window.cwnd);
}

#[test]
fn losses_in_cruise_lower_the_short_term_model_until_refill() {
    let mut flow = Flow::at(PATH, State::ProbeBwCruise);
    assert_eq!(flow.bbr.bw_shortterm, Bandwidth::INFINITY);
    flow.path.rate /= 2;
    flow.path.lost_of = 5;
    flow.run(4 * PATH.trip);
    assert!(flow.bbr.bw_shortterm < flow.bbr.max_bw());
    assert!(flow.bbr.inflight_shortterm < INFINITY);
    flow.path.lost_of = 0;
    flow.run_to(State::ProbeBwRefill);
    assert_eq!(flow.bbr.bw_shortterm, Bandwidth::INFINITY);
    assert_eq!(flow.bbr.inflight_shortterm, INFINITY);
}

#[test]
fn probe_rtt_comes_every_five_seconds_and_halves_flight() {
    let mut flow = Flow::at(PATH, State::ProbeRtt);
    let expired = flow.now.since(flow.bbr.probe_rtt_min_stamp);
    assert!(
        expired <= SECOND,
        "the expired least is replaced by what is measured now: {expired:?}"
    );
    flow.run(3 * PATH.trip);
    assert_eq!(flow.bbr.state, State::ProbeRtt);
    let most = flow.bbr.probe_rtt_cwnd(MSS);
    assert!(flow.in_flight() <= most && flow.in_flight() <= PATH.product() * 6 / 10);
    let left = flow.run_to(State::ProbeBwCruise);
    let lasted = 3 * PATH.trip + left;
    assert!((200..=400).contains(&lasted.as_millis()), "{lasted:?}");
    let next = flow.run_to(State::ProbeRtt);
    assert!((5 * SECOND..=6 * SECOND).contains(&next), "{next:?}");
}

#[test]
fn probe_rtt_finds_a_round_trip_that_became_longer() {
    let mut flow = Flow::at(PATH, State::ProbeBwCruise);
    flow.path.trip *= 4;
    flow.run(16 * SECOND);
    let found = flow.bbr.min_rtt.get() / 1_000;
    assert!((160..=170).contains(&found), "{found} ms");
}

#[test]
fn probe_rtt_before_the_path_was_full_returns_to_startup() {
    let mut flow = Flow::new(Path { app_rate: Some(PATH.rate / 10), ..PATH });
    flow.run_to(State::ProbeRtt);
    flow.run_to(State::Startup);
    assert!(!flow.bbr.full_bw_reached);
}

#[test]
fn low_rates_of_probe_rtt_do_not_count() {
    let mut flow = Flow::at(PATH, State::ProbeRtt);
    let before = flow.bbr.max_bw();
    flow.run_to(State::ProbeBwCruise);
    flow.run(2 * PATH.trip);
    assert_eq!(flow.bbr.max_bw(), before);
}

#[test]
fn pause_takes_the_place_of_probe_rtt() {
    let mut flow = Flow::at(PATH, State::ProbeBwCruise);
    flow.path.app_rate = Some(MSS.into());
    flow.run(8 * SECOND);
    let before = flow.entered.len();
    flow.path.app_rate = None;
    flow.run(10 * PATH.trip);
    assert!(!flow.entered[before..].contains(&State::ProbeRtt), "{:?}", flow.entered);
    assert_ne!(flow.bbr.min_rtt, UNKNOWN);
}

#[test]
fn pause_leaves_the_window_and_paces_at_the_bandwidth() {
    let mut flow = Flow::at(PATH, State::ProbeBwCruise);
    let mut window = flow.window;
    flow.bbr.on_idle(&mut window, 10 * MSS);
    assert_eq!(window, flow.window);
    flow.bbr.restart_from_idle(&mut window);
    assert!(flow.bbr.idle_restart);
    let expected = flow.bbr.bw().percent(99).bytes_per_second();
    assert_eq!(flow.bbr.pacing_rate(&window), Some(expected));
}

#[test]
fn startup_that_ends_without_a_rate_keeps_its_pace() {
    let mut bbr = Bbr { full_bw_reached: true, ..Bbr::default() };
    bbr.init_pacing_rate(10 * MSS, Micros::from_millis(1));
    let before = bbr.pacing_rate;
    bbr.set_pacing_rate(100);
    assert_eq!(bbr.pacing_rate, before);
}

#[test]
fn slow_application_does_not_lower_the_bandwidth() {
    let mut flow = Flow::at(PATH, State::ProbeBwRefill);
    let before = flow.bbr.max_bw();
    flow.path.app_rate = Some(PATH.rate / 20);
    flow.run(2 * SECOND);
    assert!(flow.bbr.max_bw() >= before.percent(98), "{:?}", flow.bbr.max_bw());
}

#[test]
fn acknowledgments_in_batches_add_to_the_window() {
    let mut flow = Flow::new(Path { ack_batch: Duration::from_millis(20), ..PATH });
    flow.run(10 * SECOND);
    assert!(flow.bbr.extra_acked() > PATH.product() / 8, "{}", flow.bbr.extra_acked());
    let used = flow.rate_in(4 * SECOND) / PATH.rate as f64;
    assert!(used > 0.93, "{used}");
}

#[test]
fn path_of_less_than_a_packet_has_four_in_flight() {
    let mut flow = Flow::new(Path { rate: 20_000, ..Path::new(1, 10) });
    flow.run(20 * SECOND);
    assert!(flow.window.cwnd >= 4 * MSS);
    let rate = flow.rate_in(20 * SECOND) / 20_000.0;
    assert!(rate > 0.9, "{rate}");
}

#[test]
fn ten_times_the_bandwidth_is_found() {
    let mut flow = Flow::at(Path::new(10, 40), State::ProbeBwCruise);
    flow.path.rate *= 10;
    flow.run(8 * SECOND);
    let found = share(flow.bbr.max_bw(), flow.path.rate);
    assert!(found > 0.9, "{found}");
}

#[test]
fn bandwidth_that_is_gone_is_forgotten_after_two_cycles() {
    let queue = u64::from(PATH.product());
    let mut flow = Flow::at(Path { queue, ..PATH }, State::ProbeBwCruise);
    flow.path.rate /= 10;
    flow.run(15 * SECOND);
    let found = share(flow.bbr.bw(), flow.path.rate);
    assert!((0.9..1.3).contains(&found), "{found}");
}

#[test]
fn tenth_of_the_rate_waits_less_than_150_ms_after_12_s() {
    let mut flow = Flow::new(Path { queue: 256_000, ..Path::new(10, 40) });
    flow.run(20 * SECOND);
    flow.path.rate /= 10;
    flow.run(12 * SECOND);
    let most = (flow.path.rate * 190 / 1_000) as u32;
    for _ in 0..200 {
        flow.run(SECOND / 10);
        assert!(flow.in_flight() <= most, "{} after {:?}", flow.in_flight(), flow.now);
    }
}

#[test]
fn longer_round_trip_has_80_percent_within_12_s() {
    let mut flow = Flow::new(Path::new(20, 20));
    flow.run(20 * SECOND);
    let before = flow.bbr.max_bw();
    flow.path.trip *= 10;
    flow.run(4 * SECOND);
    assert_eq!(flow.bbr.max_bw(), before, "no queue made it slower");
    flow.run(7 * SECOND);
    let rate = flow.rate_in(SECOND) / flow.path.rate as f64;
    assert!(rate > 0.8, "{rate}");
}

#[test]
fn time_out_leaves_one_segment_until_recovery_ends() {
    let mut flow = Flow::at(PATH, State::ProbeBwCruise);
    let before = flow.window.cwnd;
    flow.time_out();
    assert_eq!(flow.window.cwnd, MSS);
    flow.run(2 * PATH.trip);
    assert!(!flow.bbr.in_loss_recovery);
    assert!(flow.window.cwnd >= before / 2, "{} of {before}", flow.window.cwnd);
}

#[test]
fn spurious_losses_return_to_startup() {
    let mut flow = Flow::new(Path { queue: u64::from(PATH.product()) / 10, ..PATH });
    flow.run_to(State::Drain);
    flow.undo();
    assert_eq!(flow.bbr.state, State::Startup);
    assert!(!flow.bbr.full_bw_reached);
    assert_eq!((flow.bbr.inflight_longterm, flow.bbr.undo_state), (INFINITY, None));
}

#[test]
fn spurious_losses_return_to_the_probe() {
    let mut flow = Flow::at(PATH, State::ProbeBwUp);
    flow.path.lost_of = 10;
    flow.run_to(State::ProbeBwDown);
    assert_ne!(flow.bbr.inflight_longterm, INFINITY);
    let before = flow.bbr.prior_cwnd;
    flow.undo();
    assert_eq!(flow.bbr.state, State::ProbeBwRefill);
    assert_eq!(flow.bbr.inflight_longterm, INFINITY);
    assert!(flow.window.cwnd >= before);
}

#[test]
fn spurious_losses_in_cruise_restore_the_short_term_model() {
    let mut flow = Flow::at(PATH, State::ProbeBwCruise);
    flow.time_out();
    flow.run(2 * PATH.trip);
    flow.undo();
    assert_eq!(flow.bbr.bw_shortterm, Bandwidth::INFINITY);
    assert_eq!(flow.bbr.inflight_shortterm, INFINITY);
}

#[test]
fn mark_ends_startup_and_probe_and_lowers_cruise() {
    let mut flow = Flow::new(PATH);
    flow.run(4 * PATH.trip);
    flow.mark();
    flow.run_round();
    assert_eq!(flow.entered.get(1), Some(&State::Drain));
    assert_ne!(flow.bbr.inflight_longterm, INFINITY);

    let mut flow = Flow::at(PATH, State::ProbeBwUp);
    flow.mark();
    assert_eq!(flow.bbr.state, State::ProbeBwDown);
    assert_ne!(flow.bbr.inflight_longterm, INFINITY);

    let mut flow = Flow::at(PATH, State::ProbeBwCruise);
    flow.mark();
    flow.run(2 * PATH.trip);
    assert_ne!(flow.bbr.bw_shortterm, Bandwidth::INFINITY);
}

#[test]
fn waits_between_probes_differ_and_repeat_with_the_same_flow() {
    let waits = || {
        let mut flow = Flow::new(PATH);
        let wait = |flow: &mut Flow| {
            flow.run_to(State::ProbeBwDown);
            flow.bbr.bw_probe_wait_millis
        };
        (0..8).map(|_| wait(&mut flow)).collect::<Vec<_>>()
    };
    let first = waits();
    assert!(first.iter().all(|wait| (2_000..=3_000).contains(wait)), "{first:?}");
    assert!(first.iter().collect::<BTreeSet<_>>().len() > 4, "{first:?}");
    assert_eq!(first, waits());
}

#[test]
fn steady_flow_fills_its_path_and_no_queue() {
    for path in [Path::new(10, 10), PATH, Path::new(100, 200), Path::new(1_000, 10)] {
        let mut flow = Flow::new(path);
        flow.run(10 * SECOND);
        let used = flow.rate_in(10 * SECOND) / path.rate as f64;
        assert!(used > 0.95, "{used} of {path:?}");
        // Three rounds of a probe add three quarters.
        let most = path.product() * 15 / 8 + 16 * MSS;
        assert!(flow.in_flight() <= most, "{} of {path:?}", flow.in_flight());
    }
}
