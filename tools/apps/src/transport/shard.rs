//! A shard as a transport: its commands and events under the names of applications.

use bytes::Bytes;
use whimbrel_stack::shard::ConnectError;
use whimbrel_stack::{Event, Handle, ListenerId, Recv, Shard};
use whimbrel_tcp::CloseReason;
use whimbrel_tcp::cc::Algorithm;
use whimbrel_tcp::conn::{BufferSize, Limit, Snapshot, SocketOptions, SocketOverrides};
use whimbrel_tcp::tunables::PortReuse;
use whimbrel_wire::Endpoint;

use super::{
    ConnError, ConnectOptions, Limited, OpenError, PortShortage, Reading, SenderStats, StackUsage,
    Transport, TransportEvent,
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
        how: &ConnectOptions,
        first: &mut Bytes,
    ) -> Result<Handle, OpenError> {
        let local = how.local.map(|address| Endpoint::new(address, 0));
        let options = options(self, how);
        let opened = match how.fast {
            true => self.connect_fast(remote, local, &options, first),
            false => self.connect_with(remote, local, &options),
        };
        opened.map_err(|error| match error {
            ConnectError::PortsExhausted { first, last, in_use, waiting, next, remote: _ } => {
                let (in_use, waiting) = (Some(in_use), Some(waiting));
                let is_reuse_off = match self.tunables().tw_reuse {
                    PortReuse::Never => true,
                    PortReuse::Loopback => !remote.addr.to_ip().is_loopback(),
                    PortReuse::Timestamped => false,
                };
                OpenError::Ports(PortShortage { first, last, in_use, waiting, next, is_reuse_off })
            }
            ConnectError::TooMany { .. } => ConnError::TooMany.into(),
            _ => ConnError::Unreachable.into(),
        })
    }

    fn accept(&mut self, listener: ListenerId) -> Option<Handle> {
        Self::accept(self, listener)
    }

    fn send(&mut self, id: Handle, data: &mut Bytes) -> Result<usize, ConnError> {
        Self::send(self, id, data).map_err(|_| ConnError::Reset)
    }

    fn room(&self, id: Handle) -> usize {
        self.send_room(id)
    }

    fn recv(&mut self, id: Handle) -> Reading {
        Transport::recv_up_to(self, id, usize::MAX)
    }

    fn recv_up_to(&mut self, id: Handle, most: usize) -> Reading {
        match Self::recv_up_to(self, id, most) {
            Recv::Data(bytes) => Reading::Data(bytes),
            Recv::Pending => Reading::Pending,
            Recv::End | Recv::Closed(CloseReason::Finished) => Reading::End,
            Recv::Closed(reason) => Reading::Failed(reason.into()),
            Recv::Unknown => Reading::Failed(ConnError::EndedEarly),
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

    fn poll_event(&mut self) -> Option<TransportEvent<Self>> {
        loop {
            return Some(match Self::poll_event(self)? {
                Event::Accepted(listener) => TransportEvent::Accepted(listener),
                Event::Connected(id) => TransportEvent::Connected(id),
                Event::Readable(id) => TransportEvent::Readable(id),
                Event::Writable(id) => TransportEvent::Writable(id),
                Event::Closed(id, CloseReason::Finished) => TransportEvent::Closed(id, None),
                Event::Closed(id, reason) => TransportEvent::Closed(id, Some(reason.into())),
                // No application here uses urgent data, or events of later shards.
                _ => continue,
            });
        }
    }

    fn sender_stats(&self, id: Handle) -> Option<SenderStats> {
        self.snapshot(id).map(|snapshot| sender_stats(&snapshot))
    }

    fn retransmits(&self) -> Option<u64> {
        Some(self.counters().retrans_segs)
    }

    fn stack_usage(&self) -> Option<StackUsage> {
        let (census, tunables) = (self.census(), self.tunables());
        let time_wait = census.time_wait as u64;
        Some(StackUsage {
            time_wait,
            // If only this side opens connections, each has a port of the range.
            ports_in_use: Some(census.connections as u64 + time_wait),
            ports: u64::from(tunables.port_last - tunables.port_first) + 1,
        })
    }

    fn syns_sent(&self, id: Handle) -> Option<u32> {
        Self::syns_sent(self, id)
    }

    fn local(&self, id: Handle) -> Option<Endpoint> {
        self.flow(id).map(|flow| flow.local)
    }

    fn remote(&self, id: Handle) -> Option<Endpoint> {
        self.flow(id).map(|flow| flow.remote)
    }

    fn adjust(&mut self, id: Handle, how: &ConnectOptions) {
        if how.max_pacing_rate.is_some() {
            let options = options(self, how);
            return self.set_options(id, &options);
        }
        self.set_nodelay(id, how.nagle);
        if let Some((send, recv)) = how.buffers {
            self.set_send_size(id, send);
            self.set_recv_size(id, recv);
        }
        if let Some(algorithm) = algorithm(self, how) {
            self.set_congestion_control(id, algorithm);
        }
    }

    fn knows_congestion(&self, name: &str) -> bool {
        self.congestion_controls().find(name).is_some()
    }
}

/// The options in the shard's form.
fn options(shard: &Shard, how: &ConnectOptions) -> SocketOptions {
    SocketOptions {
        nagle: how.nagle,
        send_size: how.buffers.map_or(BufferSize::Auto, |(send, _)| send.into()),
        recv_size: how.buffers.map_or(BufferSize::Auto, |(_, recv)| recv.into()),
        congestion_control: algorithm(shard, how),
        overrides: SocketOverrides {
            max_seg: how.mss,
            max_pacing_rate: how.max_pacing_rate,
            ..SocketOverrides::default()
        },
        ..SocketOptions::default()
    }
}

/// The requested congestion control, if known.
fn algorithm(shard: &Shard, how: &ConnectOptions) -> Option<Algorithm> {
    shard.congestion_controls().find(how.congestion.as_deref()?)
}

fn sender_stats(snapshot: &Snapshot) -> SenderStats {
    SenderStats {
        retransmits: Some(snapshot.info_counts.total_retrans.into()),
        acked: snapshot.tally.bytes_acked,
        cwnd: snapshot.cwnd.into(),
        rwnd: snapshot.snd.wnd.get().into(),
        mss: snapshot.mss.into(),
        rtt: snapshot.srtt,
        min_rtt: snapshot.tally.min_rtt(),
        rttvar: snapshot.rttvar,
        limited: Limited {
            cwnd: snapshot.limited(Limit::Network),
            rwnd: snapshot.limited(Limit::Window),
            sndbuf: snapshot.limited(Limit::Buffer),
        },
    }
}
