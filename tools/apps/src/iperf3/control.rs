//! A control connection: messages of one byte, and documents with their length before them.

use alloc::vec::Vec;

use bytes::Bytes;

use super::{Fault, State};
use crate::transport::{ConnError, Reading, Transport};

/// A control connection. It keeps at most one document and the bytes received with it.
#[derive(Debug)]
pub(crate) struct Control<I> {
    id: I,
    inbox: Vec<u8>,
    outbox: Bytes,
    ended: bool,
}

impl<I: Copy + PartialEq> Control<I> {
    /// The control connection `id`, with bytes that were read already.
    pub(crate) fn new(id: I, inbox: Vec<u8>) -> Self {
        Self { id, inbox, outbox: Bytes::new(), ended: false }
    }

    /// The transport's name of the connection.
    pub(crate) const fn id(&self) -> I {
        self.id
    }

    /// True if the other side ended it, and all its messages were read.
    pub(crate) fn is_over(&self) -> bool {
        self.ended && self.inbox.is_empty()
    }

    /// Queues bytes.
    pub(crate) fn say(&mut self, bytes: &[u8]) {
        let mut all = Vec::with_capacity(self.outbox.len() + bytes.len());
        all.extend_from_slice(&self.outbox);
        all.extend_from_slice(bytes);
        self.outbox = all.into();
    }

    /// Queues a state.
    pub(crate) fn tell(&mut self, state: State) {
        self.say(&[state.byte()]);
    }

    /// Queues a document with its length.
    pub(crate) fn document(&mut self, text: &str) {
        self.say(&u32::try_from(text.len()).unwrap_or(u32::MAX).to_be_bytes());
        self.say(text.as_bytes());
    }

    /// Sends queued bytes as far as there is room.
    pub(crate) fn flush<T: Transport<Id = I>>(&mut self, net: &mut T) -> Result<(), ConnError> {
        if !self.outbox.is_empty() {
            net.send(self.id, &mut self.outbox)?;
        }
        Ok(())
    }

    /// The next state, if one came, as its byte.
    pub(crate) fn state<T: Transport<Id = I>>(
        &mut self,
        net: &mut T,
    ) -> Result<Option<u8>, ConnError> {
        self.fill(net, 1)?;
        Ok(self.take(1).map(|bytes| bytes.first().copied().unwrap_or_default()))
    }

    /// The next `count` bytes, if they came.
    pub(crate) fn exactly<T: Transport<Id = I>>(
        &mut self,
        net: &mut T,
        count: usize,
    ) -> Result<Option<Vec<u8>>, ConnError> {
        self.fill(net, count)?;
        Ok(self.take(count))
    }

    /// The next document, if it is complete; at most `limit` bytes.
    pub(crate) fn read_document<T: Transport<Id = I>>(
        &mut self,
        net: &mut T,
        limit: u32,
    ) -> Result<Option<Vec<u8>>, Fault> {
        self.fill(net, LENGTH).map_err(Fault::Stream)?;
        let Some(length) = self.inbox.first_chunk() else { return Ok(None) };
        let length = u32::from_be_bytes(*length);
        if length > limit {
            return Err(Fault::TooLong { length, limit });
        }
        let whole = LENGTH.saturating_add(length as usize);
        self.fill(net, whole).map_err(Fault::Stream)?;
        Ok(self.take(whole).map(|bytes| bytes.get(LENGTH..).unwrap_or_default().to_vec()))
    }

    /// Reads until `count` bytes are there, or no more have come. Announced bytes take no memory
    /// before they arrive.
    fn fill<T: Transport<Id = I>>(&mut self, net: &mut T, count: usize) -> Result<(), ConnError> {
        while self.inbox.len() < count && !self.ended {
            match net.recv(self.id) {
                Reading::Data(bytes) => self.inbox.extend_from_slice(&bytes),
                Reading::Pending => break,
                Reading::End => self.ended = true,
                Reading::Failed(conn_error) => return Err(conn_error),
            }
        }
        Ok(())
    }

    fn take(&mut self, count: usize) -> Option<Vec<u8>> {
        (self.inbox.len() >= count).then(|| self.inbox.drain(..count).collect())
    }
}

/// Bytes of a document's length.
const LENGTH: usize = 4;
