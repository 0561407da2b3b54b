//! A body in transit, in any framing.

use bytes::Bytes;

use super::Framing;
use super::chunked::{BodyPart, Decoder};
use super::fault::Fault;

/// The rest of a body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BodyReader {
    shape: Shape,
    /// Number of bytes it may still have.
    room: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Shape {
    Length { left: u64 },
    Chunked(Decoder),
}

impl BodyReader {
    /// The body that `framing` announces, of at most `limit` bytes.
    pub fn new(framing: Framing, limit: u64) -> Result<Self, Fault> {
        let shape = match framing {
            Framing::None => Shape::Length { left: 0 },
            Framing::Length(length) if length > limit => return Err(Fault::BodyTooLarge),
            Framing::Length(length) => Shape::Length { left: length },
            Framing::Chunked => Shape::Chunked(Decoder::new()),
        };
        Ok(Self { shape, room: limit })
    }

    /// A response's body, as long as `framing` says.
    pub(crate) const fn of_response(framing: Framing) -> Self {
        let shape = match framing {
            Framing::None => Shape::Length { left: 0 },
            Framing::Length(left) => Shape::Length { left },
            Framing::Chunked => Shape::Chunked(Decoder::of_response()),
        };
        Self { shape, room: u64::MAX }
    }

    /// True if the body is complete.
    pub fn is_complete(&self) -> bool {
        matches!(self.shape, Shape::Length { left: 0 })
    }

    /// The next piece from the front of `input`.
    pub fn next(&mut self, input: &mut Bytes) -> Result<BodyPart, Fault> {
        let piece = match &mut self.shape {
            Shape::Length { left: 0 } => BodyPart::End,
            Shape::Length { .. } if input.is_empty() => BodyPart::More,
            Shape::Length { left } => {
                let count = usize::try_from(*left).unwrap_or(usize::MAX).min(input.len());
                *left -= count as u64;
                BodyPart::Data(input.split_to(count))
            }
            Shape::Chunked(decoder) => decoder.next(input, self.room)?,
        };
        if let BodyPart::Data(bytes) = &piece {
            self.room = self.room.saturating_sub(bytes.len() as u64);
        }
        Ok(piece)
    }
}
