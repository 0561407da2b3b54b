//! The kernel's sockets as a transport of applications.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use whimbrel_apps::transport::{
    ConnectOptions, Limited, OpenError, PortShortage, SenderStats, StackUsage,
};
use whimbrel_apps::{ConnError, Destination, Reading, Transport, TransportEvent};
use whimbrel_kernel::KernelSockets;
use whimbrel_kernel::sockets::{
    KernelEvent, KernelInfo, KernelListener, KernelOptions, Received, SocketId,
};
use whimbrel_tcp::conn::Nagle;
use whimbrel_wire::Endpoint;

use crate::failure::warn;
use crate::{descriptors, proc};

/// The kernel's sockets as a transport of applications.
#[derive(Debug)]
pub(crate) struct KernelNet {
    sockets: KernelSockets,
    /// The error that stopped reports of the kernel.
    broken: Option<io::Error>,
}

impl KernelNet {
    /// A transport without sockets: an error if the system has no descriptor for it.
    pub(crate) fn new() -> io::Result<Self> {
        let sockets = KernelSockets::new().map_err(descriptors::explained)?;
        Ok(Self { sockets, broken: None })
    }

    /// Listens at an address, and returns it with the port that was taken.
    pub(crate) fn listen(&mut self, at: Endpoint, backlog: u32) -> io::Result<Endpoint> {
        self.sockets.listen(at, backlog)
    }

    /// Takes over a socket that listens already.
    pub(crate) fn adopt_listener(&mut self, socket: OwnedFd) -> io::Result<Endpoint> {
        self.sockets.adopt_listener(socket)
    }

    /// Ends all listeners.
    pub(crate) fn close_listeners(&mut self) {
        self.sockets.close_listeners();
    }

    /// Listens at an address that others share, if each of them does it by this function.
    pub(crate) fn listen_beside_others(
        &mut self,
        at: Endpoint,
        backlog: u32,
    ) -> io::Result<Endpoint> {
        self.sockets.listen_beside_others(at, backlog)
    }

    /// Connects to a Unix socket: at once, or not at all ([`io::ErrorKind::WouldBlock`] if its backlog
    /// is full).
    pub(crate) fn connect_unix(&mut self, path: &Path) -> io::Result<SocketId> {
        self.sockets.connect_unix(path)
    }

    /// Begins to connect, with the system's error if that fails.
    pub(crate) fn connect_tcp(&mut self, to: Destination) -> io::Result<SocketId> {
        let options = KernelOptions { no_delay: true, zone: to.zone, ..KernelOptions::default() };
        self.sockets.connect(to.at, &options)
    }

    /// The next event, with the system's own errors.
    pub(crate) fn poll_kernel_event(&mut self) -> Option<KernelEvent> {
        self.sockets.poll_event().unwrap_or_else(|error| {
            self.broken = Some(error);
            None
        })
    }

    /// Fails if the kernel reports no more events. Warns if connections wait to be accepted because no
    /// descriptor is free.
    pub(crate) fn check(&mut self) -> io::Result<()> {
        if let Some(error) = self.sockets.take_shortage() {
            warn(&format!(
                "connections wait in the accept queue until others end: {}",
                descriptors::explain(&error)
            ));
        }
        self.broken.take().map_or(Ok(()), Err)
    }

    /// Time until the next poll if nothing becomes readable but connections wait for a descriptor.
    pub(crate) fn patience(&self) -> Option<Duration> {
        self.sockets.patience()
    }
}

impl AsFd for KernelNet {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.sockets.as_fd()
    }
}

impl Transport for KernelNet {
    type Id = SocketId;
    type Listener = KernelListener;

    fn place(id: SocketId) -> u32 {
        id.index()
    }

    fn connect(
        &mut self,
        remote: Endpoint,
        how: &ConnectOptions,
        first: &mut Bytes,
    ) -> Result<SocketId, OpenError> {
        let options = KernelOptions {
            local: how.local,
            no_delay: how.nagle == Nagle::Off,
            mss: how.mss,
            congestion: how.congestion.clone(),
            buffers: how.buffers,
            max_pacing_rate: how.max_pacing_rate,
            zone: how.zone,
        };
        let opened = match how.fast {
            true => self.sockets.connect_fast(remote, &options, first),
            false => self.sockets.connect(remote, &options),
        };
        opened.map_err(|error| unopened(&error, remote))
    }

    fn accept(&mut self, listener: KernelListener) -> Option<SocketId> {
        self.sockets.accept(listener).ok()
    }

    fn send(&mut self, id: SocketId, data: &mut Bytes) -> Result<usize, ConnError> {
        self.sockets.send(id, data).map_err(|error| conn_error(&error))
    }

    fn recv(&mut self, id: SocketId) -> Reading {
        match self.sockets.recv(id) {
            Ok(Received::Data(bytes)) => Reading::Data(bytes),
            Ok(Received::Pending) => Reading::Pending,
            Ok(Received::End) => Reading::End,
            Err(error) => Reading::Failed(conn_error(&error)),
        }
    }

    fn shutdown(&mut self, id: SocketId) {
        self.sockets.shutdown(id);
    }

    fn close(&mut self, id: SocketId) {
        self.sockets.close(id);
    }

    fn abort(&mut self, id: SocketId) {
        self.sockets.abort(id);
    }

    fn poll_event(&mut self) -> Option<TransportEvent<Self>> {
        loop {
            return Some(match self.poll_kernel_event()? {
                KernelEvent::Accepted(listener) => TransportEvent::Accepted(listener),
                KernelEvent::Connected(id) => TransportEvent::Connected(id),
                KernelEvent::Readable(id) => TransportEvent::Readable(id),
                KernelEvent::Writable(id) => TransportEvent::Writable(id),
                KernelEvent::Failed(id, error) => {
                    TransportEvent::Closed(id, Some(conn_error(&error)))
                }
                // A read says so, behind the last data.
                KernelEvent::Broken(_) => continue,
            });
        }
    }

    fn sender_stats(&self, id: SocketId) -> Option<SenderStats> {
        self.sockets.info(id).ok().map(|info| sender_stats(&info))
    }

    fn retransmits(&self) -> Option<u64> {
        None
    }

    /// Usage of all of this machine's kernel, not only by this process: from two short files.
    fn stack_usage(&self) -> Option<StackUsage> {
        let (time_wait, (first, last)) = (proc::time_wait()?, proc::ports()?);
        let ports = u64::from(last.saturating_sub(first)) + 1;
        Some(StackUsage { time_wait: time_wait.into(), ports_in_use: None, ports })
    }

    fn local(&self, id: SocketId) -> Option<Endpoint> {
        self.sockets.local(id).ok()
    }

    fn remote(&self, id: SocketId) -> Option<Endpoint> {
        self.sockets.remote(id).ok()
    }

    fn adjust(&mut self, id: SocketId, how: &ConnectOptions) {
        let options = KernelOptions {
            no_delay: how.nagle == Nagle::Off,
            congestion: how.congestion.clone(),
            buffers: how.buffers,
            max_pacing_rate: how.max_pacing_rate,
            ..KernelOptions::default()
        };
        // A refused option stays at its default; the connection works without it.
        let _left_as_it_is = self.sockets.adjust(id, &options);
    }

    fn knows_congestion(&self, name: &str) -> bool {
        proc::congestion_controls().split(' ').any(|known| known == name)
    }
}

fn sender_stats(info: &KernelInfo) -> SenderStats {
    SenderStats {
        retransmits: Some(info.retransmits.into()),
        acked: info.acked,
        cwnd: u64::from(info.cwnd) * u64::from(info.mss),
        rwnd: info.rwnd.into(),
        mss: info.mss,
        rtt: (!info.rtt.is_zero()).then_some(info.rtt),
        min_rtt: (!info.min_rtt.is_zero()).then_some(info.min_rtt),
        rttvar: info.rttvar,
        limited: Limited {
            cwnd: info.busy.saturating_sub(info.rwnd_limited + info.sndbuf_limited),
            rwnd: info.rwnd_limited,
            sndbuf: info.sndbuf_limited,
        },
    }
}

fn unopened(error: &io::Error, remote: Endpoint) -> OpenError {
    match (error.kind(), proc::ports()) {
        (io::ErrorKind::AddrNotAvailable, Some((first, last))) => OpenError::Ports(PortShortage {
            first,
            last,
            in_use: None,
            waiting: proc::time_wait(),
            next: None,
            is_reuse_off: proc::is_port_reuse_off(remote.addr.to_ip().is_loopback()),
        }),
        _ => OpenError::Other(conn_error(error)),
    }
}

/// The class of a system's error.
pub(crate) fn conn_error(error: &io::Error) -> ConnError {
    // EMFILE and ENFILE: the process, or the system, has no descriptor left.
    if whimbrel_io::descriptors::are_used_up(error) {
        return ConnError::NoDescriptor;
    }
    match error.kind() {
        io::ErrorKind::ConnectionRefused => ConnError::Refused,
        io::ErrorKind::ConnectionReset
        | io::ErrorKind::ConnectionAborted
        | io::ErrorKind::BrokenPipe => ConnError::Reset,
        io::ErrorKind::TimedOut => ConnError::TimedOut,
        io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => {
            ConnError::Unreachable
        }
        io::ErrorKind::AddrNotAvailable => ConnError::PortsExhausted,
        io::ErrorKind::NotConnected => ConnError::EndedEarly,
        _ => ConnError::System,
    }
}
