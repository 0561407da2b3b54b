//! What a process spent.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::Failure;
use crate::case::Limits;

/// CPU time of this process so far, all threads, in the kernel too.
pub(crate) fn cpu_time() -> Duration {
    let spent = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(spent.tv_sec.unsigned_abs(), spent.tv_nsec.unsigned_abs() as u32)
}

/// Octets of memory that this process holds now.
pub(crate) fn resident() -> Result<u64, Failure> {
    let statm = std::fs::read_to_string("/proc/self/statm")?;
    let pages = statm.split(' ').nth(1).ok_or("/proc/self/statm has no second field")?;
    Ok(pages.parse::<u64>()? * rustix::param::page_size() as u64)
}

/// What remains of the limits of filling.
pub(crate) struct Filling {
    /// CPU time, so that other load on the machine ends nothing.
    until: Duration,
    memory: u64,
}

impl Filling {
    /// Begins now.
    pub(crate) fn begin(limits: &Limits) -> Self {
        Self { until: cpu_time() + limits.fill, memory: limits.memory }
    }

    /// Whether more may be filled in.
    pub(crate) fn may_go_on(&self) -> Result<bool, Failure> {
        Ok(cpu_time() < self.until && resident()? < self.memory)
    }
}
