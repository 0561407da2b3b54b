use std::time::Duration;

use whimbrel_base::Instant;

use super::*;

fn run(answered: u64, until: u64) -> RunCount {
    let began = Instant::ZERO;
    RunCount { answered, began, until: began + Duration::from_secs(until) }
}

#[test]
fn run_counts_once_all_parts_have_reported() {
    let agreement = ShardAgreement::default();
    agreement.expect(2);
    assert!(agreement.tell(0, &[run(10, 1)]).is_empty());
    assert_eq!(agreement.tell(1, &[run(30, 2), run(7, 1)]), [20.0]);
    assert_eq!(agreement.tell(0, &[run(10, 1), run(5, 1)]), [20.0, 12.0]);
}
