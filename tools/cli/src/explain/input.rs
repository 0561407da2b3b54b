//! Captures piece by piece: of a long one a few hundred kilobytes are in memory at a time.

use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use flate2::read::MultiGzDecoder;
use rustix::fs::OFlags;
use whimbrel_io::Stop;
use whimbrel_io::poll::{Interest, PollFd, ppoll};
use whimbrel_link::reader::{Block, Fault, Packet, ReadError, Reader};

use crate::failure::Failure;

/// A frame of a capture.
pub(super) enum Frame<'a> {
    /// One that can be read.
    Packet(&'a Packet<'a>),
    /// One of an unknown link type.
    Unknown,
}

/// A capture under way.
pub(super) struct Input {
    name: String,
    file: Box<dyn Read>,
    reader: Reader,
    /// A piece of the file, and where its next block begins.
    piece: Vec<u8>,
    next: usize,
    is_last: bool,
    /// Frames of unknown link types so far.
    unknown: u64,
}

/// End of a capture.
pub(super) enum Ended {
    /// The whole file was read.
    Whole,
    /// A signal, or a fault after at least one packet.
    Early(String),
}

impl Input {
    /// Opens a capture. A wait for one who writes a FIFO ends when `stop` is set, as at the end of a file.
    pub(super) fn open(path: &Path, name: &str, stop: &Stop) -> Result<Self, Failure> {
        let unreadable = |error: io::Error| {
            Failure::run(format!("{name} cannot be read: {error}; give a capture"))
        };
        let mut file: Box<dyn Read> = match path.to_str() {
            Some("-") => Box::new(Interruptible { file: io::stdin(), stop: stop.clone() }),
            _ => {
                // A FIFO without a writer would block here.
                let flags = OFlags::NONBLOCK.bits().cast_signed();
                let file = OpenOptions::new().read(true).custom_flags(flags).open(path);
                Box::new(Interruptible { file: file.map_err(unreadable)?, stop: stop.clone() })
            }
        };
        let mut first = Vec::new();
        file.by_ref().take(4).read_to_end(&mut first).map_err(unreadable)?;
        if first == ZSTD {
            let text =
                format!("{name} is compressed by zstd: use zstd -dc FILE | whimbrel explain -");
            return Err(Failure::run(text));
        }
        let is_gzip = first.starts_with(&GZIP);
        let whole = io::Cursor::new(first).chain(file);
        let file: Box<dyn Read> = match is_gzip {
            true => Box::new(MultiGzDecoder::new(whole)),
            false => Box::new(whole),
        };
        let (name, reader) = (name.to_owned(), Reader::of_any_link());
        Ok(Self { name, file, reader, piece: Vec::new(), next: 0, is_last: false, unknown: 0 })
    }

    /// Passes each frame to `take`, until the end, a fault, or a signal. A fault before the first packet is
    /// an error, and so are frames of unknown link types alone.
    pub(super) fn read(
        &mut self,
        stop: &Stop,
        mut take: impl FnMut(Frame<'_>),
    ) -> Result<Ended, Failure> {
        let mut packets = 0u64;
        loop {
            let read = self.read_piece(&mut packets, &mut take);
            // Then what was read ends somewhere.
            if stop.is_set() {
                return Ok(Ended::Early("stopped by a signal".into()));
            }
            match read {
                Ok(true) => {}
                Ok(false) => match self.reader.unknown() {
                    Some((_, number)) if packets == 0 => {
                        let why = Fault::LinkType(number);
                        return Err(Failure::run(format!("{}: {why}", self.name)));
                    }
                    _ => return Ok(Ended::Whole),
                },
                Err(why) if packets > 0 => return Ok(Ended::Early(why)),
                Err(why) => return Err(Failure::run(format!("{}: {why}", self.name))),
            }
        }
    }

    /// Frames of unknown link types, and the number of the first one's, if there are any.
    pub(super) fn unknown(&self) -> Option<(u64, u32)> {
        self.reader.unknown()
    }

    /// Frames that the interfaces' statistics report as dropped.
    pub(super) fn dropped(&self) -> u64 {
        self.reader.dropped()
    }

    /// Reads the packets of the next piece. Returns true if more may follow.
    fn read_piece(
        &mut self,
        packets: &mut u64,
        take: &mut impl FnMut(Frame<'_>),
    ) -> Result<bool, String> {
        self.piece.drain(..self.next);
        self.next = 0;
        self.fill(PIECE)?;
        loop {
            let rest = self.piece.get(self.next..).unwrap_or_default();
            if rest.is_empty() && self.is_last && self.reader.has_begun() {
                return Ok(false);
            }
            match self.reader.block(rest) {
                Ok(Block { len, packet }) => {
                    if let Some(packet) = packet {
                        *packets += 1;
                        take(Frame::Packet(&packet));
                    } else if let Some((count, _)) = self.reader.unknown()
                        && count > self.unknown
                    {
                        self.unknown = count;
                        take(Frame::Unknown);
                    }
                    self.next += len;
                }
                Err(ReadError { fault: Fault::Cut { .. }, .. })
                    if !self.is_last && self.next > 0 =>
                {
                    return Ok(true);
                }
                // The block is longer than a piece.
                Err(ReadError { fault: Fault::Cut { missing }, .. }) if !self.is_last => {
                    self.fill(self.piece.len().saturating_add(missing))?;
                }
                Err(error) => return Err(error.to_string()),
            }
        }
    }

    /// Reads on until `bytes` bytes, or all that are left, are in memory.
    fn fill(&mut self, bytes: usize) -> Result<(), String> {
        let lacking = bytes.saturating_sub(self.piece.len()) as u64;
        let read = self.file.by_ref().take(lacking).read_to_end(&mut self.piece);
        let read = read.map_err(|error| format!("the file cannot be read further: {error}"))?;
        self.is_last = (read as u64) < lacking;
        Ok(())
    }
}

/// A file of which a read waits until there is something, or a stop is set: then it ends.
struct Interruptible<F> {
    file: F,
    stop: Stop,
}

impl<F: Read + AsFd> Read for Interruptible<F> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            let mut fds =
                [PollFd::new(&self.file, Interest::Read), PollFd::new(&self.stop, Interest::Read)];
            ppoll(&mut fds, None)?;
            let is_ready = fds[0].is_readable() || fds[0].is_broken();
            if self.stop.is_set() {
                return Ok(0);
            }
            if is_ready {
                match self.file.read(into) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    read => return read,
                }
            }
        }
    }
}

/// Bytes of the file in memory at a time, unless a block is longer.
const PIECE: usize = 256 << 10;
const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
