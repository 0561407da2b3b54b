//! Whose something is in a drawing. No colour says it alone: lines are broken or whole, and there is a mark
//! and a word beside.

/// Whose rules.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum SeriesColor {
    /// Those that fail.
    Old,
    /// This stack's own.
    Own,
    /// Others, as what people changed of those that fail.
    Other,
}

impl SeriesColor {
    /// The class of what is drawn.
    pub(crate) const fn class(self) -> &'static str {
        match self {
            Self::Old => "old",
            Self::Other => "other",
            Self::Own => "own",
        }
    }

    /// A mark that needs no colour.
    pub(crate) const fn mark(self) -> &'static str {
        match self {
            Self::Old => "✕",
            Self::Other => "△",
            Self::Own => "✓",
        }
    }

    /// The word beside it.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Old => "the rules that failed",
            Self::Other => "other rules",
            Self::Own => "by default",
        }
    }
}
