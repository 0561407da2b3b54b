//! The chunked transfer coding (RFC 9112 7.1), strict about every line end.

use bytes::{Buf, Bytes};

use super::fault::Fault;

/// Decoder of a chunked body. The bytes of a chunk pass through without a copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Decoder {
    place: Place,
    /// Bytes left for extensions and trailers.
    extra: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    /// In the digits of a chunk's size.
    Size { value: u64, digits: u8 },
    /// In the extensions after the size.
    Extension { size: u64 },
    /// After the CR of the size's line.
    SizeEnd { size: u64 },
    /// In a chunk's bytes.
    Data { left: u64 },
    /// After the data, before CR.
    DataEnd,
    /// After the data and CR, before LF.
    DataFeed,
    /// In the trailers, after this many bytes of the current line.
    Trailer { column: usize },
    /// After the CR of a trailer's line.
    TrailerFeed { column: usize },
    /// After the last LF.
    End,
}

/// Output of a decoder.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BodyPart {
    /// Bytes of the body; never empty.
    Data(Bytes),
    /// The input is used up, and the body goes on.
    More,
    /// The body is complete.
    End,
}

impl Decoder {
    /// A decoder at the beginning of a request's body: extensions and trailers have 4 KiB together.
    pub const fn new() -> Self {
        Self { place: Place::Size { value: 0, digits: 0 }, extra: MAX_EXTRA }
    }

    /// A decoder of a response's body, whose extensions and trailers are discarded and not limited.
    pub const fn of_response() -> Self {
        Self { extra: usize::MAX, ..Self::new() }
    }

    /// The next piece of the body from the front of `input`. `room` is the number of bytes that the
    /// body may still have.
    pub fn next(&mut self, input: &mut Bytes, room: u64) -> Result<BodyPart, Fault> {
        loop {
            match self.place {
                Place::End => return Ok(BodyPart::End),
                Place::Data { left } => {
                    if input.is_empty() {
                        return Ok(BodyPart::More);
                    }
                    return Ok(BodyPart::Data(self.data(input, left)));
                }
                _ => {}
            }
            let Some(byte) = input.first().copied() else { return Ok(BodyPart::More) };
            input.advance(1);
            self.place = self.after(byte, room)?;
        }
    }

    fn data(&mut self, input: &mut Bytes, left: u64) -> Bytes {
        let count = usize::try_from(left).unwrap_or(usize::MAX).min(input.len());
        let left = left - count as u64;
        self.place = if left == 0 { Place::DataEnd } else { Place::Data { left } };
        input.split_to(count)
    }

    /// The state after `byte`, outside of a chunk's bytes.
    fn after(&mut self, byte: u8, room: u64) -> Result<Place, Fault> {
        match (self.place, byte) {
            (Place::Size { value, digits }, _) => self.after_size(value, digits, byte),
            (Place::Extension { size }, b'\r') => Ok(Place::SizeEnd { size }),
            (Place::Extension { size }, _) => {
                self.spend(byte)?;
                Ok(Place::Extension { size })
            }
            (Place::SizeEnd { size: 0 }, b'\n') => Ok(Place::Trailer { column: 0 }),
            (Place::SizeEnd { size }, b'\n') if size > room => Err(Fault::BodyTooLarge),
            (Place::SizeEnd { size }, b'\n') => Ok(Place::Data { left: size }),
            (Place::DataEnd, b'\r') => Ok(Place::DataFeed),
            (Place::DataFeed, b'\n') => Ok(Place::Size { value: 0, digits: 0 }),
            (Place::Trailer { column }, b'\r') => Ok(Place::TrailerFeed { column }),
            (Place::Trailer { column }, _) => {
                self.spend(byte)?;
                Ok(Place::Trailer { column: column + 1 })
            }
            (Place::TrailerFeed { column: 0 }, b'\n') => Ok(Place::End),
            (Place::TrailerFeed { .. }, b'\n') => Ok(Place::Trailer { column: 0 }),
            (Place::DataEnd, _) => Err(Fault::Malformed("a chunk is longer than its size says")),
            _ => Err(Fault::Malformed("lines of chunks end with CRLF")),
        }
    }

    fn after_size(&mut self, value: u64, digits: u8, byte: u8) -> Result<Place, Fault> {
        match (byte, char::from(byte).to_digit(16)) {
            (_, Some(digit)) if digits < MAX_DIGITS => {
                Ok(Place::Size { value: value << 4 | u64::from(digit), digits: digits + 1 })
            }
            (_, Some(_)) => Err(Fault::BodyTooLarge),
            (_, None) if digits == 0 => Err(Fault::Malformed("a chunk begins with its size")),
            (b'\r', None) => Ok(Place::SizeEnd { size: value }),
            (b';' | b' ' | b'\t', None) => {
                self.spend(byte)?;
                Ok(Place::Extension { size: value })
            }
            _ => Err(Fault::Malformed("a chunk's size is hexadecimal")),
        }
    }

    /// Discards a byte of an extension or trailer, up to the limit.
    fn spend(&mut self, byte: u8) -> Result<(), Fault> {
        if byte.is_ascii_control() && byte != b'\t' {
            return Err(Fault::Malformed("a control character between chunks"));
        }
        self.extra = self.extra.checked_sub(1).ok_or(Fault::HeadTooLarge)?;
        Ok(())
    }
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new()
    }
}

/// The most hexadecimal digits of a size: 64 bits.
const MAX_DIGITS: u8 = 16;
/// The most bytes of extensions and trailers of one body.
const MAX_EXTRA: usize = 4 << 10;

#[cfg(test)]
mod tests;
