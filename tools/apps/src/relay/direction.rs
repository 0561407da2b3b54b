//! One direction of a relayed flow.

use bytes::Bytes;

use super::{ConnError, PIECE, Reading, Transport};

/// A direction: what was read and not sent yet, and its end.
#[derive(Default, Debug)]
pub(super) struct Direction {
    held: Bytes,
    end: End,
    /// Bytes of the source that the sink took.
    pub(super) passed: u64,
    /// Bytes to be sent that the source did not send.
    added: usize,
}

/// Progress of a direction's end.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum End {
    #[default]
    Open,
    /// It was read.
    Read,
    /// FIN was sent.
    Passed,
}

/// Result of a direction's turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Step {
    /// The next event of either side continues it.
    Wait,
    /// The turn is over, and there may be more.
    More,
    /// FIN was passed on.
    Ended,
    /// No more can be read.
    SourceFailed(ConnError),
    /// No more can be sent.
    SinkFailed(ConnError),
}

impl Direction {
    /// A direction that sends `first` before what it reads.
    pub(super) fn with_first(first: Bytes) -> Self {
        Self { added: first.len(), held: first, ..Self::default() }
    }

    /// True if FIN was passed on.
    pub(super) fn has_ended(&self) -> bool {
        self.end == End::Passed
    }

    /// True if something that was read is not sent yet.
    pub(super) fn is_held(&self) -> bool {
        !self.held.is_empty()
    }

    /// Passes on up to [`TURN`] bytes. If the other direction has ended before, FIN is left to the caller,
    /// which closes both connections.
    pub(super) fn pass<S: Transport, D: Transport>(
        &mut self,
        source: &mut S,
        from: S::Id,
        sink: &mut D,
        to: D::Id,
        other: &Self,
    ) -> Step {
        let mut turn = 0;
        loop {
            if !self.held.is_empty() {
                let before = self.held.len();
                let sent = sink.send(to, &mut self.held);
                let taken = before - self.held.len();
                let added = self.added.min(taken);
                self.added -= added;
                self.passed += (taken - added) as u64;
                match sent {
                    Err(error) => return Step::SinkFailed(error),
                    Ok(_) if !self.held.is_empty() => return Step::Wait,
                    Ok(_) => {}
                }
            }
            match self.end {
                End::Open => {}
                End::Read => {
                    if !other.has_ended() {
                        sink.shutdown(to);
                    }
                    self.end = End::Passed;
                    return Step::Ended;
                }
                End::Passed => return Step::Ended,
            }
            if turn >= TURN {
                return Step::More;
            }
            match source.recv_up_to(from, PIECE) {
                Reading::Data(bytes) => {
                    turn += bytes.len();
                    self.held = bytes;
                }
                Reading::Pending => return Step::Wait,
                Reading::End => self.end = End::Read,
                Reading::Failed(error) => return Step::SourceFailed(error),
            }
        }
    }
}

/// Bytes after which other flows have their turn.
const TURN: usize = PIECE;
