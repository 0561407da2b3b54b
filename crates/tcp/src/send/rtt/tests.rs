//! RFC 6298, number by number.

use core::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use whimbrel_base::Instant;

use super::RttEstimator;
use crate::Tunables;

const MILLI: Duration = Duration::from_millis(1);

fn tunables() -> Tunables {
    Tunables { min_rto: MILLI.into(), ..Tunables::default() }
}

#[test]
fn before_any_measurement_rto_is_the_initial_one() {
    let rtt = RttEstimator::default();
    assert_eq!((rtt.rto(&tunables()), rtt.srtt()), (1_000 * MILLI, None));
}

#[test]
fn the_first_measurement_counts_whole_and_the_next_by_an_eighth() {
    let (rules, mut rtt) = (tunables(), RttEstimator::default());
    rtt.on_sample((80 * MILLI).into());
    assert_eq!((rtt.srtt(), rtt.rttvar()), (Some(80 * MILLI), 40 * MILLI));
    assert_eq!(rtt.rto(&rules), 240 * MILLI);
    rtt.on_sample((160 * MILLI).into());
    // RTTVAR = 3/4 40 + 1/4 |80 - 160|, then SRTT = 7/8 80 + 1/8 160.
    assert_eq!((rtt.srtt(), rtt.rttvar()), (Some(90 * MILLI), 50 * MILLI));
    assert_eq!(rtt.rto(&rules), 290 * MILLI);
}

#[test]
fn rto_leaves_its_margin_above_srtt_and_ends_at_its_maximum() {
    let (rules, mut rtt) = (Tunables::default(), RttEstimator::default());
    rtt.on_sample(Duration::ZERO.into());
    assert_eq!(rtt.rto(&rules), Duration::from(rules.min_rto) + Duration::from_micros(1));
    rtt.on_sample(Duration::from_secs(1 << 30).into());
    assert_eq!(rtt.rto(&rules), rules.max_rto.into());
}

#[test]
fn timeout_doubles_rto_to_the_maximum_until_a_measurement() {
    let (rules, mut rtt) = (tunables(), RttEstimator::default());
    rtt.on_sample((100 * MILLI).into());
    for doubled in [300, 600, 1_200, 2_400, 4_800, 9_600, 19_200, 38_400, 60_000, 60_000] {
        assert_eq!(rtt.rto(&rules), doubled * MILLI);
        rtt.back_off();
    }
    for _ in 0..1_000 {
        rtt.back_off();
    }
    assert_eq!(rtt.rto(&rules), rules.max_rto.into());
    rtt.on_sample((100 * MILLI).into());
    assert!(rtt.rto(&rules) < 300 * MILLI);
}

#[test]
fn what_was_sent_again_is_not_measured() {
    let at = Instant::from_millis;
    let mut rtt = RttEstimator::default();
    rtt.start_timing(at(0));
    rtt.start_timing(at(5));
    assert_eq!(rtt.finish_timing(at(20)), Some((20 * MILLI).into()), "the first of them");
    assert_eq!(rtt.finish_timing(at(30)), None, "one at a time");
    for forget in [RttEstimator::back_off, RttEstimator::stop_timing] {
        rtt.start_timing(at(40));
        forget(&mut rtt);
        assert_eq!(rtt.finish_timing(at(50)), None);
    }
}

#[test]
fn measurement_survives_the_wrap_of_its_clock() {
    let start = Instant::from_nanos(u64::from(u32::MAX) * 1_000);
    let mut rtt = RttEstimator::default();
    rtt.start_timing(start);
    assert_eq!(rtt.finish_timing(start + 2 * MILLI), Some((2 * MILLI).into()));
}

#[test]
fn rto_is_three_seconds_after_lost_syn_unless_path_is_measured() {
    let (rules, mut rtt) = (tunables(), RttEstimator::default());
    rtt.back_off();
    rtt.restart_after_lost_syn();
    assert_eq!(rtt.rto(&rules), 3_000 * MILLI);
    rtt.on_sample((10 * MILLI).into());
    rtt.restart_after_lost_syn();
    assert_eq!(rtt.rto(&rules), 30 * MILLI);
}

proptest! {
    #[test]
    fn it_follows_the_arithmetic_of_rfc_6298(samples in vec(1u64..=20_000_000, 1..100)) {
        let (rules, mut rtt) = (tunables(), RttEstimator::default());
        let (mut srtt, mut rttvar) = (0f64, 0f64);
        for (count, sample) in samples.into_iter().enumerate() {
            let exact = sample as f64;
            if count == 0 {
                (srtt, rttvar) = (exact, exact / 2.0);
            } else {
                rttvar = 0.75 * rttvar + 0.25 * (srtt - exact).abs();
                srtt = 0.875 * srtt + 0.125 * exact;
            }
            rtt.on_sample(Duration::from_micros(sample).into());
            let micros = |duration: Duration| duration.as_micros() as f64;
            // Each division by 8 or 4 may lose one microsecond of what decays by as much.
            prop_assert!((micros(rtt.srtt().expect("measured")) - srtt).abs() <= 9.0);
            prop_assert!((micros(rtt.rttvar()) - rttvar).abs() <= 17.0);
            let rto = (srtt + (4.0 * rttvar).max(1_000.0)).clamp(1_000.0, 60e6);
            prop_assert!((micros(rtt.rto(&rules)) - rto).abs() <= 80.0);
        }
    }

    #[test]
    fn no_measurement_overflows(samples in vec(any::<u64>(), 0..50), backoffs in 0u16..600) {
        let (rules, mut rtt) = (Tunables::default(), RttEstimator::default());
        for sample in samples {
            rtt.on_sample(Duration::from_micros(sample).into());
        }
        for _ in 0..backoffs {
            rtt.back_off();
        }
        let (least, most) = (rules.min_rto.into(), rules.max_rto.into());
        prop_assert!(rtt.rto(&rules) >= least && rtt.rto(&rules) <= most);
    }
}
