//! Reliable transfer over a [`Tcb`]: what leaves, when it goes again, and what acknowledgments do to that.
//!
//! It never ends a connection: that is for its owner, [`Connection`](super::Connection).

use whimbrel_base::Tick;
use whimbrel_recovery::Path;
use whimbrel_wire::RawWindow;
use whimbrel_wire::tcp::{TcpFlags, Timestamps};

use crate::conn::stamps::{PAWS_TICKS, Stamps};
use crate::conn::tcb::Tcb;
use crate::conn::{Flags, Remains, State, Timers};
use crate::table::Identity;
use crate::verdict::Reply;
use crate::{Context, RxSegment};

mod ack;
mod keep_alive;
mod loss_probe;
mod mtu_search;
mod opening;
mod output;
mod retransmission;
mod settings;
mod text;
mod timeout;
mod write;

pub use write::WriteClosed;

/// A [`Tcb`], its timers and its timestamps.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Transfer {
    pub(super) tcb: Tcb,
    pub(super) timers: Timers,
    pub(super) stamps: Stamps,
}

impl Transfer {
    /// The reset that the peer is due if the connection ends now.
    pub(super) fn judge_reset(&self, cx: &Context) -> Option<Reply> {
        match self.tcb.state {
            State::SynReceived
            | State::Established
            | State::FinWait1
            | State::FinWait2
            | State::CloseWait => Some(Reply {
                seq: self.tcb.sender.bare_number(),
                ack: self.tcb.receiver.nxt(),
                flags: TcpFlags::RST | TcpFlags::ACK,
                window: RawWindow::new(0),
                timestamps: self.own_timestamps(cx),
            }),
            _ => None,
        }
    }

    /// Returns the part of this connection that a TIME-WAIT record keeps.
    pub(super) fn remains(&self) -> Remains {
        Remains {
            snd_nxt: self.tcb.sender.seq().max,
            rcv_nxt: self.tcb.receiver.nxt(),
            window: self.tcb.receiver.raw_window(),
            scale: self.tcb.receiver.scale(),
            ts_recent: self.tcb.flags.has(Flags::TIMESTAMPS).then_some(self.stamps.recent),
        }
    }

    /// RFC 7323 4.3: which TSval is echoed. RFC 7323 5.3 has this (R3) behind the test of the
    /// window; here RST, SYN and ACK were judged as well, as in Linux. The forger of a segment that
    /// is refused could otherwise set TS.Recent ahead, and PAWS would refuse the peer from then on.
    pub(super) fn note_timestamp(&mut self, seg: &RxSegment<'_>) {
        if !self.tcb.flags.has(Flags::TIMESTAMPS) {
            return;
        }
        if let Some(stamps) = seg.header.options.timestamps {
            // RFC 7323 4.3 (2): "If: SEG.TSval >= TS.Recent and SEG.SEQ <= Last.ACK.sent then
            // SEG.TSval is copied to TS.Recent; otherwise, it is ignored."
            let newer_by = stamps.val.wrapping_sub(self.stamps.recent).cast_signed();
            // PAWS has admitted an older one only if TS.Recent says nothing.
            let counts = !(-PAWS_TICKS..0).contains(&newer_by);
            if counts && seg.header.seq.at_or_before(self.tcb.receiver.seq().last_ack) {
                self.stamps.recent = stamps.val;
            }
        }
    }

    /// TSval now, and TS.Recent to echo, if timestamps were negotiated (while opening: offered).
    pub(super) fn own_timestamps(&self, cx: &Context) -> Option<Timestamps> {
        self.tcb.flags.has(Flags::TIMESTAMPS).then(|| Timestamps {
            val: self.tsval(cx.tick),
            // RFC 7323 3.2: "If the ACK bit is not set in the outgoing TCP header, the sender of that
            // segment SHOULD set the TSecr field to zero", as TS.Recent still is.
            ecr: self.stamps.recent,
        })
    }

    /// TSval now; shown if timestamps were negotiated.
    pub(super) fn tsval(&self, now: Tick) -> u32 {
        Identity::tsval(now, self.stamps.offset)
    }

    /// The view of this connection that recovery needs.
    pub(super) fn path(&self, cx: &Context) -> Path {
        self.tcb.sender.path(cx.now, self.tcb.flags.has(Flags::SACK), self.tcb.counts.min_rtt())
    }
}
