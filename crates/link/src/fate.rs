//! What a link did to a frame.

use core::fmt;

/// What happened to one frame on its way.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct LinkOutcome {
    /// Why it never arrives.
    pub lost: Option<Loss>,
    /// It was marked "congestion experienced" (RFC 3168 5).
    pub marked: bool,
    /// Its ECN codepoint was taken away (`ecn-bleach`).
    pub bleached: bool,
    /// Its Accurate ECN option was overwritten (`accecn-strip`).
    pub stripped: bool,
    /// It waits to leave with other acknowledgments (`ack-batch`). What becomes of it then is counted,
    /// and not said here.
    pub batched: bool,
    /// It took the place of an older acknowledgment in the queue (`ack-filter`).
    pub replaces: bool,
    /// One bit of it was flipped.
    pub corrupted: bool,
    /// The frame arrives a second time.
    pub duplicated: bool,
    /// It was held back, so that later frames may overtake it.
    pub reordered: bool,
}

/// Why a frame never arrives.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Loss {
    /// The queue in front of the link was full.
    Queue,
    /// Chance, frame by frame.
    Random,
    /// Chance that comes in bursts (Gilbert and Elliott).
    Burst,
    /// It was named (`drop=`).
    Targeted,
    /// The policer had no tokens for it.
    Policed,
    /// A newer acknowledgment took its place in the queue.
    Replaced,
    /// The link was down, or went down while the frame was on it.
    Down,
    /// The frame is longer than the link's MTU.
    TooLong,
    /// More is on the link than it has memory for ([`Link::MOST_OCTETS`](crate::Link::MOST_OCTETS)).
    Crowded,
}

impl LinkOutcome {
    /// The fate of a frame that is lost.
    pub const fn lost(loss: Loss) -> Self {
        Self {
            lost: Some(loss),
            marked: false,
            bleached: false,
            stripped: false,
            batched: false,
            replaces: false,
            corrupted: false,
            duplicated: false,
            reordered: false,
        }
    }

    /// True if it arrives once, unchanged, in its place.
    pub fn is_unharmed(self) -> bool {
        self == Self::default()
    }
}

impl Loss {
    /// A word or two for captures and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Queue => "queue full",
            Self::Random => "random loss",
            Self::Burst => "burst loss",
            Self::Targeted => "targeted loss",
            Self::Policed => "policed",
            Self::Replaced => "replaced by a newer acknowledgment",
            Self::Down => "link down",
            Self::TooLong => "longer than the MTU",
            Self::Crowded => "too much on the way",
        }
    }
}

/// As a capture's comment says it: `lost: queue full`, `corrupted, reordered`.
impl fmt::Display for LinkOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(loss) = self.lost {
            return write!(f, "lost: {}", loss.name());
        }
        let marks = [
            (self.marked, "marked"),
            (self.bleached, "ECN bleached"),
            (self.stripped, "AccECN option stripped"),
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
