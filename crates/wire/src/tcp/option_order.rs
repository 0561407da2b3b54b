//! Encoding of options, and their order, which receivers ignore and which identifies a stack.

use super::kinds::{
    END_OF_LIST, EXPERIMENT, FAST_OPEN, MSS, NOP, SACK, SACK_PERMITTED, TIMESTAMPS, USER_TIMEOUT,
    WINDOW_SCALE,
};
use super::options::{TcpOptions, Timestamps};
use crate::cursor::Writer;
use crate::{Mss, WindowScale};

/// Order of options in a SYN. Data segments are the same in all orders: two NOPs and timestamps,
/// two NOPs and SACK.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum OptionOrder {
    /// MSS, SACK-permitted and timestamps, NOP and window scale; NOPs pad.
    #[default]
    Linux,
    /// MSS, NOP and window scale, SACK-permitted, timestamps; end-of-list and zeros pad.
    FreeBsd,
    /// MSS, timestamps, window scale, SACK-permitted, each behind the NOPs that align it; with Fast
    /// Open as on Linux.
    LwIp,
    /// As on Linux in a SYN; in a SYN-ACK, which echoes a timestamp, timestamps come before MSS.
    Illumos,
}

impl TcpOptions {
    /// Returns the bytes that [`TcpOptions::encode`] writes: a multiple of 4, 0 ..= 40.
    #[inline]
    pub fn encoded_len(&self, order: OptionOrder) -> usize {
        match self.shape() {
            Shape::Empty => 0,
            Shape::TimestampsOnly(_) => TIMESTAMPS_ONLY_LEN,
            Shape::Mixed => encode(self, order).1,
        }
    }

    /// Writes the options to the front of `buf`, padded to a multiple of 4; returns the bytes.
    ///
    /// The first are placed by `order`; then follow Fast Open, user time-out, accurate ECN. SACK
    /// blocks take the rest of the 40 bytes. An option that does not fit is left out.
    ///
    /// # Panics
    ///
    /// If `buf` is shorter than [`TcpOptions::encoded_len`].
    #[inline]
    pub fn encode(&self, order: OptionOrder, buf: &mut [u8]) -> usize {
        match self.shape() {
            Shape::Empty => 0,
            Shape::TimestampsOnly(timestamps) => {
                let [a, b, c, d, e, f, g, h] = timestamps.to_bytes();
                let bytes = [NOP, NOP, TIMESTAMPS, 10, a, b, c, d, e, f, g, h];
                Writer(buf).bytes(&bytes);
                TIMESTAMPS_ONLY_LEN
            }
            Shape::Mixed => {
                let (bytes, len) = encode(self, order);
                let encoded = bytes.get(..len).unwrap_or(&bytes);
                Writer(buf).bytes(encoded);
                len
            }
        }
    }

    #[inline]
    fn shape(&self) -> Shape {
        let rare = self.mss.is_some()
            || self.window_scale.is_some()
            || self.sack_permitted
            || !self.sack.is_empty()
            || self.fast_open.is_some()
            || self.user_timeout.is_some()
            || self.accurate_ecn.is_some();
        match self.timestamps {
            _ if rare => Shape::Mixed,
            Some(timestamps) => Shape::TimestampsOnly(timestamps),
            None => Shape::Empty,
        }
    }
}

/// Kind of the options to be encoded: the order of most segments' options is fixed.
enum Shape {
    Empty,
    TimestampsOnly(Timestamps),
    Mixed,
}

/// The encoded options and their length, a multiple of 4.
fn encode(options: &TcpOptions, order: OptionOrder) -> ([u8; TcpOptions::MAX_LEN], usize) {
    let mut list = OptionList { bytes: [0; TcpOptions::MAX_LEN], len: 0 };
    match order {
        OptionOrder::Linux => list.put_as_linux(options),
        OptionOrder::FreeBsd => list.put_as_freebsd(options),
        OptionOrder::LwIp => list.put_as_lwip(options),
        OptionOrder::Illumos => list.put_as_illumos(options),
    }
    list.put_rare(options);
    list.put_sack(options);
    list.pad(match order {
        OptionOrder::Linux | OptionOrder::LwIp | OptionOrder::Illumos => NOP,
        OptionOrder::FreeBsd => END_OF_LIST,
    });
    (list.bytes, list.len)
}

/// Options written so far. An option that does not fit is left out whole.
struct OptionList {
    bytes: [u8; TcpOptions::MAX_LEN],
    len: usize,
}

impl OptionList {
    fn put_as_linux(&mut self, options: &TcpOptions) {
        self.put_mss(options.mss);
        self.put_sack_permitted_and_timestamps(options);
        self.put_nop_and_window_scale(options);
    }

    fn put_as_lwip(&mut self, options: &TcpOptions) {
        // lwIP does not support Fast Open. Behind all of its NOPs the longest cookie would not fit.
        if options.fast_open.is_some() {
            return self.put_as_linux(options);
        }
        self.put_mss(options.mss);
        if options.timestamps.is_some() {
            self.put(&[&[NOP, NOP]]);
            self.put_timestamps(options);
        }
        self.put_nop_and_window_scale(options);
        if options.sack_permitted {
            self.put(&[&[NOP, NOP, SACK_PERMITTED, 2]]);
        }
    }

    fn put_as_illumos(&mut self, options: &TcpOptions) {
        let answers = options.timestamps.is_some_and(|timestamps| timestamps.ecr != 0);
        if !answers {
            return self.put_as_linux(options);
        }
        self.put_sack_permitted_and_timestamps(options);
        self.put_mss(options.mss);
        self.put_nop_and_window_scale(options);
    }

    /// Writes both options, each in the place of the NOPs that the other would need without it.
    fn put_sack_permitted_and_timestamps(&mut self, options: &TcpOptions) {
        match (options.sack_permitted, options.timestamps) {
            (true, Some(_)) => self.put(&[&[SACK_PERMITTED, 2]]),
            (true, None) => self.put(&[&[NOP, NOP, SACK_PERMITTED, 2]]),
            (false, Some(_)) => self.put(&[&[NOP, NOP]]),
            (false, None) => {}
        }
        self.put_timestamps(options);
    }

    fn put_nop_and_window_scale(&mut self, options: &TcpOptions) {
        if options.window_scale.is_some() {
            self.put(&[&[NOP]]);
            self.put_window_scale(options.window_scale);
        }
    }

    fn put_as_freebsd(&mut self, options: &TcpOptions) {
        self.put_mss(options.mss);
        if options.window_scale.is_some() {
            self.align_to(1, 1);
            self.put_window_scale(options.window_scale);
        }
        if options.sack_permitted {
            self.align_to(1, 0);
            self.put(&[&[SACK_PERMITTED, 2]]);
        }
        if options.timestamps.is_some() {
            self.align_to(3, 2);
            self.put_timestamps(options);
        }
    }

    fn put_mss(&mut self, mss: Option<Mss>) {
        if let Some(mss) = mss {
            self.put(&[&[MSS, 4], &mss.get().to_be_bytes()]);
        }
    }

    fn put_window_scale(&mut self, scale: Option<WindowScale>) {
        if let Some(scale) = scale {
            self.put(&[&[WINDOW_SCALE, 3, scale.get()]]);
        }
    }

    fn put_timestamps(&mut self, options: &TcpOptions) {
        if let Some(timestamps) = options.timestamps {
            self.put(&[&[TIMESTAMPS, 10], &timestamps.to_bytes()]);
        }
    }

    fn put_rare(&mut self, options: &TcpOptions) {
        if let Some(fast_open) = &options.fast_open {
            let cookie = fast_open.cookie();
            if fast_open.is_experimental() {
                let len = (cookie.len() as u8).wrapping_add(4);
                self.put(&[&[EXPERIMENT, len, 0xf9, 0x89], cookie]);
            } else {
                self.put(&[&[FAST_OPEN, (cookie.len() as u8).wrapping_add(2)], cookie]);
            }
        }
        if let Some(timeout) = options.user_timeout {
            self.put(&[&[USER_TIMEOUT, 4], &timeout.bits().to_be_bytes()]);
        }
        if let Some(accurate_ecn) = options.accurate_ecn {
            let (kind, counters, len) = accurate_ecn.to_body();
            let body = counters.as_flattened().get(..len).unwrap_or_default();
            self.put(&[&[kind, (len as u8).wrapping_add(2)], body]);
        }
    }

    fn put_sack(&mut self, options: &TcpOptions) {
        if options.sack.is_empty() {
            return;
        }
        self.align_to(3, 2);
        let room = self.bytes.len().saturating_sub(self.len).saturating_sub(2) / 8;
        let blocks = options.sack.as_slice();
        let blocks = blocks.get(..room).unwrap_or(blocks);
        if blocks.is_empty() {
            return;
        }
        let len = (blocks.len() as u8).wrapping_mul(8).wrapping_add(2);
        self.put(&[&[SACK, len]]);
        for block in blocks {
            self.put(&[&block.left.raw().to_be_bytes(), &block.right.raw().to_be_bytes()]);
        }
    }

    /// Pads to a multiple of 4; 40 is one, so there is room.
    fn pad(&mut self, with: u8) {
        while !self.len.is_multiple_of(4) {
            self.put(&[&[with]]);
        }
    }

    /// Writes NOPs until the low bits of the length are `low_bits`, if there is room. `mask` is 1
    /// or 3.
    fn align_to(&mut self, mask: usize, low_bits: usize) {
        for _ in 0..mask {
            if self.len & mask != low_bits {
                self.put(&[&[NOP]]);
            }
        }
    }

    /// Appends the concatenated parts, or nothing.
    fn put(&mut self, parts: &[&[u8]]) {
        let len = parts.iter().fold(0usize, |len, part| len.saturating_add(part.len()));
        let end = self.len.saturating_add(len);
        if let Some(slot) = self.bytes.get_mut(self.len..end) {
            let mut fields = Writer(slot);
            parts.iter().for_each(|part| fields.bytes(part));
            self.len = end;
        }
    }
}

const TIMESTAMPS_ONLY_LEN: usize = 12;

#[cfg(test)]
pub(super) mod tests;
