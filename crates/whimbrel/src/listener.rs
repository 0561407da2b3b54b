//! A listener, as tokio's `TcpListener`.

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
use crate::cell::Settings;
use crate::congestion::CongestionNames;
use crate::sharded_listener::{ListenerShard, ShardedListener};
use crate::stream::hop_limit;
use crate::waiters::Ticket;
use crate::{Stack, TcpStream, fault, stack};

/// A listener. Everything is named and behaves as in `tokio::net::TcpListener`.
///
/// With the feature `axum` it goes into `axum::serve`. For `ConnectInfo<SocketAddr>` tap it
/// (`axum::serve::ListenerExt::tap_io`), for instance to call [`TcpStream::set_nodelay`]: axum itself
/// has that for tokio's listener alone, and for any that is tapped.
///
/// On a stack of several shards it listens at each of them, and accepts from all in turn.
///
/// Dropping it resets the connections that nobody accepted.
pub struct TcpListener {
    sharded: Arc<ShardedListener>,
    reserved: ReservedAddr,
}

/// What happened at a listener, at all shards together.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct ListenerStats {
    /// Connections that became complete.
    pub accepted: u64,
    /// Complete connections that found the backlog full; a handshake counts each time its last
    /// segment arrives.
    pub overflows: u64,
    /// SYNs refused because the listener, or the SYN cache, had no room for another.
    pub syn_drops: u64,
    /// SYNs answered by a cookie, without an entry in the SYN cache.
    pub cookies_sent: u64,
    /// How many complete connections wait for `accept` now.
    pub waiting: usize,
    /// How many may: the backlog, at each shard.
    pub backlog: u32,
    /// How many handshakes are under way now.
    pub half_open: u32,
}

impl TcpListener {
    /// Listens at `addr`, port 0 for one that is drawn, with a backlog of 1,024 as tokio; if `addr`
    /// has several addresses, at the first that can be had. At `::` it takes IPv4 too, and says so
    /// by IPv4 addresses.
    ///
    /// # Errors
    ///
    /// `AddrInUse`, `AddrNotAvailable` (none of the stack's).
    pub async fn bind<A: ToSocketAddrs>(stack: &Stack, addr: A) -> io::Result<Self> {
        let mut last = None;
        for addr in lookup_host(addr).await? {
            let settings = Settings::new(stack.tunables());
            let listening = stack.reserve(addr, Share::ADDRESS).and_then(|at| {
                Self::listen(stack, at, ListenOptions { backlog: BACKLOG, fast_open: 0, settings })
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
        // Shards are told once the table is unlocked: they may answer before this returns.
        if is_new {
            sharded.open();
        }
        Ok(Self { sharded, reserved })
    }

    /// The next connection. Dropping the future loses none.
    pub async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        Accept { listener: self, tickets: Vec::new() }.await
    }

    /// The next connection, if there is one. Of several tasks that poll, only the latest is woken.
    pub fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<(TcpStream, SocketAddr)>> {
        self.poll_with(cx, ShardedListener::register)
    }

    /// The connections, one after the other, as a `Stream` that never ends by itself. What tokio
    /// had as `incoming`, and now `tokio_stream::wrappers::TcpListenerStream`.
    pub fn incoming(&self) -> Connections<'_> {
        Connections { listener: self }
    }

    /// The address and port where it listens.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.reserved.at().into())
    }

    /// The time to live (IPv4) or hop limit (IPv6) of what its connections send.
    pub fn ttl(&self) -> io::Result<u32> {
        Ok(self.sharded.settings().ok_or_else(fault::unknown)?.hop_limit().into())
    }

    /// Connections that come from now on are answered with this time to live, or hop limit
    /// (1 ..= 255).
    pub fn set_ttl(&self, ttl: u32) -> io::Result<()> {
        let hops = hop_limit(ttl)?;
        self.sharded.set(|settings| settings.set_hop_limit(hops));
        Ok(())
    }

    /// The congestion control of the connections that it accepts from now on (`TCP_CONGESTION`): what was
    /// set, or what connections of the stack have where no route says otherwise. Tokio has no such method.
    pub fn tcp_congestion(&self) -> io::Result<String> {
        let asked = self.sharded.settings().ok_or_else(fault::unknown)?.congestion_control();
        Ok(self.congestion_names()?.name(asked))
    }

    /// Chooses the congestion control of connections whose handshake is completed from now on. Names and
    /// errors as [`TcpSocket::set_tcp_congestion`](crate::TcpSocket::set_tcp_congestion).
    pub fn set_tcp_congestion(&self, name: &str) -> io::Result<()> {
        let algorithm = self.congestion_names()?.find(name)?;
        self.sharded.set(|settings| settings.set_congestion_control(algorithm));
        Ok(())
    }

    fn congestion_names(&self) -> io::Result<&CongestionNames> {
        let first = self.sharded.shards().first().ok_or_else(fault::unknown)?;
        Ok(first.mailbox.congestion_names())
    }

    /// What happened so far, and how full it is. Tokio has no such method.
    pub async fn stats(&self) -> io::Result<ListenerStats> {
        let mut sum = ListenerStats::default();
        for shard in self.sharded.shards() {
            sum += stats_of(shard).await?;
        }
        Ok(sum)
    }

    /// [`Stack::ended`] of its stack.
    #[cfg(feature = "axum")]
    pub(crate) fn stack_ended(&self) -> impl Future<Output = io::Error> + Send + use<> {
        stack::all_ended(
            self.sharded.shards().iter().map(|shard| Arc::clone(&shard.mailbox)).collect(),
        )
    }

    /// The next connection; if there is none, waits as `wait` does, and looks again: one may have
    /// come in between.
    fn poll_with(
        &self,
        cx: &mut Context<'_>,
        wait: impl FnOnce(&ShardedListener, &Waker) -> Vec<Waker>,
    ) -> Poll<io::Result<(TcpStream, SocketAddr)>> {
        let coop = ready!(poll_proceed(cx));
        // Tokio's budget is spent on connections that were had, not on looking for them.
        let mut next = self.sharded.take();
        if matches!(next, Ok(None)) {
            drop(wait(&self.sharded, cx.waker()));
            next = self.sharded.take();
        }
        let Some((accepted, mailbox)) = next? else { return Poll::Pending };
        coop.made_progress();
        let stream = TcpStream::accepted(accepted.cell, mailbox, accepted.flow);
        // The peer may have reset it since: its address is known all the same, as with accept(2).
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

/// What happened at one shard.
async fn stats_of(shard: &ListenerShard) -> io::Result<ListenerStats> {
    let backlog = Arc::clone(&shard.backlog);
    let stats = move |shard: &mut whimbrel_stack::Shard, _| {
        // A listener that a shard could not open has no number there: its counts are unknown, not zero.
        let state = backlog.lock();
        let listener = shard.listener(state.id?)?;
        let ShardStats { accepted, overflows, syn_drops, cookies_sent } = listener.stats();
        let (waiting, half_open) = (listener.waiting(), listener.half_open());
        drop(state);
        // Those that the shard still has, and those that it handed over to tasks that have not come.
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

/// The connections of a listener; see [`TcpListener::incoming`].
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

/// Somebody who waits for a connection, in line at every shard until it is dropped.
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
        // Its wakers are dropped outside of the lines' locks, which an executor may take.
        drop(self.listener.sharded.leave(&self.tickets));
    }
}

/// The backlog of a listener that was bound without one, as tokio's.
const BACKLOG: u32 = 1_024;
