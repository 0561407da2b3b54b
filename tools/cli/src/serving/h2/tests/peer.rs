//! A transport of one connection, whose peer is the test.

use std::collections::VecDeque;

use bytes::Bytes;
use whimbrel_apps::transport::{ConnectOptions, OpenError, SenderStats, StackUsage};
use whimbrel_apps::{ConnError, Reading, Transport, TransportEvent};
use whimbrel_wire::Endpoint;

/// A client that takes a limited number of bytes, and keeps received bytes if it listens.
pub(crate) struct Peer {
    accepted: bool,
    pub(crate) said: VecDeque<Bytes>,
    pub(crate) takes: usize,
    pub(crate) heard: Option<Vec<u8>>,
    pub(crate) closed: bool,
    /// There are bytes that the server does not know of yet.
    news: bool,
}

impl Peer {
    /// A client that takes this many bytes, and does not listen.
    pub(crate) fn deaf(takes: usize) -> Self {
        let said = VecDeque::new();
        Self { accepted: false, said, takes, heard: None, closed: false, news: false }
    }

    /// Sends the bytes, in the server's next turn.
    pub(crate) fn say(&mut self, bytes: &[u8]) {
        self.said.push_back(Bytes::copy_from_slice(bytes));
        self.news = true;
    }
}

/// A client that takes and keeps all bytes.
impl Default for Peer {
    fn default() -> Self {
        Self { heard: Some(Vec::new()), ..Self::deaf(usize::MAX) }
    }
}

impl Transport for Peer {
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
        Err(ConnError::Unreachable.into())
    }

    fn accept(&mut self, (): ()) -> Option<u32> {
        (!std::mem::replace(&mut self.accepted, true)).then_some(0)
    }

    fn send(&mut self, _: u32, data: &mut Bytes) -> Result<usize, ConnError> {
        let taken = data.split_to(data.len().min(self.takes));
        self.takes -= taken.len();
        if let Some(heard) = &mut self.heard {
            heard.extend_from_slice(&taken);
        }
        Ok(taken.len())
    }

    fn recv(&mut self, _: u32) -> Reading {
        self.said.pop_front().map_or(Reading::Pending, Reading::Data)
    }

    fn shutdown(&mut self, _: u32) {}

    fn close(&mut self, _: u32) {
        self.closed = true;
    }

    fn abort(&mut self, _: u32) {
        self.closed = true;
    }

    fn poll_event(&mut self) -> Option<TransportEvent<Self>> {
        if !self.accepted {
            return Some(TransportEvent::Accepted(()));
        }
        (std::mem::take(&mut self.news) && !self.closed).then_some(TransportEvent::Readable(0))
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

    fn remote(&self, _: u32) -> Option<Endpoint> {
        None
    }
}
