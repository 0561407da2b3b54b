//! A transport for tests, whose peers the test plays.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use bytes::Bytes;
use whimbrel_wire::{Address, Endpoint};

use crate::transport::{
    ConnError, ConnectOptions, OpenError, Reading, SenderStats, StackUsage, Transport,
    TransportEvent,
};

/// Connections that open at once, and wait to be accepted if the test adds them.
#[derive(Default)]
pub(crate) struct TestTransport {
    pub(crate) connections: Vec<TestConnection>,
    pub(crate) events: VecDeque<TransportEvent<Self>>,
    /// Calls of `send` and `recv`.
    pub(crate) calls: usize,
    /// Room of a connection that [`Transport::connect`] opens.
    connect_room: usize,
    accepted: usize,
}

/// The peer's end of a connection.
#[derive(Default)]
pub(crate) struct TestConnection {
    /// Bytes for the application, in one piece.
    pub(crate) input: Option<Bytes>,
    /// Bytes that the application sent.
    pub(crate) output: Vec<u8>,
    /// Number of bytes that the peer still takes.
    pub(crate) room: usize,
    /// Last byte of its address.
    pub(crate) host: u8,
}

impl TestTransport {
    /// A transport whose connections open with this room.
    pub(crate) fn connecting(connect_room: usize) -> Self {
        Self { connect_room, ..Self::default() }
    }
}

impl Transport for TestTransport {
    type Id = u32;
    type Listener = ();

    fn place(id: u32) -> u32 {
        id
    }

    fn connect(
        &mut self,
        _: Endpoint,
        _: &ConnectOptions,
        _: &mut Bytes,
    ) -> Result<u32, OpenError> {
        let id = u32::try_from(self.connections.len()).expect("few");
        let room = self.connect_room;
        self.connections.push(TestConnection { room, ..TestConnection::default() });
        self.accepted += 1;
        self.events.push_back(TransportEvent::Connected(id));
        Ok(id)
    }

    fn accept(&mut self, (): ()) -> Option<u32> {
        let next = self.accepted;
        (next < self.connections.len()).then(|| {
            self.accepted += 1;
            next as u32
        })
    }

    fn send(&mut self, id: u32, data: &mut Bytes) -> Result<usize, ConnError> {
        self.calls += 1;
        let connection = &mut self.connections[id as usize];
        let taken = data.split_to(data.len().min(connection.room));
        connection.room -= taken.len();
        connection.output.extend_from_slice(&taken);
        Ok(taken.len())
    }

    fn room(&self, id: u32) -> usize {
        self.connections[id as usize].room
    }

    fn recv(&mut self, id: u32) -> Reading {
        self.calls += 1;
        self.connections[id as usize].input.take().map_or(Reading::Pending, Reading::Data)
    }

    fn shutdown(&mut self, _: u32) {}

    fn close(&mut self, _: u32) {}

    fn abort(&mut self, _: u32) {}

    fn poll_event(&mut self) -> Option<TransportEvent<Self>> {
        if self.accepted < self.connections.len() {
            return Some(TransportEvent::Accepted(()));
        }
        self.events.pop_front()
    }

    fn sender_stats(&self, _: u32) -> Option<SenderStats> {
        None
    }

    fn retransmits(&self) -> Option<u64> {
        None
    }

    fn stack_usage(&self) -> Option<StackUsage> {
        None
    }

    fn local(&self, _: u32) -> Option<Endpoint> {
        None
    }

    fn remote(&self, id: u32) -> Option<Endpoint> {
        let host = self.connections.get(id as usize)?.host;
        Some(Endpoint::new(Address::from(core::net::Ipv4Addr::new(10, 0, 0, host)), 4_711))
    }
}
