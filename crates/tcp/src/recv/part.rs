//! What is kept of a payload: copies, or references to what is worth them.

use bytes::Bytes;

use crate::Payload;

/// A part of a payload, in the form in which it is to be kept.
pub(super) enum Part<'a> {
    /// Octets in the device's memory, to be copied.
    Copied(&'a [u8]),
    /// To be kept as it is.
    Shared(Bytes),
}

impl Part<'_> {
    /// Octets of memory that a slice of shared memory may be part of: a super-segment. Nobody can ask
    /// it, so the largest is what counts, and the record by which it is shared.
    pub(super) const PINS: u32 = (1 << 16) + 40;

    /// Octets, three quarters of a super-segment: what is shorter is copied, as a reference to it
    /// might keep more of what nobody reads than of what somebody does.
    const WORTH: usize = Self::PINS as usize / 4 * 3;

    /// Hands `each` the `take` octets of `payload` after its first `skip`, in order.
    #[inline]
    pub(super) fn each(payload: Payload<'_>, skip: u32, take: u32, mut each: impl FnMut(Part<'_>)) {
        let (skip, take) = (skip as usize, take as usize);
        match payload {
            Payload::Borrowed(octets) => {
                each(Part::Copied(octets.get(skip..skip + take).unwrap_or_default()));
            }
            Payload::Gathered(slices) => {
                Self::each_within(slices, skip, take, |slice| each(Part::Copied(slice)));
            }
            Payload::Shared(slices) => Self::each_slice(slices, skip, take, each),
        }
    }

    /// Hands on what lies in each of the slices.
    fn each_within<'s>(
        slices: &[&'s [u8]],
        mut skip: usize,
        mut take: usize,
        mut each: impl FnMut(&'s [u8]),
    ) {
        for slice in slices {
            let within = slice.get(skip.min(slice.len())..).unwrap_or_default();
            skip -= slice.len() - within.len();
            let within = within.get(..take.min(within.len())).unwrap_or_default();
            take -= within.len();
            if !within.is_empty() {
                each(within);
            }
        }
    }

    fn each_slice(
        slices: &[Bytes],
        mut skip: usize,
        mut take: usize,
        mut each: impl FnMut(Part<'_>),
    ) {
        for slice in slices {
            let from = skip.min(slice.len());
            let to = from + take.min(slice.len() - from);
            skip -= from;
            take -= to - from;
            if to - from >= Self::WORTH {
                each(Part::Shared(slice.slice(from..to)));
            } else if to > from {
                each(Part::Copied(slice.get(from..to).unwrap_or_default()));
            }
        }
    }
}
