//! Packets that nothing in the stack takes.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use tokio::sync::mpsc::{self, Receiver, error::TryRecvError};

use crate::fault;
use crate::mailbox::{Mailbox, Request};
use crate::unclaimed_sender::UnclaimedSender;

/// Packets that arrive and that nothing in the stack takes, as [`Stack::unclaimed`](crate::Stack::unclaimed)
/// hands them out.
pub struct UnclaimedPackets {
    packets: Receiver<Bytes>,
    dropped: Arc<AtomicU64>,
    mailboxes: Vec<Arc<Mailbox>>,
}

impl UnclaimedPackets {
    /// Packets that wait to be taken, at most.
    pub const CAPACITY: usize = 512;

    /// Has all shards hand out from now on.
    pub(crate) fn begin(mailboxes: &[Arc<Mailbox>]) -> Self {
        let (sender, packets) = mpsc::channel(Self::CAPACITY);
        let dropped = Arc::new(AtomicU64::new(0));
        let sender = UnclaimedSender::new(sender, Arc::clone(&dropped));
        for mailbox in mailboxes {
            mailbox.ask(Request::UnclaimedPackets(sender.clone()));
        }
        Self { packets, dropped, mailboxes: mailboxes.to_vec() }
    }

    /// The next packet. Dropping the future loses none.
    ///
    /// # Errors
    ///
    /// `NotConnected`: the stack has ended, and why. `AddrInUse`: a later call of
    /// [`Stack::unclaimed`](crate::Stack::unclaimed) has them now.
    pub async fn recv(&mut self) -> io::Result<Bytes> {
        self.packets.recv().await.ok_or_else(|| self.over())
    }

    /// The next packet, if one waits.
    ///
    /// # Errors
    ///
    /// `WouldBlock`: none waits. Others as [`UnclaimedPackets::recv`].
    pub fn try_recv(&mut self) -> io::Result<Bytes> {
        self.packets.try_recv().map_err(|error| match error {
            TryRecvError::Empty => fault::would_block(),
            TryRecvError::Disconnected => self.over(),
        })
    }

    /// How many packets were dropped because [`UnclaimedPackets::CAPACITY`] of them waited.
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
