use super::*;

const LEAST: u64 = Budget::LEAST as u64;

fn budget(bytes: u64) -> (Budget, Counters) {
    let (mut budget, mut counters) = (Budget::default(), Counters::default());
    budget.set_bytes(bytes, &mut counters);
    (budget, counters)
}

fn reached(counters: &Counters) -> [u64; 3] {
    [counters.mem_high, counters.mem_tight, counters.mem_full]
}

#[test]
fn each_level_is_reached_and_left_a_sixteenth_below() {
    let (mut budget, mut counters) = budget(1_600);
    let levels = [
        (1_199, Pressure::None, [0, 0, 0]),
        (1_200, Pressure::High, [1, 0, 0]),
        (1_440, Pressure::Tight, [1, 1, 0]),
        (1_600, Pressure::Full, [1, 1, 1]),
        (1_500, Pressure::Full, [1, 1, 1]),
        (1_499, Pressure::Tight, [1, 1, 1]),
        (1_600, Pressure::Full, [1, 1, 2]),
        (1_339, Pressure::High, [1, 1, 2]),
        (1_100, Pressure::High, [1, 1, 2]),
        (1_099, Pressure::None, [1, 1, 2]),
        (9_999, Pressure::Full, [2, 2, 3]),
        (0, Pressure::None, [2, 2, 3]),
    ];
    for (held, pressure, counts) in levels {
        budget.note_records(held, 0, &mut counters);
        assert_eq!((budget.pressure(), reached(&counters)), (pressure, counts), "{held}");
    }
}

#[test]
fn text_and_records_are_held_together() {
    let (mut budget, mut counters) = budget(1_600);
    budget.note_records(800, 0, &mut counters);
    budget.move_text(0, 500, &mut counters);
    budget.move_text(500, 700, &mut counters);
    assert_eq!((budget.held(), budget.text(), budget.pressure()), (1_500, 700, Pressure::Tight));
    budget.release_text(700);
    assert_eq!((budget.held(), budget.pressure()), (800, Pressure::Tight));
    budget.note_records(800, 0, &mut counters);
    assert_eq!((budget.pressure(), reached(&counters)), (Pressure::None, [1, 1, 0]));
}

#[test]
fn a_budget_that_shrinks_below_what_is_held_is_full_at_once() {
    let (mut budget, mut counters) = budget(1_600);
    budget.note_records(800, 0, &mut counters);
    budget.set_bytes(800, &mut counters);
    assert!(budget.is_full());
    budget.set_bytes(1_600, &mut counters);
    assert_eq!((budget.pressure(), reached(&counters)), (Pressure::None, [1, 1, 1]));
}

#[test]
fn least_of_each_connection_counts_as_held_up_to_a_limit() {
    let (mut budget, mut counters) = budget(1_000_000);
    budget.note_records(0, 50 * LEAST, &mut counters);
    budget.move_text(0, 544_000, &mut counters);
    assert_eq!(budget.pressure(), Pressure::None, "{} of 204,800 and it", budget.held());
    budget.move_text(0, 10_000, &mut counters);
    assert_eq!((budget.held(), budget.pressure()), (554_000, Pressure::High));
    budget.release_text(10_000);
    budget.release_text(544_000);
    // Half of what records leave is kept: idle connections alone are nothing that memory is short for.
    for records in [0, 200_000, 500_000] {
        budget.note_records(records, (1 << 20) * LEAST, &mut counters);
        assert_eq!((budget.held(), budget.pressure()), (records, Pressure::None));
    }
    budget.note_records(0, (1 << 20) * LEAST, &mut counters);
    budget.move_text(0, 305_000, &mut counters);
    assert_eq!(budget.pressure(), Pressure::High, "450,000 and it");
}

#[test]
fn first_takes_a_share_of_the_rest_and_last_the_least() {
    for burst in [1 << 11, 14_480, 64 << 10, 1 << 20] {
        let (mut budget, mut counters) = budget(100_000_000);
        budget.note_records(0, 10_000 * LEAST, &mut counters);
        let mut least = u32::MAX;
        for _ in 0..10_000 {
            let share = match budget.pressure() {
                Pressure::Tight => budget.share(0),
                _ => u32::MAX,
            };
            least = least.min(share);
            budget.move_text(0, share.min(burst), &mut counters);
        }
        assert!(least >= Budget::LEAST && counters.mem_full == 0, "{least} of {burst}");
        assert!(budget.held() <= 98_000_000, "{} by bursts of {burst}", budget.held());
        // What is left is for those who read, and no one of them gets all of it.
        let shares = [0, 1_000, 50_000, 1 << 40].map(|has_read| budget.share(has_read));
        assert!(shares[1] >= 2_000 && shares[2] >= 100_000, "{shares:?}");
        assert!(u64::from(shares[3]) <= (100_000_000 - budget.held()) / 2, "{shares:?}");
    }
}
