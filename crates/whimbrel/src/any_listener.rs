//! A listener for any destination: it yields who dials whom, and an application decides what becomes of it.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::{Mutex, mpsc, oneshot};
use whimbrel_stack::{Answer, Withdrawal};

use crate::backlog::Accepted;
use crate::bind_table::ReservedAny;
use crate::cell::Settings;
use crate::dials::{AnyEnd, AnyRequest, Decision, Dial, OpenedSender};
use crate::mailbox::{Mailbox, Request};
use crate::{Stack, TcpListener, TcpStream, Unreachable, fault};

impl TcpListener {
    /// Listens for whatever connection finds no other listener: at every port of the stack's addresses, and
    /// with [`any_address`](crate::StackBuilder::any_address) of all others. Its peer sees nothing until you
    /// decide: see [`Incoming`]. There is one such listener a stack.
    ///
    /// ```
    /// use tokio::io::copy_bidirectional;
    /// use tokio::net::{TcpListener as KernelListener, TcpStream as KernelStream};
    /// use whimbrel::{AnyListener, Incoming, Stack, TcpListener, TcpStream, Unreachable, mem_wire};
    ///
    /// /// Every connection that comes goes on from here, by the kernel's own sockets.
    /// async fn proxy(listener: AnyListener) -> std::io::Result<()> {
    ///     loop {
    ///         tokio::spawn(forward(listener.incoming().await?));
    ///     }
    /// }
    ///
    /// async fn forward(mut incoming: Incoming) -> std::io::Result<()> {
    ///     # let outside = ("127.0.0.1", incoming.destination().port());
    ///     # #[cfg(any())]
    ///     let outside = incoming.destination();
    ///     let dialled = tokio::select! {
    ///         dialled = KernelStream::connect(outside) => dialled,
    ///         // Nobody waits for it any more.
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
    /// # let route = whimbrel::Route {
    /// #     network: whimbrel::Address::from_v4_octets([0; 4]),
    /// #     prefix_len: 0,
    /// #     gateway: None,
    /// #     metric: 0,
    /// #     metrics: Default::default(),
    /// # };
    /// # let client = Stack::builder().mem(inner).address("10.0.0.2", 24)?.route(route).build()?;
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
    /// `AddrInUse`: there is one already, or something that it yielded is held still.
    pub fn bind_any(stack: &Stack) -> io::Result<AnyListener> {
        Ok(AnyListener::new(stack, stack.reserve_any()?))
    }
}

/// A listener for any destination, made by [`TcpListener::bind_any`].
///
/// A shard holds 4,096 connections that wait for a decision or for their peer to complete them, and 64 with one
/// address and port. For each beyond that the oldest is withdrawn, decided or not, and counted as one of
/// [`verdict_overflows`](crate::Counters::verdict_overflows) or
/// [`verdict_crowded`](crate::Counters::verdict_crowded); if its peer repeats its SYN, that is a new one.
///
/// When it and all that it yielded are dropped, it is closed, and who waits is refused.
pub struct AnyListener {
    queue: Mutex<mpsc::Receiver<Dial>>,
    shared: Arc<AnyShared>,
}

/// What a listener and all that it yielded have in common. When it is dropped nobody listens any more.
struct AnyShared {
    shards: Box<[AnyShard]>,
    _reserved: ReservedAny,
}

struct AnyShard {
    mailbox: Arc<Mailbox>,
    /// It has more than the queue had room for.
    crowded: Arc<AtomicBool>,
}

/// Somebody dials: a SYN came, and is not answered until you decide how, within 127 s. What becomes of it:
///
/// | you call | who dials sees |
/// |---|---|
/// | [`accept`](Incoming::accept) | a connection |
/// | [`reset`](Incoming::reset), or drop it | that nobody listens there: `ECONNREFUSED` |
/// | [`unreachable`](Incoming::unreachable) | what you say: `EHOSTUNREACH`, `ENETUNREACH` |
/// | [`ignore`](Incoming::ignore) | silence, until `ETIMEDOUT` |
///
/// Repetitions of the SYN are not yielded again.
pub struct Incoming {
    dial: Dial,
    /// Why it was withdrawn, once that was told; without a reason the stack has ended.
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
        let shared = Arc::new(AnyShared { shards, _reserved: reserved });
        let (queue, dials) = mpsc::channel(QUEUE);
        let settings = Settings::new(stack.tunables());
        for (number, shard) in shared.shards.iter().enumerate() {
            let (queue, crowded) = (queue.clone(), Arc::clone(&shard.crowded));
            let end = AnyEnd { shard: number, queue, crowded, settings };
            shard.mailbox.ask(Request::Any(AnyRequest::Listen(end)));
        }
        Self { queue: Mutex::new(dials), shared }
    }

    /// Who dials next. Dropping the future loses none.
    ///
    /// # Errors
    ///
    /// `NotConnected`: the stack has ended, and why.
    pub async fn incoming(&self) -> io::Result<Incoming> {
        loop {
            let next = self.queue.lock().await.recv().await;
            let dial = next.ok_or_else(|| self.shared.ended())?;
            let mut incoming = self.yielded(dial);
            self.shared.on_room();
            // Who gave up while it waited here is nobody to decide about.
            if !incoming.is_withdrawn() {
                return Ok(incoming);
            }
        }
    }

    fn yielded(&self, dial: Dial) -> Incoming {
        Incoming { dial, told: None, shared: Arc::clone(&self.shared), decided: false }
    }
}

impl AnyShared {
    /// The queue has room, or nobody looks at it any more.
    fn on_room(&self) {
        for shard in &self.shards {
            // Asked once for each time that it found no room, whatever number of tasks make some.
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
    /// The address and port of the one who dials.
    pub fn peer(&self) -> SocketAddr {
        self.dial.asked.flow.remote.into()
    }

    /// Whom it dials: the address and port that its SYN was for.
    pub fn destination(&self) -> SocketAddr {
        self.dial.asked.flow.local.into()
    }

    /// Answers the SYN, and waits until the connection is complete. Its
    /// [`local_addr`](TcpStream::local_addr) is the [`destination`](Incoming::destination).
    ///
    /// Dropping the future resets the connection once that is complete.
    ///
    /// # Errors
    ///
    /// `ConnectionAborted`: its peer reset it, or it gave way to a newer one. `TimedOut`: its peer did not
    /// complete it, or had given up.
    pub async fn accept(mut self) -> io::Result<TcpStream> {
        let (sender, opened) = oneshot::channel();
        self.decide(Answer::Accept, Some(sender));
        let mut pending = PendingAccept { opened, mailbox: self.mailbox().map(Arc::clone) };
        let Ok(opened) = (&mut pending.opened).await else {
            // It was gone when its shard heard of the decision.
            return Err(self.withdrawn().await);
        };
        pending.stream(opened?).ok_or_else(|| self.shared.ended())
    }

    /// Refuses: a reset, as of a port where nobody listens.
    pub fn reset(mut self) {
        self.decide(Answer::Reset, None);
    }

    /// Answers by an ICMP error. It counts against what a host may send of these, 1,000 a second; beyond
    /// that, this is [`ignore`](Incoming::ignore).
    pub fn unreachable(mut self, what: Unreachable) {
        self.decide(Answer::Unreachable(what), None);
    }

    /// Answers nothing. A repeated SYN is yielded as a new one.
    pub fn ignore(mut self) {
        self.decide(Answer::Ignore, None);
    }

    /// Waits until it is gone: its peer reset it or a newer one took its place (`ConnectionAborted`), or 127 s
    /// passed (`TimedOut`). To be awaited beside what the decision waits for. Dropping the future changes
    /// nothing.
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

/// Somebody waits for a connection.
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
    /// What came at the moment when nobody waited any more is a stream that is dropped.
    fn drop(&mut self) {
        // From here on nothing comes any more, so that what is not there now never will be.
        self.opened.close();
        if let Ok(Ok(accepted)) = self.opened.try_recv() {
            drop(self.stream(accepted));
        }
    }
}

impl Drop for AnyListener {
    /// Nobody takes those that wait here: they are dropped as any other.
    fn drop(&mut self) {
        let Self { queue, shared } = self;
        let dials = queue.get_mut();
        // First: a shard that is about to send one is refused, so that none comes behind the last look.
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
        // Before the place is free for another: requests are done in their order.
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

/// How many wait for a task to take them; the others wait at their shards.
const QUEUE: usize = 64;
