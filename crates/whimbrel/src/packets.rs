//! The wire as two queues: what a stack sends is taken out here, and what it is to receive put in.

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

/// The other end of a stack's wire, where your code is: whole IP packets, in and out, and no descriptor.
/// [`StackBuilder::packets`](crate::StackBuilder::packets) makes it.
///
/// What a WireGuard tunnel, a TUN device of another library or a test feeds. Of the stack it takes whole
/// IP packets, IPv4 and IPv6, with all checksums complete and none longer than the MTU; it gives it such
/// packets, up to 65,535 bytes, whose checksums are verified.
///
/// Each direction is a queue of [`PacketPort::CAPACITY`] packets. If you do not take what the stack sends,
/// it waits: nothing is lost, as on a device whose ring is full, and connections go on when you do.
/// If the stack does not take what you send, [`PacketPort::send`] waits and [`PacketPort::try_send`] drops.
///
/// All methods take `&self`: one task may send while another receives, by an `Arc` or by reference. While
/// the runtime drives the stack ([`Driver::Runtime`](crate::Driver::Runtime)), neither direction makes a
/// system call. The futures may be dropped at any time: no packet is lost with them.
///
/// The port keeps nothing alive: when the stack has ended, for whatever reason, what it sent can still be
/// taken, and then every method says why. Dropping the port ends the stack, as pulling out a cable for
/// good.
///
/// # Beside what smoltcp and lwIP do
///
/// There, too, you feed packets, and drive the stack as well: `Interface::poll` and a `phy::Device` with its
/// tokens in smoltcp, `netif.input`, `netif.output` and `sys_check_timeouts` in lwIP; each call is yours to
/// make in time, in one thread or under one lock. Here the stack drives itself and wakes your tasks, and
/// what it serves are tokio's types. Both of them run without an allocator and without an operating system,
/// which this does not.
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
///         // This is where a tunnel encrypts.
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

/// What passed a [`PacketPort`].
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct PacketCounters {
    /// Packets that were put into the stack's queue.
    pub sent: u64,
    /// Packets dropped because the queue was full: [`PacketPort::try_send`] said so.
    pub full: u64,
    /// Packets refused because no IP packet is so long.
    pub too_long: u64,
    /// Packets that the stack had not taken yet when it ended.
    pub lost: u64,
    /// Packets of the stack's that were taken out.
    pub received: u64,
    /// Packets of the stack's that were dropped because the MTU had become less than they had.
    pub outgrown: u64,
    /// How many of the stack's packets wait to be taken out.
    pub waiting: usize,
}

impl PacketPort {
    /// Packets that wait in one direction, at most; in the direction of the stack, for each of its shards.
    /// One large write of an application's may come on top if nothing else waits.
    pub const CAPACITY: usize = 512;

    /// The two ends of a wire for packets of up to `mtu` bytes.
    pub(crate) fn pair(mtu: u16) -> (PacketEnd, Self) {
        let queues = Arc::new(PacketQueues::new(mtu));
        (PacketEnd::new(Arc::clone(&queues)), Self { queues })
    }

    /// The longest packet that the stack sends, bytes.
    pub fn mtu(&self) -> u16 {
        self.queues.mtu()
    }

    /// Has the stack send packets of up to `mtu` bytes from now on, as a tunnel does whose path changed: what
    /// follows, [`Stack::set_mtu`](crate::Stack::set_mtu) says. Once this returns, no longer packet comes out:
    /// those that wait are dropped, and counted ([`PacketCounters::outgrown`]); what streams had in them is sent
    /// again. Before there is a stack, it is built with this MTU.
    ///
    /// # Errors
    ///
    /// `InvalidInput`: below 68, or below 1,280 where the stack has an address of IPv6. Then nothing has
    /// changed. `NotConnected`: the stack has ended, and why.
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

    /// Gives the stack a packet, once there is room for it.
    ///
    /// # Errors
    ///
    /// `NotConnected`: the stack has ended, and why. `InvalidInput`: the packet has more than 65,535 bytes.
    pub async fn send(&self, packet: Bytes) -> io::Result<()> {
        take_turn().await;
        let mut packet = packet;
        loop {
            // In line before the look: room that is made in between is not missed.
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

    /// Gives the stack a packet if there is room for it; if not, the packet is dropped, and counted
    /// ([`PacketCounters::full`]), as by a network card whose ring is full. Who wants to keep it clones it
    /// before, which copies nothing.
    ///
    /// # Errors
    ///
    /// `WouldBlock`: the queue is full. Others as [`PacketPort::send`].
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

    /// The next packet that the stack sends.
    ///
    /// # Errors
    ///
    /// `NotConnected`: the stack has ended, and why; what it had sent was taken out.
    pub async fn recv(&self) -> io::Result<Bytes> {
        let mut packet = Vec::with_capacity(1);
        self.recv_many(&mut packet, 1).await?;
        packet.pop().ok_or_else(|| self.ended())
    }

    /// The next packet that the stack sends, if one waits.
    ///
    /// # Errors
    ///
    /// `WouldBlock`: none waits. Others as [`PacketPort::recv`].
    pub fn try_recv(&self) -> io::Result<Bytes> {
        let mut packet = Vec::with_capacity(1);
        match self.queues.pop(&mut packet, 1) {
            Ok(0) => Err(fault::would_block()),
            _ => packet.pop().ok_or_else(|| self.ended()),
        }
    }

    /// Waits until the stack sends, and puts what waits then, but no more than `limit` packets, behind what
    /// is in `packets`. Returns how many: one at least, unless `limit` is 0.
    ///
    /// # Errors
    ///
    /// As [`PacketPort::recv`].
    pub async fn recv_many(&self, packets: &mut Vec<Bytes>, limit: usize) -> io::Result<usize> {
        take_turn().await;
        loop {
            // In line before the look: a packet that comes in between is not missed.
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

    /// What passed so far.
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

/// Others have their turn if this task had many.
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
