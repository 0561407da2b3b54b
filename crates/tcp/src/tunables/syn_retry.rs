//! When a SYN is repeated: by doubling, by another factor, or by a list.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;

use whimbrel_base::tunables::{Reading, Unit, Value, parse_time, print_time};

use whimbrel_base::cold_path;

use super::Tunables;

/// The time that each SYN waits for its answer before the next: `x2`, `x1`, `x1.5` multiply `initial_rto` with
/// each, up to `net.ipv4.tcp_rto_max_ms`; `3s,6s,12s` lists the waits, the last of which repeats.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SynRetry(Schedule);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Schedule {
    /// Percent of the wait before.
    Factor(u16),
    /// Milliseconds, the first `len` of which count.
    Listed { waits: [u32; SynRetry::MOST], len: u8 },
}

impl SynRetry {
    /// The most waits that a list has.
    pub const MOST: usize = 12;

    /// RFC 6298 5.5: "The host MUST set RTO <- RTO * 2 ("back off the timer")."
    pub const DOUBLE: Self = Self(Schedule::Factor(200));

    /// Multiplies by `percent` / 100 (100 ..= 1,000).
    pub fn factor(percent: u16) -> Option<Self> {
        (100..=1_000).contains(&percent).then_some(Self(Schedule::Factor(percent)))
    }

    /// These waits (1 ..= 12 of them, 1 ms ..= 1 h each, in whole ms), the last of which repeats.
    pub fn listed(times: &[Duration]) -> Option<Self> {
        let mut waits = [0; Self::MOST];
        let len = times.len();
        for (wait, time) in waits.get_mut(..len)?.iter_mut().zip(times) {
            *wait = u32::try_from(time.as_millis()).ok().filter(|millis| *millis <= HOUR)?;
            if *wait == 0 || !time.subsec_nanos().is_multiple_of(1_000_000) {
                return None;
            }
        }
        (len > 0).then_some(Self(Schedule::Listed { waits, len: len as u8 }))
    }

    /// Returns the wait after a SYN that was sent `repeats` times before.
    pub fn wait(&self, repeats: u8, tunables: &Tunables) -> Duration {
        match &self.0 {
            Schedule::Factor(percent) => {
                let most = u64::from(tunables.max_rto.get());
                let first = u64::from(tunables.initial_rto.get()).min(most);
                if repeats == 0 {
                    return Duration::from_micros(first);
                }
                cold_path();
                let next =
                    |wait: u64, _| (wait.saturating_mul(u64::from(*percent)) / 100).min(most);
                Duration::from_micros((0..repeats).fold(first, next))
            }
            Schedule::Listed { waits, len } => {
                let at = usize::from(repeats).min(usize::from(*len).saturating_sub(1));
                Duration::from_millis(waits.get(at).copied().unwrap_or(HOUR).into())
            }
        }
    }
}

impl Value for SynRetry {
    fn parse(text: &str, _: Unit, _: Reading) -> Option<Self> {
        match text.strip_prefix('x') {
            Some(factor) => {
                // A factor is read like a time of that many seconds: digits and a fraction.
                let nanos = parse_time(&format!("{factor}s"))?.as_nanos();
                let exact = nanos.is_multiple_of(10_000_000);
                Self::factor(u16::try_from(nanos / 10_000_000).ok().filter(|_| exact)?)
            }
            None => {
                let times = text.split(',').map(parse_time).collect::<Option<Vec<_>>>()?;
                Self::listed(&times)
            }
        }
    }

    fn print(&self, _: Unit) -> String {
        match &self.0 {
            Schedule::Factor(percent) if percent.is_multiple_of(100) => {
                format!("x{}", percent / 100)
            }
            Schedule::Factor(percent) => {
                let text = format!("x{}.{:02}", percent / 100, percent % 100);
                text.trim_end_matches('0').to_string()
            }
            Schedule::Listed { waits, len } => {
                let time = |millis: &u32| print_time(Duration::from_millis((*millis).into()));
                let times: Vec<_> = waits.iter().take((*len).into()).map(time).collect();
                times.join(",")
            }
        }
    }
}

/// An hour in milliseconds.
const HOUR: u32 = 3_600_000;
