//! Measured work, and its cost.

use std::fmt;
use std::time::{Duration, Instant};

use whimbrel_io::process::{context_switches, cpu_time};

use crate::Failure;

/// A piece of work.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Work {
    /// So many connections, on each a message there and back, again and again.
    Echo(usize),
    /// One connection, bytes one way as fast as they go.
    Stream,
    /// Connections of one message there and back each, so many at a time.
    Short(usize),
}

impl Work {
    /// All of it, by name.
    pub(crate) const ALL: [(&str, Self); 5] = [
        ("echo-1", Self::Echo(1)),
        ("echo-16", Self::Echo(16)),
        ("echo-256", Self::Echo(256)),
        ("stream", Self::Stream),
        ("short-16", Self::Short(16)),
    ];

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(known, _)| *known == name).map(|(_, work)| work)
    }

    /// Number of concurrent ones.
    pub(crate) fn at_once(self) -> usize {
        match self {
            Self::Echo(count) | Self::Short(count) => count,
            Self::Stream => 1,
        }
    }
}

/// Results: echoes, connections, or bytes of a stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figures {
    done: f64,
    wall: f64,
    cpu: f64,
    switches: f64,
}

impl Figures {
    /// Reads the figures from one displayed line.
    pub(crate) fn read(line: &str) -> Result<Self, Failure> {
        let mut words = line.split_whitespace();
        let mut next = || -> Result<f64, Failure> {
            Ok(words.next().ok_or_else(|| format!("{line:?}: too few figures"))?.parse()?)
        };
        Ok(Self { done: next()?, wall: next()?, cpu: next()?, switches: next()? })
    }

    /// Microseconds that each took, where so many are under way at a time.
    pub(crate) fn micros(&self, at_once: usize) -> f64 {
        self.wall * 1e6 * at_once as f64 / self.done
    }

    /// Microseconds of processors for each, of both ends.
    pub(crate) fn cpu_micros(&self) -> f64 {
        self.cpu * 1e6 / self.done
    }

    /// Context switches for each, of both ends.
    pub(crate) fn switches(&self) -> f64 {
        self.switches / self.done
    }

    /// Gigabits in a second, of bytes.
    pub(crate) fn gigabits(&self) -> f64 {
        self.done * 8e-9 / self.wall
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:.6} {:.6} {}", self.done, self.wall, self.cpu, self.switches)
    }
}

/// When a measurement began: what it took is what was used since.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Begun {
    at: Instant,
    until: Instant,
    cpu: Duration,
    switches: u64,
}

impl Begun {
    /// Now, to go on for so long.
    pub(crate) fn now(length: Duration) -> Result<Self, Failure> {
        let at = Instant::now();
        Ok(Self { at, until: at + length, cpu: spent()?, switches: context_switches()? })
    }

    /// True if it has run for long enough.
    pub(crate) fn is_over(&self) -> bool {
        Instant::now() >= self.until
    }

    /// Figures for `done` units of work.
    pub(crate) fn figures(&self, done: u64) -> Result<Figures, Failure> {
        Ok(Figures {
            done: done as f64,
            wall: self.at.elapsed().as_secs_f64(),
            cpu: (spent()? - self.cpu).as_secs_f64(),
            switches: (context_switches()? - self.switches) as f64,
        })
    }
}

fn spent() -> Result<Duration, Failure> {
    let spent = cpu_time()?;
    Ok(spent.user + spent.system)
}

/// Message of an echo.
pub(crate) const MESSAGE: [u8; 64] = [7; 64];
/// Bytes of one write to a stream.
pub(crate) static TEXT: [u8; 64 << 10] = [7; 64 << 10];
/// Before it is measured.
pub(crate) const WARM_UP: Duration = Duration::from_millis(100);
