//! A loop that makes the copies and sums of a transfer, and nothing else: what any stack could reach.

use std::collections::VecDeque;

use bytes::Bytes;
use whimbrel_wire::Sum;

use super::link::Link;
use super::text::{COPIED, PIECE, Source};
use super::{Case, Check, Copies, Pair};
use crate::Failure;

/// Text out of a source into frames, out of frames into chunks, and where applications copy, out of and into
/// theirs. What an application has written lies in a buffer until all before it was sent.
pub(super) struct Plain {
    source: Source,
    link: Link,
    copies: Copies,
    flows: VecDeque<Flow>,
    frames: Vec<Vec<u8>>,
    /// Storage for arriving text: as much as a burst brings.
    chunks: Vec<u8>,
    read: Vec<u8>,
    carried: u64,
    count: u64,
}

/// Text from one application to another.
#[derive(Default)]
struct Flow {
    /// Text sent by reference.
    piece: Bytes,
    /// Copied text, and behind it as much as fills the buffer.
    written: VecDeque<Vec<u8>>,
    /// Sent bytes of the first piece.
    at: usize,
    /// Bytes that were taken from the source so far, and that were read.
    taken: u64,
    carried: u64,
}

impl Plain {
    pub(super) fn new(case: Case) -> Self {
        let frame = case.link.frame();
        let burst = case.link.burst();
        // Of several flows each has its turn for a part of a burst.
        let share = if case.flows > 1 { (burst / 4).max(1) } else { burst };
        let source = Source::new(case.copies);
        let pieces = case.buffer.begins_with() / COPIED;
        let flows = (0..case.flows).map(|_| Flow::new(&source, case.copies, pieces)).collect();
        Self {
            source,
            link: case.link,
            copies: case.copies,
            flows,
            frames: vec![Vec::with_capacity(frame); share],
            chunks: Vec::with_capacity(share * frame),
            read: Vec::with_capacity(PIECE),
            carried: 0,
            count: 0,
        }
    }

    fn send(&mut self, flow: &mut Flow) {
        let text = self.link.frame() - HEADERS;
        for frame in &mut self.frames {
            let mut sum = Sum::new();
            frame.clear();
            while frame.len() < text {
                let part = flow.next(&self.source, self.copies, text - frame.len());
                if self.link.has_checksums() {
                    sum = sum.add_bytes(part);
                }
                frame.extend_from_slice(part);
            }
            std::hint::black_box(sum.finish());
        }
    }

    fn receive(&mut self, flow: &mut Flow, check: Check) -> Result<(), Failure> {
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
            self.source.check(flow.carried, std::hint::black_box(read), check)?;
            flow.carried += read.len() as u64;
            self.carried += read.len() as u64;
        }
        Ok(())
    }
}

impl Flow {
    fn new(source: &Source, copies: Copies, pieces: usize) -> Self {
        let mut flow = Self::default();
        if copies == Copies::Both {
            for _ in 0..pieces {
                flow.write(source, Vec::with_capacity(COPIED));
            }
        }
        flow
    }

    /// Its application writes the next piece into this.
    fn write(&mut self, source: &Source, mut room: Vec<u8>) {
        let piece = source.piece(self.taken);
        self.taken += piece.len() as u64;
        room.clear();
        room.extend_from_slice(&piece);
        self.written.push_back(room);
    }

    /// Text to send next, at most `most` bytes.
    fn next(&mut self, source: &Source, copies: Copies, most: usize) -> &[u8] {
        let first = match copies {
            Copies::None => self.piece.len(),
            Copies::Both => self.written.front().map_or(0, Vec::len),
        };
        if self.at == first {
            self.at = 0;
            match copies {
                Copies::None => {
                    self.piece = source.piece(self.taken);
                    self.taken += self.piece.len() as u64;
                }
                Copies::Both => {
                    let room = self.written.pop_front().unwrap_or_default();
                    self.write(source, room);
                }
            }
        }
        let whole: &[u8] = match copies {
            Copies::None => &self.piece,
            Copies::Both => self.written.front().map_or(&[], |first| first),
        };
        let part = &whole[self.at..];
        let part = &part[..most.min(part.len())];
        self.at += part.len();
        part
    }
}

impl Pair for Plain {
    fn carry(&mut self, bytes: u64, check: Check) -> Result<(), Failure> {
        let goal = self.carried + bytes;
        while self.carried < goal {
            let Some(mut flow) = self.flows.pop_front() else { break };
            self.send(&mut flow);
            self.receive(&mut flow, check)?;
            self.flows.push_back(flow);
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
