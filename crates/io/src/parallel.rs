//! Runs many jobs on a few threads, with the results in order.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

/// Returns how many jobs to run at a time: `asked`, or one for each processor.
pub fn jobs(asked: Option<u16>) -> usize {
    let processors = || thread::available_parallelism().map_or(1, usize::from);
    asked.map_or_else(processors, usize::from)
}

/// Runs `job` for each of `inputs`, `most` at a time, and passes each result to `sink` in the order
/// of the inputs, as soon as all before it are there. Stops early if `sink` fails.
pub fn in_order<I: Sync, O: Send, E>(
    most: usize,
    inputs: &[I],
    job: impl Fn(&I) -> O + Sync,
    mut sink: impl FnMut(O) -> Result<(), E>,
) -> Result<(), E> {
    let next = AtomicUsize::new(0);
    let (results, done) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..most.min(inputs.len()) {
            let (results, next, job) = (results.clone(), &next, &job);
            scope.spawn(move || {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(input) = inputs.get(index) else { return };
                    // The receiver is gone once the sink has failed.
                    if results.send((index, job(input))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(results);
        let (mut waiting, mut due) = (BTreeMap::new(), 0);
        for (index, result) in done {
            waiting.insert(index, result);
            while let Some(result) = waiting.remove(&due) {
                sink(result)?;
                due += 1;
            }
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests;
