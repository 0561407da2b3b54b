//! `whimbrel pcap --pid`: the frames of a running stack, by its control socket.

use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use serde_json::{Value, json};
use whimbrel_io::poll::{Interest, PollFd, ppoll};
use whimbrel_io::signals::Signals;
use whimbrel_io::{Clock, Stop, text};

use super::{Arguments, OUTPUT, filter, place};
use crate::attach::{Attached, CaptureCounts};
use crate::capture::{
    Place, Rotate, Successors, create, hint, numbered, standard_output, successors,
};
use crate::failure::Failure;
use crate::quantity::thousands;
use crate::streams;
use crate::wrap::wrap;

/// Captures until a signal, a limit or the process ends it.
pub(super) fn run(process: &str, arguments: &Arguments) -> Result<(), Failure> {
    let (place, params) = (place(arguments)?, params(arguments)?);
    let mut attached = Attached::new(Some(process), &arguments.host)?;
    let stop = Stop::new().map_err(Failure::run)?;
    let _signals = Signals::install(&stop).map_err(Failure::run)?;
    let clock = Clock::start();
    let until = arguments.autostop.map(|lasts| clock.now() + lasts);
    let must_end = |stream: &UnixStream| {
        let time = until.map(|until| clock.until(until));
        let mut fds = [PollFd::new(&stop, Interest::Read), PollFd::new(stream, Interest::Read)];
        ppoll(&mut fds, time).map_err(Failure::run)?;
        Ok(stop.is_set() || until.is_some_and(|until| clock.now() >= until))
    };
    let mut files = Files::new(place, arguments.ring);
    let counts = attached.capture(params, must_end, |piece| files.write(piece))?;
    files.finish()?;
    if !arguments.quiet {
        // The capture is complete even if standard error is closed.
        streams::tell(&format!("{}\n", wrap(&summary(counts), 4)));
    }
    match counts.has_process_ended {
        true => Err(Failure::run(format!("process {} has ended, and the capture", attached.pid))),
        false => Ok(()),
    }
}

fn params(arguments: &Arguments) -> Result<Value, Failure> {
    let filter = filter(arguments)?.map(|_| arguments.filter.join(" "));
    Ok(json!({ "filter": filter, "snap": arguments.snap, "count": arguments.count }))
}

fn summary(counts: CaptureCounts) -> String {
    let frames = format!("{} frames captured", thousands(counts.frames));
    match counts.dropped {
        0 => frames,
        dropped => {
            let dropped = thousands(dropped);
            format!("{frames}; {dropped} dropped, as this was too slow: use a filter or -s 128")
        }
    }
}

/// The files of a capture.
struct Files {
    place: Place,
    rotate: Option<Rotate>,
    /// Opens the next file.
    next: Option<Successors>,
    out: Option<Box<dyn Write + Send>>,
    /// The first piece, with which each file begins.
    header: Vec<u8>,
    /// Bytes in this file.
    written: u64,
}

impl Files {
    /// Writes nothing yet: a capture that is refused leaves no file.
    fn new(place: Place, rotate: Option<Rotate>) -> Self {
        Self { place, rotate, next: None, out: None, header: Vec::new(), written: 0 }
    }

    /// Writes a piece, which begins another file if this one is large enough.
    fn write(&mut self, piece: &[u8]) -> Result<(), Failure> {
        let written = self.try_write(piece);
        written.map_err(|error| self.broken(&error))
    }

    fn try_write(&mut self, piece: &[u8]) -> io::Result<()> {
        if self.out.is_none() {
            self.header = piece.to_vec();
            self.out = Some(self.open()?);
        }
        if self.rotate.is_some_and(|rotate| self.written >= rotate.bytes)
            && let Some(next) = &mut self.next
        {
            self.out.iter_mut().try_for_each(Write::flush)?;
            let out = self.out.insert(next()?);
            out.write_all(&self.header)?;
            self.written = self.header.len() as u64;
        }
        self.written += piece.len() as u64;
        let Some(out) = &mut self.out else { return Ok(()) };
        out.write_all(piece)?;
        // A reader of the standard output sees each piece at once.
        if self.place == Place::Output { out.flush() } else { Ok(()) }
    }

    fn open(&mut self) -> io::Result<Box<dyn Write + Send>> {
        let path = match &self.place {
            Place::Output => return Ok(standard_output()),
            Place::File(path) => path,
        };
        let Some(Rotate { files, .. }) = self.rotate else { return Ok(Box::new(create(path)?)) };
        self.next = Some(Box::new(successors(path.clone(), files)));
        Ok(Box::new(create(&numbered(path, 1))?))
    }

    fn finish(mut self) -> Result<(), Failure> {
        let flushed = self.out.iter_mut().try_for_each(Write::flush);
        flushed.map_err(|error| self.broken(&error))
    }

    fn broken(&self, error: &io::Error) -> Failure {
        let path = match &self.place {
            Place::Output => Path::new("-"),
            Place::File(path) => path,
        };
        let path = text::path(path);
        Failure::run(format!("{OUTPUT} {path}: the capture is incomplete: {error}{}", hint(error)))
    }
}
