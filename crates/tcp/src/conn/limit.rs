//! The reason why a sender does not send more, and since when it holds.

use whimbrel_base::Tick;

/// The reason why the sender does not send more.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Limit {
    /// The application: there is nothing to send, and all was acknowledged.
    #[default]
    Application,
    /// The network: what is under way.
    Network,
    /// The peer's window is smaller than what is unsent, and than cwnd.
    Window,
    /// Our send buffer: the application was refused room, and all that is in it was sent.
    Buffer,
}

/// A reason, and since when it holds.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct LimitSpan {
    pub(super) limit: Limit,
    pub(super) since: Tick,
}

impl LimitSpan {
    /// The time for which it has held, milliseconds; 0 if it is the application.
    pub(super) fn millis(self, now: Tick) -> u32 {
        if self.limit == Limit::Application { 0 } else { now.millis_since(self.since) }
    }
}
