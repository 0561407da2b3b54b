//! Counts and destroys connections, as `ss` does.

use std::io;

use whimbrel_posix::state;
use whimbrel_script::host::{SetError, SocketFilter};

use whimbrel_io::netlink::diag::{DiagSocket, SocketDiag};

/// Counts the sockets of the calling thread's network namespace that match.
pub(super) fn count(which: &SocketFilter) -> Result<usize, SetError> {
    let mut diag = SocketDiag::open().map_err(refused)?;
    Ok(matching(&mut diag, which)?.len())
}

/// Destroys those that match (`ss -K`).
pub(super) fn end(which: &SocketFilter) -> Result<(), SetError> {
    let mut diag = SocketDiag::open().map_err(refused)?;
    let found = matching(&mut diag, which)?;
    end_these(&mut diag, &found)
}

/// Destroys all.
pub(super) fn end_all() -> Result<(), SetError> {
    let mut diag = SocketDiag::open().map_err(refused)?;
    let found = diag.sockets(u32::MAX).map_err(refused)?;
    end_these(&mut diag, &found)
}

fn end_these(diag: &mut SocketDiag, sockets: &[DiagSocket]) -> Result<(), SetError> {
    for socket in sockets {
        match diag.destroy(socket) {
            // It ended by itself meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            ended => ended.map_err(refused)?,
        }
    }
    Ok(())
}

fn matching(diag: &mut SocketDiag, which: &SocketFilter) -> Result<Vec<DiagSocket>, SetError> {
    let mut found = diag.sockets(states(which)?).map_err(refused)?;
    let is_or_any = |wanted: Option<u16>, port| wanted.is_none_or(|wanted| wanted == port);
    found.retain(|socket| {
        let either = [socket.local_port, socket.remote_port];
        is_or_any(which.local_port, socket.local_port)
            && is_or_any(which.remote_port, socket.remote_port)
            && which.port.is_none_or(|port| either.contains(&port))
    });
    Ok(found)
}

/// Returns a mask of the selected states. If none is named, it is all but CLOSE, which is also the
/// state of a socket that is only bound.
fn states(which: &SocketFilter) -> Result<u32, SetError> {
    const CLOSED: u32 = 1 << state::CLOSE | 1 << BOUND_INACTIVE;
    if which.states.is_empty() {
        return Ok(!CLOSED);
    }
    which.states.iter().try_fold(0, |bits, name| {
        let is_it = |known: &str| known.strip_prefix("TCP_").is_some_and(|known| known == *name);
        let found = state::NUMBERS.iter().find(|(known, _)| is_it(known));
        let (_, number) = found
            .ok_or_else(|| SetError::Refused(format!("the kernel knows no TCP state {name}")))?;
        Ok(bits | if *number == state::CLOSE { CLOSED } else { 1 << number })
    })
}

fn refused(error: io::Error) -> SetError {
    SetError::Refused(format!("the kernel does not tell of its sockets: {error}"))
}

/// The kernel's state of a socket that is bound and neither listens nor connects.
const BOUND_INACTIVE: u8 = 13;

#[cfg(test)]
mod tests;
