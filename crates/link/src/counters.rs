//! What happened on a link, by reason.

use crate::{LinkOutcome, Loss};

/// Frames of one direction of a link. `sent` is `delivered`, less the duplicates, plus what is
/// lost or still on its way.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct LinkCounters {
    /// Frames handed to the link.
    pub sent: u64,
    /// Bytes of the frames that were sent.
    pub sent_octets: u64,
    /// Frames that left it at the far end, duplicates included.
    pub delivered: u64,
    /// Lost because the queue was full.
    pub lost_queue: u64,
    /// Frames that were lost by chance.
    pub lost_random: u64,
    /// Lost in a burst.
    pub lost_burst: u64,
    /// Lost because they were named (`drop=`).
    pub lost_targeted: u64,
    /// Lost because the policer had no tokens for them.
    pub lost_policed: u64,
    /// Acknowledgments whose place in the queue newer ones took.
    pub lost_replaced: u64,
    /// Lost because the link was down, duplicates on their way included.
    pub lost_down: u64,
    /// Refused as longer than the MTU.
    pub lost_too_long: u64,
    /// Lost because more was on the link than it has memory for.
    pub lost_crowded: u64,
    /// Frames marked "congestion experienced".
    pub marked: u64,
    /// Frames whose ECN codepoint was taken away.
    pub bleached: u64,
    /// Frames whose Accurate ECN option was overwritten.
    pub stripped: u64,
    /// Acknowledgments that waited to leave with others.
    pub batched: u64,
    /// Frames of which one bit was flipped.
    pub corrupted: u64,
    /// Frames that arrive twice.
    pub duplicated: u64,
    /// Frames held back so that later ones may overtake them.
    pub reordered: u64,
}

/// Of several links.
impl core::ops::AddAssign for LinkCounters {
    fn add_assign(&mut self, other: Self) {
        let Self {
            sent,
            sent_octets,
            delivered,
            lost_queue,
            lost_random,
            lost_burst,
            lost_targeted,
            lost_policed,
            lost_replaced,
            lost_down,
            lost_too_long,
            lost_crowded,
            marked,
            bleached,
            stripped,
            batched,
            corrupted,
            duplicated,
            reordered,
        } = other;
        self.sent += sent;
        self.sent_octets += sent_octets;
        self.delivered += delivered;
        self.lost_queue += lost_queue;
        self.lost_random += lost_random;
        self.lost_burst += lost_burst;
        self.lost_targeted += lost_targeted;
        self.lost_policed += lost_policed;
        self.lost_replaced += lost_replaced;
        self.lost_down += lost_down;
        self.lost_too_long += lost_too_long;
        self.lost_crowded += lost_crowded;
        self.marked += marked;
        self.bleached += bleached;
        self.stripped += stripped;
        self.batched += batched;
        self.corrupted += corrupted;
        self.duplicated += duplicated;
        self.reordered += reordered;
    }
}

impl LinkCounters {
    /// Frames that never arrived.
    pub const fn lost(&self) -> u64 {
        self.lost_queue
            + self.lost_random
            + self.lost_burst
            + self.lost_targeted
            + self.lost_policed
            + self.lost_replaced
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
            Loss::Down => &mut self.lost_down,
            Loss::TooLong => &mut self.lost_too_long,
            Loss::Crowded => &mut self.lost_crowded,
        } += frames;
    }
}
