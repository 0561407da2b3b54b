//! Calls on a shard whose result a client waits for.

use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use whimbrel_stack::Shard;

use super::request::Refusal;
use crate::Inspect;
use crate::tap::TapSlot;

/// Makes a call on a shard, and waits for its result.
pub(crate) fn ask<T: Send + 'static>(
    shard: &dyn Inspect,
    call: impl FnOnce(&mut Shard) -> T + Send + 'static,
) -> Result<T, Refusal> {
    let (sender, answer) = sync_channel(1);
    // The client may have given up.
    shard.inspect(Box::new(move |shard| drop(sender.send(call(shard)))));
    wait(&answer)
}

/// Makes a call on the captures of a shard, and waits for its result.
pub(super) fn ask_captures<T: Send + 'static>(
    shard: &dyn Inspect,
    call: impl FnOnce(&mut TapSlot<'_>) -> T + Send + 'static,
) -> Result<T, Refusal> {
    let (sender, answer) = sync_channel(1);
    // The client may have given up.
    shard.capture(Box::new(move |slot| drop(sender.send(call(slot)))));
    wait(&answer)
}

fn wait<T>(answer: &Receiver<T>) -> Result<T, Refusal> {
    answer.recv_timeout(ANSWER).map_err(|error| match error {
        RecvTimeoutError::Disconnected => Refusal::new("ended", "the stack has ended"),
        RecvTimeoutError::Timeout => {
            Refusal::new("no-answer", "a shard did not answer within 10 s: does its thread hang?")
        }
    })
}

/// Time for a shard to answer.
const ANSWER: Duration = Duration::from_secs(10);
