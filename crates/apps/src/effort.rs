//! The effort of a server's turn, counted by what its work costs: bytes made, names looked at. Not by the
//! number of requests, of which one may cost a thousand times what another does; and not by a clock, with
//! which the same input would give other turns.

/// The work that a server's turn may still do.
///
/// Work of which one piece takes more than a turn is *long*: a page of a thousand names. It has to wait
/// until nothing else is to be done ([`TurnBudget::grant`]), and ends its turn. So a client that asks for
/// something else waits for one such piece at most, however many others asked for.
#[derive(Debug, Default)]
pub struct TurnBudget {
    left: u64,
    /// One piece of long work may be done now.
    granted: bool,
    /// For how many turns long work has waited.
    put_off: u32,
}

impl TurnBudget {
    /// Without a bound, for a caller that drives a single connection.
    pub const fn unbounded() -> Self {
        Self { left: u64::MAX, granted: true, put_off: 0 }
    }

    /// The next turn begins; `waits`: true if long work waits for its own.
    pub const fn begin_turn(&mut self, waits: bool) {
        (self.left, self.granted) = (TURN, false);
        self.put_off = if waits { self.put_off + 1 } else { 0 };
    }

    /// Counts work that was done: bytes made or taken in, [`LOOK`] for each look at a name.
    pub const fn spend(&mut self, cost: u64) {
        if self.left < u64::MAX {
            self.left = self.left.saturating_sub(cost);
        }
    }

    /// True if the turn is to end.
    pub const fn is_spent(&self) -> bool {
        self.left == 0
    }

    /// True if long work was put off for so long that it goes first.
    pub const fn is_overdue(&self) -> bool {
        self.put_off > PATIENCE
    }

    /// The next piece of long work may be done.
    pub const fn grant(&mut self) {
        (self.granted, self.put_off) = (true, 0);
    }

    /// Long work has its turn, by what another server grants.
    pub const fn note_long(&mut self) {
        self.put_off = 0;
    }

    /// Takes back what was granted.
    pub const fn withdraw(&mut self) {
        self.granted = false;
    }

    /// Begins a piece of long work, which is the last of its turn. False if there is no turn for it.
    pub const fn begin_long(&mut self) -> bool {
        let granted = self.granted;
        // Without a bound there is room for all.
        if self.left < u64::MAX {
            self.granted = false;
            self.left = if granted { 0 } else { self.left };
        }
        granted
    }
}

/// A look at a name below a directory, as bytes that could be made instead: 3 us at 5 GB/s.
pub const LOOK: u64 = 16 << 10;
/// The cost of a turn, bytes: 1 ms. Less costs turns; more is time in which no frame is looked at.
const TURN: u64 = 4 << 20;
/// For how many turns that were full long work is put off.
const PATIENCE: u32 = 16;

#[cfg(test)]
mod tests;
