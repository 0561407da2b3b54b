//! What semantic mode may forgive, by name.

use alloc::collections::BTreeSet;

/// How a script is held against a host.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Mode {
    /// Each field must be what the script says, to the letter.
    #[default]
    Strict,
    /// By what it means, where policies may differ.
    Semantic,
}

/// Something that differed and was forgiven in semantic mode.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Rule {
    /// Options in another order, or otherwise padded.
    OptionsAsSet,
    /// Another window scale than is written.
    WindowScale,
    /// Another window; both zero or both not, or of a reset, where it means nothing.
    WindowSize,
    /// A socket's buffers of another size.
    BufferSize,
    /// A reset with or without timestamps, which it SHOULD have (RFC 7323 3.2); others leave them out
    /// where nothing of the connection is looked up any more.
    ResetTimestamps,
    /// PSH set or not.
    Push,
    /// A pure acknowledgment earlier than written.
    EarlyAck,
    /// A pure acknowledgment later than written, or made needless by a later one.
    LateAck,
    /// A pure acknowledgment that is not written.
    RedundantAck,
    /// An inbound segment was moved to the edge of the window that the host announced.
    ReAimed,
    /// In a simultaneous close, `F.` for a bare ACK or the other way round.
    SimultaneousClose,
    /// The other branch of `#ifdef` was met.
    OtherBranch,
}

impl Rule {
    /// Every rule, in the order in which they are tried.
    pub const ALL: [Self; 12] = [
        Self::OptionsAsSet,
        Self::WindowScale,
        Self::WindowSize,
        Self::BufferSize,
        Self::ResetTimestamps,
        Self::Push,
        Self::EarlyAck,
        Self::LateAck,
        Self::RedundantAck,
        Self::ReAimed,
        Self::SimultaneousClose,
        Self::OtherBranch,
    ];

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

/// The rules that were needed.
pub type Rules = BTreeSet<Rule>;
