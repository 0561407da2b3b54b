//! Outcome of a frame on a link.

use core::fmt;

/// Outcome of one frame on a link.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct LinkOutcome {
    /// Reason of its loss.
    pub lost: Option<Loss>,
    /// True if it was marked "congestion experienced" (RFC 3168 5).
    pub marked: bool,
    /// True if its ECN codepoint was removed (`ecn-bleach`).
    pub bleached: bool,
    /// True if its Accurate ECN option was overwritten (`accecn-strip`).
    pub stripped: bool,
    /// True if one of its options was overwritten (`strip`).
    pub options_stripped: bool,
    /// True if a reset follows it, in its sender's name (`inject=rst`).
    pub reset_follows: bool,
    /// True if it waits to leave with other acknowledgments (`ack-batch`). Its later outcome is
    /// counted, but not shown here.
    pub batched: bool,
    /// True if it replaced an older acknowledgment in the queue (`ack-filter`).
    pub replaces: bool,
    /// True if one bit was flipped.
    pub corrupted: bool,
    /// True if it arrives twice.
    pub duplicated: bool,
    /// True if it was delayed so that later frames may overtake it.
    pub reordered: bool,
}

/// Reason of a frame's loss.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Loss {
    /// The queue in front of the link was full.
    Queue,
    /// Random loss of single frames.
    Random,
    /// Random loss in bursts (Gilbert and Elliott).
    Burst,
    /// It was named (`drop=`), or lost by a rule of the link's user.
    Targeted,
    /// The policer had no tokens for it.
    Policed,
    /// A newer acknowledgment replaced it in the queue.
    Replaced,
    /// A middlebox had forgotten its idle flow (`forget=`).
    Forgotten,
    /// The link was down, or went down while the frame was on it.
    Down,
    /// The frame is longer than the link's MTU.
    TooLong,
    /// More is on the link than it has memory for ([`Link::MAX_BYTES`](crate::Link::MAX_BYTES)).
    Crowded,
}

impl LinkOutcome {
    /// Outcome of a lost frame.
    pub fn lost(loss: Loss) -> Self {
        Self { lost: Some(loss), ..Self::default() }
    }

    /// True if it arrives once, unchanged, in order.
    pub fn is_unharmed(self) -> bool {
        self == Self::default()
    }
}

impl Loss {
    /// Short text for captures and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Queue => "queue full",
            Self::Random => "random loss",
            Self::Burst => "burst loss",
            Self::Targeted => "targeted loss",
            Self::Policed => "policed",
            Self::Replaced => "replaced by a newer acknowledgment",
            Self::Forgotten => "flow forgotten",
            Self::Down => "link down",
            Self::TooLong => "longer than the MTU",
            Self::Crowded => "too much on the way",
        }
    }
}

/// Text of a capture's comment: `lost: queue full`, `corrupted, reordered`.
impl fmt::Display for LinkOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(loss) = self.lost {
            return write!(f, "lost: {}", loss.name());
        }
        let marks = [
            (self.marked, "marked"),
            (self.bleached, "ECN bleached"),
            (self.stripped, "AccECN option stripped"),
            (self.options_stripped, "options stripped"),
            (self.reset_follows, "a forged reset follows"),
            (self.batched, "waits for other acknowledgments"),
            (self.replaces, "replaces an older acknowledgment"),
            (self.corrupted, "corrupted"),
            (self.duplicated, "duplicated"),
            (self.reordered, "reordered"),
        ];
        let mut separator = "";
        for (_, name) in marks.into_iter().filter(|(applies, _)| *applies) {
            write!(f, "{separator}{name}")?;
            separator = ", ";
        }
        Ok(())
    }
}
