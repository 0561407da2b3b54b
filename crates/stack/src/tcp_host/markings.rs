//! Markings of packets, hop limit and traffic class ([`Marking`]), that answer for records
//! without room to say so: a TIME-WAIT record has the number of its marking.

use alloc::vec::Vec;

use whimbrel_tcp::conn::Marking;

/// The markings that were asked for so far, each once. They stay: a few bytes each, and 255 at most.
#[derive(Debug, Default)]
pub(crate) struct Markings(Vec<Marking>);

impl Markings {
    /// Whatever is usual, which is not kept here.
    pub(crate) const USUAL: u8 = 0;

    /// The number of a marking that is not the usual one; that of the usual one where so many
    /// different ones were asked for that no number is left.
    #[inline(never)]
    pub(crate) fn number(&mut self, marking: Marking) -> u8 {
        let known = self.0.iter().position(|known| *known == marking);
        let index = known.unwrap_or(self.0.len());
        let Some(number) = u8::try_from(index + 1).ok() else { return Self::USUAL };
        if known.is_none() {
            self.0.push(marking);
        }
        number
    }

    /// The marking of this number; none if it is the usual one.
    pub(crate) fn get(&self, number: u8) -> Option<Marking> {
        self.0.get(usize::from(number).checked_sub(1)?).copied()
    }
}

#[cfg(test)]
mod tests;
