//! Colours of series. No colour is the only sign: lines are broken or solid, with a mark and a word.

/// The settings of a series.
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
    /// CSS class of drawings.
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

    /// Its word in a legend.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Old => "the settings that failed",
            Self::Other => "other rules",
            Self::Own => "by default",
        }
    }
}
