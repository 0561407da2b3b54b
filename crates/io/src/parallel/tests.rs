use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use super::*;

#[test]
fn results_come_in_order_however_long_each_took() {
    let inputs: Vec<u64> = (0..20).collect();
    let mut seen = Vec::new();
    let done: Result<(), ()> = in_order(
        4,
        &inputs,
        |input| {
            thread::sleep(Duration::from_millis((20 - input) % 5));
            input * 2
        },
        |output| {
            seen.push(output);
            Ok(())
        },
    );
    assert_eq!(done, Ok(()));
    assert_eq!(seen, (0..20).map(|input| input * 2).collect::<Vec<_>>());
}

#[test]
fn a_sink_that_fails_ends_the_work() {
    let inputs: Vec<u32> = (0..10_000).collect();
    let made = AtomicUsize::new(0);
    let job = |_: &u32| {
        made.fetch_add(1, Ordering::Relaxed);
        thread::sleep(Duration::from_millis(1));
    };
    assert_eq!(in_order(2, &inputs, job, |()| Err("full")), Err("full"));
    assert!(made.into_inner() < inputs.len());
    assert_eq!(in_order(2, &[] as &[u32], |_| (), |()| Err("none")), Ok(()));
}
