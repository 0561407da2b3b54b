//! Named differences that semantic mode accepts.

use alloc::collections::BTreeSet;

/// Mode of comparison of a script with a host.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Mode {
    /// Each field must match exactly.
    #[default]
    Strict,
    /// By meaning, where policies may differ.
    Semantic,
}

/// A difference accepted in semantic mode.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Rule {
    /// Options in another order, or with other padding.
    OptionsAsSet,
    /// Another window scale.
    WindowScale,
    /// Another window; both zero or both not, or of a reset, where it has no meaning.
    WindowSize,
    /// A socket's buffers of another size.
    BufferSize,
    /// A reset with or without timestamps, which it SHOULD have (RFC 7323 3.2); other stacks omit
    /// them if they no longer look up the connection.
    ResetTimestamps,
    /// PSH set or not.
    Push,
    /// A pure acknowledgment earlier than written.
    EarlyAck,
    /// A pure acknowledgment later than written, or replaced by a later one.
    LateAck,
    /// A pure acknowledgment that is not in the script.
    RedundantAck,
    /// An inbound segment was moved to the edge of the host's window.
    ReAimed,
    /// In a simultaneous close, `F.` for a bare ACK or the other way round.
    SimultaneousClose,
    /// The other branch of `#ifdef` matched.
    OtherBranch,
}

impl Rule {
    /// Its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::OptionsAsSet => "options-as-set",
            Self::WindowScale => "window-scale",
            Self::WindowSize => "window-size",
            Self::BufferSize => "buffer-size",
            Self::ResetTimestamps => "reset-timestamps",
            Self::Push => "push",
            Self::EarlyAck => "early-ack",
            Self::LateAck => "late-ack",
            Self::RedundantAck => "redundant-ack",
            Self::ReAimed => "re-aimed",
            Self::SimultaneousClose => "simultaneous-close",
            Self::OtherBranch => "other-branch",
        }
    }
}

/// Rules that were needed.
pub type Rules = BTreeSet<Rule>;
