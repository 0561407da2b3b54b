//! Two TUN interfaces joined by an impaired link in each direction, in real time: a network path
//! between any two hosts whose packets are routed there, the machine's own kernel among them.
//!
//! The bridge reports what it adds to the link: packets that an interface's queue dropped because
//! they were not read in time, and how much later than planned packets were delivered.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use whimbrel_base::Instant;
use whimbrel_io::config::ConfigError;
use whimbrel_io::poll::{Interest, PollFd, ppoll};
use whimbrel_io::{Clock, Device, Stop, Tun, TunError};
use whimbrel_link::{Link, LinkConfig, LinkCounters, LinkOutcome};

mod end;
mod lateness;

pub use end::{BridgeEnd, EndError};
pub use lateness::Lateness;

/// Two interfaces and the links between them.
#[derive(Debug)]
pub struct Bridge {
    sides: [Side; 2],
    clock: Clock,
    lateness: Lateness,
}

/// One interface, and the link by which its packets leave.
#[derive(Debug)]
struct Side {
    end: BridgeEnd,
    tun: Tun,
    link: Link,
    /// Packets that the interface had dropped before the bridge was opened.
    dropped_before: u64,
}

/// A packet that one of the interfaces has sent.
#[derive(Clone, Copy, Debug)]
pub struct SentPacket<'a> {
    /// Time at which its link got it.
    pub at: Instant,
    /// Place of the interface: 0 for the first, 1 for the second.
    pub side: usize,
    /// The packet, from the IP header on.
    pub bytes: &'a Bytes,
    /// Outcome on its link.
    pub outcome: LinkOutcome,
}

/// Counters of the packets of one direction.
#[derive(Clone, Debug)]
pub struct BridgeCounters {
    /// Interface that they came from.
    pub from: String,
    /// Interface that they were for.
    pub to: String,
    /// Counters of the link.
    pub link: LinkCounters,
    /// Packets still on the link.
    pub on_the_way: u64,
    /// Packets that the interface dropped because its queue was full: they never reached the link.
    /// `None` if the machine does not report it.
    pub missed: Option<u64>,
    /// Packets that the other interface refused after the link.
    pub refused: u64,
}

/// Reason why a bridge could not be opened, or ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BridgeError {
    /// An interface could not be opened.
    #[error(transparent)]
    Tun(#[from] TunError),
    /// The configuration of an interface is invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A network namespace could not be entered.
    #[error("cannot enter the network namespace {path}: {error}{}", hint(error))]
    Namespace {
        /// Path of the namespace's file.
        path: String,
        /// The system's error.
        error: io::Error,
    },
    /// An interface is gone.
    #[error("the interface {name} is lost: {error}. Was it removed? Bring it back and start again")]
    Lost {
        /// Name of the interface.
        name: String,
        /// The system's error.
        error: io::Error,
    },
    /// Waiting failed.
    #[error("cannot wait for the interfaces: {0}")]
    Wait(io::Error),
}

impl Bridge {
    /// Creates both interfaces, or attaches to them. `links` are the links from the first to the
    /// second and back; each interface gets the MTU of the link that it sends by. The same seed
    /// gives the same random choices.
    pub fn open(
        [a, b]: [BridgeEnd; 2],
        [there, back]: [LinkConfig; 2],
        seed: u64,
    ) -> Result<Self, BridgeError> {
        let side = |end: BridgeEnd, config: LinkConfig, seed| {
            let tun = end.open(config.mtu)?;
            let dropped_before = end.dropped().unwrap_or(0);
            Ok::<_, BridgeError>(Side { end, tun, link: Link::new(config, seed), dropped_before })
        };
        let sides = [side(a, there, seed)?, side(b, back, seed.wrapping_add(1))?];
        Ok(Self { sides, clock: Clock::start(), lateness: Lateness::default() })
    }

    /// Carries packets until `until` is set or `lasts` has passed. Calls `on_sent` with each that an
    /// interface sends.
    pub fn run(
        &mut self,
        until: &Stop,
        lasts: Option<Duration>,
        on_sent: &mut dyn FnMut(SentPacket<'_>),
    ) -> Result<(), BridgeError> {
        let end = lasts.map(|lasts| self.clock.now() + lasts);
        while !until.is_set() && end.is_none_or(|end| self.clock.now() < end) {
            self.take(on_sent)?;
            self.deliver()?;
            self.wait(until, end)?;
        }
        Ok(())
    }

    /// Returns the counters of both directions.
    pub fn counters(&self) -> [BridgeCounters; 2] {
        let [a, b] = &self.sides;
        [(a, b), (b, a)].map(|(from, to)| BridgeCounters {
            from: from.end.name().into(),
            to: to.end.name().into(),
            link: *from.link.counters(),
            on_the_way: from.link.in_flight() as u64,
            missed: from.end.dropped().map(|dropped| dropped.saturating_sub(from.dropped_before)),
            refused: to.tun.counters().tx_dropped,
        })
    }

    /// Returns the clock of [`SentPacket::at`].
    pub const fn clock(&self) -> Clock {
        self.clock
    }

    /// Returns how late packets were delivered.
    pub const fn lateness(&self) -> &Lateness {
        &self.lateness
    }

    /// Moves packets from the interfaces onto the links.
    fn take(&mut self, on_sent: &mut dyn FnMut(SentPacket<'_>)) -> Result<(), BridgeError> {
        for (side, Side { end, tun, link, .. }) in self.sides.iter_mut().enumerate() {
            for _ in 0..BURSTS {
                let now = self.clock.now();
                let taken = tun.rx_burst(&mut |frames| {
                    for frame in frames {
                        let bytes = Bytes::copy_from_slice(frame.bytes);
                        let outcome = link.push_frame(now, bytes.clone());
                        on_sent(SentPacket { at: now, side, bytes: &bytes, outcome });
                    }
                });
                if taken.map_err(|error| end.lost(error))? == 0 {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Delivers what has arrived on the links to the other interfaces.
    fn deliver(&mut self) -> Result<(), BridgeError> {
        let Self { sides: [a, b], clock, lateness } = self;
        pass(&mut a.link, &b.end, &mut b.tun, clock, lateness)?;
        pass(&mut b.link, &a.end, &mut a.tun, clock, lateness)
    }

    /// Sleeps until a packet arrives or is due.
    fn wait(&self, until: &Stop, end: Option<Instant>) -> Result<(), BridgeError> {
        let [a, b] = &self.sides;
        let due = Instant::earliest([a.link.next_arrival(), b.link.next_arrival(), end]);
        let timeout = due.map(|due| self.clock.until(due));
        let mut fds = [
            PollFd::new(&a.tun, Interest::Read),
            PollFd::new(&b.tun, Interest::Read),
            PollFd::new(until, Interest::Read),
        ];
        ppoll(&mut fds, timeout).map_err(BridgeError::Wait)?;
        let broken = [a, b].into_iter().zip(fds).find(|(_, fd)| fd.is_broken());
        match broken {
            Some((side, _)) => Err(side.end.lost(io::ErrorKind::NotConnected.into())),
            None => Ok(()),
        }
    }
}

/// Delivers what has arrived on `link` to the interface at its end.
fn pass(
    link: &mut Link,
    end: &BridgeEnd,
    tun: &mut Tun,
    clock: &Clock,
    lateness: &mut Lateness,
) -> Result<(), BridgeError> {
    let mut now = clock.now();
    for count in 1..=MOST_HANDED_OVER {
        let Some((due, packet)) = link.next_arrival().zip(link.pop(now)) else { break };
        lateness.note(now.since(due));
        tun.send_packet(&packet).map_err(|error| end.lost(error))?;
        if count % DELIVERED_AT_ONCE == 0 {
            now = clock.now();
        }
    }
    Ok(())
}

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => {
            ". Give a name of `ip netns list`, or a path such as /proc/PID/ns/net"
        }
        _ => "",
    }
}

/// Limit of bursts of one interface in a turn, before the other has its turn: together they are
/// what its queue holds.
const BURSTS: usize = 64;
/// Packets delivered before the clock and the interfaces are read again.
const DELIVERED_AT_ONCE: usize = 64;
const MOST_HANDED_OVER: usize = 1024;
