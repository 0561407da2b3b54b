//! Reads a capture piece by piece; of a long one a few hundred kilobytes are in memory at a time.

use std::fs::File;
use std::io::{self, Cursor, Read};
use std::ops::Range;
use std::path::Path;

use whimbrel_link::pcapng::LinkType;
use whimbrel_link::reader::{Block, Fault, Packet, ReadError, Reader};

use super::PcapError;

/// A reader of a capture.
pub(super) struct CaptureReader {
    file: Box<dyn Read + Send>,
    reader: Reader,
    /// A piece of the file.
    piece: Vec<u8>,
    /// Offset in the piece where the next block begins.
    next: usize,
    /// True if nothing follows the piece.
    last: bool,
}

/// Source of a capture, which may be read more than once.
pub(super) enum Source {
    /// A file, reopened each time.
    File,
    /// The whole content of an input that cannot be read twice, such as a pipe.
    Memory(Vec<u8>),
}

/// Position of a packet's bytes in the piece in memory.
#[derive(Clone, Debug)]
pub(super) struct Place(Range<usize>);

impl Source {
    /// Opens the source at `path`.
    pub(super) fn find(path: &Path) -> io::Result<Self> {
        let mut file = File::open(path)?;
        if file.metadata()?.is_file() {
            return Ok(Self::File);
        }
        let mut whole = Vec::new();
        file.read_to_end(&mut whole)?;
        Ok(Self::Memory(whole))
    }

    /// Starts reading from the beginning. [`Pass::Last`] moves the content out of memory.
    pub(super) fn rewind(&mut self, path: &Path, pass: Pass) -> io::Result<CaptureReader> {
        let file: Box<dyn Read + Send> = match (self, pass) {
            (Self::File, _) => Box::new(File::open(path)?),
            (Self::Memory(whole), Pass::Last) => Box::new(Cursor::new(std::mem::take(whole))),
            (Self::Memory(whole), Pass::First) => Box::new(Cursor::new(whole.clone())),
        };
        let (reader, piece) = (Reader::new(), Vec::new());
        Ok(CaptureReader { file, reader, piece, next: 0, last: false })
    }
}

/// A reading of a capture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Pass {
    /// Another one follows.
    First,
    /// It is the last: the content in memory is released.
    Last,
}

impl CaptureReader {
    /// Returns the link type of its packets so far.
    pub(super) fn link_type(&self) -> Option<LinkType> {
        self.reader.link_type()
    }

    /// Reads the next piece: passes each of its packets to `take`, with its place. Returns whether
    /// more may follow.
    pub(super) fn read_next(
        &mut self,
        path: &Path,
        mut take: impl FnMut(&Packet<'_>, Place),
    ) -> Result<bool, PcapError> {
        let unreadable = |error| PcapError::Unreadable { path: path.into(), error };
        self.piece.drain(..self.next);
        self.next = 0;
        self.fill(PIECE).map_err(unreadable)?;
        loop {
            let rest = self.piece.get(self.next..).unwrap_or_default();
            // An empty file is no capture.
            if rest.is_empty() && self.last && self.reader.has_begun() {
                return Ok(false);
            }
            match self.reader.block(rest) {
                Ok(Block { len, packet }) => {
                    if let Some(packet) = packet {
                        let from = self.next + offset(rest, packet.bytes);
                        take(&packet, Place(from..from + packet.bytes.len()));
                    }
                    self.next += len;
                }
                Err(ReadError { fault: Fault::Cut { missing }, .. }) if !self.last => {
                    if self.next > 0 {
                        return Ok(true);
                    }
                    // The block is longer than a piece.
                    self.fill(self.piece.len() + missing).map_err(unreadable)?;
                }
                Err(error) => return Err(PcapError::Damaged { path: path.into(), error }),
            }
        }
    }

    /// Returns the bytes of a packet of the piece read last.
    pub(super) fn bytes(&self, place: &Place) -> &[u8] {
        self.piece.get(place.0.clone()).unwrap_or_default()
    }

    /// Reads on until `bytes` bytes of the file, or all that are left, are in memory.
    fn fill(&mut self, bytes: usize) -> io::Result<()> {
        let lacking = bytes.saturating_sub(self.piece.len()) as u64;
        let read = self.file.by_ref().take(lacking).read_to_end(&mut self.piece)?;
        self.last = (read as u64) < lacking;
        Ok(())
    }
}

/// Returns the offset of `part` in `whole`, which contains it.
fn offset(whole: &[u8], part: &[u8]) -> usize {
    part.as_ptr().addr().saturating_sub(whole.as_ptr().addr())
}

impl std::fmt::Debug for CaptureReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tape").field("piece", &self.piece.len()).field("next", &self.next).finish()
    }
}

/// Bytes of the file in memory at a time, unless a block is longer.
const PIECE: usize = 256 << 10;
