use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

#[derive(Debug)]
enum Ended {
    OnPurpose,
    Thread(ThreadError),
}

impl From<ThreadError> for Ended {
    fn from(error: ThreadError) -> Self {
        Self::Thread(error)
    }
}

/// Waits until it is stopped.
fn wait(stop: &Stop) -> Result<(), Ended> {
    stop.wait().map_err(|error| Ended::Thread(error.into()))
}

#[test]
fn what_shards_came_to_stands_in_their_order() {
    let stop = Stop::new().unwrap();
    let threads = ShardThreads { stop: &stop, processors: &[] };
    let names = threads.run(
        0..3,
        |shard| {
            wait(&stop)?;
            Ok::<_, Ended>((shard, thread::current().name().map(str::to_owned)))
        },
        || Ok(()),
    );
    let expected = (0..3).map(|shard| (shard, Some(format!("whimbrel-{shard}"))));
    assert_eq!(names.unwrap(), expected.collect::<Vec<_>>());
}

#[test]
fn one_that_fails_ends_the_others_and_whoever_watches() {
    let stop = Stop::new().unwrap();
    let threads = ShardThreads { stop: &stop, processors: &[] };
    let run = |shard| if shard == 1 { Err(Ended::OnPurpose) } else { wait(&stop) };
    let ended = threads.run(0..3, run, || wait(&stop));
    assert!(matches!(ended, Err(Ended::OnPurpose)), "{ended:?}");
}

#[test]
fn a_panic_ends_all_and_goes_on() {
    let stop = Stop::new().unwrap();
    let threads = ShardThreads { stop: &stop, processors: &[] };
    let run = |shard| if shard == 1 { panic!("as the test wants") } else { wait(&stop) };
    let ended = std::panic::catch_unwind(|| threads.run(0..2, run, || wait(&stop)));
    assert!(ended.is_err());
    assert!(stop.is_set());
}

#[test]
fn a_processor_that_is_not_there_is_named() {
    let stop = Stop::new().unwrap();
    let threads = ShardThreads { stop: &stop, processors: &[100_000] };
    let begun = AtomicUsize::new(0);
    let run = |_| {
        begun.fetch_add(1, Ordering::Relaxed);
        wait(&stop)
    };
    let ended = threads.run(0..2, run, || wait(&stop));
    let Err(Ended::Thread(error)) = ended else { panic!("{ended:?}") };
    assert!(error.to_string().starts_with("cannot run on processor 100000: "), "{error}");
    assert_eq!(begun.load(Ordering::Relaxed), 0);
}

#[test]
fn those_left_to_themselves_run() {
    let stop = Stop::new().unwrap();
    let stopped = stop.clone();
    let threads = ShardThreads { stop: &stop, processors: &[] };
    threads.spawn([()], move |()| stopped.set()).unwrap();
    stop.wait().unwrap();
}
