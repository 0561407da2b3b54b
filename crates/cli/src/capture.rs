//! `--pcap FILE[,snap=N]`: what passes the wire, into a file.

use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;

use clap::Args;
use whimbrel_io::tap::{Tap, TapConfig};
use whimbrel_io::{Clock, WireSpec};
use whimbrel_stack::Medium;

use crate::failure::Failure;

/// What was typed.
#[derive(Args, Debug)]
pub(crate) struct CaptureOption {
    /// Write every frame that the stack receives and sends into this file (pcapng), with why it was
    /// dropped and how its connection's state changed; snap: only that many octets of each.
    #[arg(long, value_name = "FILE[,snap=N]", value_parser = parse)]
    pcap: Option<CapturePlan>,
}

impl CaptureOption {
    /// What is meant on this wire.
    pub(crate) fn pcap(&self, wire: &WireSpec) -> Result<Option<CapturePlan>, Failure> {
        match (&self.pcap, wire) {
            (Some(_), WireSpec::Kernel) => {
                let text = "the kernel's sockets show no frames: capture with tcpdump, or give \
                            another wire";
                Err(Failure::usage("--pcap", text))
            }
            (pcap, _) => Ok(pcap.clone()),
        }
    }
}

/// A capture to be written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct CapturePlan {
    path: PathBuf,
    /// Octets of each frame.
    snap: usize,
}

impl CapturePlan {
    /// Begins it. Without a clock time is virtual, and begins in 1970.
    pub(crate) fn open(
        &self,
        wire: &str,
        medium: Medium,
        clock: Option<Clock>,
    ) -> Result<Tap, Failure> {
        let file = File::create(&self.path).map_err(|error| {
            Failure::Run(format!(
                "--pcap {}: {error}; give a file that can be written",
                self.path.display()
            ))
        })?;
        let config = TapConfig {
            name: wire.to_owned(),
            medium,
            snap: self.snap,
            zero: clock.map_or(0, |clock| clock.zero_since_1970()),
        };
        Ok(Tap::begin(config, BufWriter::with_capacity(BUFFER, file)))
    }
}

/// Ends a capture, if there is one.
pub(crate) fn finish(tap: Option<Tap>) -> Result<(), Failure> {
    match tap.map_or(Ok(0), Tap::finish) {
        Ok(_) => Ok(()),
        Err(error) => Err(Failure::Run(format!("--pcap: the capture is not whole: {error}"))),
    }
}

fn parse(typed: &str) -> Result<CapturePlan, String> {
    let (path, snap) = match typed.rsplit_once(",snap=") {
        None => (typed, WHOLE),
        Some((path, snap)) => match snap.parse() {
            Ok(snap @ 1..=WHOLE) => (path, snap),
            _ => return Err(format!("snap={snap}: give 1 to {WHOLE} octets, as in snap=128")),
        },
    };
    if path.is_empty() {
        return Err("give a file, as in --pcap whim0.pcapng".into());
    }
    Ok(CapturePlan { path: path.into(), snap })
}

/// More than any frame has.
const WHOLE: usize = 262_144;
/// Octets gathered for one write.
const BUFFER: usize = 256 << 10;

#[cfg(test)]
mod tests;
