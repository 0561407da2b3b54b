//! Sockets that a shell line selects.

use alloc::format;
use alloc::vec::Vec;

use whimbrel_posix::{Fd, Sockets, TcpInfo, state};
use whimbrel_stack::Shard;
use whimbrel_stack::shard::{SocketEntry, SocketState};
use whimbrel_wire::{Endpoint, Flow};

use crate::host::{SetError, SocketFilter};

/// Number of matching sockets.
pub(super) fn count(sockets: &Sockets, which: &SocketFilter) -> Result<usize, SetError> {
    let states = states(which)?;
    let closed = if which.states.contains(&CLOSE) { closed(sockets, which) } else { 0 };
    if states.is_empty() && !which.states.is_empty() {
        return Ok(closed);
    }
    let shard = sockets.shard();
    Ok(closed + shard.sockets().filter(|entry| means(which, &states, entry)).count())
}

/// Matching connections, with half-open and waiting ones.
pub(super) fn flows(shard: &Shard, which: &SocketFilter) -> Result<Vec<Flow>, SetError> {
    let states = states(which)?;
    let meant = shard.sockets().filter(|entry| means(which, &states, entry));
    Ok(meant.filter_map(|entry| Some(Flow { local: entry.local, remote: entry.remote? })).collect())
}

/// Matching states, except for `CLOSE`; empty means any.
pub(super) fn states(which: &SocketFilter) -> Result<Vec<SocketState>, SetError> {
    let read = |name: &&str| {
        let unknown = || SetError::Refused(format!("no socket here is ever in state {name}"));
        state::by_name(name).ok_or_else(unknown)
    };
    which.states.iter().filter(|name| **name != CLOSE).map(read).collect()
}

/// Descriptors without a connection, not even a waiting one.
fn closed(sockets: &Sockets, which: &SocketFilter) -> usize {
    let waits = |at: Endpoint| {
        let mut entries = sockets.shard().sockets();
        entries.any(|entry| entry.state == SocketState::TimeWait && entry.local == at)
    };
    let is_closed = |fd: &Fd| {
        let is_state = |info: TcpInfo| info.tcpi_state == u32::from(state::CLOSE);
        sockets.tcp_info(*fd).is_ok_and(is_state)
    };
    let is_meant = |at: Endpoint| {
        let is = |wanted: Option<u16>| wanted.is_none_or(|port| port == at.port);
        is(which.local_port) && is(which.port) && which.remote_port.is_none() && !waits(at)
    };
    let ends =
        sockets.descriptors().filter(is_closed).filter_map(|fd| sockets.getsockname(fd).ok());
    ends.filter(|at| is_meant(*at)).count()
}

/// True if `entry` matches.
pub(super) fn means(which: &SocketFilter, states: &[SocketState], entry: &SocketEntry) -> bool {
    let is = |wanted: Option<u16>, port: Option<u16>| wanted.is_none() || wanted == port;
    (states.is_empty() || states.contains(&entry.state))
        && is(which.local_port, Some(entry.local.port))
        && is(which.remote_port, entry.remote.map(|remote| remote.port))
        && (is(which.port, Some(entry.local.port))
            || is(which.port, entry.remote.map(|remote| remote.port)))
}

/// Linux' state of a socket without a connection.
const CLOSE: &str = "CLOSE";
