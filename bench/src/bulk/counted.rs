//! Cost of a segment of a transfer, with both hosts, the wire and the applications: in instructions,
//! which do not drift, under limits.

use super::link::Link;
use super::whimbrel::Whimbrel;
use super::{Buffer, Case, Check, Copies, Pair, Stamps};
use crate::Failure;
use crate::counts::measured;

/// A transfer of which instructions are counted.
pub(crate) struct Counted {
    pub(crate) name: &'static str,
    case: Case,
    /// Instructions for each frame with text.
    pub(crate) most: u64,
}

impl Counted {
    const fn new(name: &'static str, flows: u32, link: Link, buffer: Buffer, most: u64) -> Self {
        let (copies, stamps) = (Copies::None, Stamps::On);
        Self { name, case: Case { flows, link, buffer, copies, stamps }, most }
    }

    /// The transfer of this name.
    pub(crate) fn named(name: &str) -> Option<&'static Self> {
        CASES.iter().find(|case| case.name == name)
    }

    /// Page faults for each frame with text.
    pub(crate) fn faults(&self) -> Result<f64, Failure> {
        super::faults(self.case)
    }

    /// Carries what is measured; says behind how many frames that was.
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let mut hosts = Whimbrel::new(self.case)?;
        hosts.carry(WARM_UP, Check::Every)?;
        let frames = hosts.frames();
        let mut done = Ok(());
        measured(&mut || done = hosts.carry(MEASURED, Check::None));
        println!("{}", hosts.frames() - frames);
        done
    }
}

/// The transfers that `counts` holds, each with the most instructions that a segment may take.
pub(crate) const CASES: [Counted; 5] = [
    Counted::new("bulk-1500-64K", 1, Link::Mtu(1_500), Buffer::Small, 3_400),
    Counted::new("bulk-1500-1M", 1, Link::Mtu(1_500), Buffer::Large, 3_400),
    Counted::new("bulk-1500-100-flows", 100, Link::Mtu(1_500), Buffer::Small, 3_800),
    Counted::new("bulk-65535-1M", 1, Link::Mtu(65_535), Buffer::Large, 205_000),
    Counted::new("bulk-super-1M", 1, Link::Super, Buffer::Large, 140_000),
];

/// Page faults that a frame with text may take: the buffers that still grow do now and then.
pub(crate) const MOST_FAULTS: f64 = 0.1;
/// Bytes of text before anything is counted.
const WARM_UP: u64 = 8 << 20;
/// Bytes of text that are counted.
const MEASURED: u64 = 8 << 20;
