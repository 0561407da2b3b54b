use super::*;

#[test]
fn turn_ends_when_its_bytes_are_made() {
    let mut effort = TurnBudget::default();
    effort.begin_turn(false);
    effort.spend(TURN - 1);
    assert!(!effort.is_spent());
    effort.spend(LOOK);
    assert!(effort.is_spent());
    effort.begin_turn(false);
    assert!(!effort.is_spent());
}

#[test]
fn long_work_needs_a_grant_and_ends_its_turn() {
    let mut effort = TurnBudget::default();
    effort.begin_turn(true);
    assert!(!effort.begin_long() && !effort.is_spent());
    effort.grant();
    assert!(effort.begin_long() && effort.is_spent() && !effort.begin_long());
    effort.begin_turn(true);
    effort.grant();
    effort.withdraw();
    assert!(!effort.begin_long());
}

#[test]
fn long_work_goes_first_after_sixteen_turns() {
    let mut effort = TurnBudget::default();
    for _ in 0..PATIENCE {
        effort.begin_turn(true);
        assert!(!effort.is_overdue());
    }
    effort.begin_turn(true);
    assert!(effort.is_overdue());
    effort.grant();
    effort.begin_turn(true);
    assert!(!effort.is_overdue());
}

#[test]
fn single_connection_has_no_budget() {
    let mut effort = TurnBudget::unbounded();
    effort.spend(1 << 40);
    assert!(effort.begin_long() && effort.begin_long() && !effort.is_spent());
}
