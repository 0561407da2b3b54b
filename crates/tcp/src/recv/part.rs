//! The part of a payload that is to be kept.

use whimbrel_base::packet::Payload;

/// Hands `each` the `take` bytes of `payload` after its first `skip`, in order, in as many parts as they
/// came in.
#[inline]
pub(super) fn each_part(payload: Payload<'_>, skip: u32, take: u32, mut each: impl FnMut(&[u8])) {
    let (skip, take) = (skip as usize, take as usize);
    match payload {
        Payload::Borrowed(_, bytes) => each(bytes.get(skip..skip + take).unwrap_or_default()),
        Payload::Gathered(_, slices) => each_within(slices, skip, take, each),
        Payload::InChunk(_, text) => each(text.bytes().get(skip..skip + take).unwrap_or_default()),
    }
}

/// Hands on what lies in each of the slices.
fn each_within(slices: &[&[u8]], mut skip: usize, mut take: usize, mut each: impl FnMut(&[u8])) {
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
