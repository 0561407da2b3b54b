//! Memory that a process keeps after a peak: text that an application left unread, and then read.

use std::time::Duration;

use super::link::Link;
use super::whimbrel::Whimbrel;
use super::{Buffer, Case, Check, Copies, Pair, Stamps};
use crate::Failure;
use crate::meter::resident;

/// Fills a GiB of text, has it read, and is silent for ten seconds, which are virtual; then the process may
/// be no larger than 1.2 times what it was.
pub(crate) fn run() -> Result<(), Failure> {
    let (link, buffer) = (Link::Mtu(1_500), Buffer::Huge);
    let case = Case { flows: FLOWS, link, buffer, copies: Copies::None, stamps: Stamps::On };
    let mut hosts = Whimbrel::new(case)?;
    hosts.carry(WARM_UP, Check::Every)?;
    hosts.empty(SILENCE)?;
    let before = resident()?;
    hosts.fill(PEAK)?;
    let peak = resident()?;
    hosts.empty(SILENCE)?;
    if !hosts.take_release() {
        return Err("nothing says that memory can be given back".into());
    }
    release();
    let after = resident()?;
    let [before, peak, after] = [before, peak, after].map(|bytes| bytes as f64 / MIB);
    println!("{before:.1} MiB idle, {peak:.1} at the peak, {after:.1} ten seconds later");
    if after > 1.2 * before {
        return Err(format!("{after:.1} MiB are more than 1.2 times {before:.1}").into());
    }
    Ok(())
}

/// The worker that releases memory.
#[allow(unsafe_code)]
fn release() {
    unsafe extern "C" {
        fn malloc_trim(pad: usize) -> i32;
    }
    // SAFETY: it reads and writes nothing but the allocator's own, under its locks.
    unsafe {
        malloc_trim(0);
    }
}

/// Connections, each with a receive buffer of 16 MiB.
const FLOWS: u32 = 70;
/// Bytes of text that are read before: buffers of all kinds have been used once.
const WARM_UP: u64 = 256 << 20;
/// Bytes of memory behind text that is not read.
const PEAK: u64 = 1 << 30;
const SILENCE: Duration = Duration::from_secs(10);
const MIB: f64 = (1 << 20) as f64;
