//! Asking other hosts, or the stack itself, for an echo.

use std::io;
use std::net::IpAddr;

use tokio::sync::oneshot;
use whimbrel_stack::{Ping, Pong};

use crate::Stack;
use crate::mailbox::Request;
use crate::ping_port::PingRequest;

impl Stack {
    /// Asks the host at `addr` for an echo (`ping`), by 56 bytes, and waits for a second at most: how long it
    /// took, and what the reply has of its hop limit. [`Stack::ping_with`] asks otherwise.
    ///
    /// # Errors
    ///
    /// `TimedOut`: no reply. `HostUnreachable`, `NetworkUnreachable` and the like: somebody on the way said so;
    /// the error has its address and the code. `InvalidInput`: no single host, or more bytes than a
    /// packet carries. `QuotaExceeded`: 256 are under way. `NotConnected`: the stack has ended.
    ///
    /// ```
    /// # use whimbrel::Stack;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let (left, _right) = Stack::pair()?;
    /// let pong = left.ping("10.0.0.2".parse()?).await?;
    /// assert_eq!((pong.size, pong.hop_limit), (56, 64));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn ping(&self, addr: IpAddr) -> io::Result<Pong> {
        self.ping_with(Ping::new(addr.into())).await
    }

    /// The same with another size, source, hop limit or time-out, or without fragments.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use whimbrel::{Ping, Stack};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let (left, _right) = Stack::pair()?;
    /// let mut ping = Ping::new("fd00::2".parse::<std::net::IpAddr>()?.into());
    /// ping.size = 8_000;
    /// ping.timeout = Duration::from_secs(5);
    /// assert_eq!(left.ping_with(ping).await?.size, 8_000);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn ping_with(&self, ping: Ping) -> io::Result<Pong> {
        let mailbox = self.mailboxes().first().ok_or(io::ErrorKind::NotConnected)?;
        let (answer, pong) = oneshot::channel();
        mailbox.ask(Request::Ping(PingRequest { ping, answer }));
        pong.await.map_err(|_| mailbox.ended())?
    }
}
