//! The course of a direction: how much had been sent at times all over it.

/// Times, and the bytes sent before them: all over the direction, ever farther apart.
#[derive(Clone, Default, Debug)]
pub(crate) struct Pace {
    points: Vec<(u64, u64)>,
    /// Segments from one point to the next are 2 to this power, times [`Self::FIRST`].
    spread: u8,
}

impl Pace {
    /// Handles new text at `at`, before which `bytes` in so many `segments` had been sent.
    pub(super) fn on_new(place: &mut Option<Box<Self>>, at: u64, bytes: u64, segments: u64) {
        let spread = place.as_ref().map_or(0, |pace| pace.spread);
        if !segments.is_multiple_of(Self::FIRST << spread) {
            return;
        }
        let pace = place.get_or_insert_default();
        if pace.points.len() >= Self::MOST {
            let mut number = 0;
            pace.points.retain(|_| {
                number += 1;
                number % 2 == 0
            });
            pace.spread += 1;
        }
        pace.points.push((at, bytes));
    }

    /// Times in order, and the bytes sent before each.
    pub(crate) fn points(&self) -> &[(u64, u64)] {
        &self.points
    }

    /// Memory, bytes.
    pub(super) fn held(&self) -> usize {
        size_of::<Self>() + self.points.capacity() * size_of::<(u64, u64)>()
    }

    const FIRST: u64 = 16;
    const MOST: usize = 256;
}
