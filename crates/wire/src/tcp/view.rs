//! A TCP header in the received packet: its fields as values, its options in place.
//!
//! Nearly every segment has timestamps or no options. These are parsed at once, and other options
//! on request: the values of all options take 96 bytes, and a burst of headers is passed by value.

use super::kinds::{NOP, TIMESTAMPS};
use super::options::{Opening, TcpOptions, Timestamps};
use super::{SackBlocks, TcpFlags, TcpHeader};
use crate::cursor::Reader;
use crate::{Mss, ParseError, RawWindow, SeqNum, WindowScale};

/// A TCP header that arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TcpView<'a> {
    /// Source port: the sender's.
    pub src_port: u16,
    /// Destination port: the receiver's.
    pub dst_port: u16,
    /// SEG.SEQ: the number of the SYN if there is one, otherwise of the first byte of text.
    pub seq: SeqNum,
    /// SEG.ACK: the next number the sender expects; meaningless without [`TcpFlags::ACK`].
    pub ack: SeqNum,
    /// The control bits (SYN, ACK, FIN, …).
    pub flags: TcpFlags,
    /// SEG.WND: the field of the header, unscaled.
    pub window: RawWindow,
    /// SEG.UP: bytes from `seq` to urgent data's end; meaningless without [`TcpFlags::URG`].
    pub urgent: u16,
    /// Options, each parsed on request.
    pub options: OptionsView<'a>,
}

/// The options of a segment that arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OptionsView<'a> {
    /// Kind 8 (RFC 7323 3.2).
    pub timestamps: Option<Timestamps>,
    /// All options, if there are others than timestamps.
    bytes: &'a [u8],
    /// Kind of the other options.
    others: OtherOptions,
}

/// Kind of the options of a segment other than timestamps, and the values of a SYN's.
// In one register: what a segment has of them is decided for each that arrives.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct OtherOptions(u16);

impl OtherOptions {
    /// No other option.
    const NONE: Self = Self(0);
    /// SACK blocks, and maybe more.
    const SACK: Self = Self(1);
    /// Options that few segments have.
    const RARE: Self = Self(2);
    /// Bit: those of nearly every SYN, with MSS in front.
    const SYN: u16 = 1 << 15;
    /// Bit: SACK-permitted is among them.
    const SACK_PERMITTED: u16 = 1 << 14;
    /// Bit: window scale is among them, in the lower bits.
    const WINDOW_SCALE: u16 = 1 << 13;

    const fn of_usual_syn(scale: WindowScale) -> Self {
        Self(Self::SYN | Self::SACK_PERMITTED | Self::WINDOW_SCALE | scale.get() as u16)
    }

    fn of_syn(opening: &Opening) -> Self {
        let sack = if opening.sack_permitted { Self::SACK_PERMITTED } else { 0 };
        let scale = opening.window_scale.map_or(0, |it| Self::WINDOW_SCALE | u16::from(it.get()));
        Self(Self::SYN | sack | scale)
    }

    /// Returns the options of a SYN that announces this MSS.
    fn opening(self, mss: Mss) -> Opening {
        let has = |bit| self.0 & bit != 0;
        let window_scale = has(Self::WINDOW_SCALE).then(|| WindowScale::new(self.0 as u8));
        Opening::usual(mss, window_scale, has(Self::SACK_PERMITTED))
    }
}

impl<'a> TcpView<'a> {
    /// Parses the header. Returns its length in bytes, too, 20 ..= 60: the offset of the text. The
    /// checksum is ignored.
    #[inline]
    pub fn parse(segment: &'a [u8]) -> Result<(Self, usize), ParseError> {
        let (fixed, rest) =
            segment.split_first_chunk::<{ TcpHeader::LEN }>().ok_or(ParseError::Truncated)?;
        let mut fields = Reader(fixed);
        let (src_port, dst_port) = (fields.u16()?, fields.u16()?);
        let (seq, ack) = (SeqNum::new(fields.u32()?), SeqNum::new(fields.u32()?));
        let offset_flags = fields.u16()?;
        let header_len = usize::from(offset_flags >> 12).wrapping_mul(4);
        let options_len =
            header_len.checked_sub(TcpHeader::LEN).ok_or(ParseError::BadHeaderLength)?;
        let options = rest.get(..options_len).ok_or(ParseError::Truncated)?;
        let (window, _checksum, urgent) = (fields.u16()?, fields.u16()?, fields.u16()?);
        let flags = TcpFlags::from_bits(offset_flags);
        let window = RawWindow::new(window);
        let options = OptionsView::read(options);
        let view = Self { src_port, dst_port, seq, ack, flags, window, urgent, options };
        Ok((view, header_len))
    }

    /// Returns the header with every option parsed.
    pub fn whole(&self) -> TcpHeader {
        let Self { src_port, dst_port, seq, ack, flags, window, urgent, options } = *self;
        let options = options.whole();
        TcpHeader { src_port, dst_port, seq, ack, flags, window, urgent, options }
    }
}

impl<'a> OptionsView<'a> {
    /// Creates options that are timestamps or nothing.
    pub const fn only(timestamps: Option<Timestamps>) -> Self {
        Self { timestamps, bytes: &[], others: OtherOptions::NONE }
    }

    #[inline]
    pub(crate) fn read(bytes: &'a [u8]) -> Self {
        if bytes.is_empty() {
            return Self::only(None);
        }
        // Nearly every segment has these.
        if let Some((timestamps, [])) = Timestamps::first_of(bytes, [NOP, NOP, TIMESTAMPS, 10]) {
            return Self::only(Some(timestamps));
        }
        Self::read_rare(bytes)
    }

    fn read_rare(bytes: &'a [u8]) -> Self {
        // Nearly every SYN has these.
        if let Some((timestamps, scale)) = Opening::parse_usual(bytes) {
            let others = OtherOptions::of_usual_syn(scale);
            return Self { timestamps: Some(timestamps), bytes, others };
        }
        let (timestamps, others) = Self::look_for_others(bytes);
        Self { timestamps, bytes, others }
    }

    #[inline(never)]
    fn look_for_others(bytes: &[u8]) -> (Option<Timestamps>, OtherOptions) {
        if let Some((opening, timestamps)) = Opening::parse_aligned(bytes) {
            return (timestamps, OtherOptions::of_syn(&opening));
        }
        let options = TcpOptions::parse(bytes);
        let others = if options.sack.is_empty() { OtherOptions::RARE } else { OtherOptions::SACK };
        (options.timestamps, others)
    }

    /// True if there is a SACK option.
    #[inline]
    pub const fn has_sack(&self) -> bool {
        self.others.0 == OtherOptions::SACK.0
    }

    /// Returns the blocks of a SACK option, if there is one.
    #[inline]
    pub fn sack(&self) -> Option<SackBlocks> {
        self.has_sack().then(|| self.whole().sack)
    }

    /// Returns the options that a SYN offers.
    // This avoids `whole`, whose 96 bytes each passive and each active open would write.
    #[inline]
    pub fn opening(&self) -> Opening {
        match self.bytes {
            &[_, _, a, b, ..] if self.others.0 & OtherOptions::SYN != 0 => {
                self.others.opening(Mss::new(u16::from_be_bytes([a, b])))
            }
            _ => self.rare_opening(),
        }
    }

    #[inline(never)]
    fn rare_opening(&self) -> Opening {
        self.whole().opening()
    }

    /// Parses every option that this stack knows.
    pub fn whole(&self) -> TcpOptions {
        TcpOptions { timestamps: self.timestamps, ..TcpOptions::parse(self.bytes) }
    }
}

const _: () = assert!(size_of::<OptionsView>() <= 32);

#[cfg(test)]
mod tests;
