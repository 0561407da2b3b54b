//! A transport for tests, whose peers the test plays.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::iter;

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
    /// Results of the application's reads; then there is nothing yet.
    pub(crate) input: VecDeque<Reading>,
    /// Bytes that the application sent.
    pub(crate) output: Vec<u8>,
    /// Number of bytes that the peer still takes.
    pub(crate) room: usize,
    /// The error of sending to it.
    pub(crate) refusal: Option<ConnError>,
    pub(crate) fate: Fate,
    /// Last byte of its address.
    pub(crate) host: u8,
}

/// The application's last act on a connection.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum Fate {
    #[default]
    Open,
    Shut,
    Closed,
    Aborted,
}

impl TestTransport {
    /// A transport whose connections open with this room.
    pub(crate) fn connecting(connect_room: usize) -> Self {
        Self { connect_room, ..Self::default() }
    }

    /// A transport with so many open connections, which take all.
    pub(crate) fn open(connections: usize) -> Self {
        let connection = || TestConnection { room: usize::MAX, ..TestConnection::default() };
        let all = iter::repeat_with(connection).take(connections).collect();
        Self { connections: all, accepted: connections, ..Self::default() }
    }

    /// The peer's end of a connection.
    pub(crate) fn at(&mut self, id: u32) -> &mut TestConnection {
        &mut self.connections[id as usize]
    }

    pub(crate) fn says(&mut self, id: u32, readings: impl IntoIterator<Item = Reading>) {
        self.at(id).input.extend(readings);
    }

    pub(crate) fn heard(&self, id: u32) -> &[u8] {
        &self.connections[id as usize].output
    }

    pub(crate) fn fate(&self, id: u32) -> Fate {
        self.connections[id as usize].fate
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
        let connection = self.at(id);
        if let Some(error) = connection.refusal {
            return Err(error);
        }
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
        self.at(id).input.pop_front().unwrap_or(Reading::Pending)
    }

    fn shutdown(&mut self, id: u32) {
        self.at(id).fate = Fate::Shut;
    }

    fn close(&mut self, id: u32) {
        self.at(id).fate = Fate::Closed;
    }

    fn abort(&mut self, id: u32) {
        self.at(id).fate = Fate::Aborted;
    }

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
