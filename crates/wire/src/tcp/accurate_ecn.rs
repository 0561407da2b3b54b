//! The Accurate ECN option (RFC 9768 3.2.3).

use super::kinds::{ACCURATE_ECN_0, ACCURATE_ECN_1};

/// Up to three counters of bytes that arrived, by their ECN codepoint; modulo 2^24.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct AccurateEcn {
    order: AccurateEcnOrder,
    len: u8,
    /// Counters in the option's order, three bytes each; zero beyond `len` of them.
    bytes: [[u8; 3]; 3],
}

/// The order of the counters. They are left out from the end, so the first is the most wanted.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum AccurateEcnOrder {
    /// Kind 172: EE0B, ECEB, EE1B.
    Ect0First,
    /// Kind 174: EE1B, ECEB, EE0B.
    Ect1First,
}

impl AccurateEcn {
    /// Creates the option with the first of `counters` (0 ..= 3 of them), in this `order`. Only the
    /// low 24 bits of each count.
    pub fn new(order: AccurateEcnOrder, counters: &[u32]) -> Self {
        let mut option = Self { order, len: 0, bytes: [[0; 3]; 3] };
        for (slot, counter) in option.bytes.iter_mut().zip(counters) {
            let [_, a, b, c] = counter.to_be_bytes();
            *slot = [a, b, c];
            option.len = option.len.wrapping_add(1);
        }
        option
    }

    /// Returns the order of the counters.
    pub const fn order(&self) -> AccurateEcnOrder {
        self.order
    }

    /// Returns EE0B: bytes of payload marked ECT(0), plus 1; 0 ..= 0xff_ffff.
    pub fn ect0_bytes(&self) -> Option<u32> {
        self.counter(match self.order {
            AccurateEcnOrder::Ect0First => 0,
            AccurateEcnOrder::Ect1First => 2,
        })
    }

    /// Returns ECEB: bytes of payload marked CE; 0 ..= 0xff_ffff.
    pub fn ce_bytes(&self) -> Option<u32> {
        self.counter(1)
    }

    /// Returns EE1B: bytes of payload marked ECT(1), plus 1; 0 ..= 0xff_ffff.
    pub fn ect1_bytes(&self) -> Option<u32> {
        self.counter(match self.order {
            AccurateEcnOrder::Ect0First => 2,
            AccurateEcnOrder::Ect1First => 0,
        })
    }

    /// Parses an option after its length: 0 ..= 3 counters.
    // RFC 9768 3.2.3: "if the AccECN Option is of any other length, implementations MUST use those whole 3-octet
    // fields that fit within the length and ignore the remainder of the option, treating it as padding."
    pub(super) fn from_body(kind: u8, body: &[u8]) -> Self {
        let order = match kind {
            ACCURATE_ECN_0 => AccurateEcnOrder::Ect0First,
            _ => AccurateEcnOrder::Ect1First,
        };
        let (counters, _) = body.as_chunks::<3>();
        let mut option = Self { order, len: 0, bytes: [[0; 3]; 3] };
        for (slot, counter) in option.bytes.iter_mut().zip(counters) {
            *slot = *counter;
            option.len = option.len.wrapping_add(1);
        }
        option
    }

    /// Returns the option's kind and body.
    pub(super) fn to_body(self) -> (u8, [[u8; 3]; 3], usize) {
        let kind = match self.order {
            AccurateEcnOrder::Ect0First => ACCURATE_ECN_0,
            AccurateEcnOrder::Ect1First => ACCURATE_ECN_1,
        };
        (kind, self.bytes, usize::from(self.len).wrapping_mul(3))
    }

    fn counter(&self, index: usize) -> Option<u32> {
        let counters = self.bytes.get(..usize::from(self.len))?;
        counters.get(index).map(|[a, b, c]| u32::from_be_bytes([0, *a, *b, *c]))
    }
}

#[cfg(test)]
mod tests;
