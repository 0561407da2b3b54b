//! A loop that makes the copies and sums of a transfer, and nothing else: what any stack could reach.

use bytes::Bytes;
use whimbrel_wire::Sum;

use super::link::{BURST_FRAMES, BURST_OCTETS, Link};
use super::text::{PIECE, Source};
use super::{Case, Check, Copies, Pair};
use crate::Failure;

/// Text out of a source into frames, out of frames into chunks, and where applications copy, out of and into
/// theirs.
pub(super) struct Plain {
    source: Source,
    link: Link,
    copies: Copies,
    /// What the application writes from, and how much of it was sent.
    piece: Bytes,
    written: Vec<u8>,
    at: usize,
    frames: Vec<Vec<u8>>,
    /// Where what arrives is kept: as much as a burst brings.
    chunks: Vec<u8>,
    read: Vec<u8>,
    sent: u64,
    carried: u64,
    count: u64,
}

impl Plain {
    pub(super) fn new(case: Case) -> Self {
        let frame = case.link.frame();
        let burst = (BURST_OCTETS / frame).clamp(1, BURST_FRAMES);
        Self {
            source: Source::new(),
            link: case.link,
            copies: case.copies,
            piece: Bytes::new(),
            written: Vec::with_capacity(PIECE),
            at: 0,
            frames: vec![Vec::with_capacity(frame); burst],
            chunks: Vec::with_capacity(burst * frame),
            read: Vec::with_capacity(PIECE),
            sent: 0,
            carried: 0,
            count: 0,
        }
    }

    fn send(&mut self) {
        let text = self.link.frame() - HEADERS;
        for frame in &mut self.frames {
            let mut sum = Sum::new();
            frame.clear();
            while frame.len() < text {
                if self.at == self.piece.len() {
                    self.piece = self.source.piece(self.sent);
                    self.at = 0;
                    if self.copies == Copies::Both {
                        self.written.clear();
                        self.written.extend_from_slice(&self.piece);
                    }
                }
                let whole = match self.copies {
                    Copies::None => &self.piece[..],
                    Copies::Both => &self.written[..],
                };
                let take = (text - frame.len()).min(whole.len() - self.at);
                let part = &whole[self.at..][..take];
                if self.link.has_checksums() {
                    sum = sum.add_bytes(part);
                }
                frame.extend_from_slice(part);
                self.at += take;
                self.sent += take as u64;
            }
            std::hint::black_box(sum.finish());
        }
    }

    fn receive(&mut self, check: Check) -> Result<(), Failure> {
        self.chunks.clear();
        for frame in &self.frames {
            if self.link.has_checksums() {
                std::hint::black_box(Sum::new().add_bytes(frame).finish());
            }
            self.chunks.extend_from_slice(frame);
            self.count += 1;
        }
        for piece in self.chunks.chunks(PIECE) {
            let read = match self.copies {
                Copies::None => piece,
                Copies::Both => {
                    self.read.clear();
                    self.read.extend_from_slice(piece);
                    &self.read
                }
            };
            self.source.check(self.carried, std::hint::black_box(read), check)?;
            self.carried += read.len() as u64;
        }
        Ok(())
    }
}

impl Pair for Plain {
    fn carry(&mut self, octets: u64, check: Check) -> Result<(), Failure> {
        let goal = self.carried + octets;
        while self.carried < goal {
            self.send();
            self.receive(check)?;
        }
        Ok(())
    }

    fn carried(&self) -> u64 {
        self.carried
    }

    fn frames(&self) -> u64 {
        self.count
    }
}

/// Bytes of a frame that are not text.
const HEADERS: usize = 52;
