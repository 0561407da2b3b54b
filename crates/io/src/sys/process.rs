//! Processor time of processes, copies of this one, and the end of child processes.

use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;
use std::time::Duration;

use super::check;

/// Processor time used so far.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct CpuTime {
    /// Time in the process's own code.
    pub user: Duration,
    /// Time in the kernel for the process.
    pub system: Duration,
}

/// Returns the processor time of all threads of this process.
pub fn cpu_time() -> io::Result<CpuTime> {
    let usage = usage()?;
    let time = |time: libc::timeval| {
        let micros = u64::try_from(time.tv_usec).unwrap_or(0);
        Duration::from_secs(u64::try_from(time.tv_sec).unwrap_or(0)) + Duration::from_micros(micros)
    };
    Ok(CpuTime { user: time(usage.ru_utime), system: time(usage.ru_stime) })
}

/// Returns how often threads of this process gave up a processor, because they waited or their time
/// slice ended.
pub fn context_switches() -> io::Result<u64> {
    let usage = usage()?;
    Ok((usage.ru_nvcsw + usage.ru_nivcsw).cast_unsigned())
}

/// Returns the resources that this process has used so far.
fn usage() -> io::Result<libc::rusage> {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::uninit();
    // SAFETY: `usage` has room for what getrusage writes.
    check(unsafe { libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()) })?;
    // SAFETY: getrusage succeeded, and has then written all of it.
    Ok(unsafe { usage.assume_init() })
}

/// Makes the kernel kill a child started by `command` when the thread that starts it ends, even if
/// this process is killed. A program that changes its user or groups, or runs with other rights
/// than its parent, is exempt (prctl(2), `PR_SET_PDEATHSIG`).
pub fn end_with_starter(command: &mut Command) -> &mut Command {
    let starter = std::process::id();
    let arrange = move || {
        // SAFETY: PR_SET_PDEATHSIG takes its argument by value.
        check(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) })?;
        // SAFETY: getppid takes nothing and cannot fail.
        let parent = unsafe { libc::getppid() };
        // A parent that ended before the call above sends no signal.
        let is_there = parent.cast_unsigned() == starter;
        if is_there { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::ESRCH)) }
    };
    // SAFETY: between fork and exec the closure makes two system calls. It allocates nothing, also
    // where it fails: an error by its number is a number. It takes no lock and owns a number alone.
    unsafe { command.pre_exec(arrange) }
}

/// Runs `child` in a copy of this process (fork(2)), whose exit code is its result, or 101 if it panics.
/// Returns the copy's id; to wait for it is the caller's part.
///
/// # Errors
///
/// Fails if this process has other threads: a copy has none of them, and what they had locked stays
/// locked in it.
pub fn fork(child: impl FnOnce() -> u8) -> io::Result<u32> {
    let threads = fs::read_dir("/proc/self/task")?.count();
    if threads != 1 {
        let text = format!("a process with {threads} threads cannot be copied: only one with 1");
        return Err(io::Error::other(text));
    }
    // SAFETY: this is the only thread, so no lock is held by another and no memory is half written: the
    // copy can go on as this process could.
    let copy = check(unsafe { libc::fork() })?;
    if copy > 0 {
        return Ok(copy.unsigned_abs());
    }
    let code = catch_unwind(AssertUnwindSafe(child)).unwrap_or(PANICKED);
    // SAFETY: _exit takes a number and does not return. What this process had buffered before the fork is
    // left to the original to write.
    unsafe { libc::_exit(code.into()) }
}

/// Exit code of a Rust program that panics.
const PANICKED: u8 = 101;

#[cfg(test)]
mod tests;
