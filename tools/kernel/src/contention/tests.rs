use std::time::Duration;

use whimbrel_stack::profile::Locking;
use whimbrel_tcp::Tunables;

use super::{Contention, ContentionError, ContentionResult, Slice, SliceLog};

fn serve(threads: usize, locking: Locking, hold: Duration) -> ContentionResult {
    let time = Duration::from_millis(300);
    let contention = Contention { threads, locking, hold, time, tunables: Tunables::default() };
    let counted = contention.run().expect("it serves");
    assert_eq!(counted.failed, 0, "{counted:?}");
    assert!(counted.queries > 10, "{counted:?}");
    assert_eq!(counted.slices.len(), Contention::SLICES);
    // Queries answered after the last slice are in none.
    let in_slices = counted.slices.iter().map(|slice| slice.queries).sum::<u64>();
    assert!(in_slices <= counted.queries, "{counted:?}");
    let waited = counted.slices.iter().map(|slice| slice.waited).sum::<Duration>();
    assert!(waited <= counted.waited, "{counted:?}");
    counted
}

#[test]
fn accept_that_takes_no_lock_takes_one_less_for_each_query() {
    let all = serve(2, Locking::All, Duration::ZERO);
    let but = serve(2, Locking::AllButAccept, Duration::ZERO);
    let each = |counted: &ContentionResult| counted.locks as f64 / counted.queries as f64;
    // The last accept of a turn, which finds nothing, takes the lock, too.
    assert!(each(&all) > each(&but) + 0.8, "{} and {}", each(&all), each(&but));
    assert!(each(&but) > 4.0, "{}", each(&but));
}

#[test]
fn missed_slices_are_empty_and_the_last_has_the_rest() {
    let millis = Duration::from_millis;
    let mut log = SliceLog::new(millis(10));
    assert!(!log.is_due(millis(9)));
    log.note(millis(12), 5, millis(1));
    log.note(millis(35), 9, millis(3));
    let slices = log.finish(20, millis(4));
    let of = |queries, waited| Slice { queries, waited: millis(waited) };
    assert_eq!(slices[..4], [of(5, 1), of(4, 2), of(0, 0), of(11, 1)]);
    assert_eq!(slices[4..], [of(0, 0); Contention::SLICES - 4]);
}

#[test]
fn what_nobody_shares_is_not_locked() {
    let own = serve(2, Locking::None, Duration::ZERO);
    assert_eq!((own.locks, own.waits, own.waited), (0, 0, Duration::ZERO));
}

#[test]
fn no_lock_gives_more_than_it_is_held_for() {
    let hold = Duration::from_micros(100);
    for locking in [Locking::All, Locking::AllButAccept] {
        // On a loaded machine, one thread may have ended before the other has a processor.
        let has_waited = (0..100).any(|_| {
            let counted = serve(2, locking, hold);
            assert!(counted.held <= counted.time, "{counted:?}");
            assert!(counted.held >= hold * counted.locks as u32, "{counted:?}");
            assert_eq!(counted.waits > 0, counted.waited > Duration::ZERO, "{counted:?}");
            counted.waits > 0
        });
        assert!(has_waited, "{locking:?}");
    }
}

#[test]
fn a_number_of_threads_that_is_none_is_refused() {
    for threads in [0, 129] {
        let (time, hold) = (Duration::ZERO, Duration::ZERO);
        let tunables = Tunables::default();
        let none = Contention { threads, locking: Locking::None, hold, time, tunables }.run();
        assert!(matches!(none, Err(ContentionError::Threads(given)) if given == threads));
    }
}
