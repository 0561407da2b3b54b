//! The [`Stack`] value, from which sockets are made.

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
use crate::bind_table::{BindTable, ReservedAddr, ReservedAny, Share, SourceAddresses};
use crate::congestion::CongestionNames;
use crate::fault;
#[cfg(feature = "sim")]
use crate::host_names::HostNames;
use crate::mailbox::{Held, Mailbox, Request};
use crate::packets::PacketQueues;
use crate::waiters::deliver;

pub use whimbrel_stack::shard::Census as ShardCensus;

/// A running TCP/IP stack. Clones refer to the same stack.
///
/// It runs while the stack, a listener or a stream is held. After that it sends the last segments, for
/// at most five seconds, and its threads or tasks end. Stacks that the runtime drives
/// ([`crate::Driver`]) also end with their runtime.
#[derive(Clone)]
pub struct Stack {
    inner: Arc<Inner>,
}

pub(crate) struct Inner {
    mailboxes: Box<[Arc<Mailbox>]>,
    /// Packet queues, if the application carries the packets.
    packet_queues: Option<Arc<PacketQueues>>,
    /// Shard of the next connection that any shard can have.
    next: AtomicUsize,
    bind_table: Arc<BindTable>,
    /// Initial addresses, by index.
    first_addresses: Box<[InterfaceAddress]>,
    /// Duplicate address detection before an address is assigned.
    dad: DuplicateAddressDetection,
    tunables: Tunables,
    /// Names of the other hosts, in a simulated world.
    #[cfg(feature = "sim")]
    #[cfg_attr(not(feature = "hyper-util"), expect(dead_code, reason = "for `Connector`"))]
    names: Option<Arc<HostNames>>,
    #[cfg(all(target_os = "linux", feature = "control"))]
    control: std::sync::OnceLock<whimbrel_io::control::ControlServer>,
}

/// Options of a stack apart from its tunables.
#[derive(Debug)]
pub(crate) struct StackOptions {
    /// Packet queues, if the application carries the packets.
    pub(crate) packet_queues: Option<Arc<PacketQueues>>,
    /// Duplicate address detection before an address is assigned.
    pub(crate) dad: DuplicateAddressDetection,
    /// Seed for the order in which `bind` chooses ports.
    pub(crate) seed: u64,
    /// Addresses that sockets may connect from.
    pub(crate) sources: SourceAddresses,
    /// Names of the other hosts, in a simulated world.
    #[cfg(feature = "sim")]
    pub(crate) names: Option<Arc<HostNames>>,
}

/// Number of objects that a stack holds.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct Census {
    /// Records of all shards, added up.
    pub shards: ShardCensus,
    /// Streams held by tasks, waiting to be accepted, or just dropped.
    pub streams: usize,
    /// Listeners held by tasks.
    pub listeners: usize,
    /// UDP sockets held by tasks.
    pub udp_sockets: usize,
}

impl Stack {
    pub(crate) fn new(
        mailboxes: Box<[Arc<Mailbox>]>,
        addresses: Vec<InterfaceAddress>,
        tunables: Tunables,
        habits: StackOptions,
    ) -> Self {
        let StackOptions { packet_queues, dad, seed, sources, .. } = habits;
        let bind_table = Arc::new(BindTable::new(&addresses, &tunables, seed, sources));
        let next = AtomicUsize::new(0);
        let first_addresses = addresses.into();
        let inner = Inner {
            mailboxes,
            packet_queues,
            next,
            bind_table,
            first_addresses,
            dad,
            tunables,
            #[cfg(feature = "sim")]
            names: habits.names,
            #[cfg(all(target_os = "linux", feature = "control"))]
            control: std::sync::OnceLock::new(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Returns the addresses of this host with their prefix lengths: the initial and the
    /// [added](Stack::add_address) ones that have not been removed.
    pub fn addresses(&self) -> Vec<InterfaceAddress> {
        self.inner.bind_table.addresses()
    }

    /// Returns the tunables with which the stack began.
    pub fn tunables(&self) -> &Tunables {
        &self.inner.tunables
    }

    /// Returns the number of shards; each has a thread or task of its own.
    pub fn shards(&self) -> usize {
        self.inner.mailboxes.len()
    }

    /// Returns the number of objects that the stack holds now.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing; the shards may still run the request.
    pub async fn census(&self) -> io::Result<Census> {
        let mut all = Census::default();
        for mailbox in &self.inner.mailboxes {
            let (shard, held) = inspect(mailbox, |shard, held| (shard.census(), held)).await?;
            all.add(shard, held);
        }
        Ok(all)
    }

    /// Returns the TCP counters, summed over all shards.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing; the shards may still run the request.
    pub async fn counters(&self) -> io::Result<Counters> {
        let mut all = Counters::default();
        for mailbox in &self.inner.mailboxes {
            all += &inspect(mailbox, |shard, _| shard.counters().clone()).await?;
        }
        Ok(all)
    }

    /// Returns the UDP counters, summed over all shards.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing; the shards may still run the request.
    pub async fn udp_counters(&self) -> io::Result<whimbrel_udp::Counters> {
        let mut all = whimbrel_udp::Counters::default();
        for mailbox in &self.inner.mailboxes {
            all += &inspect(mailbox, |shard, _| shard.udp().counters.clone()).await?;
        }
        Ok(all)
    }

    /// Runs `look` on shard `which`, on the thread that drives it. Keep it short: no packet is
    /// processed meanwhile. Fails if the stack has ended or has no such shard. A panic of `look` passes
    /// to the caller; the shard goes on.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the shard may still run `look`, and drops its result.
    pub async fn inspect<T: Send + 'static>(
        &self,
        which: usize,
        look: impl FnOnce(&Shard) -> T + Send + 'static,
    ) -> io::Result<T> {
        let mailbox = self.inner.mailboxes.get(which).ok_or(io::ErrorKind::NotFound)?;
        inspect(mailbox, |shard, _| look(shard)).await
    }

    /// Makes SYN cookies with `key` from now on, and also accepts those made with `other`.
    ///
    /// A group (see [`crate::StackBuilder::cookie_group`]) changes its key in three steps without
    /// refusing a client. Give all its stacks the new key as `other`; then give it as `key`, with the
    /// old key as `other`; after two minutes pass the new key only.
    ///
    /// # Cancel safety
    ///
    /// After the future was dropped, some shards may have the new keys and others not. Call it
    /// again.
    pub async fn set_cookie_keys(&self, key: GroupKey, other: Option<GroupKey>) -> io::Result<()> {
        let set = move |shard: &mut Shard| {
            shard.set_cookie_keys(key.key(), other.as_ref().map(GroupKey::key));
        };
        self.change(set).await
    }

    /// Grants Fast Open cookies (RFC 7413) with this key from now on. Cookies of the previous key stay
    /// valid until the next change and are replaced when used.
    ///
    /// # Cancel safety
    ///
    /// After the future was dropped, some shards may have the new key and others not. Do not call
    /// it again with the same key: that would end the previous one.
    pub async fn rotate_fast_open_key(&self, key: GroupKey) -> io::Result<()> {
        self.change(move |shard| shard.rotate_fast_open_key(key.key())).await
    }

    /// Sets a tunable, by any of its names, while the stack runs: `set_tunable("msl.link", "1s")`.
    /// [`Shard::retune`] says which tunables take effect at once. The defaults of new sockets (for
    /// example their buffers) stay as in [`Stack::tunables`].
    ///
    /// # Cancel safety
    ///
    /// After the future was dropped, some shards may have the new value and others not. Call it
    /// again.
    ///
    /// # Errors
    ///
    /// `InvalidInput`: unknown tunable, invalid value, or a tunable that cannot change at run time.
    /// Nothing has changed then.
    pub async fn set_tunable(&self, name: &str, value: &str) -> io::Result<()> {
        for mailbox in &self.inner.mailboxes {
            let (name, value) = (name.to_owned(), value.to_owned());
            // All shards have the same tunables: the first refuses, or none does.
            let set = inspect(mailbox, move |shard, _| shard.set_tunable(&name, &value)).await?;
            set.map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        }
        Ok(())
    }

    /// Waits until the connections of all dropped streams have closed or are in TIME-WAIT. Their data
    /// has then been acknowledged and their peers have closed too, or the connections failed. Streams
    /// that are still held are not affected.
    ///
    /// The kernel keeps the sockets of a finished process; a stack ends with its process. A program
    /// should therefore drop its streams and listeners and await this before it returns from `main`, in
    /// a `timeout` if peers may be gone.
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
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing.
    pub async fn wait_drained(&self) -> io::Result<()> {
        for mailbox in &self.inner.mailboxes {
            let (sender, drained) = oneshot::channel();
            mailbox.ask(Request::Drain(sender));
            drained.await.map_err(|_| mailbox.ended())?;
        }
        Ok(())
    }

    /// Waits until the stack has ended and returns the reason: its wire is gone (for example the TUN
    /// device was deleted), a thread or task panicked, the runtime was shut down, or nothing of the
    /// stack is held any more. Every stream and listener then fails with the same error. The future
    /// itself does not keep the stack alive.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing.
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

    /// Returns a receiver of the packets that nothing in the stack takes: those for foreign addresses,
    /// of unsupported protocols, and for UDP ports without a socket. They are IPv4 or IPv6, whole and
    /// with complete checksums. While the receiver is held, the stack sends no ICMP error for them. A
    /// later call replaces the receiver.
    ///
    /// Packets that cannot be passed on whole are dropped and counted as
    /// [`unclaimed_dropped`](whimbrel_stack::ip::IpCounters::unclaimed_dropped). These are frames that
    /// a device merged from several segments or datagrams (`offload=off` prevents this for `tun:` and
    /// `tap:`) and packets beyond the receiver's capacity.
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
    /// // An ICMP echo request from 10.0.0.2 to 192.0.2.9, which is not this stack's address.
    /// let ping = Bytes::from_static(&[
    ///     0x45, 0, 0, 28, 0, 0, 0, 0, 64, 1, 0xae, 0xd6, 10, 0, 0, 2, 192, 0, 2, 9, //
    ///     8, 0, 0xf7, 0xfe, 0, 0, 0, 1,
    /// ]);
    /// port.send(ping.clone()).await?;
    /// assert_eq!(unclaimed.recv().await?, ping);
    /// // Sends it unchanged over the wire that it came from.
    /// stack.inject(ping.clone()).await?;
    /// assert_eq!(port.recv().await?, ping);
    /// # Ok(())
    /// # }
    /// ```
    pub fn unclaimed(&self) -> UnclaimedPackets {
        UnclaimedPackets::begin(&self.inner.mailboxes)
    }

    /// Sends a whole IP packet unchanged over the wire, from any source address; for example the reply
    /// to an [unclaimed](Stack::unclaimed) packet. On Ethernet the stack adds the header with the next
    /// hop's address. It keeps no state about the packet.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the packet may still be sent.
    ///
    /// # Errors
    ///
    /// `InvalidInput`: not an IP packet, not of the length in its header, longer than the MTU, or to or
    /// from an address that must not leave a host. `WouldBlock`: 768 replies, or 1 MiB of them, wait to
    /// be sent. `NotConnected`: the stack has ended.
    pub async fn inject(&self, packet: Bytes) -> io::Result<()> {
        let mailbox = self.inner.mailboxes.first().ok_or(io::ErrorKind::NotConnected)?;
        let injected = inspect(mailbox, move |shard, _| shard.inject(packet)).await?;
        injected.map_err(fault::inject)
    }

    /// Applies `change` to every shard.
    async fn change(&self, change: impl Fn(&mut Shard) + Clone + Send + 'static) -> io::Result<()> {
        for mailbox in &self.inner.mailboxes {
            let change = change.clone();
            inspect(mailbox, move |shard, _| change(shard)).await?;
        }
        Ok(())
    }

    /// Returns the mailbox of the shard for a connection to port `remote`. This is the shard to which
    /// packets for the local port are steered, if that is set. Otherwise the shards take turns.
    pub(crate) fn mailbox_for(&self, local: Option<u16>, remote: u16) -> io::Result<&Arc<Mailbox>> {
        let shards = self.inner.mailboxes.len();
        let which = match local {
            Some(local) => queue_between(local, remote, shards as u16).into(),
            // Relaxed: two callers with the same turn affect only the balance.
            None => self.inner.next.fetch_add(1, Ordering::Relaxed) % shards.max(1),
        };
        self.inner.mailboxes.get(which).ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    /// Returns the congestion controls of its connections.
    pub(crate) fn congestion_names(&self) -> io::Result<&CongestionNames> {
        let first = self.inner.mailboxes.first().ok_or(io::ErrorKind::NotConnected)?;
        Ok(first.congestion_names())
    }

    /// Returns the mailboxes of all shards.
    pub(crate) fn mailboxes(&self) -> &[Arc<Mailbox>] {
        &self.inner.mailboxes
    }

    /// Returns the packet queues, if the application carries the packets.
    pub(crate) fn packet_queues(&self) -> Option<&Arc<PacketQueues>> {
        self.inner.packet_queues.as_ref()
    }

    /// Fails unless `at` has an address of this host or the unspecified one.
    pub(crate) fn check_own(&self, at: SocketAddr) -> io::Result<()> {
        self.inner.bind_table.check_own(at.into())
    }

    /// Fails if the stack has ended.
    fn check_running(&self) -> io::Result<()> {
        let ended = self.mailboxes().first().and_then(|mailbox| mailbox.ended_already());
        ended.map_or(Ok(()), Err)
    }

    pub(crate) fn reserve(&self, at: SocketAddr, share: Share) -> io::Result<ReservedAddr> {
        self.check_running()?;
        self.inner.bind_table.reserve(at.into(), share)
    }

    /// Fails unless a connection may come from `at`.
    pub(crate) fn check_source(&self, at: SocketAddr) -> io::Result<()> {
        self.inner.bind_table.check_source(at.into())
    }

    pub(crate) fn reserve_source(&self, at: SocketAddr, share: Share) -> io::Result<ReservedAddr> {
        self.check_running()?;
        self.inner.bind_table.reserve_source(at.into(), share)
    }

    pub(crate) fn reserve_any(&self) -> io::Result<ReservedAny> {
        self.check_running()?;
        self.inner.bind_table.reserve_any()
    }

    /// Returns the address with this index at the shard behind `mailbox`, with the port.
    pub(crate) fn local_end(&self, mailbox: &Mailbox, index: u16, port: u16) -> Option<SocketAddr> {
        let first = || self.inner.first_addresses.get(usize::from(index)).map(|own| own.addr);
        let added = mailbox.added_address(index);
        let addr = added.or_else(first).or_else(|| Addresses::loopback(index))?;
        Some(Endpoint::new(addr, port).into())
    }

    /// Returns the duplicate address detection for added addresses.
    pub(crate) fn dad(&self) -> DuplicateAddressDetection {
        self.inner.dad
    }

    /// Returns the names of the other hosts, in a simulated world.
    #[cfg(all(feature = "sim", feature = "hyper-util"))]
    pub(crate) fn names(&self) -> Option<&HostNames> {
        self.inner.names.as_deref()
    }

    /// Keeps a control socket as long as the stack.
    #[cfg(all(target_os = "linux", feature = "control"))]
    pub(crate) fn keep_control(&self, server: whimbrel_io::control::ControlServer) {
        // There is one: a stack is built once.
        let _ = self.inner.control.set(server);
    }

    /// Returns the table of bound ports.
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

/// Waits until the workers of all shards have ended. They end together and for one reason.
pub(crate) async fn all_ended(mailboxes: Vec<Arc<Mailbox>>) -> io::Error {
    for mailbox in &mailboxes {
        mailbox.until_ended().await;
    }
    mailboxes.first().map_or_else(fault::unknown, |mailbox| mailbox.ended())
}

/// Runs `look` on a shard, on the thread that drives it.
pub(crate) async fn inspect<T: Send + 'static>(
    mailbox: &Mailbox,
    look: impl FnOnce(&mut Shard, Held) -> T + Send + 'static,
) -> io::Result<T> {
    let (sender, answer) = oneshot::channel();
    let look = move |shard: &mut Shard, held| {
        // A panic belongs to the caller, not to the connections of this shard.
        let seen = catch_unwind(AssertUnwindSafe(|| look(shard, held)));
        // The caller may have gone.
        deliver(sender, seen);
    };
    mailbox.ask(Request::Inspect(Box::new(look)));
    let seen = answer.await.map_err(|_| mailbox.ended())?;
    seen.map_or_else(|panic| resume_unwind(panic), Ok)
}

#[cfg(test)]
mod tests;
