//! Effort of a server's turn, counted as the cost of its work: bytes made, names looked up. The
//! number of requests would not do, because one may cost a thousand times what another does. Nor
//! would a clock, with which the same input would give other turns.

/// The work that a server's turn may still do.
///
/// A piece of work that takes more than a turn is *long*: a page of a thousand names. It waits
/// until nothing else is to be done ([`TurnBudget::grant`]), and ends its turn. So any other
/// request waits for at most one such piece, however many there are.
#[derive(Debug, Default)]
pub struct TurnBudget {
    left: u64,
    /// True if one piece of long work may be done now.
    granted: bool,
    /// Number of turns that long work has waited.
    put_off: u32,
}

impl TurnBudget {
    /// An unlimited budget, for a caller that drives a single connection.
    pub const fn unbounded() -> Self {
        Self { left: u64::MAX, granted: true, put_off: 0 }
    }

    /// Begins the next turn; `waits`: true if long work waits for its own.
    pub const fn begin_turn(&mut self, waits: bool) {
        (self.left, self.granted) = (TURN, false);
        self.put_off = if waits { self.put_off + 1 } else { 0 };
    }

    /// Counts work done: bytes made or taken in, [`LOOK`] for each look at a name.
    pub const fn spend(&mut self, cost: u64) {
        if self.left < u64::MAX {
            self.left = self.left.saturating_sub(cost);
        }
    }

    /// True if the turn is to end.
    pub const fn is_spent(&self) -> bool {
        self.left == 0
    }

    /// True if long work waited so long that it goes first.
    pub const fn is_overdue(&self) -> bool {
        self.put_off > PATIENCE
    }

    /// Grants the next piece of long work.
    pub const fn grant(&mut self) {
        (self.granted, self.put_off) = (true, 0);
    }

    /// Notes that long work has its turn under another server's grant.
    pub const fn note_long(&mut self) {
        self.put_off = 0;
    }

    /// Withdraws the grant.
    pub const fn withdraw(&mut self) {
        self.granted = false;
    }

    /// Begins a piece of long work, the last of its turn. Returns false if there is no grant for
    /// it.
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

/// Cost of a look at a name below a directory, in bytes that could be made instead: 3 us at 5 GB/s.
pub const LOOK: u64 = 16 << 10;
/// Work in a turn, bytes: 1 ms. Less costs turns; more is time in which no frame is processed.
const TURN: u64 = 4 << 20;
/// Number of full turns after which long work goes first.
const PATIENCE: u32 = 16;

#[cfg(test)]
mod tests;
