//! A stack as a value: what sockets are made from.

use std::fmt;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use tokio::sync::oneshot;
use whimbrel_io::{DuplicateAddressDetection, GroupKey};
use whimbrel_stack::ip::Addresses;
use whimbrel_stack::{InterfaceAddress, Shard, queue_between};
use whimbrel_tcp::{Counters, Tunables};
use whimbrel_wire::Endpoint;

use crate::UnclaimedPackets;
use crate::bind_table::{BindTable, ReservedAddr, ReservedAny, Share};
use crate::congestion::CongestionNames;
use crate::fault;
use crate::mailbox::{Held, Mailbox, Request};
use crate::packets::PacketQueues;
use crate::waiters::deliver;

pub use whimbrel_stack::shard::Census as ShardCensus;

/// A TCP/IP stack with what drives it ([`crate::Driver`]). Clones are the same stack.
///
/// It runs for as long as anything of it is held: the stack, a listener or a stream. Then the last
/// segments go out, for five seconds at most, and its threads or tasks end. Where those are tasks it ends
/// with their runtime, whoever holds it.
#[derive(Clone)]
pub struct Stack {
    inner: Arc<Inner>,
}

pub(crate) struct Inner {
    mailboxes: Box<[Arc<Mailbox>]>,
    /// Its wire, where that is packets of the user's.
    packet_queues: Option<Arc<PacketQueues>>,
    /// Where the next connection goes that may go anywhere.
    next: AtomicUsize,
    bind_table: Arc<BindTable>,
    /// The addresses that it began with, by their numbers.
    first_addresses: Box<[InterfaceAddress]>,
    /// Whether another address is asked for before the stack has it.
    dad: DuplicateAddressDetection,
    tunables: Tunables,
}

/// What a stack does beside its tunables.
#[derive(Debug)]
pub(crate) struct StackOptions {
    /// Its wire, where that is packets of the user's.
    pub(crate) packet_queues: Option<Arc<PacketQueues>>,
    /// Whether addresses are asked for before it has them.
    pub(crate) dad: DuplicateAddressDetection,
    /// From which the order of ports follows that `bind` draws.
    pub(crate) seed: u64,
}

/// How much a stack holds.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Census {
    /// Records of the shards, added up.
    pub shards: ShardCensus,
    /// Streams of tasks: held, waiting to be accepted, or dropped a moment ago.
    pub streams: usize,
    /// Listeners that tasks hold.
    pub listeners: usize,
    /// UDP sockets that tasks hold.
    pub udp_sockets: usize,
}

impl Stack {
    pub(crate) fn new(
        mailboxes: Box<[Arc<Mailbox>]>,
        addresses: Vec<InterfaceAddress>,
        tunables: Tunables,
        habits: StackOptions,
    ) -> Self {
        let StackOptions { packet_queues, dad, seed } = habits;
        let bind_table = Arc::new(BindTable::new(&addresses, &tunables, seed));
        let next = AtomicUsize::new(0);
        let first_addresses = addresses.into();
        let inner =
            Inner { mailboxes, packet_queues, next, bind_table, first_addresses, dad, tunables };
        Self { inner: Arc::new(inner) }
    }

    /// The addresses that this host has on its networks, each with the length of its prefix: those that it
    /// began with, [added](Stack::add_address) ones, and none that was removed.
    pub fn addresses(&self) -> Vec<InterfaceAddress> {
        self.inner.bind_table.addresses()
    }

    /// Its rules, as they were when it began.
    pub fn tunables(&self) -> &Tunables {
        &self.inner.tunables
    }

    /// How many shards it has, each with a thread or task of its own.
    pub fn shards(&self) -> usize {
        self.inner.mailboxes.len()
    }

    /// What it holds at this moment.
    pub async fn census(&self) -> io::Result<Census> {
        let mut all = Census::default();
        for mailbox in &self.inner.mailboxes {
            let (shard, held) = inspect(mailbox, |shard, held| (shard.census(), held)).await?;
            all.add(shard, held);
        }
        Ok(all)
    }

    /// What happened so far, at all shards together.
    pub async fn counters(&self) -> io::Result<Counters> {
        let mut all = Counters::default();
        for mailbox in &self.inner.mailboxes {
            all += &inspect(mailbox, |shard, _| shard.counters().clone()).await?;
        }
        Ok(all)
    }

    /// What happened to datagrams of UDP so far, at all shards together.
    pub async fn udp_counters(&self) -> io::Result<whimbrel_udp::Counters> {
        let mut all = whimbrel_udp::Counters::default();
        for mailbox in &self.inner.mailboxes {
            all += &inspect(mailbox, |shard, _| shard.udp().counters.clone()).await?;
        }
        Ok(all)
    }

    /// Has `look` look at the shard numbered `which`, where that is driven and it must be
    /// quick: while it looks, nothing arrives. An error if the stack has ended, or has no such
    /// shard. If `look` panics, the caller does; the shard goes on.
    pub async fn inspect<T: Send + 'static>(
        &self,
        which: usize,
        look: impl FnOnce(&Shard) -> T + Send + 'static,
    ) -> io::Result<T> {
        let mailbox = self.inner.mailboxes.get(which).ok_or(io::ErrorKind::NotFound)?;
        inspect(mailbox, |shard, _| look(shard)).await
    }

    /// Makes SYN cookies under `key` from now on, and takes those under `other` as well.
    ///
    /// So a group (see [`crate::StackBuilder::cookie_group`]) changes its key and refuses nobody: give all of
    /// its stacks the new key as `other`; then as `key`, with the old one as `other`; two minutes later
    /// the new one alone.
    pub async fn set_cookie_keys(&self, key: GroupKey, other: Option<GroupKey>) -> io::Result<()> {
        let set = move |shard: &mut Shard| {
            shard.set_cookie_keys(key.key(), other.as_ref().map(GroupKey::key));
        };
        self.change(set).await
    }

    /// Grants cookies of Fast Open (RFC 7413) under this key from now on. Those that were granted under
    /// the key so far are good until the next change, and answered by new ones.
    pub async fn rotate_fast_open_key(&self, key: GroupKey) -> io::Result<()> {
        self.change(move |shard| shard.rotate_fast_open_key(key.key())).await
    }

    /// Sets a tunable by any of its names while the stack runs, as
    /// `set_tunable("msl.link", "1s")`: [`Shard::retune`] says what follows at once. What sockets begin
    /// with (their buffers, for one) is as [`Stack::tunables`] has it.
    ///
    /// # Errors
    ///
    /// `InvalidInput`: no such tunable or value, or one that holds from the beginning to the end. Then
    /// nothing has changed.
    pub async fn set_tunable(&self, name: &str, value: &str) -> io::Result<()> {
        for mailbox in &self.inner.mailboxes {
            let (name, value) = (name.to_owned(), value.to_owned());
            // All have the same rules: the first refuses, or none does.
            let set = inspect(mailbox, move |shard, _| shard.set_tunable(&name, &value)).await?;
            set.map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        }
        Ok(())
    }

    /// Waits until nothing is left of connections whose streams were dropped, but TIME-WAIT: what was
    /// written there has been acknowledged, and the peers closed too, or were given up. Streams that
    /// are held stay as they are.
    ///
    /// The kernel goes on with its sockets when a process has ended; a stack ends with the process. So a
    /// program that is about to return from `main` drops its streams and listeners and awaits this, in a
    /// `timeout` if it will not wait for peers that are gone.
    ///
    /// ```
    /// # use tokio::io::{AsyncReadExt, AsyncWriteExt};
    /// # use whimbrel::{Stack, TcpListener, TcpStream};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> std::io::Result<()> {
    /// # let (far, stack) = Stack::pair().unwrap();
    /// # let listener = TcpListener::bind(&far, "10.0.0.1:7").await?;
    /// # tokio::spawn(async move { listener.accept().await?.0.read_to_end(&mut Vec::new()).await });
    /// let mut stream = TcpStream::connect(&stack, "10.0.0.1:7").await?;
    /// stream.write_all(b"last words").await?;
    /// drop(stream);
    /// stack.wait_drained().await
    /// # }
    /// ```
    pub async fn wait_drained(&self) -> io::Result<()> {
        for mailbox in &self.inner.mailboxes {
            let (sender, drained) = oneshot::channel();
            mailbox.ask(Request::Drain(sender));
            drained.await.map_err(|_| mailbox.ended())?;
        }
        Ok(())
    }

    /// Waits until the stack has ended, and says why: its wire is gone (somebody deleted the TUN
    /// device), one of its threads or tasks panicked, their runtime was shut down, or nothing of it is held any more. Every stream and
    /// listener then fails with the same error. The future itself does not keep the stack alive.
    ///
    /// ```
    /// # use whimbrel::{Stack, TcpListener};
    /// # async fn serve(listener: TcpListener) {}
    /// # async fn run(stack: Stack, listener: TcpListener) -> std::io::Result<()> {
    /// tokio::select! {
    ///     () = serve(listener) => Ok(()),
    ///     why = stack.ended() => Err(why),
    /// }
    /// # }
    /// ```
    pub fn ended(&self) -> impl Future<Output = io::Error> + Send + use<> {
        all_ended(self.inner.mailboxes.to_vec())
    }

    /// Hands out, from now on, the packets that arrive and that nothing in the stack takes: those for
    /// addresses that it has not, and those of protocols that it does not speak, UDP without a socket among
    /// them; IPv4 and IPv6, whole and with complete checksums. While somebody holds what this returns, no
    /// ICMP error answers them: whoever has the packet decides. A later call takes them over.
    ///
    /// What cannot be handed out whole is dropped, and counted as
    /// [`unclaimed_dropped`](whimbrel_stack::ip::IpCounters::unclaimed_dropped): frames that a device merged of several
    /// segments or datagrams (over `tun:` and `tap:`, `offload=off` has it merge none), and what comes while
    /// too many wait.
    ///
    /// ```
    /// use bytes::Bytes;
    /// use whimbrel::Stack;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let (builder, port) = Stack::builder().packets(1_500);
    /// let stack = builder.address("10.0.0.1", 24)?.build()?;
    /// let mut unclaimed = stack.unclaimed();
    /// // ICMP's echo request, from 10.0.0.2 to 192.0.2.9: not this stack's address.
    /// let ping = Bytes::from_static(&[
    ///     0x45, 0, 0, 28, 0, 0, 0, 0, 64, 1, 0xae, 0xd6, 10, 0, 0, 2, 192, 0, 2, 9, //
    ///     8, 0, 0xf7, 0xfe, 0, 0, 0, 1,
    /// ]);
    /// port.send(ping.clone()).await?;
    /// assert_eq!(unclaimed.recv().await?, ping);
    /// // Sent on as it is, by the wire that it came from.
    /// stack.inject(ping.clone()).await?;
    /// assert_eq!(port.recv().await?, ping);
    /// # Ok(())
    /// # }
    /// ```
    pub fn unclaimed(&self) -> UnclaimedPackets {
        UnclaimedPackets::begin(&self.inner.mailboxes)
    }

    /// Sends a whole IP packet by the wire as it is, from whatever address: the answer to one that was
    /// [unclaimed](Stack::unclaimed), for instance. Nothing is added but, on Ethernet, the header with the
    /// next hop's station; nothing remembers it.
    ///
    /// # Errors
    ///
    /// `InvalidInput`: no IP packet, one of another length than its header says, longer than the MTU, or to
    /// or from an address that may not be seen outside a host. `WouldBlock`: 768 answers, or 1 MiB of them,
    /// wait to leave. `NotConnected`: the stack has ended.
    pub async fn inject(&self, packet: Bytes) -> io::Result<()> {
        let mailbox = self.inner.mailboxes.first().ok_or(io::ErrorKind::NotConnected)?;
        let injected = inspect(mailbox, move |shard, _| shard.inject(packet)).await?;
        injected.map_err(fault::inject)
    }

    /// Changes something at every shard.
    async fn change(&self, change: impl Fn(&mut Shard) + Clone + Send + 'static) -> io::Result<()> {
        for mailbox in &self.inner.mailboxes {
            let change = change.clone();
            inspect(mailbox, move |shard, _| change(shard)).await?;
        }
        Ok(())
    }

    /// The mailbox of the shard for a connection to the port `remote`: the one to which segments for its own
    /// port are steered, if it has one;
    /// if not, at each shard in turn, which draws one that does.
    pub(crate) fn mailbox_for(&self, local: Option<u16>, remote: u16) -> io::Result<&Arc<Mailbox>> {
        let shards = self.inner.mailboxes.len();
        let which = match local {
            Some(local) => queue_between(local, remote, shards as u16).into(),
            // Relaxed: if two take the same turn, only the balance suffers.
            None => self.inner.next.fetch_add(1, Ordering::Relaxed) % shards.max(1),
        };
        self.inner.mailboxes.get(which).ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    /// What its connections can have.
    pub(crate) fn congestion_names(&self) -> io::Result<&CongestionNames> {
        let first = self.inner.mailboxes.first().ok_or(io::ErrorKind::NotConnected)?;
        Ok(first.congestion_names())
    }

    /// The ways into all shards.
    pub(crate) fn mailboxes(&self) -> &[Arc<Mailbox>] {
        &self.inner.mailboxes
    }

    /// Its wire, where that is packets of the user's.
    pub(crate) fn packet_queues(&self) -> Option<&Arc<PacketQueues>> {
        self.inner.packet_queues.as_ref()
    }

    /// Whether a connection can have this address here, or the unspecified one.
    pub(crate) fn check_own(&self, at: SocketAddr) -> io::Result<()> {
        self.inner.bind_table.check_own(at.into())
    }

    pub(crate) fn reserve(&self, at: SocketAddr, share: Share) -> io::Result<ReservedAddr> {
        self.inner.bind_table.reserve(at.into(), share)
    }

    pub(crate) fn reserve_any(&self) -> io::Result<ReservedAny> {
        self.inner.bind_table.reserve_any()
    }

    /// The address that the shard behind `mailbox` has with this index, and a port.
    pub(crate) fn local_end(&self, mailbox: &Mailbox, index: u16, port: u16) -> Option<SocketAddr> {
        let first = || self.inner.first_addresses.get(usize::from(index)).map(|own| own.addr);
        let added = mailbox.added_address(index);
        let addr = added.or_else(first).or_else(|| Addresses::loopback(index))?;
        Some(Endpoint::new(addr, port).into())
    }

    /// Whether another address is asked for before the stack has it.
    pub(crate) fn dad(&self) -> DuplicateAddressDetection {
        self.inner.dad
    }

    /// Who is bound where.
    pub(crate) fn bind_table(&self) -> &Arc<BindTable> {
        &self.inner.bind_table
    }
}

impl fmt::Debug for Stack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (addresses, shards) = (self.addresses(), self.shards());
        let mut stack = f.debug_struct("Stack");
        stack.field("addresses", &addresses).field("shards", &shards).finish_non_exhaustive()
    }
}

impl Census {
    fn add(&mut self, shard: ShardCensus, held: Held) {
        self.shards += shard;
        self.streams += held.streams;
        self.listeners += held.listeners;
        self.udp_sockets += held.udp_sockets;
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        for mailbox in &self.mailboxes {
            mailbox.close();
        }
    }
}

/// Waits until the workers of all shards have ended. They end together, and for one reason.
pub(crate) async fn all_ended(mailboxes: Vec<Arc<Mailbox>>) -> io::Error {
    for mailbox in &mailboxes {
        mailbox.until_ended().await;
    }
    mailboxes.first().map_or_else(fault::unknown, |mailbox| mailbox.ended())
}

/// Has `look` look at a shard, or change it, where that is driven.
pub(crate) async fn inspect<T: Send + 'static>(
    mailbox: &Mailbox,
    look: impl FnOnce(&mut Shard, Held) -> T + Send + 'static,
) -> io::Result<T> {
    let (sender, answer) = oneshot::channel();
    let look = move |shard: &mut Shard, held| {
        // A panic is that of whoever asked, not of the connections of this shard.
        let seen = catch_unwind(AssertUnwindSafe(|| look(shard, held)));
        // Whoever asked may have gone.
        deliver(sender, seen);
    };
    mailbox.ask(Request::Inspect(Box::new(look)));
    let seen = answer.await.map_err(|_| mailbox.ended())?;
    seen.map_or_else(|panic| resume_unwind(panic), Ok)
}

#[cfg(test)]
mod tests;
