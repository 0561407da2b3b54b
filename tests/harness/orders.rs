//! Orders in which a peer may send pieces of text: the worst for reassembly.

/// An order of pieces of one length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Order {
    /// Nothing is missing.
    Straight,
    Ascending,
    Descending,
    /// Between two there is a gap of the same size.
    EverySecond,
    /// A gap of a byte in front of each three that touch.
    Triples,
    Random,
    /// From the middle of one to the middle of the next, at random.
    Overlapping,
}

impl Order {
    /// Starts of `pieces` pieces of `len` bytes, in sending order; the first byte of the stream is
    /// missing except in [`Order::Straight`].
    pub(crate) fn starts(self, len: usize, pieces: usize) -> Vec<usize> {
        let all = (0..pieces).map(|place| 1 + place * len);
        match self {
            Self::Straight => all.map(|at| at - 1).collect(),
            Self::Ascending => all.collect(),
            Self::Descending => all.rev().collect(),
            Self::EverySecond => all.map(|at| 2 * at - 1).collect(),
            Self::Triples => all.enumerate().map(|(place, at)| at + place / 3).collect(),
            Self::Random => shuffled(all.collect()),
            Self::Overlapping => {
                let whole = all.clone();
                shuffled(whole.chain(all.map(|at| at + len / 2)).collect())
            }
        }
    }
}

fn shuffled(mut starts: Vec<usize>) -> Vec<usize> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    for last in (1..starts.len()).rev() {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        starts.swap(last, (state >> 33) as usize % (last + 1));
    }
    starts
}
