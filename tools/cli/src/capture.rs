//! `--pcap FILE[,snap=N,…]`: what passes the wire, into a file, or into several.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use clap::Args;
use whimbrel_io::tap::{ErrorHandler, Rotation, Tap, TapConfig};
use whimbrel_io::{Clock, Device, StackShard, Stop, WireSpec, text};
use whimbrel_link::filter::Filter;
use whimbrel_stack::Medium;

use crate::failure::Failure;
use crate::{size, streams};

/// The options about captures, as they were typed.
#[derive(Args, Debug)]
pub(crate) struct CaptureOption {
    /// Write every packet that the stack receives and sends to this file (pcapng), with the reason for
    /// each drop and each state change. snap=N: only the first N bytes of each; rotate=SIZE: begin
    /// another file (FILE_00002 …) beyond this size, files=N: and keep the last N; filter=…, which must
    /// be the last: only these packets, as in filter=tcp port 80.
    #[arg(long, value_name = "FILE[,snap=N,rotate=SIZE,files=N,filter=…]", value_parser = parse)]
    pcap: Option<CapturePlan>,
}

impl CaptureOption {
    /// The capture on this wire.
    pub(crate) fn pcap(&self, wire: &WireSpec) -> Result<Option<CapturePlan>, Failure> {
        if self.pcap.is_some() && wire.is_kernel() {
            let text = "the kernel's sockets show no frames: use tcpdump, or another wire";
            return Err(Failure::usage("--pcap", text));
        }
        Ok(self.on_device())
    }

    /// The capture on a wire that is none of the kernel's sockets.
    pub(crate) fn on_device(&self) -> Option<CapturePlan> {
        self.pcap.clone()
    }
}

/// A capture to be written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct CapturePlan {
    pub(crate) place: Place,
    /// Bytes of each frame.
    pub(crate) snap: usize,
    /// Rotation to another file.
    pub(crate) rotate: Option<Rotate>,
    /// Which frames, if not all.
    pub(crate) filter: Option<Filter>,
    /// The most frames that a file gets: then the capture ends.
    pub(crate) most: u64,
    /// The option that requested it.
    pub(crate) option: &'static str,
    /// Its outcome.
    pub(crate) outcome: CaptureOutcome,
}

/// The outcome of a capture or a trace. A full disk or a reader that closed ends it, but not the run.
#[derive(Clone, Default, Debug)]
pub(crate) struct CaptureOutcome(Arc<Mutex<CaptureState>>);

#[derive(Default, Debug)]
struct CaptureState {
    /// Reason of an early end, as printed for people.
    broken: Option<String>,
    /// True if a screen delays warnings.
    is_held_back: bool,
}

/// Two plans are equal whatever their outcomes.
impl PartialEq for CaptureOutcome {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for CaptureOutcome {}

impl CaptureOutcome {
    /// Delays the warning of an ended capture until the screen is gone.
    pub(crate) fn hold_back(&self) {
        self.state().is_held_back = true;
    }

    /// Fails with code 1 if the capture is not whole.
    pub(crate) fn judge(&self) -> Result<(), Failure> {
        let state = self.state();
        match &state.broken {
            None => Ok(()),
            Some(text) if state.is_held_back => Err(Failure::run(text)),
            Some(_) => Err(Failure::Told),
        }
    }

    /// Returns the receiver of an error when `what`, written by `option` into `whither`, ends early.
    pub(crate) fn error_handler(
        &self,
        option: &'static str,
        whither: String,
        what: &'static str,
    ) -> ErrorHandler {
        let outcome = self.clone();
        Box::new(move |error| {
            let text =
                format!("{option} {whither}: the {what} is incomplete: {error}{}", hint(error));
            let mut state = outcome.state();
            if !state.is_held_back {
                streams::tell(&format!("error: {text}; the run continues without it\n"));
            }
            state.broken = Some(text);
        })
    }

    fn state(&self) -> MutexGuard<'_, CaptureState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A likely cause.
pub(crate) fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "; is the disk full?",
        io::ErrorKind::BrokenPipe => "; its reader has closed it",
        _ => "",
    }
}

/// Destination of a capture.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    /// A file with this path.
    File(PathBuf),
    /// The standard output, `-` on the command line.
    Output,
}

/// Rotation of a capture's files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Rotate {
    /// Start another file above this size.
    pub(crate) bytes: u64,
    /// Number of newest files to keep; 0 for all.
    pub(crate) files: u64,
}

impl CapturePlan {
    /// A capture of everything that passes, without a bound.
    pub(crate) fn new(place: Place) -> Self {
        let (most, option, outcome) = (u64::MAX, PCAP, CaptureOutcome::default());
        Self { place, snap: WHOLE, rotate: None, filter: None, most, option, outcome }
    }

    /// Begins it, of all these shards; `enough` is set once all frames that there may be are written.
    pub(crate) fn tap(
        &self,
        mut shards: Vec<StackShard>,
        wire: &str,
        enough: Option<&Stop>,
    ) -> Result<Vec<StackShard>, Failure> {
        let Some(first) = shards.first() else { return Ok(shards) };
        let mut tap = self.open(wire, first.device.capabilities().medium, Some(first.clock))?;
        if let Some(stop) = enough {
            tap = tap.until(stop.clone());
        }
        let taps = spread(Some(tap), shards.len());
        shards.iter_mut().zip(taps).for_each(|(shard, tap)| shard.tap = tap);
        Ok(shards)
    }

    /// Begins it. Without a clock time is virtual, and begins in 1970.
    pub(crate) fn open(
        &self,
        wire: &str,
        medium: Medium,
        clock: Option<Clock>,
    ) -> Result<Tap, Failure> {
        let config = TapConfig {
            snap: self.snap,
            zero: clock.map_or(0, |clock| clock.zero_since_1970()),
            filter: self.filter.clone(),
            most: self.most,
            ..TapConfig::new(wire, medium)
        };
        let path = match &self.place {
            Place::Output => {
                let handler = self.outcome.error_handler(self.option, "-".into(), CAPTURE);
                return Ok(Tap::begin_with(Some(handler), config, io::stdout()));
            }
            Place::File(path) => path,
        };
        let handler =
            Some(self.outcome.error_handler(self.option, text::path(path).to_string(), CAPTURE));
        let refused = |path: &Path, error| {
            let path = text::path(path);
            Failure::Run(format!("{} {path}: {error}; use a file that can be written", self.option))
        };
        let Some(Rotate { bytes, files }) = self.rotate else {
            let out = create(path).map_err(|error| refused(path, error))?;
            return Ok(Tap::begin_with(handler, config, out));
        };
        let first = numbered(path, 1);
        let out = create(&first).map_err(|error| refused(&first, error))?;
        let rotation = Rotation { bytes, next: Box::new(successors(path.clone(), files)) };
        Ok(Tap::begin_with(handler, config, out).with_rotation(Some(rotation)))
    }
}

/// A capture for each of `shards`, all into the same files.
pub(crate) fn spread(tap: Option<Tap>, shards: usize) -> Vec<Option<Tap>> {
    let more = |tap: &Tap| (1..shards).map(|_| Some(tap.of_another_shard())).collect();
    let mut taps: Vec<_> = tap.as_ref().map_or_else(|| (1..shards).map(|_| None).collect(), more);
    taps.insert(0, tap);
    taps
}

/// Ends a capture, if there is one; its [`CaptureOutcome`] has the result.
pub(crate) fn finish(tap: Option<Tap>) {
    let _told_already = tap.map(Tap::finish);
}

pub(crate) fn create(path: &Path) -> io::Result<BufWriter<File>> {
    Ok(BufWriter::with_capacity(BUFFER, File::create(path)?))
}

/// The standard output as the place of a capture.
pub(crate) fn standard_output() -> Box<dyn Write + Send> {
    Box::new(io::stdout())
}

/// Opens one file of a capture after another.
pub(crate) type Successors = Box<dyn FnMut() -> io::Result<Box<dyn Write + Send>> + Send>;

/// The files behind the first, of which all but the newest `files` go; none if 0.
pub(crate) fn successors(
    path: PathBuf,
    files: u64,
) -> impl FnMut() -> io::Result<Box<dyn Write + Send>> + Send {
    let mut number = 1_u64;
    move || {
        number += 1;
        if let Some(old) = number.checked_sub(files).filter(|old| files > 0 && *old > 0) {
            // Another process may have removed it.
            let _ = fs::remove_file(numbered(&path, old));
        }
        let path = numbered(&path, number);
        let out = create(&path);
        let named = |error: io::Error| {
            io::Error::new(error.kind(), format!("{}: {error}", text::path(&path)))
        };
        Ok(Box::new(out.map_err(named)?))
    }
}

/// `whim0_00002.pcapng`: names that sort as they were written.
pub(crate) fn numbered(path: &Path, number: u64) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(format!("_{number:05}"));
    match path.extension() {
        Some(extension) => path.with_file_name(name).with_extension(extension),
        None => path.with_file_name(name),
    }
}

/// A capture as typed behind `--pcap`.
pub(crate) fn parse(typed: &str) -> Result<CapturePlan, String> {
    let keys = ["snap", "rotate", "files", "filter"];
    let begins = |key: &str| typed.find(&format!(",{key}="));
    let at = keys.into_iter().filter_map(begins).min().unwrap_or(typed.len());
    let (path, mut rest) = typed.split_at(at);
    if path.is_empty() {
        return Err("give a file, as in --pcap whim0.pcapng".into());
    }
    if let Some(key) = mistaken(path) {
        return Err(format!("{key:?}: {KEYS}"));
    }
    let mut plan = CapturePlan::new(Place::File(path.into()));
    let mut files = None;
    while let Some(option) = rest.strip_prefix(',') {
        if let Some(filter) = option.strip_prefix("filter=") {
            plan.filter = Some(filter.parse().map_err(|error| format!("filter: {error}"))?);
            break;
        }
        let end = option.find(',').unwrap_or(option.len());
        let (option, after) = option.split_at(end);
        rest = after;
        match option.split_once('=') {
            Some(("snap", bytes)) => plan.snap = snap(bytes)?,
            Some(("rotate", bytes)) => plan.rotate = Some(rotate(bytes)?),
            Some(("files", count)) => files = Some(self::files(count)?),
            _ => {
                return Err(format!("{option:?}: {KEYS}"));
            }
        }
    }
    match (&mut plan.rotate, files) {
        (Some(rotate), Some(files)) => rotate.files = files,
        (None, Some(_)) => return Err("files needs rotate=SIZE, as in rotate=100M".into()),
        (_, None) => {}
    }
    Ok(plan)
}

/// Text behind a file's name that looks like a key and is none: it would become a part of the name.
fn mistaken(path: &str) -> Option<&str> {
    let is_word = |key: &str| !key.is_empty() && key.bytes().all(|c| c.is_ascii_lowercase());
    let is_key = |option: &&str| option.split_once('=').is_some_and(|(key, _)| is_word(key));
    path.split(',').skip(1).find(is_key)
}

/// Bytes of each frame.
pub(crate) fn snap(typed: &str) -> Result<usize, String> {
    match typed.parse() {
        Ok(snap @ 1..=WHOLE) => Ok(snap),
        _ => Err(format!("snap={typed}: give 1 to {WHOLE} bytes, as in snap=128")),
    }
}

/// The size of a file.
pub(crate) fn rotate(typed: &str) -> Result<Rotate, String> {
    match size::parse(typed) {
        Ok(bytes @ 1..) => Ok(Rotate { bytes, files: 0 }),
        _ => Err(format!("{typed}: give the size of a file, as in 100M")),
    }
}

/// Number of files to keep.
pub(crate) fn files(typed: &str) -> Result<u64, String> {
    match typed.parse() {
        Ok(files @ 1..) => Ok(files),
        _ => Err(format!("files={typed}: give a number from 1 on, as in files=5")),
    }
}

/// Keys behind a file's name.
const KEYS: &str = "use snap=N, rotate=SIZE, files=N or filter=… after the file";
/// The option of commands that do something else.
const PCAP: &str = "--pcap";
const CAPTURE: &str = "capture";
/// More than any frame has.
const WHOLE: usize = 262_144;
/// Bytes gathered for one write.
const BUFFER: usize = 256 << 10;

#[cfg(test)]
mod tests;
