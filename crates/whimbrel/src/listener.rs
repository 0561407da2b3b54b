//! A TCP listener, with the interface of tokio's `TcpListener`.

use std::fmt;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::ops::AddAssign;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use futures_core::Stream;
use tokio::net::{ToSocketAddrs, lookup_host};
use tokio::task::coop::poll_proceed;
use whimbrel_tcp::table::ListenerStats as ShardStats;

use crate::backlog::ListenOptions;
use crate::bind_table::{ReservedAddr, Share};
use crate::cell::{Settings, rate_limit, rate_of};
use crate::congestion::CongestionNames;
use crate::sharded_listener::{ListenerShard, ShardedListener};
use crate::stream::hop_limit;
use crate::waiters::Ticket;
use crate::{Stack, TcpStream, fault, stack};

/// A TCP listener. Methods have the names and behaviour of `tokio::net::TcpListener`.
///
/// With the feature `axum` it can be passed to `axum::serve`. To get `ConnectInfo<SocketAddr>`, tap it
/// (`axum::serve::ListenerExt::tap_io`), for example with a call of [`TcpStream::set_nodelay`]. Axum
/// implements `ConnectInfo` only for tokio's listener and for tapped ones.
///
/// On a stack of several shards it listens at each shard and accepts from them in turn.
///
/// Dropping it resets the connections that were not accepted yet.
pub struct TcpListener {
    sharded: Arc<ShardedListener>,
    reserved: ReservedAddr,
}

/// Counters of a listener, summed over all shards.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct ListenerStats {
    /// Completed connections.
    pub accepted: u64,
    /// Connections that found the backlog full when their handshake completed. A handshake counts each
    /// time its last segment arrives.
    pub overflows: u64,
    /// SYNs refused because the listener or the SYN cache was full.
    pub syn_drops: u64,
    /// SYNs answered by a cookie, without an entry in the SYN cache.
    pub cookies_sent: u64,
    /// Completed connections that wait for `accept` now.
    pub waiting: usize,
    /// Limit of waiting connections at each shard (the backlog).
    pub backlog: u32,
    /// Handshakes in progress now.
    pub half_open: u32,
}

impl TcpListener {
    /// Listens at `addr` with a backlog of 1,024, as tokio does. Port 0 selects a free port. If `addr`
    /// resolves to several addresses, the first that is available is used. At `::` it also accepts IPv4
    /// connections, which have IPv4 addresses.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future releases the address and port.
    ///
    /// # Errors
    ///
    /// `AddrInUse`; `AddrNotAvailable`: not an address of this stack; `NotConnected`: the stack has
    /// ended, for the reason in the message.
    pub async fn bind<A: ToSocketAddrs>(stack: &Stack, addr: A) -> io::Result<Self> {
        let mut last = None;
        for addr in lookup_host(addr).await? {
            let settings = Settings::new(stack.tunables());
            let listening = stack.reserve(addr, Share::ADDRESS).and_then(|at| {
                Self::listen(
                    stack,
                    at,
                    ListenOptions { backlog: BACKLOG, fast_open: 0, settings, rate: None },
                )
            });
            match listening {
                Ok(listener) => return Ok(listener),
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or_else(fault::no_address))
    }

    pub(crate) fn listen(
        stack: &Stack,
        reserved: ReservedAddr,
        options: ListenOptions,
    ) -> io::Result<Self> {
        let mut is_new = false;
        let sharded = reserved.listen(|| {
            is_new = true;
            ShardedListener::new(stack.mailboxes(), reserved.at(), options)
        })?;
        // Shards learn of it after the table is unlocked: they may answer before this returns.
        if is_new {
            sharded.open();
        }
        Ok(Self { sharded, reserved })
    }

    /// Waits for the next connection and returns it.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no connection.
    pub async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        Accept { listener: self, tickets: Vec::new() }.await
    }

    /// Polls for the next connection. If several tasks poll, only the latest is woken.
    pub fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<(TcpStream, SocketAddr)>> {
        self.poll_with(cx, ShardedListener::register)
    }

    /// Returns an endless `Stream` of the accepted connections, like
    /// `tokio_stream::wrappers::TcpListenerStream`.
    pub fn incoming(&self) -> Connections<'_> {
        Connections { listener: self }
    }

    /// Returns the address and port at which it listens.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.reserved.at().into())
    }

    /// Returns the time to live (IPv4) or hop limit (IPv6) of packets of accepted connections.
    pub fn ttl(&self) -> io::Result<u32> {
        Ok(self.sharded.settings().ok_or_else(fault::unknown)?.hop_limit().into())
    }

    /// Sets the time to live (IPv4) or hop limit (IPv6) of future connections, 1 to 255.
    pub fn set_ttl(&self, ttl: u32) -> io::Result<()> {
        let hops = hop_limit(ttl)?;
        self.sharded.set(|settings| settings.set_hop_limit(hops));
        Ok(())
    }

    /// Returns the congestion control of future connections (`TCP_CONGESTION`): the one that was set,
    /// or else the stack's default, which a route can override. Not in tokio.
    pub fn tcp_congestion(&self) -> io::Result<String> {
        let asked = self.sharded.settings().ok_or_else(fault::unknown)?.congestion_control();
        Ok(self.congestion_names()?.name(asked))
    }

    /// Sets the congestion control of connections that complete their handshake from now on. Names and
    /// errors as [`TcpSocket::set_tcp_congestion`](crate::TcpSocket::set_tcp_congestion).
    pub fn set_tcp_congestion(&self, name: &str) -> io::Result<()> {
        let algorithm = self.congestion_names()?.find(name)?;
        self.sharded.set(|settings| settings.set_congestion_control(algorithm));
        Ok(())
    }

    /// Returns the limit of the rate of future connections, bytes per second (`SO_MAX_PACING_RATE`); `u64::MAX`
    /// without one. Not in tokio.
    pub fn max_pacing_rate(&self) -> io::Result<u64> {
        Ok(rate_of(self.sharded.rate()))
    }

    /// Calls [`TcpStream::set_max_pacing_rate`] on each connection that completes its handshake from now on, as
    /// Linux does for what a listener accepts: at most `rate` bytes per second. Not in tokio.
    ///
    /// # Errors
    ///
    /// `InvalidInput`: `rate` is 0. Linux accepts it.
    pub fn set_max_pacing_rate(&self, rate: u64) -> io::Result<()> {
        self.sharded.set_rate(rate_limit(rate)?);
        Ok(())
    }

    fn congestion_names(&self) -> io::Result<&CongestionNames> {
        let first = self.sharded.shards().first().ok_or_else(fault::unknown)?;
        Ok(first.mailbox.congestion_names())
    }

    /// Returns the counters and the current queue lengths. Not in tokio.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing; the shards may still run the request.
    pub async fn stats(&self) -> io::Result<ListenerStats> {
        let mut sum = ListenerStats::default();
        for shard in self.sharded.shards() {
            sum += stats_of(shard).await?;
        }
        Ok(sum)
    }

    /// Returns [`Stack::ended`] of its stack.
    #[cfg(feature = "axum")]
    pub(crate) fn stack_ended(&self) -> impl Future<Output = io::Error> + Send + use<> {
        stack::all_ended(
            self.sharded.shards().iter().map(|shard| Arc::clone(&shard.mailbox)).collect(),
        )
    }

    /// Returns the next connection. If there is none, registers by `wait` and looks again, because one
    /// may have arrived in between.
    fn poll_with(
        &self,
        cx: &mut Context<'_>,
        wait: impl FnOnce(&ShardedListener, &Waker) -> Vec<Waker>,
    ) -> Poll<io::Result<(TcpStream, SocketAddr)>> {
        let coop = ready!(poll_proceed(cx));
        // Tokio's budget is spent on connections, not on looking for them.
        let mut next = self.sharded.take();
        if matches!(next, Ok(None)) {
            drop(wait(&self.sharded, cx.waker()));
            next = self.sharded.take();
        }
        let Some((accepted, mailbox)) = next? else { return Poll::Pending };
        coop.made_progress();
        let stream = TcpStream::accepted(accepted.cell, mailbox, accepted.flow);
        // The peer may have reset it since; its address is known all the same, as with accept(2).
        let peer = stream.peer_addr()?;
        Poll::Ready(Ok((stream, peer)))
    }
}

impl fmt::Debug for TcpListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let addr = SocketAddr::from(self.reserved.at());
        f.debug_struct("TcpListener").field("addr", &addr).finish()
    }
}

/// Returns the counters of one shard.
async fn stats_of(shard: &ListenerShard) -> io::Result<ListenerStats> {
    let backlog = Arc::clone(&shard.backlog);
    let stats = move |shard: &mut whimbrel_stack::Shard, _| {
        // A listener that a shard could not open has no number there: its counts are unknown, not zero.
        let state = backlog.lock();
        let listener = shard.listener(state.id?)?;
        let ShardStats { accepted, overflows, syn_drops, cookies_sent } = listener.stats();
        let (waiting, half_open) = (listener.waiting(), listener.half_open());
        drop(state);
        // Connections at the shard, and connections passed to tasks that have not run yet.
        let waiting = waiting + backlog.waiting();
        let backlog = backlog.most - 1;
        Some(ListenerStats {
            accepted,
            overflows,
            syn_drops,
            cookies_sent,
            waiting,
            backlog,
            half_open,
        })
    };
    stack::inspect(&shard.mailbox, stats).await?.ok_or_else(fault::unknown)
}

impl AddAssign for ListenerStats {
    fn add_assign(&mut self, other: Self) {
        self.accepted += other.accepted;
        self.overflows += other.overflows;
        self.syn_drops += other.syn_drops;
        self.cookies_sent += other.cookies_sent;
        self.waiting += other.waiting;
        self.backlog = self.backlog.saturating_add(other.backlog);
        self.half_open += other.half_open;
    }
}

/// Stream of a listener's connections; see [`TcpListener::incoming`].
#[derive(Debug)]
pub struct Connections<'a> {
    listener: &'a TcpListener,
}

impl Stream for Connections<'_> {
    type Item = io::Result<TcpStream>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let accepted = ready!(self.listener.poll_accept(cx));
        Poll::Ready(Some(accepted.map(|(stream, _)| stream)))
    }
}

/// A task that waits for a connection; registered at every shard until it is dropped.
#[derive(Debug)]
struct Accept<'a> {
    listener: &'a TcpListener,
    tickets: Vec<Option<Ticket>>,
}

impl Future for Accept<'_> {
    type Output = io::Result<(TcpStream, SocketAddr)>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let listener = self.listener;
        let tickets = &mut self.tickets;
        listener.poll_with(cx, |sharded, waker| sharded.line_up(tickets, waker))
    }
}

impl Drop for Accept<'_> {
    fn drop(&mut self) {
        // Wakers are dropped outside of the locks of the queues, which an executor may take.
        drop(self.listener.sharded.leave(&self.tickets));
    }
}

/// Backlog of a listener that was bound without one, as in tokio.
const BACKLOG: u32 = 1_024;
