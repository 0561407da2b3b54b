//! Captures piece by piece: of a long one a few hundred kilobytes are in memory at a time.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;
use whimbrel_io::Stop;
use whimbrel_link::reader::{Block, Fault, Packet, ReadError, Reader};

use crate::failure::Failure;

/// A capture under way.
pub(super) struct Input {
    name: String,
    file: Box<dyn Read>,
    reader: Reader,
    /// A piece of the file, and where its next block begins.
    piece: Vec<u8>,
    next: usize,
    is_last: bool,
}

/// End of a capture.
pub(super) enum Ended {
    /// The whole file was read.
    Whole,
    /// A signal, or a fault after at least one packet.
    Early(String),
}

impl Input {
    pub(super) fn open(path: &Path, name: &str) -> Result<Self, Failure> {
        let unreadable = |error: io::Error| {
            Failure::run(format!("{name} cannot be read: {error}; give a capture"))
        };
        let mut file: Box<dyn Read> = match path.to_str() {
            Some("-") => Box::new(io::stdin()),
            _ => Box::new(File::open(path).map_err(unreadable)?),
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
        Ok(Self { name, file, reader, piece: Vec::new(), next: 0, is_last: false })
    }

    /// Passes each packet to `take`, until the end, a fault, or a signal. A fault before the first packet is
    /// an error.
    pub(super) fn read(
        &mut self,
        stop: &Stop,
        mut take: impl FnMut(&Packet<'_>),
    ) -> Result<Ended, Failure> {
        let mut packets = 0u64;
        loop {
            if stop.is_set() {
                return Ok(Ended::Early("stopped by a signal".into()));
            }
            match self.read_piece(&mut packets, &mut take) {
                Ok(true) => {}
                Ok(false) => return Ok(Ended::Whole),
                Err(why) if packets > 0 => return Ok(Ended::Early(why)),
                Err(why) => return Err(Failure::run(format!("{}: {why}", self.name))),
            }
        }
    }

    /// Frames that the interfaces' statistics report as dropped.
    pub(super) fn dropped(&self) -> u64 {
        self.reader.dropped()
    }

    /// Reads the packets of the next piece. Returns true if more may follow.
    fn read_piece(
        &mut self,
        packets: &mut u64,
        take: &mut impl FnMut(&Packet<'_>),
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
                        take(&packet);
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

/// Bytes of the file in memory at a time, unless a block is longer.
const PIECE: usize = 256 << 10;
const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
