//! Resources of a process.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::Failure;
use crate::case::Limits;

/// CPU time of this process so far, all threads, in the kernel too.
pub(crate) fn cpu_time() -> Duration {
    let spent = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(spent.tv_sec.unsigned_abs(), spent.tv_nsec.unsigned_abs() as u32)
}

/// CPU time of those processes that this one started and that have ended, to a hundredth of a second.
pub(crate) fn children_cpu_time() -> Result<Duration, Failure> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    // Behind the name in parentheses, which may hold anything: fields 16 and 17 of all.
    let fields: Vec<_> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let [user, system] = fields.get(13..15).unwrap_or_default() else {
        return Err("/proc/self/stat has no fields 16 and 17".into());
    };
    let ticks = user.parse::<u64>()? + system.parse::<u64>()?;
    Ok(Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second() as f64))
}

/// Page faults of this process so far that needed no disk: pages that it touched for the first time.
pub(crate) fn minor_faults() -> Result<u64, Failure> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    // Behind the name in parentheses: field 10 of all.
    let mut fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    let faults = fields.nth(7).ok_or("/proc/self/stat has no field 10")?;
    Ok(faults.parse()?)
}

/// Bytes of memory that this process holds now.
pub(crate) fn resident() -> Result<u64, Failure> {
    let statm = std::fs::read_to_string("/proc/self/statm")?;
    let pages = statm.split(' ').nth(1).ok_or("/proc/self/statm has no second field")?;
    Ok(pages.parse::<u64>()? * rustix::param::page_size() as u64)
}

/// The rest of the limits of setup.
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

    /// True if setup may continue.
    pub(crate) fn may_go_on(&self) -> Result<bool, Failure> {
        Ok(cpu_time() < self.until && resident()? < self.memory)
    }
}
