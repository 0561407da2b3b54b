//! `ioctl`, and the names of both ends.

use whimbrel_stack::Shard;
use whimbrel_tcp::conn::State;
use whimbrel_wire::Endpoint;

use super::readiness::{is_opening, is_over};
use super::{Phase, Socket};
use crate::Errno;
use crate::command::Ioctl;

impl Socket {
    pub(crate) fn ioctl(&self, shard: &Shard, request: Ioctl) -> Result<i32, Errno> {
        if let Phase::Listening(_) = self.phase {
            return Err(Errno::EINVAL);
        }
        let connection = self.connection(shard).filter(|(_, it)| !is_opening(it));
        let Some((stream, snapshot)) = connection else { return Ok(0) };
        let bytes = match request {
            Ioctl::Fionread | Ioctl::Inq => self.before_urgent(shard, &stream, &snapshot),
            Ioctl::Outq => snapshot.send_queued + u32::from(snapshot.fin_unacked),
            Ioctl::OutqUnsent => snapshot.unsent,
            Ioctl::AtMark => u32::from(shard.urgent_mark(stream.handle) == Some(1)),
        };
        Ok(i32::try_from(bytes).unwrap_or(i32::MAX))
    }

    pub(crate) fn local_name(&self, shard: &Shard) -> Endpoint {
        let flow = self.stream().and_then(|stream| shard.flow(stream.handle));
        let unbound = Endpoint::new(self.domain.unspecified(), 0);
        flow.map(|flow| flow.local).or(self.local).unwrap_or(unbound)
    }

    pub(crate) fn peer_name(&self, shard: &Shard) -> Result<Endpoint, Errno> {
        let (stream, snapshot) = self.connection(shard).ok_or(Errno::ENOTCONN)?;
        if snapshot.state == State::SynSent || is_over(&snapshot) {
            return Err(Errno::ENOTCONN);
        }
        shard.flow(stream.handle).map(|flow| flow.remote).ok_or(Errno::ENOTCONN)
    }
}
