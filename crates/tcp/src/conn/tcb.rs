//! The record of both halves of a stream: RFC 9293 3.3.1's transmission control block, timers aside.
//!
//! It says what the peer, the application, the route and memory admit now. Nothing here takes time:
//! deadlines are [`Transfer`](super::transfer::Transfer)'s, which stands above it.

use alloc::boxed::Box;
use whimbrel_base::cold_path;
use whimbrel_wire::{WindowScale, WindowSize};

use crate::Context;
use crate::budget::Budget;
use crate::conn::cold::{ColdRecord, ColdView};
use crate::conn::ends::Ends;
use crate::conn::stats::Counts;
use crate::conn::{BufferPool, Buffers, Flags, Limit, Signals, State};
use crate::recv::{Receiver, WindowBounds};
use crate::send::{SendBounds, SendQueue, Sender};
use crate::verdict::CloseReason;

mod arrival;
mod counts;
mod due;
mod ecn;
mod fast_open;
mod limits;
mod opening;
mod pressure;
mod room;
mod sizes;
mod text;

pub(super) use due::NextSegment;
pub(super) use ecn::EcnBits;

/// Both halves of a connection, with what they share.
// In this order: a pointer to it is one to the peer's address, which each packet needs, and what is set
// together as it begins stands together.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Tcb {
    pub(super) ends: Ends,
    pub(super) flags: Flags,
    pub(super) buffers: Option<Box<Buffers>>,
    pub(super) sender: Sender,
    pub(super) receiver: Receiver,
    pub(super) signals: Signals,
    pub(super) state: State,
    /// Why it is over, once it is.
    pub(super) closed: Option<CloseReason>,
    /// Unanswered keep-alive probes in a row.
    pub(super) keep_alive_probes: u8,
    pub(super) counts: Counts,
}

/// Settings of this connection only, and its rare counts.
impl Tcb {
    /// The record, if there is one.
    #[inline]
    pub(super) fn cold(&self) -> ColdView<'_> {
        self.counts.cold()
    }

    /// The record, made if there is none.
    #[cold]
    pub(super) fn cold_mut(&mut self) -> &mut ColdRecord {
        self.counts.stats_mut().cold.get_or_insert_default()
    }
}

impl Tcb {
    /// Bytes in the send buffer, acknowledged ones excluded.
    pub(super) fn send_queued(&self) -> u32 {
        self.buffers.as_ref().map_or(0, |buffers| buffers.send.text.len())
    }

    /// Bytes that can be read.
    pub(super) fn unread(&self) -> u32 {
        self.buffers.as_ref().map_or(0, |buffers| buffers.recv.unread())
    }

    /// The text that waits to be acknowledged, if any does.
    #[inline]
    pub(super) fn queue(&self) -> Option<&SendQueue> {
        self.buffers.as_deref().map(|buffers| &buffers.send)
    }

    /// Bounds of the text that waits other than the size of the send buffer.
    #[inline]
    pub(super) fn send_bounds(&self) -> SendBounds {
        let is_memory_limited = self.is_memory_limited();
        SendBounds { is_memory_limited, unsent_low_water: self.cold().unsent_low_water() }
    }

    /// Bounds of the window other than the size of the receive buffer.
    #[inline]
    pub(super) fn window_bounds(&self) -> WindowBounds {
        let is_memory_limited = self.is_memory_limited();
        let mut most = self.cold().window_clamp();
        if is_memory_limited {
            cold_path();
            most = most.min(self.memory_limited_window());
        }
        let mss = u32::from(self.sender.mss());
        WindowBounds { unread: self.unread(), most, is_memory_limited, mss }
    }

    pub(super) fn buffers(&mut self, cx: &mut Context) -> &mut Buffers {
        self.buffers.get_or_insert_with(|| {
            let mut buffers = cx.pool.take();
            // Not by `cold`, which would borrow the buffers, too.
            if let Some(most) = self.counts.cold().max_pacing_rate() {
                buffers.send.pacer.set_most(Some(most));
            }
            buffers
        })
    }

    /// Gives the buffers back if nothing is in them.
    #[inline]
    pub(super) fn account_buffers(&mut self, cx: &mut Context) {
        if let Some(buffers) = self.buffers.as_mut() {
            if buffers.is_empty() {
                self.give_back(&mut cx.pool);
            } else if buffers.may_differ() {
                buffers.account(cx);
            }
        }
    }

    /// Gives the buffers back, in which nothing is.
    #[inline(never)]
    fn give_back(&mut self, pool: &mut BufferPool) {
        if let Some(mut buffers) = self.buffers.take() {
            debug_assert!(buffers.limit.limit == Limit::Application, "there is no text");
            // It quoted our FIN, if it is there still.
            buffers.too_big = None;
            buffers.send.end();
            pool.give_empty(buffers);
        }
    }

    /// Gives the buffers back with whatever is in them.
    pub(super) fn release(&mut self, pool: &mut BufferPool) {
        if let Some(buffers) = self.buffers.take() {
            pool.give(buffers);
        }
    }

    /// Bytes of it in the account of its shard.
    pub(super) fn accounted(&self) -> u32 {
        self.buffers.as_ref().map_or(0, |buffers| buffers.accounted)
    }

    /// True if memory was short when it was last looked at, and it gets little.
    #[inline]
    pub(super) const fn is_memory_limited(&self) -> bool {
        self.flags.has(Flags::MEMORY_LIMITED)
    }

    /// The window that such a connection may announce, bytes: enough for a sender to hear of losses by
    /// duplicate acknowledgments.
    pub(super) fn memory_limited_window(&self) -> u32 {
        Budget::MEMORY_LIMITED_SEGMENTS * u32::from(self.sender.mss())
    }

    /// True if the peer's SYN opened it at once, and our own is not acknowledged yet.
    pub(super) const fn is_early(&self) -> bool {
        self.flags.has(Flags::EARLY)
    }

    pub(super) fn is_synchronized(&self) -> bool {
        // RFC 9293 3.10.4 calls it FIN-WAIT-1 once our FIN is sent.
        !matches!(self.state, State::SynSent | State::SynReceived) || self.sender.fin_sent()
    }

    /// The window on our SYN, where it cannot be scaled.
    pub(super) fn unscaled_window(&self) -> WindowSize {
        let limit = if self.is_memory_limited() { self.memory_limited_window() } else { u32::MAX };
        initial_window(self.recv_limit().min(limit))
    }

    /// True if nothing was announced to the peer yet.
    pub(super) fn is_before_syn(&self) -> bool {
        self.state == State::SynSent && self.sender.is_idle()
    }

    /// The most bytes that buffer and application let us announce at once.
    pub(super) fn recv_limit(&self) -> u32 {
        self.receiver.limit(self.cold().window_clamp())
    }

    /// Window scaling was negotiated (only asked while opening).
    pub(super) fn scaling(&self) -> bool {
        self.receiver.scale() != WindowScale::ZERO || self.sender.scale() != WindowScale::ZERO
    }

    /// True if keep-alive, if it is on, watches this state: the application waits for what the peer may still
    /// say, and no FIN of ours asks already. That goes for FIN-WAIT-2, too, where nothing else would find
    /// out that the peer is gone; without an owner that state has a time-out of its own.
    pub(super) fn may_be_probed(&self) -> bool {
        match self.state {
            State::Established | State::CloseWait => true,
            State::FinWait2 => !self.flags.has(Flags::ORPHAN),
            _ => false,
        }
    }
}

/// The window announced on a SYN, where it cannot be scaled, of a receive buffer of `bytes`.
pub fn initial_window(bytes: u32) -> WindowSize {
    WindowSize::new(bytes.min(65_535))
}
