//! The cookies that servers granted to this host, and which servers are better left alone
//! (RFC 7413 4.1.3).

use core::time::Duration;

use whimbrel_base::Instant;
use whimbrel_wire::tcp::FastOpen;
use whimbrel_wire::{Address, Endpoint, Mss};

use super::aged::Aged;

/// A cache of servers' cookies.
#[derive(Debug)]
pub struct FastOpenCache {
    servers: Aged<(Address, Address), KnownServer, MOST>,
    failures: Aged<Service, Failure, MOST>,
}

/// The remote endpoint of a connection, seen from one address of ours: cookies are for addresses, what fails
/// may fail at one port alone.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Service {
    /// This host's address towards the server.
    pub local: Address,
    /// The address and port of the server.
    pub remote: Endpoint,
}

/// The last answer of a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KnownServer {
    /// The cookie that it granted last.
    pub cookie: FastOpen,
    /// The MSS that it announced: the most bytes of a SYN's options and text.
    pub mss: Mss,
}

/// A path on which Fast Open failed.
#[derive(Clone, Copy, Debug)]
struct Failure {
    since: Instant,
    /// The number of times that in a row it happened.
    times: u32,
}

impl FastOpenCache {
    /// A cache in which nothing is known.
    pub const fn new() -> Self {
        Self { servers: Aged::new(), failures: Aged::new() }
    }

    /// The last answer of the server, if it granted a cookie.
    pub fn find(&self, service: &Service) -> Option<KnownServer> {
        self.servers.get(&service.path())
    }

    /// The server granted a cookie.
    pub fn store(&mut self, service: &Service, known: KnownServer) {
        self.servers.note(service.path(), known);
        self.failures.forget(service);
    }

    /// The server announced this MSS.
    pub fn note_mss(&mut self, service: &Service, mss: Mss) {
        if let Some(known) = self.find(service) {
            self.servers.note(service.path(), KnownServer { mss, ..known });
        }
    }

    /// Text in a SYN arrived: whatever failed before was something else.
    pub fn on_success(&mut self, service: &Service) {
        self.failures.forget(service);
    }

    /// A SYN with Fast Open was not answered, or as if it had none.
    pub fn on_failure(&mut self, service: &Service, now: Instant) {
        let times = self.failures.get(service).map_or(0, |failure| failure.times);
        let times = (times + 1).min(MOST_DOUBLINGS + 1);
        self.failures.note(*service, Failure { since: now, times });
    }

    /// True if the server is to be left alone: for `first` after a failure, and for twice as long
    /// after each further one, up to 64 times as long.
    pub fn is_disabled(&self, service: &Service, now: Instant, first: Duration) -> bool {
        let Some(failure) = self.failures.get(service) else { return false };
        let pause = first * (1 << (failure.times - 1));
        now.since(failure.since) < pause
    }

    /// Forgets every cookie and every failure.
    pub fn clear(&mut self) {
        self.servers.clear();
        self.failures.clear();
    }
}

impl Default for FastOpenCache {
    fn default() -> Self {
        Self::new()
    }
}

impl Service {
    const fn path(&self) -> (Address, Address) {
        (self.local, self.remote.addr)
    }
}

/// The most servers, and the most failures; 150 bytes each.
const MOST: usize = 4_096;
/// The number of times that the time-out doubles, as Linux' `tcp_fastopen_blackhole_timeout_sec`.
const MOST_DOUBLINGS: u32 = 6;

#[cfg(test)]
mod tests;
