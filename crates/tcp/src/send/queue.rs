//! What a sender holds while it has something to send.

use super::SendBuffer;
use crate::cc::{Algorithm, Control, Window};

/// The half of a sender that a connection has only while something waits to be acknowledged.
// In this order: a pointer to it is one to its text, which is asked for at each step.
#[derive(Debug, Default)]
#[repr(C)]
pub struct SendQueue {
    /// The stream from SND.UNA on.
    pub text: SendBuffer,
    /// What congestion control keeps beside its window.
    pub cc: Algorithm,
}

impl SendQueue {
    /// Its algorithm, with the window that it sets.
    pub fn control<'a>(&'a mut self, window: &'a mut Window) -> Control<'a> {
        Control { window, algorithm: &mut self.cc }
    }

    /// Lets go of everything, and keeps the room.
    pub fn clear(&mut self) {
        self.text.clear();
    }

    /// Whether nothing is in it that must be kept.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.text.is_empty() && !self.cc.must_stay()
    }
}
