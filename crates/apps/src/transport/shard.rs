//! A shard as a transport: its own commands and events, under the names of applications.

use bytes::Bytes;
use whimbrel_stack::shard::ConnectError;
use whimbrel_stack::{Event, Handle, ListenerId, Recv, Shard};
use whimbrel_tcp::CloseReason;
use whimbrel_tcp::conn::{Limit, Particulars, Snapshot, SocketOptions};
use whimbrel_wire::Endpoint;

use super::{
    Gauge, Happening, Limited, Opening, PortShortage, Reading, Standing, Transport, Trouble,
    Unopened,
};

impl Transport for Shard {
    type Id = Handle;
    type Listener = ListenerId;

    fn place(id: Handle) -> u32 {
        id.index()
    }

    fn connect(
        &mut self,
        remote: Endpoint,
        how: &Opening,
        first: &mut Bytes,
    ) -> Result<Handle, Unopened> {
        let local = how.local.map(|address| Endpoint::new(address, 0));
        let options = SocketOptions {
            nagle: how.nagle,
            send_size: how.buffers.map(|(send, _)| send),
            recv_size: how.buffers.map(|(_, recv)| recv),
            particulars: Particulars { max_seg: how.mss, ..Particulars::default() },
            ..SocketOptions::default()
        };
        let opened = match how.fast {
            true => self.connect_fast(remote, local, &options, first),
            false => self.connect_with(remote, local, &options),
        };
        opened.map_err(|error| match error {
            ConnectError::PortsExhausted { first, last, in_use, waiting, next, remote: _ } => {
                let (in_use, waiting) = (Some(in_use), Some(waiting));
                Unopened::Ports(PortShortage { first, last, in_use, waiting, next })
            }
            ConnectError::TooMany { .. } => Trouble::TooMany.into(),
            _ => Trouble::Unreachable.into(),
        })
    }

    fn accept(&mut self, listener: ListenerId) -> Option<Handle> {
        Self::accept(self, listener)
    }

    fn send(&mut self, id: Handle, data: &mut Bytes) -> Result<usize, Trouble> {
        Self::send(self, id, data).map_err(|_| Trouble::Reset)
    }

    fn recv(&mut self, id: Handle) -> Reading {
        match Self::recv(self, id) {
            Recv::Data(octets) => Reading::Data(octets),
            Recv::Pending => Reading::Pending,
            Recv::End | Recv::Closed(CloseReason::Finished) => Reading::End,
            Recv::Closed(reason) => Reading::Failed(reason.into()),
            Recv::Unknown => Reading::Failed(Trouble::EndedEarly),
        }
    }

    fn shutdown(&mut self, id: Handle) {
        Self::shutdown(self, id);
    }

    fn close(&mut self, id: Handle) {
        Self::close(self, id);
    }

    fn abort(&mut self, id: Handle) {
        Self::abort(self, id);
    }

    fn poll_event(&mut self) -> Option<Happening<Self>> {
        loop {
            return Some(match Self::poll_event(self)? {
                Event::Accepted(listener) => Happening::Accepted(listener),
                Event::Connected(id) => Happening::Connected(id),
                Event::Readable(id) => Happening::Readable(id),
                Event::Writable(id) => Happening::Writable(id),
                Event::Closed(id, CloseReason::Finished) => Happening::Closed(id, None),
                Event::Closed(id, reason) => Happening::Closed(id, Some(reason.into())),
                // No application here knows urgency.
                Event::Urgent(_) => continue,
            });
        }
    }

    fn gauge(&self, id: Handle) -> Option<Gauge> {
        self.snapshot(id).map(|snapshot| gauge(&snapshot))
    }

    fn retransmits(&self) -> Option<u64> {
        Some(self.counters().retrans_segs)
    }

    fn standing(&self) -> Option<Standing> {
        let (census, tunables) = (self.census(), self.tunables());
        let time_wait = census.time_wait as u64;
        Some(Standing {
            time_wait,
            // Where nobody opens connections but this side, each has a port of the range.
            ports_in_use: Some(census.connections as u64 + time_wait),
            ports: u64::from(tunables.port_last - tunables.port_first) + 1,
        })
    }

    fn local(&self, id: Handle) -> Option<Endpoint> {
        self.flow(id).map(|flow| flow.local)
    }

    fn remote(&self, id: Handle) -> Option<Endpoint> {
        self.flow(id).map(|flow| flow.remote)
    }

    fn adjust(&mut self, id: Handle, how: &Opening) {
        self.set_nodelay(id, how.nagle);
        if let Some((send, recv)) = how.buffers {
            self.set_send_size(id, send);
            self.set_recv_size(id, recv);
        }
    }

    fn knows_congestion(&self, name: &str) -> bool {
        name == "reno"
    }
}

fn gauge(snapshot: &Snapshot) -> Gauge {
    Gauge {
        retransmits: Some(snapshot.tally.total_retrans.into()),
        acked: snapshot.tally.bytes_acked,
        cwnd: snapshot.cwnd.into(),
        rwnd: snapshot.snd.wnd.get().into(),
        mss: snapshot.mss.into(),
        rtt: snapshot.srtt,
        rttvar: snapshot.rttvar,
        limited: Limited {
            cwnd: snapshot.tally.limited(Limit::Network),
            rwnd: snapshot.tally.limited(Limit::Window),
            sndbuf: snapshot.tally.limited(Limit::Buffer),
        },
    }
}
