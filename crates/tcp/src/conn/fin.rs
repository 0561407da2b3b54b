//! Eighth: the peer's FIN (RFC 9293 3.10.7.4).

use whimbrel_base::cold_path;
use whimbrel_wire::tcp::TcpFlags;

use crate::conn::{Connection, Signals, State};
use crate::tunables::ReceiveWindow;
use crate::verdict::{Continue, Done, DropReason, Step, Verdict};
use crate::{Context, RxSegment};

impl Connection {
    /// Eighth, after URG and text: FIN, this segment's or one that came before it.
    // Always: every segment comes here.
    #[inline(always)]
    pub(super) fn take_fin(&mut self, cx: &mut Context, seg: &RxSegment<'_>) -> Step {
        let fin = seg.header.flags.contains(TcpFlags::FIN);
        if fin
            || self.transfer.tcb.buffers.as_ref().is_some_and(|buffers| buffers.recv.awaits_fin())
        {
            self.process_fin(cx, seg)
        } else {
            Continue(())
        }
    }

    fn process_fin(&mut self, cx: &mut Context, seg: &RxSegment<'_>) -> Step {
        let mut step = Continue(());
        if seg.header.flags.contains(TcpFlags::FIN)
            && let Some(ahead) =
                self.transfer.tcb.receiver.place_of_fin(seg.header.seq + (seg.len() - 1))
        {
            if ahead == 0 {
                // As nearly every one: nothing has to be held for it.
                if let Some(buffers) = &mut self.transfer.tcb.buffers {
                    buffers.recv.end();
                }
                self.on_fin(cx);
                return step;
            }
            cold_path();
            let is_held = self.transfer.tcb.buffers(cx).recv.note_fin(ahead);
            if seg.payload.is_empty() {
                // RFC 5681 3.2: "A TCP receiver SHOULD send an immediate duplicate ACK when an
                // out-of-order segment arrives." With text, the text was answered.
                self.transfer.tcb.receiver.owe_duplicate();
                if !is_held {
                    step = Done(Verdict::Drop(DropReason::FinConflict));
                }
            }
        }
        let due = self.transfer.tcb.buffers.as_mut().is_some_and(|buffers| buffers.recv.take_fin());
        if due {
            self.on_fin(cx);
        }
        step
    }

    /// The peer's FIN is the next number in sequence.
    fn on_fin(&mut self, cx: &mut Context) {
        self.transfer.tcb.receiver.on_fin();
        if cx.tunables.recv_window == ReceiveWindow::FullSegments {
            // The FIN takes no room: the window is as large as before, and so is that of TIME-WAIT.
            let bounds = self.transfer.tcb.window_bounds();
            self.transfer.tcb.receiver.open_whole(&bounds, &cx.tunables);
        }
        self.transfer.tcb.signals.raise(Signals::READABLE);
        match self.transfer.tcb.state {
            State::SynReceived | State::Established => self.transfer.tcb.state = State::CloseWait,
            // Our FIN is not acknowledged yet, or the ACK step would have left FIN-WAIT-1.
            State::FinWait1 => self.transfer.tcb.state = State::Closing,
            State::FinWait2 => self.enter_time_wait(cx),
            _ => {}
        }
    }
}
