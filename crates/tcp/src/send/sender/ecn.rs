//! Explicit congestion notification (RFC 3168): new text that routers may mark, and the reaction to marks.

use whimbrel_recovery::RecoveryEvents;
use whimbrel_wire::SeqNum;

use super::{Flags, SendQueue, Sender};
use crate::Env;

impl Sender {
    /// True if cwnd was reduced since this was asked last.
    pub const fn take_reduced(&mut self) -> bool {
        self.flags.take(Flags::REDUCED)
    }

    /// An acknowledgment of all below `ack` echoes a mark, before anything else of it is looked at.
    pub fn on_echo(&mut self, cx: &mut Env, ack: SeqNum, queue: &mut SendQueue) {
        let offset = self.offset_of(queue, ack);
        let mss = u32::from(self.mss);
        let (flight, recovery, mut control) = queue.parts(&mut self.window);
        if recovery.on_ecn(flight, &mut control, offset, mss) {
            cx.counters.ecn_reductions += 1;
            self.flags.note_reduced();
        }
    }
}

impl Flags {
    /// RFC 3168 6.1.2: "When an ECN-Capable TCP sender reduces its congestion window for any reason (...), the
    /// TCP sender sets the CWR flag in the TCP header of the first new data packet sent after the window
    /// reduction."
    pub(super) const fn note_reduced(&mut self) {
        self.set(Self::REDUCED);
    }

    /// Recovery began or was taken back. A reduction that was none answers no echo, and the next one counts.
    pub(super) const fn note_recovery(&mut self, events: &RecoveryEvents) {
        if events.dsack_undo || events.full_undo || events.spurious_rto {
            self.clear(Self::REDUCED);
        }
        if events.sack_recovery || events.reno_recovery || events.loss_probe_recovery {
            self.note_reduced();
        }
    }
}
