//! Messages to the service manager, by the protocol of sd_notify(3).

use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;
use std::{env, io};

use sd_notify::NotifyState;
use whimbrel_base::Instant;

use crate::failure::warn;
use crate::quantity::of;

/// The service manager, if this process has one that takes messages (`NOTIFY_SOCKET`).
#[derive(Debug)]
pub(super) struct ServiceManager {
    is_there: bool,
    /// Interval of signs of life, if it wants some: half of `WATCHDOG_USEC`.
    interval: Option<Duration>,
    next: Instant,
}

impl ServiceManager {
    /// That of this process.
    pub(super) fn of_process() -> Self {
        let is_there = is_there();
        let mut usec = 0;
        let is_watched = is_there && sd_notify::watchdog_enabled(false, &mut usec);
        let interval = is_watched.then(|| Duration::from_micros(usec / 2).max(LEAST_INTERVAL));
        Self { is_there, interval, next: Instant::ZERO }
    }

    /// True if SIGHUP means to reload.
    pub(super) const fn is_there(&self) -> bool {
        self.is_there
    }

    /// Reports that clients can connect, at the start or after a reload.
    pub(super) fn ready(&self) {
        self.send(&[NotifyState::Ready, NotifyState::Status("serving")]);
    }

    /// Reports a reload, which [`ServiceManager::ready`] ends.
    pub(super) fn reloading(&self) {
        match NotifyState::monotonic_usec_now() {
            Ok(now) => self.send(&[NotifyState::Reloading, now]),
            Err(_) => self.send(&[NotifyState::Reloading]),
        }
    }

    /// Reports that the process ends, and how. The manager waits for no more signs of life then.
    pub(super) fn stopping(&mut self, status: &str) {
        self.interval = None;
        self.send(&[NotifyState::Stopping, NotifyState::Status(status)]);
    }

    /// Time of the next sign of life, if there is one to give.
    pub(super) fn next_sign(&self) -> Option<Instant> {
        self.interval.map(|_| self.next)
    }

    /// Gives a sign of life with the state of the server, unless shards do not answer: the manager then ends this
    /// process when `WatchdogSec=` is over.
    pub(super) fn sign_of_life(&mut self, now: Instant, missing: usize, status: &str) {
        self.next = now + self.interval.unwrap_or_default();
        match missing {
            0 => self.send(&[NotifyState::Watchdog, NotifyState::Status(status)]),
            missing => {
                let status = format!("{} did not answer in time", of(missing as u64, "shard"));
                self.send(&[NotifyState::Status(&status)]);
            }
        }
    }

    fn send(&self, states: &[NotifyState<'_>]) {
        if self.is_there
            && let Err(error) = send(states)
        {
            warn(&format!("NOTIFY_SOCKET: the service manager takes no messages: {error}"));
        }
    }
}

/// True if a service manager takes messages of this process.
pub(super) fn is_there() -> bool {
    env::var_os("NOTIFY_SOCKET").is_some_and(|path| !path.is_empty())
}

/// Sends a message to the socket that `NOTIFY_SOCKET` names: by a path, or with `@` by an abstract name, which
/// `sd_notify::notify` would take for a path.
fn send(states: &[NotifyState<'_>]) -> io::Result<()> {
    let name = env::var_os("NOTIFY_SOCKET").unwrap_or_default();
    let to = match name.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        name if name.starts_with(b"vsock") => {
            return Err(io::Error::other("it is of another machine: use a path, or @ and a name"));
        }
        _ => SocketAddr::from_pathname(&name)?,
    };
    let message: String = states.iter().map(|state| format!("{state}\n")).collect();
    UnixDatagram::unbound()?.send_to_addr(message.as_bytes(), &to).map(drop)
}

/// Least interval of signs of life.
const LEAST_INTERVAL: Duration = Duration::from_millis(10);
