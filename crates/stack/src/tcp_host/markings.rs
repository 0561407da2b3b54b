//! Markings of packets, hop limit, traffic class ([`Marking`]) and ACE field (RFC 9768), that answer for
//! records without room to say so: a TIME-WAIT record has the number of its marking.

use alloc::vec::Vec;

use whimbrel_tcp::conn::Marking;
use whimbrel_wire::tcp::TcpFlags;

/// The markings that were asked for so far, each once. They stay: a few bytes each, and 255 at most.
#[derive(Debug, Default)]
pub(crate) struct Markings(Vec<WaitMarking>);

/// The marking of a record's acknowledgments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct WaitMarking {
    /// Hop limit and traffic class.
    pub(crate) ip: Marking,
    /// The ACE field, 0 to 7; none without Accurate ECN.
    pub(crate) ace: Option<u8>,
}

impl Markings {
    /// Whatever is usual, which is not kept here.
    pub(crate) const USUAL: u8 = 0;

    /// The number of a marking that is not the usual one; that of the usual one where so many
    /// different ones were asked for that no number is left.
    #[inline(never)]
    pub(crate) fn number(&mut self, marking: WaitMarking) -> u8 {
        let known = self.0.iter().position(|known| *known == marking);
        let index = known.unwrap_or(self.0.len());
        let Some(number) = u8::try_from(index + 1).ok() else { return Self::USUAL };
        if known.is_none() {
            self.0.push(marking);
        }
        number
    }

    /// The marking of this number; none if it is the usual one.
    pub(crate) fn get(&self, number: u8) -> Option<WaitMarking> {
        self.0.get(usize::from(number).checked_sub(1)?).copied()
    }
}

impl WaitMarking {
    /// The flags of its ACE field.
    // RFC 9768 3.2.2: "On such a packet, a Data Receiver MUST encode the three least significant bits of its r.cep
    // counter into the ACE field that it feeds back to the Data Sender."
    pub(crate) fn flags(self) -> TcpFlags {
        self.ace.map_or(TcpFlags::NONE, TcpFlags::from_ace)
    }
}

#[cfg(test)]
mod tests;
