//! Echo requests to other hosts or to the stack itself.

use std::io;

use tokio::sync::oneshot;
use whimbrel_stack::{Ping, Pong};

use crate::mailbox::Request;
use crate::ping_port::PingRequest;
use crate::{Stack, ToAddress};

impl Stack {
    /// Sends an echo request of 56 bytes to `addr` (`ping`) and waits at most one second for the reply.
    /// Returns the round-trip time and the reply's hop limit. [`Stack::ping_with`] takes other
    /// parameters.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the request may still be sent, and its reply is discarded.
    ///
    /// # Errors
    ///
    /// `TimedOut`: no reply. `HostUnreachable`, `NetworkUnreachable` and others: an ICMP error; the
    /// message has its sender and code. `InvalidInput`: not the address of a single host, or too many
    /// bytes for a packet. `QuotaExceeded`: 256 requests are outstanding. `NotConnected`: the stack has
    /// ended.
    ///
    /// ```
    /// # use whimbrel::Stack;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let (left, _right) = Stack::pair()?;
    /// let pong = left.ping("10.0.0.2").await?;
    /// assert_eq!((pong.size, pong.hop_limit), (56, 64));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn ping(&self, addr: impl ToAddress) -> io::Result<Pong> {
        let addr = addr.to_address()?;
        self.ping_with(Ping::new(addr)).await
    }

    /// Sends an echo request with the size, source, hop limit, time-out and fragmentation of `ping`.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use whimbrel::{Ping, Stack};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let (left, _right) = Stack::pair()?;
    /// let mut ping = Ping::new("fd00::2".parse()?);
    /// ping.size = 8_000;
    /// ping.timeout = Duration::from_secs(5);
    /// assert_eq!(left.ping_with(ping).await?.size, 8_000);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the request may still be sent, and its reply is discarded.
    pub async fn ping_with(&self, ping: Ping) -> io::Result<Pong> {
        let mailbox = self.mailboxes().first().ok_or(io::ErrorKind::NotConnected)?;
        let (answer, pong) = oneshot::channel();
        mailbox.ask(Request::Ping(PingRequest { ping, answer }));
        pong.await.map_err(|_| mailbox.ended())?
    }
}
