//! The TCP header (RFC 9293 3.1). The caller computes its checksum: payloads come in slices, and
//! devices may compute it.

mod accurate_ecn;
mod fast_open;
mod flags;
mod kinds;
mod option_order;
mod options;
mod sack;
mod strip;
mod view;

pub use accurate_ecn::{AccurateEcn, AccurateEcnOrder};
pub use fast_open::FastOpen;
pub use flags::TcpFlags;
pub use option_order::OptionOrder;
pub use options::{Authentication, Opening, TcpOptions, Timestamps, UserTimeout};
pub use sack::{SackBlock, SackBlocks};
pub use strip::{StrippedOptions, strip_accurate_ecn};
pub use view::{OptionsView, TcpView};

use crate::cursor::Writer;
use crate::{ParseError, RawWindow, SeqNum};

/// A TCP header with its options.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TcpHeader {
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
    /// Options that this stack knows, parsed.
    pub options: TcpOptions,
}

impl TcpHeader {
    /// Length of a header without options, in bytes.
    pub const LEN: usize = 20;
    /// Length of the longest header, in bytes.
    pub const MAX_LEN: usize = 60;
    /// Bytes from the start of the header to its checksum.
    pub const CHECKSUM_OFFSET: usize = 16;

    /// Parses the header. Returns its length in bytes, too, 20 ..= 60: the offset of the text. The
    /// checksum is ignored.
    pub fn parse(segment: &[u8]) -> Result<(Self, usize), ParseError> {
        TcpView::parse(segment).map(|(view, header_len)| (view.whole(), header_len))
    }

    /// Returns the bytes that [`TcpHeader::emit`] writes, 20 ..= 60.
    #[inline]
    pub fn header_len(&self, order: OptionOrder) -> usize {
        self.options.encoded_len(order).wrapping_add(Self::LEN)
    }

    /// Writes the header to the front of `buf` with a checksum of 0; returns its bytes.
    ///
    /// Options that do not fit in 40 bytes are left out, see [`TcpOptions::encode`].
    ///
    /// # Panics
    /// If `buf` is shorter than [`TcpHeader::header_len`]; [`TcpHeader::MAX_LEN`] always suffices.
    #[inline]
    pub fn emit(&self, order: OptionOrder, buf: &mut [u8]) -> usize {
        let (fixed, rest) =
            buf.split_first_chunk_mut::<{ Self::LEN }>().expect("buffer shorter than what is sent");
        let header_len = self.options.encode(order, rest).wrapping_add(Self::LEN);
        let mut fields = Writer(fixed);
        fields.u16(self.src_port);
        fields.u16(self.dst_port);
        fields.u32(self.seq.raw());
        fields.u32(self.ack.raw());
        fields.u16(((header_len >> 2) as u16) << 12 | self.flags.bits());
        fields.u16(self.window.get());
        fields.u16(0);
        fields.u16(self.urgent);
        header_len
    }

    /// Writes the checksum of an emitted header.
    ///
    /// # Panics
    /// If `header` is shorter than [`TcpHeader::LEN`].
    #[inline]
    pub fn set_checksum(header: &mut [u8], checksum: u16) {
        let fixed = header.first_chunk_mut::<{ Self::LEN }>().expect("a whole TCP header");
        Writer(fixed.split_at_mut(Self::CHECKSUM_OFFSET).1).u16(checksum);
    }
}

const _: () = assert!(size_of::<TcpHeader>() <= 112);

#[cfg(test)]
mod tests;
