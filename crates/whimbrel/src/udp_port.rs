//! UDP sockets of a shard, on its thread: binding and requests.

use std::net::SocketAddr;
use std::sync::Arc;
use std::task::Waker;

use tokio::sync::oneshot;
use whimbrel_stack::ip::Unreachable;
use whimbrel_stack::{Shard, UdpHandle};
use whimbrel_udp::{Bind, Received};
use whimbrel_wire::Endpoint;

use crate::fault;
use crate::udp_cell::UdpCell;
use crate::waiters::deliver;

/// A request to a shard about a UDP socket, with the sender of the reply.
#[derive(Debug)]
pub(crate) enum UdpRequest {
    /// Bind a socket for this cell; `None`: the one for any destination.
    Bind { cell: Arc<UdpCell>, bind: Option<Bind>, answer: Answer },
    /// Connect the socket, which then receives only from `remote`.
    Connect { cell: Arc<UdpCell>, remote: Endpoint, answer: Answer },
    /// Report an undeliverable datagram to its sender.
    Refuse { received: Received, what: Unreachable },
    /// Release the socket, whose port is then free.
    Close { cell: Arc<UdpCell> },
}

/// Sender of the result.
pub(crate) type Answer = oneshot::Sender<std::io::Result<()>>;

/// UDP sockets that tasks hold.
#[derive(Default, Debug)]
pub(crate) struct UdpPort {
    /// Cell of each socket, indexed by [`UdpHandle::index`].
    sockets: Vec<Option<Arc<UdpCell>>>,
    open: usize,
}

impl UdpPort {
    /// Returns the number of sockets that tasks hold.
    pub(crate) const fn len(&self) -> usize {
        self.open
    }

    pub(crate) fn process_request(
        &mut self,
        shard: &mut Shard,
        request: UdpRequest,
        woken: &mut Vec<Waker>,
    ) {
        // The caller may have gone; a dropped socket is marked in its cell.
        match request {
            UdpRequest::Bind { cell, bind, answer } => {
                deliver(answer, self.bind(shard, cell, bind));
            }
            UdpRequest::Connect { cell, remote, answer } => {
                deliver(answer, Self::connect(shard, &cell, remote));
            }
            UdpRequest::Refuse { received, what } => shard.udp_refuse(&received, what),
            UdpRequest::Close { cell } => {
                let handle = cell.lock().handle;
                if let Some(handle) = handle {
                    self.exchange(shard, handle, woken);
                }
            }
        }
    }

    fn bind(
        &mut self,
        shard: &mut Shard,
        cell: Arc<UdpCell>,
        bind: Option<Bind>,
    ) -> std::io::Result<()> {
        let mut state = cell.lock();
        // The future was dropped before the shard received the request.
        if state.is_dropped {
            return Ok(());
        }
        let handle = match bind {
            Some(bind) => shard.udp_bind(&bind),
            None => shard.udp_bind_any(),
        };
        let handle = handle.map_err(fault::udp_bind)?;
        state.handle = Some(handle);
        if let Some(local) = shard.udp().local(handle) {
            state.local = local.into();
        }
        drop(state);
        let place = handle.index() as usize;
        if self.sockets.len() <= place {
            self.sockets.resize_with(place + 1, || None);
        }
        if let Some(slot) = self.sockets.get_mut(place) {
            *slot = Some(cell);
            self.open += 1;
        }
        Ok(())
    }

    fn connect(shard: &mut Shard, cell: &UdpCell, remote: Endpoint) -> std::io::Result<()> {
        let mut state = cell.lock();
        let handle = state.handle.ok_or_else(fault::unknown)?;
        shard.udp_connect(handle, remote).map_err(fault::udp)?;
        if let Some(local) = shard.udp().local(handle) {
            state.local = local.into();
        }
        state.peer = Some(SocketAddr::from(remote));
        state.failure = None;
        Ok(())
    }

    /// Exchanges datagrams with the cell of `handle`, if it still exists.
    pub(crate) fn exchange(
        &mut self,
        shard: &mut Shard,
        handle: UdpHandle,
        woken: &mut Vec<Waker>,
    ) {
        let Some(slot) = self.sockets.get_mut(handle.index() as usize) else { return };
        let Some(cell) = slot else { return };
        let is_held = {
            let mut state = cell.lock();
            // The place may belong to a later socket: handles differ by generation, places do not.
            if state.handle != Some(handle) {
                return;
            }
            state.exchange(shard, handle, woken)
        };
        if !is_held {
            *slot = None;
            self.open -= 1;
        }
    }

    /// Reports the end of the stack to every socket.
    pub(crate) fn end(&mut self, why: &str, woken: &mut Vec<Waker>) {
        for cell in self.sockets.drain(..).flatten() {
            cell.lock().on_lost(why.to_owned(), woken);
        }
        self.open = 0;
    }
}
