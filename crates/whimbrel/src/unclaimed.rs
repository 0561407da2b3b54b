//! Packets that nothing in the stack takes.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use tokio::sync::mpsc::{self, Receiver, error::TryRecvError};

use crate::fault;
use crate::mailbox::{Mailbox, Request};
use crate::unclaimed_sender::UnclaimedSender;

/// Receiver of the packets that nothing in the stack takes; see
/// [`Stack::unclaimed`](crate::Stack::unclaimed).
pub struct UnclaimedPackets {
    packets: Receiver<Bytes>,
    dropped: Arc<AtomicU64>,
    mailboxes: Vec<Arc<Mailbox>>,
}

impl UnclaimedPackets {
    /// Limit of waiting packets.
    pub const CAPACITY: usize = 512;

    /// Makes all shards forward unclaimed packets from now on.
    pub(crate) fn begin(mailboxes: &[Arc<Mailbox>]) -> Self {
        let (sender, packets) = mpsc::channel(Self::CAPACITY);
        let dropped = Arc::new(AtomicU64::new(0));
        let sender = UnclaimedSender::new(sender, Arc::clone(&dropped));
        for mailbox in mailboxes {
            mailbox.ask(Request::UnclaimedPackets(sender.clone()));
        }
        Self { packets, dropped, mailboxes: mailboxes.to_vec() }
    }

    /// Waits for the next packet and returns it.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no packet.
    ///
    /// # Errors
    ///
    /// `NotConnected`: the stack has ended, for the reason in the message. `AddrInUse`: a later call of
    /// [`Stack::unclaimed`](crate::Stack::unclaimed) receives the packets now.
    pub async fn recv(&mut self) -> io::Result<Bytes> {
        self.packets.recv().await.ok_or_else(|| self.over())
    }

    /// Returns the next packet, if one waits.
    ///
    /// # Errors
    ///
    /// `WouldBlock`: no packet waits. Others as [`UnclaimedPackets::recv`].
    pub fn try_recv(&mut self) -> io::Result<Bytes> {
        self.packets.try_recv().map_err(|error| match error {
            TryRecvError::Empty => fault::would_block(),
            TryRecvError::Disconnected => self.over(),
        })
    }

    /// Returns the number of packets dropped because [`UnclaimedPackets::CAPACITY`] of them waited.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    fn over(&self) -> io::Error {
        match self.mailboxes.first().and_then(|mailbox| mailbox.ended_already()) {
            Some(ended) => ended,
            None => {
                let text = "another call of Stack::unclaimed has these packets now";
                io::Error::new(io::ErrorKind::AddrInUse, text)
            }
        }
    }
}

impl std::fmt::Debug for UnclaimedPackets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Unclaimed").field("dropped", &self.dropped()).finish_non_exhaustive()
    }
}
