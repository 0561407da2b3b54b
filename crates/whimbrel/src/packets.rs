//! Packets as a wire: queues between the application and the stack.

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::task::ready;

use bytes::Bytes;
use tokio::task::coop::poll_proceed;

pub(crate) use device::PacketEnd;
pub(crate) use queues::PacketQueues;
use queues::Refusal;

use crate::changes::set_mtu;
use crate::fault;

mod device;
mod queues;

/// The application's end of a stack's wire: whole IP packets in both directions, without a descriptor.
/// [`StackBuilder::packets`](crate::StackBuilder::packets) creates it.
///
/// It suits WireGuard tunnels, TUN devices of other libraries and tests. The stack's packets are whole
/// IPv4 and IPv6 packets with complete checksums, at most MTU bytes long. The stack accepts packets of
/// up to 65,535 bytes and verifies their checksums.
///
/// Each direction is a queue of [`PacketPort::CAPACITY`] packets. If the application does not take
/// packets, the stack waits. Nothing is lost, as on a device whose ring is full, and connections
/// continue later. If the stack does not take packets, [`PacketPort::send`] waits and
/// [`PacketPort::try_send`] drops.
///
/// All methods take `&self`, so one task may send while another receives. While the runtime drives the
/// stack ([`Driver::Runtime`](crate::Driver::Runtime)), neither direction makes a system call. All
/// futures are cancel safe: no packet is lost with them.
///
/// The port does not keep the stack alive. When the stack has ended, its last packets can still be
/// taken; then every method returns the reason. Dropping the port ends the stack.
///
/// # Comparison with smoltcp and lwIP
///
/// With both of these, the application passes packets and also drives the stack: `Interface::poll` and
/// a `phy::Device` with tokens in smoltcp, `netif.input`, `netif.output` and `sys_check_timeouts` in
/// lwIP. The application must make each call in time, in one thread or under one lock. Here the stack
/// drives itself, wakes tasks and offers tokio's types. Unlike this stack, both run without an
/// allocator and without an operating system.
///
/// # Examples
///
/// Two stacks, and a task that carries packets between them, as a tunnel would:
///
/// ```
/// use tokio::io::{AsyncReadExt, AsyncWriteExt};
/// use whimbrel::{PacketPort, Stack, TcpListener, TcpStream};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let (here, near) = Stack::builder().packets(1_420);
/// let here = here.address("10.0.0.1", 24)?.build()?;
/// let (there, far) = Stack::builder().packets(1_420);
/// let there = there.address("10.0.0.2", 24)?.build()?;
///
/// async fn carry(from: &PacketPort, to: &PacketPort) -> std::io::Result<()> {
///     loop {
///         // A tunnel encrypts here.
///         to.send(from.recv().await?).await?;
///     }
/// }
/// tokio::spawn(async move { tokio::join!(carry(&near, &far), carry(&far, &near)) });
///
/// let listener = TcpListener::bind(&there, "10.0.0.2:7").await?;
/// let mut asking = TcpStream::connect(&here, "10.0.0.2:7").await?;
/// let (mut answering, _peer) = listener.accept().await?;
/// answering.write_all(b"through the tunnel").await?;
/// drop(answering);
/// let mut heard = String::new();
/// asking.read_to_string(&mut heard).await?;
/// assert_eq!(heard, "through the tunnel");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct PacketPort {
    queues: Arc<PacketQueues>,
}

/// Counters of a [`PacketPort`].
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct PacketCounters {
    /// Packets put into the stack's queue.
    pub sent: u64,
    /// Packets dropped by [`PacketPort::try_send`] because the queue was full.
    pub full: u64,
    /// Packets refused because they were longer than an IP packet can be.
    pub too_long: u64,
    /// Packets that the stack had not taken when it ended.
    pub lost: u64,
    /// Packets of the stack that were taken.
    pub received: u64,
    /// Packets of the stack that were dropped because the MTU was lowered below their length.
    pub outgrown: u64,
    /// Packets of the stack that wait now.
    pub waiting: usize,
}

impl PacketPort {
    /// Limit of waiting packets in each direction; towards the stack, for each shard. One large write
    /// of an application may exceed it if nothing else waits.
    pub const CAPACITY: usize = 512;

    /// Creates the two ends of a wire for packets of up to `mtu` bytes.
    pub(crate) fn pair(mtu: u16) -> (PacketEnd, Self) {
        let queues = Arc::new(PacketQueues::new(mtu));
        (PacketEnd::new(Arc::clone(&queues)), Self { queues })
    }

    /// Returns the length in bytes of the longest packet that the stack sends.
    pub fn mtu(&self) -> u16 {
        self.queues.mtu()
    }

    /// Sets the MTU, for example because the path of a tunnel changed, as
    /// [`Stack::set_mtu`](crate::Stack::set_mtu) does. After this call no longer packet comes out.
    /// Longer waiting packets are dropped and counted ([`PacketCounters::outgrown`]); their stream data
    /// is sent again. If the stack is not built yet, it begins with this MTU.
    ///
    /// # Cancel safety
    ///
    /// After the future was dropped, the MTU may have changed or not, or at some shards only.
    ///
    /// # Errors
    ///
    /// `InvalidInput`: below 68, or below 1,280 if the stack has an IPv6 address. Nothing has changed
    /// then. `NotConnected`: the stack has ended, for the reason in the message.
    pub async fn set_mtu(&self, mtu: u16) -> io::Result<()> {
        match self.queues.shards() {
            Some(shards) => {
                let queues = Arc::clone(&self.queues);
                set_mtu(shards, move || queues.set_mtu(mtu), mtu).await
            }
            None => {
                self.queues.set_mtu(mtu);
                Ok(())
            }
        }
    }

    /// Passes a packet to the stack; waits for room.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped before it completes, the packet is dropped and the stack does not
    /// receive it.
    ///
    /// # Errors
    ///
    /// `NotConnected`: the stack has ended, for the reason in the message. `InvalidInput`: the packet
    /// is longer than 65,535 bytes.
    pub async fn send(&self, packet: Bytes) -> io::Result<()> {
        take_turn().await;
        let mut packet = packet;
        loop {
            // Registered before the look, so that room made in between is not missed.
            let room = self.queues.room.notified();
            match self.queues.push(packet) {
                Ok(()) => return Ok(()),
                Err(Refusal::Full(back)) => packet = back,
                Err(Refusal::TooLong(len)) => return Err(too_long(len)),
                Err(Refusal::Ended) => return Err(self.ended()),
            }
            room.await;
        }
    }

    /// Passes a packet to the stack if there is room. Otherwise the packet is dropped and counted
    /// ([`PacketCounters::full`]), as by a network card whose ring is full. To keep it, clone it
    /// before, which copies no data.
    ///
    /// # Errors
    ///
    /// `WouldBlock`: the queue is full. Other errors as [`PacketPort::send`].
    pub fn try_send(&self, packet: Bytes) -> io::Result<()> {
        match self.queues.push(packet) {
            Ok(()) => Ok(()),
            Err(Refusal::Full(_dropped)) => {
                self.queues.count_full();
                Err(fault::would_block())
            }
            Err(Refusal::TooLong(len)) => Err(too_long(len)),
            Err(Refusal::Ended) => Err(self.ended()),
        }
    }

    /// Waits for the next packet that the stack sends and returns it.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no packet.
    ///
    /// # Errors
    ///
    /// `NotConnected`: the stack has ended, for the reason in the message, and all its packets were
    /// taken.
    pub async fn recv(&self) -> io::Result<Bytes> {
        let mut packet = Vec::with_capacity(1);
        self.recv_many(&mut packet, 1).await?;
        packet.pop().ok_or_else(|| self.ended())
    }

    /// Returns the next packet that the stack sent, if one waits.
    ///
    /// # Errors
    ///
    /// `WouldBlock`: no packet waits. Other errors as [`PacketPort::recv`].
    pub fn try_recv(&self) -> io::Result<Bytes> {
        let mut packet = Vec::with_capacity(1);
        match self.queues.pop(&mut packet, 1) {
            Ok(0) => Err(fault::would_block()),
            _ => packet.pop().ok_or_else(|| self.ended()),
        }
    }

    /// Waits until the stack sends, and appends up to `limit` waiting packets to `packets`. Returns
    /// their number, at least 1 unless `limit` is 0.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no packet: `packets` is unchanged then.
    ///
    /// # Errors
    ///
    /// As [`PacketPort::recv`].
    pub async fn recv_many(&self, packets: &mut Vec<Bytes>, limit: usize) -> io::Result<usize> {
        take_turn().await;
        loop {
            // Registered before the look, so that a packet arriving in between is not missed.
            let arrived = self.queues.arrived.notified();
            match self.queues.pop(packets, limit) {
                Ok(0) if limit > 0 => {}
                Ok(taken) => return Ok(taken),
                Err(Refusal::Ended) => return Err(self.ended()),
                Err(_) => {}
            }
            arrived.await;
        }
    }

    /// Returns the current counters.
    pub fn counters(&self) -> PacketCounters {
        self.queues.counters()
    }

    fn ended(&self) -> io::Error {
        fault::ended(&self.queues.why())
    }
}

impl Drop for PacketPort {
    fn drop(&mut self) {
        self.queues.close();
    }
}

/// Yields to other tasks if this one had many packets.
async fn take_turn() {
    poll_fn(|cx| {
        ready!(poll_proceed(cx)).made_progress();
        std::task::Poll::Ready(())
    })
    .await;
}

fn too_long(len: usize) -> io::Error {
    let text = format!("a packet of {len} bytes: an IP packet has 65,535 at most");
    io::Error::new(io::ErrorKind::InvalidInput, text)
}
