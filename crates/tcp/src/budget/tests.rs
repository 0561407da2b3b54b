use super::*;

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
        budget.note_records(held, &mut counters);
        assert_eq!((budget.pressure(), reached(&counters)), (pressure, counts), "{held}");
    }
}

#[test]
fn text_and_records_are_held_together() {
    let (mut budget, mut counters) = budget(1_600);
    budget.note_records(800, &mut counters);
    budget.move_text(0, 500, &mut counters);
    budget.move_text(500, 700, &mut counters);
    assert_eq!((budget.held(), budget.text(), budget.pressure()), (1_500, 700, Pressure::Tight));
    budget.release_text(700);
    assert_eq!((budget.held(), budget.pressure()), (800, Pressure::Tight));
    budget.note_records(800, &mut counters);
    assert_eq!((budget.pressure(), reached(&counters)), (Pressure::None, [1, 1, 0]));
}

#[test]
fn a_budget_that_shrinks_below_what_is_held_is_full_at_once() {
    let (mut budget, mut counters) = budget(1_600);
    budget.note_records(800, &mut counters);
    budget.set_bytes(800, &mut counters);
    assert!(budget.is_full());
    budget.set_bytes(1_600, &mut counters);
    assert_eq!((budget.pressure(), reached(&counters)), (Pressure::None, [1, 1, 1]));
}
