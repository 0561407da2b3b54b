//! A TCP header where it arrived: its fields as values, its options left where they lie.
//!
//! Nearly every segment has timestamps or nothing. They are read at once, and the other options by
//! whoever asks for them: values of all that may be there are 96 bytes, and a burst of headers is
//! handed on by value.

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
    /// SEG.SEQ: the number of the SYN if there is one, else of the first byte of text.
    pub seq: SeqNum,
    /// SEG.ACK: the next number the sender expects; meaningless without [`TcpFlags::ACK`].
    pub ack: SeqNum,
    /// The control bits (SYN, ACK, FIN, …).
    pub flags: TcpFlags,
    /// SEG.WND as it stands in the header, unscaled.
    pub window: RawWindow,
    /// SEG.UP: bytes from `seq` to urgent data's end; meaningless without [`TcpFlags::URG`].
    pub urgent: u16,
    /// The options, each read when it is asked for.
    pub options: OptionsView<'a>,
}

/// The options of a segment that arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OptionsView<'a> {
    /// Kind 8 (RFC 7323 3.2).
    pub timestamps: Option<Timestamps>,
    /// All options, if there are others.
    bytes: &'a [u8],
    /// What these are like.
    others: Others,
}

/// What is among the options of a segment beside timestamps.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Others {
    /// No other option.
    #[default]
    None,
    /// What nearly every SYN has, where it has that.
    UsualSyn,
    /// SACK blocks, and maybe more.
    Sack,
    /// Options that few segments have.
    Rare,
}

impl<'a> TcpView<'a> {
    /// The header and its length in bytes, 20 ..= 60: where the text begins. The checksum is not
    /// looked at.
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

    /// The same with every option read.
    pub fn whole(&self) -> TcpHeader {
        let Self { src_port, dst_port, seq, ack, flags, window, urgent, options } = *self;
        let options = options.whole();
        TcpHeader { src_port, dst_port, seq, ack, flags, window, urgent, options }
    }
}

impl<'a> OptionsView<'a> {
    /// Timestamps and nothing else.
    pub const fn only(timestamps: Option<Timestamps>) -> Self {
        Self { timestamps, bytes: &[], others: Others::None }
    }

    #[inline]
    pub(crate) fn read(bytes: &'a [u8]) -> Self {
        if bytes.is_empty() {
            return Self::only(None);
        }
        // What nearly every segment has.
        if let Some((timestamps, [])) = Timestamps::first_of(bytes, [NOP, NOP, TIMESTAMPS, 10]) {
            return Self::only(Some(timestamps));
        }
        Self::read_rare(bytes)
    }

    fn read_rare(bytes: &'a [u8]) -> Self {
        // What nearly every SYN has.
        if let Some(options) = TcpOptions::parse_usual_syn(bytes) {
            return Self { timestamps: options.timestamps, bytes, others: Others::UsualSyn };
        }
        let options = TcpOptions::parse(bytes);
        let others = if options.sack.is_empty() { Others::Rare } else { Others::Sack };
        Self { timestamps: options.timestamps, bytes, others }
    }

    /// True if there is a SACK option.
    #[inline]
    pub const fn has_sack(&self) -> bool {
        matches!(self.others, Others::Sack)
    }

    /// The blocks of a SACK option, if there is one.
    #[inline]
    pub fn sack(&self) -> Option<SackBlocks> {
        self.has_sack().then(|| self.whole().sack)
    }

    /// What those of a SYN offer.
    // Not by way of all that could be there: each passive and each active open would make those 96 bytes.
    #[inline]
    pub fn opening(&self) -> Opening {
        match (self.others, self.bytes) {
            (Others::UsualSyn, &[_, _, a, b, .., shift]) => Opening {
                mss: Some(Mss::new(u16::from_be_bytes([a, b]))),
                window_scale: Some(WindowScale::new(shift)),
                sack_permitted: true,
            },
            _ => self.rare_opening(),
        }
    }

    #[inline(never)]
    fn rare_opening(&self) -> Opening {
        self.whole().opening()
    }

    /// Reads every option that this stack knows.
    pub fn whole(&self) -> TcpOptions {
        TcpOptions { timestamps: self.timestamps, ..TcpOptions::parse(self.bytes) }
    }
}

#[cfg(test)]
mod tests;
