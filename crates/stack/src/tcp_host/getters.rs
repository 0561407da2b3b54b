//! Variables of connections, by their handles.

use whimbrel_base::packet::SoftError;
use whimbrel_tcp::Context;
use whimbrel_tcp::cc::Algorithm;
use whimbrel_tcp::conn::{Attempt, State};
use whimbrel_wire::{Endpoint, Flow};

use crate::Handle;
use crate::net::Net;
use crate::tcp_host::records::Records;

impl Records {
    pub(crate) fn flow(&self, net: &Net, handle: Handle) -> Option<Flow> {
        let connection = &self.held(handle)?.connection;
        let local = *net.ip.addresses.get(connection.local_index())?;
        // It is over, and its address is no more.
        if local.is_unspecified() {
            return None;
        }
        Some(Flow {
            local: Endpoint::new(local, connection.local_port()),
            remote: Endpoint::new(*connection.remote(), connection.remote_port()),
        })
    }

    pub(crate) fn urgent_mark(&self, handle: Handle) -> Option<u32> {
        self.held(handle)?.connection.urgent_mark()
    }

    pub(crate) fn state(&self, handle: Handle) -> Option<State> {
        self.held(handle).map(|slot| slot.connection.state())
    }

    pub(crate) fn congestion_control(&self, handle: Handle) -> Option<Algorithm> {
        self.held(handle).map(|slot| slot.connection.congestion_control())
    }

    pub(crate) fn send_room(&self, handle: Handle) -> usize {
        self.held(handle).map_or(0, |slot| slot.connection.send_room() as usize)
    }

    pub(crate) fn peek(&self, handle: Handle) -> impl Iterator<Item = &[u8]> {
        self.held(handle).into_iter().flat_map(|slot| slot.connection.peek())
    }

    pub(crate) fn attempt(&self, cx: &Context, handle: Handle) -> Option<Attempt> {
        self.held(handle).map(|slot| slot.connection.attempt(cx.now))
    }

    pub(crate) fn take_soft_error(&mut self, handle: Handle) -> Option<SoftError> {
        self.held_mut(handle)?.connection.take_soft_error()
    }

    pub(crate) fn soft_error(&self, handle: Handle) -> Option<SoftError> {
        self.held(handle)?.connection.soft_error()
    }
}
