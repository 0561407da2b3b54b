//! Which sockets a shell line means.

use alloc::format;
use alloc::vec::Vec;

use whimbrel_posix::state;
use whimbrel_stack::Shard;
use whimbrel_stack::shard::{SocketEntry, SocketState};

use crate::script::host::{SetError, SocketFilter};

/// How many sockets of `shard` are meant.
pub(super) fn count(shard: &Shard, which: &SocketFilter) -> Result<usize, SetError> {
    let states = states(which)?;
    Ok(shard.sockets().filter(|entry| means(which, &states, entry)).count())
}

/// The states that are meant; none means any.
pub(super) fn states(which: &SocketFilter) -> Result<Vec<SocketState>, SetError> {
    let read = |name: &&str| {
        let unknown = || SetError::Refused(format!("no socket here is ever in state {name}"));
        state::by_name(name).ok_or_else(unknown)
    };
    which.states.iter().map(read).collect()
}

/// Whether `entry` is meant.
pub(super) fn means(which: &SocketFilter, states: &[SocketState], entry: &SocketEntry) -> bool {
    let is = |wanted: Option<u16>, port: Option<u16>| wanted.is_none() || wanted == port;
    (states.is_empty() || states.contains(&entry.state))
        && is(which.local_port, Some(entry.local.port))
        && is(which.remote_port, entry.remote.map(|remote| remote.port))
}
