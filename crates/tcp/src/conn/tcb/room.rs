//! Room for the application to write into.

use crate::Context;
use crate::conn::tcb::Tcb;
use crate::conn::{BufferSize, Signals, State};

impl Tcb {
    /// The number of bytes may wait to be acknowledged. What is there beyond a lesser size stays.
    pub(in crate::conn) fn set_send_size(&mut self, cx: &Context, size: impl Into<BufferSize>) {
        let size = size.into();
        if self.cold().asked_sizes().0 != size {
            self.cold_mut().send_size = size;
            self.update_send_size(cx);
            self.tell_room(cx);
        }
    }

    /// True if the application may write.
    #[inline]
    pub(in crate::conn) fn takes_text(&self) -> bool {
        let open = matches!(
            self.state,
            State::SynSent | State::SynReceived | State::Established | State::CloseWait
        );
        open && !self.sender.fin_queued()
    }

    /// Bytes of send buffer that are free.
    pub(in crate::conn) fn send_room(&self) -> u32 {
        self.sender.room(self.queue(), &self.send_bounds())
    }

    /// Tells a waiting application that there is room again.
    #[inline]
    pub(in crate::conn) fn tell_room(&mut self, cx: &Context) {
        if self.sender.wants_room() {
            self.update_room(cx);
        }
    }

    fn update_room(&mut self, cx: &Context) {
        // It follows the congestion window, which has just grown or shrunk.
        self.update_send_size(cx);
        let bounds = self.send_bounds();
        let queue = self.buffers.as_deref().map(|buffers| &buffers.send);
        if self.sender.take_room(queue, &bounds) {
            self.signals.raise(Signals::WRITABLE);
        }
    }
}
