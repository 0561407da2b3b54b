//! `link --pcap`: each packet once, at the interface that sent it, with its outcome on the path.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::time::Duration;

use whimbrel_io::tap::ErrorHandler;
use whimbrel_io::text;
use whimbrel_kernel::bridge::SentPacket;
use whimbrel_link::filter::Filter;
use whimbrel_link::pcapng::{Direction, InterfaceId, LinkType, PacketNote, Section};

use crate::capture::{self, CaptureOutcome, CapturePlan, Place};
use crate::failure::Failure;

/// The capture of a path. An error of its file ends it, but not the run.
pub(super) struct PathCapture {
    /// `None` once the file has failed.
    out: Option<BufWriter<File>>,
    section: Section,
    interfaces: [InterfaceId; 2],
    snap: usize,
    filter: Option<Filter>,
    /// Bytes of the next write; kept for their memory.
    block: Vec<u8>,
    outcome: CaptureOutcome,
    on_error: Option<ErrorHandler>,
}

impl PathCapture {
    /// Creates the file, with an interface for each end.
    pub(super) fn begin(plan: &CapturePlan, names: [&str; 2]) -> Result<Self, Failure> {
        if plan.rotate.is_some() {
            let why = "a path writes one file: leave rotate= out, or give filter= or snap=";
            return Err(Failure::usage(plan.option, why));
        }
        let Place::File(path) = &plan.place else {
            return Err(Failure::usage(plan.option, "give a file, as in --pcap path.pcapng"));
        };
        let name = text::path(path).to_string();
        let out = capture::create(path).map_err(|error| {
            Failure::run(format!("{} {name}: {error}; use a file that can be written", plan.option))
        })?;
        let mut block = Vec::new();
        let mut section = Section::begin(&mut block);
        let interfaces = names.map(|name| section.describe(&mut block, name, LinkType::Raw));
        let outcome = plan.outcome.clone();
        let on_error = Some(outcome.error_handler(plan.option, name, "capture"));
        let mut capture = Self {
            out: Some(out),
            section,
            interfaces,
            snap: plan.snap,
            filter: plan.filter.clone(),
            block,
            outcome,
            on_error,
        };
        capture.write_block();
        Ok(capture)
    }

    /// Writes a packet, if the filter matches; `zero` is the time of the bridge's start, nanoseconds
    /// since 1970.
    pub(super) fn write(&mut self, packet: &SentPacket<'_>, zero: u64) {
        let bytes = packet.bytes;
        let is_wanted =
            self.filter.as_ref().is_none_or(|filter| filter.matches(LinkType::Raw, bytes));
        let Some(&interface) = self.interfaces.get(packet.side).filter(|_| is_wanted) else {
            return;
        };
        let note = PacketNote {
            interface,
            at: packet.at + Duration::from_nanos(zero),
            direction: Direction::Out,
            wire_len: bytes.len() as u32,
            comment: &packet.outcome.to_string(),
        };
        let captured = bytes.get(..self.snap).unwrap_or(bytes);
        self.section.packet(&mut self.block, &note, captured);
        self.write_block();
    }

    /// Ends the file. Fails if it is not whole.
    pub(super) fn finish(mut self) -> Result<(), Failure> {
        let flushed = self.out.as_mut().map_or(Ok(()), Write::flush);
        self.check(flushed);
        self.outcome.judge()
    }

    fn write_block(&mut self) {
        let written = self.out.as_mut().map_or(Ok(()), |out| out.write_all(&self.block));
        self.block.clear();
        self.check(written);
    }

    fn check(&mut self, result: io::Result<()>) {
        if let Err(error) = result {
            self.out = None;
            if let Some(on_error) = self.on_error.take() {
                on_error(&error);
            }
        }
    }
}
