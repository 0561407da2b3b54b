//! Calls on a shard whose result a client waits for.

use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use whimbrel_stack::Shard;

use super::request::Refusal;
use crate::Inspect;

/// Makes a call on a shard, and waits for its result.
pub(crate) fn ask<T: Send + 'static>(
    shard: &dyn Inspect,
    call: impl FnOnce(&mut Shard) -> T + Send + 'static,
) -> Result<T, Refusal> {
    let (sender, answer) = sync_channel(1);
    // The client may have given up.
    shard.inspect(Box::new(move |shard| drop(sender.send(call(shard)))));
    answer.recv_timeout(ANSWER).map_err(|error| match error {
        RecvTimeoutError::Disconnected => Refusal::new("ended", "the stack has ended"),
        RecvTimeoutError::Timeout => {
            Refusal::new("no-answer", "a shard did not answer within 10 s: does its thread hang?")
        }
    })
}

/// Time for a shard to answer.
const ANSWER: Duration = Duration::from_secs(10);
