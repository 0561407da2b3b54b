//! Counters of a link, by reason.

use crate::{LinkOutcome, Loss};

/// Frames of one direction of a link. `sent` is `delivered` minus duplicates, plus frames lost or
/// under way.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct LinkCounters {
    /// Frames passed to the link.
    pub sent: u64,
    /// Bytes of these frames.
    pub sent_bytes: u64,
    /// Frames that left at the far end, with duplicates.
    pub delivered: u64,
    /// Frames lost to a full queue.
    pub lost_queue: u64,
    /// Frames lost by chance.
    pub lost_random: u64,
    /// Frames lost in a burst.
    pub lost_burst: u64,
    /// Frames lost by name (`drop=`), or by a rule of the link's user.
    pub lost_targeted: u64,
    /// Frames lost because the policer had no tokens.
    pub lost_policed: u64,
    /// Acknowledgments replaced by newer ones in the queue.
    pub lost_replaced: u64,
    /// Frames lost because a middlebox had forgotten their idle flow (`forget=`).
    pub lost_forgotten: u64,
    /// Frames lost while the link was down, with duplicates under way.
    pub lost_down: u64,
    /// Frames refused as longer than the MTU.
    pub lost_too_long: u64,
    /// Frames lost because the link's memory was full.
    pub lost_crowded: u64,
    /// Frames marked "congestion experienced".
    pub marked: u64,
    /// Frames whose ECN codepoint was removed.
    pub bleached: u64,
    /// Frames whose Accurate ECN option was overwritten.
    pub stripped: u64,
    /// Frames with an option overwritten (`strip=`).
    pub options_stripped: u64,
    /// Resets that a middlebox sent (`forget=TIME:rst` and `inject=rst`); `sent` counts them, too.
    pub resets_forged: u64,
    /// Acknowledgments that waited to leave with others.
    pub batched: u64,
    /// Frames with one bit flipped.
    pub corrupted: u64,
    /// Frames that arrive twice.
    pub duplicated: u64,
    /// Frames delayed so that later ones may overtake them.
    pub reordered: u64,
}

whimbrel_base::sums! {
    /// Adds the counters of another link.
    LinkCounters {
        sent, sent_bytes, delivered,
        lost_queue, lost_random, lost_burst, lost_targeted, lost_policed, lost_replaced, lost_forgotten, lost_down, lost_too_long,
        lost_crowded,
        marked, bleached, stripped, options_stripped, resets_forged, batched, corrupted, duplicated, reordered,
    }
}

impl LinkCounters {
    /// Frames that never arrive.
    pub const fn lost(&self) -> u64 {
        self.lost_queue
            + self.lost_random
            + self.lost_burst
            + self.lost_targeted
            + self.lost_policed
            + self.lost_replaced
            + self.lost_forgotten
            + self.lost_down
            + self.lost_too_long
            + self.lost_crowded
    }

    pub(crate) fn count(&mut self, fate: LinkOutcome) {
        if let Some(loss) = fate.lost {
            self.count_lost(loss, 1);
        }
        self.marked += u64::from(fate.marked);
        self.bleached += u64::from(fate.bleached);
        self.stripped += u64::from(fate.stripped);
        self.options_stripped += u64::from(fate.options_stripped);
        self.batched += u64::from(fate.batched);
        self.corrupted += u64::from(fate.corrupted);
        self.duplicated += u64::from(fate.duplicated);
        self.reordered += u64::from(fate.reordered);
    }

    pub(crate) fn count_lost(&mut self, loss: Loss, frames: u64) {
        *match loss {
            Loss::Queue => &mut self.lost_queue,
            Loss::Random => &mut self.lost_random,
            Loss::Burst => &mut self.lost_burst,
            Loss::Targeted => &mut self.lost_targeted,
            Loss::Policed => &mut self.lost_policed,
            Loss::Replaced => &mut self.lost_replaced,
            Loss::Forgotten => &mut self.lost_forgotten,
            Loss::Down => &mut self.lost_down,
            Loss::TooLong => &mut self.lost_too_long,
            Loss::Crowded => &mut self.lost_crowded,
        } += frames;
    }
}
