//! The site for measuring: each path has the same body, and uploads are counted and discarded.

use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;

use bytes::Bytes;

use super::{
    Body, BodySource, Method, RangeOutcome, Request, Response, Site, SiteResponse, SourceError,
};
use super::{Status, Upload};

/// Answers GET of any path with a body of fixed length, in a pattern that shows each byte's
/// position. Answers POST or PUT with the length and CRC-32 of the upload.
#[derive(Clone, Debug)]
pub struct FixedBody {
    length: u64,
    block: Bytes,
}

impl FixedBody {
    /// A site whose bodies have `length` bytes.
    pub fn new(length: u64) -> Self {
        let block = usize::try_from(length).unwrap_or(usize::MAX).min(BLOCK);
        Self { length, block: pattern(block) }
    }

    /// `length` bytes from `first` on.
    fn body(&self, first: u64, length: u64) -> Body {
        let period = self.block.len().max(1) as u64;
        let start = usize::try_from(first % period).unwrap_or(0);
        let end = usize::try_from(length).ok().and_then(|length| start.checked_add(length));
        match end.filter(|end| *end <= self.block.len()) {
            Some(end) => Body::Bytes(self.block.slice(start..end)),
            None => {
                let source = Pattern { block: self.block.clone(), at: first, left: length };
                Body::Source { length, source: Box::new(source) }
            }
        }
    }

    fn representation(&self, request: &Request<'_>) -> Response {
        match request.range(self.length) {
            RangeOutcome::Whole => Response::new(Status::OK, MEDIA_TYPE, self.body(0, self.length)),
            RangeOutcome::Part(range) => {
                let body = self.body(range.first, range.length());
                Response::partial(range, self.length, MEDIA_TYPE, body)
            }
            RangeOutcome::Unsatisfiable => Response::range_not_satisfiable(self.length),
        }
    }
}

impl Site for FixedBody {
    fn respond(&mut self, request: &Request<'_>) -> SiteResponse {
        match request.method {
            Method::Get | Method::Head => self.representation(request).into(),
            Method::Post | Method::Put => SiteResponse::Upload(Box::new(Sum::default())),
            _ => Response::method_not_allowed("GET, HEAD, POST, PUT").into(),
        }
    }
}

/// A piece of the pattern: slices of one block, without a copy.
struct Pattern {
    block: Bytes,
    at: u64,
    left: u64,
}

impl BodySource for Pattern {
    fn read(&mut self, at_most: usize) -> Result<Bytes, SourceError> {
        let period = self.block.len().max(1) as u64;
        let start = usize::try_from(self.at % period).unwrap_or(0);
        let left = usize::try_from(self.left).unwrap_or(usize::MAX);
        let count = left.min(at_most).min(self.block.len().saturating_sub(start));
        self.at += count as u64;
        self.left -= count as u64;
        Ok(self.block.slice(start..start + count))
    }
}

/// Counts an upload and discards it.
#[derive(Default)]
struct Sum {
    bytes: u64,
    crc: crc32fast::Hasher,
}

impl Upload for Sum {
    fn write(&mut self, bytes: &[u8]) -> Result<(), Response> {
        self.bytes += bytes.len() as u64;
        self.crc.update(bytes);
        Ok(())
    }

    fn finish(self: Box<Self>) -> Response {
        let text = format!("{} bytes, crc32 {:08x}\n", self.bytes, self.crc.finalize());
        Response::text(Status::OK, text)
    }
}

/// Lines of 64 bytes, each beginning with its own offset within the block.
fn pattern(length: usize) -> Bytes {
    let mut bytes = Vec::with_capacity(length.next_multiple_of(LINE));
    while bytes.len() < length {
        let line = format!("{:08} {FILLER}\n", bytes.len());
        bytes.extend_from_slice(line.as_bytes());
    }
    bytes.truncate(length);
    if let Some(last) = bytes.last_mut() {
        *last = b'\n';
    }
    Bytes::from(bytes)
}

/// The largest block, bytes. Longer bodies repeat it.
const BLOCK: usize = 256 << 10;
const LINE: usize = 64;
const FILLER: &str = "whimbrels fly through storms, and oceans in one flight";
const MEDIA_TYPE: &str = "text/plain; charset=us-ascii";
const _: () = assert!(FILLER.len() + 10 == LINE);

#[cfg(test)]
mod tests;
