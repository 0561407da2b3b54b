//! A listener for any destination, whose connections wait for the application's decision.

use std::fmt;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use tokio::sync::{Mutex, mpsc, oneshot};
use whimbrel_stack::{Answer, Withdrawal};

use crate::backlog::Accepted;
use crate::bind_table::ReservedAny;
use crate::cell::{Settings, rate_limit, rate_of};
use crate::dials::{AnyEnd, AnyRequest, Decision, Dial, OpenedSender};
use crate::mailbox::{Mailbox, Request};
use crate::{Stack, TcpListener, TcpStream, Unreachable, fault};

impl TcpListener {
    /// Listens for connections without another listener: at all ports of the stack's addresses and,
    /// with [`any_address`](crate::StackBuilder::any_address), of all other addresses. The stack sends
    /// the peer nothing until the application decides: see [`Incoming`]. A stack has at most one such
    /// listener.
    ///
    /// ```
    /// use tokio::io::copy_bidirectional;
    /// use tokio::net::{TcpListener as KernelListener, TcpStream as KernelStream};
    /// use whimbrel::{AnyListener, Incoming, Stack, TcpListener, TcpStream, Unreachable, mem_wire};
    ///
    /// /// Forwards every incoming connection through the kernel's sockets.
    /// async fn proxy(listener: AnyListener) -> std::io::Result<()> {
    ///     loop {
    ///         tokio::spawn(forward(listener.next().await?));
    ///     }
    /// }
    ///
    /// async fn forward(mut incoming: Incoming) -> std::io::Result<()> {
    ///     # let outside = ("127.0.0.1", incoming.destination().port());
    ///     # #[cfg(any())]
    ///     let outside = incoming.destination();
    ///     let dialled = tokio::select! {
    ///         dialled = KernelStream::connect(outside) => dialled,
    ///         // The peer has given up.
    ///         why = incoming.withdrawn() => return Err(why),
    ///     };
    ///     match dialled {
    ///         Ok(mut outside) => {
    ///             let mut inside = incoming.accept().await?;
    ///             copy_bidirectional(&mut inside, &mut outside).await.map(drop)
    ///         }
    ///         Err(error) => {
    ///             match error.kind() {
    ///                 std::io::ErrorKind::ConnectionRefused => incoming.reset(),
    ///                 std::io::ErrorKind::TimedOut => incoming.ignore(),
    ///                 _ => incoming.unreachable(Unreachable::Host),
    ///             }
    ///             Err(error)
    ///         }
    ///     }
    /// }
    ///
    /// # use tokio::io::{AsyncReadExt, AsyncWriteExt};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let (inner, outer) = mem_wire(Default::default(), Default::default(), 1)?;
    /// let gateway = Stack::builder().mem(outer).address("10.0.0.1", 24)?.any_address().build()?;
    /// tokio::spawn(proxy(TcpListener::bind_any(&gateway)?));
    /// # let server = KernelListener::bind("127.0.0.1:0").await?;
    /// # let port = server.local_addr()?.port();
    /// # tokio::spawn(async move { server.accept().await?.0.write_all(b"from outside").await });
    /// # let client = Stack::builder().mem(inner).address("10.0.0.2", 24)?;
    /// # let client = client.route(whimbrel::Route::default_via("10.0.0.1".parse()?)).build()?;
    /// # let mut stream = TcpStream::connect(&client, ("192.0.2.7", port)).await?;
    /// # let mut heard = String::new();
    /// # stream.read_to_string(&mut heard).await?;
    /// # assert_eq!(heard, "from outside");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `AddrInUse`: the stack has one already, or an [`Incoming`] of a former one is still held.
    pub fn bind_any(stack: &Stack) -> io::Result<AnyListener> {
        Ok(AnyListener::new(stack, stack.reserve_any()?))
    }
}

/// A listener for any destination, made by [`TcpListener::bind_any`].
///
/// A shard holds 4,096 connections that wait for a decision or for the end of their handshake. The
/// tunable `max_dials_per_destination` (64 by default) limits those for one destination address and
/// port: a gateway whose clients may connect to one server by hundreds at once sets a higher limit.
/// Each further connection withdraws the oldest, decided or not. This is counted as [`verdict_overflows`](crate::Counters::verdict_overflows) or
/// [`verdict_crowded`](crate::Counters::verdict_crowded). If the peer of a withdrawn connection repeats
/// its SYN, that is a new connection.
///
/// When the listener and all its [`Incoming`] are dropped, it is closed and waiting connections are
/// refused.
pub struct AnyListener {
    queue: Mutex<mpsc::Receiver<Dial>>,
    shared: Arc<AnyShared>,
}

/// State shared by the listener and its [`Incoming`]. Dropping it closes the listener.
struct AnyShared {
    shards: Box<[AnyShard]>,
    /// Limit of the rate of accepted streams, bytes per second; `u64::MAX`: none.
    rate: AtomicU64,
    _reserved: ReservedAny,
}

struct AnyShard {
    mailbox: Arc<Mailbox>,
    /// True if the shard has more connections than the queue had room for.
    crowded: Arc<AtomicBool>,
}

/// An incoming connection: a SYN that is not answered until the application decides, within 127 s.
///
/// | call | the peer sees |
/// |---|---|
/// | [`accept`](Incoming::accept) | a connection |
/// | [`reset`](Incoming::reset), or dropping it | `ECONNREFUSED` |
/// | [`unreachable`](Incoming::unreachable) | `EHOSTUNREACH` or `ENETUNREACH` |
/// | [`ignore`](Incoming::ignore) | no reply, until `ETIMEDOUT` |
///
/// Repetitions of the SYN are not returned again.
pub struct Incoming {
    dial: Dial,
    /// Reason of the withdrawal, once reported; `Some(None)` if the stack has ended.
    told: Option<Option<Withdrawal>>,
    shared: Arc<AnyShared>,
    decided: bool,
}

impl AnyListener {
    fn new(stack: &Stack, reserved: ReservedAny) -> Self {
        let shard = |mailbox: &Arc<Mailbox>| {
            let (mailbox, crowded) = (Arc::clone(mailbox), Arc::new(AtomicBool::new(false)));
            AnyShard { mailbox, crowded }
        };
        let shards = stack.mailboxes().iter().map(shard).collect();
        let rate = AtomicU64::new(u64::MAX);
        let shared = Arc::new(AnyShared { shards, rate, _reserved: reserved });
        let (queue, dials) = mpsc::channel(QUEUE);
        let settings = Settings::new(stack.tunables());
        for (number, shard) in shared.shards.iter().enumerate() {
            let (queue, crowded) = (queue.clone(), Arc::clone(&shard.crowded));
            let end = AnyEnd { shard: number, queue, crowded, settings };
            shard.mailbox.ask(Request::Any(AnyRequest::Listen(end)));
        }
        Self { queue: Mutex::new(dials), shared }
    }

    /// Waits for the next incoming connection and returns it.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no connection.
    ///
    /// # Errors
    ///
    /// `NotConnected`: the stack has ended, for the reason in the message.
    pub async fn next(&self) -> io::Result<Incoming> {
        loop {
            let next = self.queue.lock().await.recv().await;
            let dial = next.ok_or_else(|| self.shared.ended())?;
            let mut incoming = self.yielded(dial);
            self.shared.on_room();
            // A peer that gave up while it waited here needs no decision.
            if !incoming.is_withdrawn() {
                return Ok(incoming);
            }
        }
    }

    /// Returns an endless `Stream` of the incoming connections, like [`TcpListener::incoming`].
    pub fn incoming(&self) -> IncomingConnections<'_> {
        IncomingConnections { listener: self, next: None }
    }

    /// Returns the limit of the rate of connections accepted from now on, bytes per second
    /// (`SO_MAX_PACING_RATE`); `u64::MAX` without one.
    pub fn max_pacing_rate(&self) -> io::Result<u64> {
        Ok(self.shared.rate.load(Ordering::Relaxed))
    }

    /// Calls [`TcpStream::set_max_pacing_rate`] on each connection that is accepted from now on: at most `rate`
    /// bytes per second.
    ///
    /// # Errors
    ///
    /// `InvalidInput`: `rate` is 0.
    pub fn set_max_pacing_rate(&self, rate: u64) -> io::Result<()> {
        self.shared.rate.store(rate_of(rate_limit(rate)?), Ordering::Relaxed);
        Ok(())
    }

    fn yielded(&self, dial: Dial) -> Incoming {
        Incoming { dial, told: None, shared: Arc::clone(&self.shared), decided: false }
    }
}

/// Stream of a listener's incoming connections; see [`AnyListener::incoming`].
pub struct IncomingConnections<'a> {
    listener: &'a AnyListener,
    next: Option<NextIncoming<'a>>,
}

type NextIncoming<'a> = Pin<Box<dyn Future<Output = io::Result<Incoming>> + Send + 'a>>;

impl Stream for IncomingConnections<'_> {
    type Item = io::Result<Incoming>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let listener = self.listener;
        let next = self.next.get_or_insert_with(|| Box::pin(listener.next()));
        let incoming = ready!(next.as_mut().poll(cx));
        self.next = None;
        Poll::Ready(Some(incoming))
    }
}

impl fmt::Debug for IncomingConnections<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IncomingConnections").field("listener", self.listener).finish()
    }
}

impl AnyShared {
    /// Requests more connections when the queue has room or its receiver is gone.
    fn on_room(&self) {
        for shard in &self.shards {
            // One request for each time that the queue was full, however many tasks make room.
            if shard.crowded.swap(false, Ordering::SeqCst) {
                shard.mailbox.ask(Request::Any(AnyRequest::Room));
            }
        }
    }

    fn ended(&self) -> io::Error {
        self.shards.first().map_or_else(fault::unknown, |shard| shard.mailbox.ended())
    }
}

impl Incoming {
    /// Returns the address and port of the peer.
    pub fn peer(&self) -> SocketAddr {
        self.dial.asked.flow.remote.into()
    }

    /// Returns the destination address and port of its SYN.
    pub fn destination(&self) -> SocketAddr {
        self.dial.asked.flow.local.into()
    }

    /// Answers the SYN and waits for the end of the handshake. The stream's
    /// [`local_addr`](TcpStream::local_addr) is the [`destination`](Incoming::destination).
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the connection is reset after its handshake.
    ///
    /// # Errors
    ///
    /// `ConnectionAborted`: the peer reset the connection, or a newer one replaced it. `TimedOut`: the
    /// peer did not complete the handshake, or had given up.
    pub async fn accept(mut self) -> io::Result<TcpStream> {
        let (sender, opened) = oneshot::channel();
        self.decide(Answer::Accept, Some(sender));
        let mut pending = PendingAccept { opened, mailbox: self.mailbox().map(Arc::clone) };
        let Ok(opened) = (&mut pending.opened).await else {
            // It was gone when its shard received the decision.
            return Err(self.withdrawn().await);
        };
        let stream = pending.stream(opened?).ok_or_else(|| self.shared.ended())?;
        match self.shared.rate.load(Ordering::Relaxed) {
            u64::MAX => {}
            // If the peer reset the connection since, the first use of the stream says so.
            rate => drop(stream.set_max_pacing_rate(rate)),
        }
        Ok(stream)
    }

    /// Refuses the connection with a reset, like a port without a listener.
    pub fn reset(mut self) {
        self.decide(Answer::Reset, None);
    }

    /// Answers with an ICMP error. The limit of 1,000 ICMP errors a second includes it; beyond the
    /// limit, this is [`ignore`](Incoming::ignore).
    pub fn unreachable(mut self, what: Unreachable) {
        self.decide(Answer::Unreachable(what), None);
    }

    /// Sends no answer. A repeated SYN is a new incoming connection.
    pub fn ignore(mut self) {
        self.decide(Answer::Ignore, None);
    }

    /// Waits until the connection is withdrawn: the peer reset it or a newer one replaced it
    /// (`ConnectionAborted`), or 127 s passed (`TimedOut`). Await it together with the input to the
    /// decision.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing.
    pub async fn withdrawn(&mut self) -> io::Error {
        let why = match self.told {
            Some(why) => why,
            None => *self.told.insert((&mut self.dial.withdrawn).await.ok()),
        };
        match why {
            Some(why) => fault::withdrawn(why, self.dial.asked.flow.remote),
            None => self.shared.ended(),
        }
    }

    fn is_withdrawn(&mut self) -> bool {
        if self.told.is_none() {
            match self.dial.withdrawn.try_recv() {
                Ok(why) => self.told = Some(Some(why)),
                Err(oneshot::error::TryRecvError::Closed) => self.told = Some(None),
                Err(oneshot::error::TryRecvError::Empty) => {}
            }
        }
        self.told.is_some()
    }

    fn decide(&mut self, answer: Answer, opened: Option<OpenedSender>) {
        self.decided = true;
        let decision = Decision { syn: self.dial.asked.syn, answer, opened };
        if let Some(mailbox) = self.mailbox() {
            mailbox.ask(Request::Any(AnyRequest::Decide(decision)));
        }
    }

    fn mailbox(&self) -> Option<&Arc<Mailbox>> {
        self.shared.shards.get(self.dial.shard).map(|shard| &shard.mailbox)
    }
}

/// A task that waits for a connection.
struct PendingAccept {
    opened: oneshot::Receiver<io::Result<Accepted>>,
    mailbox: Option<Arc<Mailbox>>,
}

impl PendingAccept {
    fn stream(&self, accepted: Accepted) -> Option<TcpStream> {
        let mailbox = Arc::clone(self.mailbox.as_ref()?);
        Some(TcpStream::accepted(accepted.cell, mailbox, accepted.flow))
    }
}

impl Drop for PendingAccept {
    /// Drops a stream that arrived when the task had stopped waiting.
    fn drop(&mut self) {
        // After this nothing arrives any more, so one look is enough.
        self.opened.close();
        if let Ok(Ok(accepted)) = self.opened.try_recv() {
            drop(self.stream(accepted));
        }
    }
}

impl Drop for AnyListener {
    /// Drops the connections that wait here.
    fn drop(&mut self) {
        let Self { queue, shared } = self;
        let dials = queue.get_mut();
        // First: a shard that is about to send one is refused, so that none arrives after the last
        // look.
        dials.close();
        while let Ok(dial) = dials.try_recv() {
            let shared = Arc::clone(shared);
            drop(Incoming { dial, told: None, shared, decided: false });
        }
        for shard in &shared.shards {
            shard.mailbox.ask(Request::Any(AnyRequest::Room));
        }
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        if !self.decided && !self.is_withdrawn() {
            self.decide(Answer::Reset, None);
        }
    }
}

impl Drop for AnyShared {
    fn drop(&mut self) {
        // Before the place is free for another: shards process requests in order.
        for shard in &self.shards {
            shard.mailbox.ask(Request::Any(AnyRequest::Close));
        }
    }
}

impl fmt::Debug for AnyListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnyListener").finish_non_exhaustive()
    }
}

impl fmt::Debug for Incoming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut incoming = f.debug_struct("Incoming");
        incoming.field("peer", &self.peer()).field("destination", &self.destination());
        incoming.finish_non_exhaustive()
    }
}

/// Connections that wait for a task at most; others wait at their shards.
const QUEUE: usize = 64;
