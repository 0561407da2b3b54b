//! Calls of the application, and the room for its text.

use whimbrel_base::cold_path;
use whimbrel_recovery::cc::{Algorithm, Algorithms, INITIAL_SEGMENTS, Window, initial_cwnd};

use super::{Cork, Flags, Nagle, SendBounds, Sender, queued};
use crate::buffer_size::SizeRange;
use crate::send::SendQueue;
use crate::{Env, Tunables};

impl Sender {
    /// From now on `algorithm` sets the congestion window, beginning with what it is.
    pub fn set_algorithm(&mut self, algorithm: Algorithm, queue: Option<&mut SendQueue>) {
        if algorithm != self.window.algorithm() {
            self.window.set_algorithm(algorithm);
            if let Some(queue) = queue {
                queue.cc.reset();
                queue.flight.set_sampled(false);
            }
        }
    }

    /// Text may leave: an algorithm of the user's is made, if the connection has one.
    #[cold]
    pub fn prepare_algorithm(&mut self, algorithms: &Algorithms, queue: Option<&mut SendQueue>) {
        if let Some(queue) = queue.filter(|_| !self.flags.has(Flags::SYN)) {
            let mut control = queue.control(&mut self.window);
            control.prepare(algorithms, u32::from(self.mss));
            let is_sampled = control.samples_rate();
            queue.flight.set_sampled(is_sampled);
        }
    }

    /// Switches Nagle's algorithm off or on.
    pub fn set_nagle(&mut self, nagle: Nagle) {
        self.flags.set_if(Flags::NO_DELAY, nagle == Nagle::Off);
    }

    /// Holds back segments that are not full, or lets them go.
    pub fn set_cork(&mut self, cork: Cork) {
        self.flags.set_if(Flags::CORK, cork == Cork::On);
    }

    /// The send buffer follows what may be in flight: as much again waits for its turn, so that the path
    /// does not run dry until the application was woken. What is there beyond that stays. What the peer
    /// holds behind something missing comes on top: it is in the buffer, and no longer in flight.
    #[inline]
    pub fn update_size(&mut self, range: SizeRange, queue: Option<&SendQueue>) {
        let window = self.window.cwnd.min(self.seq.wnd.get());
        let held = queue.map_or(0, |queue| queue.recovery.held(&queue.flight));
        self.size = window.saturating_mul(2).saturating_add(held).min(range.most).max(range.floor);
    }

    /// The application closed its direction: FIN follows what was written.
    pub const fn queue_fin(&mut self, tunables: &Tunables) {
        self.flags.set(Flags::FIN_QUEUED);
        if !tunables.fin_with_text {
            self.flags.set(Flags::FIN_APART);
        }
    }

    /// The application would write `len` bytes. Returns how many of them there is room for; if that is
    /// less than all, it waits for room from now on.
    pub fn admit(
        &mut self,
        cx: &Env,
        queue: Option<&mut SendQueue>,
        bounds: &SendBounds,
        len: usize,
    ) -> usize {
        if self.is_send_share_limited() {
            self.leave_send_share(cx, queue.as_deref());
        }
        let take = len.min(self.room(queue.as_deref(), bounds) as usize);
        if take < len {
            self.flags.set(Flags::WANTS_ROOM);
        }
        if take > 0 {
            self.on_text(cx, queue);
        }
        take
    }

    /// Text is about to be queued.
    #[inline]
    pub fn on_text(&mut self, cx: &Env, queue: Option<&mut SendQueue>) {
        if self.is_idle() && queued(queue.as_deref()) == 0 {
            self.restart_after_idle(cx, queue);
        }
    }

    /// Bytes of the send buffer that are free.
    pub fn room(&self, queue: Option<&SendQueue>, bounds: &SendBounds) -> u32 {
        let free = self.limit(bounds).saturating_sub(queued(queue));
        match bounds.unsent_low_water.or_else(|| self.share()) {
            Some(most) => free.min(most.saturating_sub(self.unsent(queue))),
            None => free,
        }
    }

    /// The number of bytes may wait to be sent for the first time while many wait, if this is one of them: as
    /// many as keep the path busy until the application was woken.
    ///
    /// Text that waits behind that of others has left the caches when its turn comes: 100 connections with
    /// 1 MiB each carried half of what they do with a share each. An application that was not
    /// refused room yet may fill its buffer, and what was set takes precedence ([`SendBounds::unsent_low_water`]).
    pub fn share(&self) -> Option<u32> {
        self.is_send_share_limited().then(|| (self.unacknowledged() / 4).max(SHARE))
    }

    /// It was refused room; `crowded`: while the other connections held more text than caches do.
    pub const fn note_refused(&mut self, crowded: bool) {
        self.flags.set_if(Flags::SEND_SHARE_LIMITED, crowded);
    }

    /// True if it has no more than a share.
    #[inline]
    pub const fn is_send_share_limited(&self) -> bool {
        self.flags.has(Flags::SEND_SHARE_LIMITED)
    }

    /// An application that writes again a while after all was acknowledged was too late for a share, or has something new
    /// to say.
    #[inline(never)]
    fn leave_send_share(&mut self, cx: &Env, queue: Option<&SendQueue>) {
        if self.is_idle() && queued(queue) == 0 && cx.tick.millis_since(self.text_sent) > LATE {
            self.flags.clear(Flags::SEND_SHARE_LIMITED);
        }
    }

    /// The bytes that may wait to be acknowledged; little while memory is short.
    #[inline]
    fn limit(&self, bounds: &SendBounds) -> u32 {
        if bounds.is_memory_limited {
            cold_path();
            self.size.min(initial_cwnd(self.mss.into(), INITIAL_SEGMENTS))
        } else {
            self.size
        }
    }

    /// True if an application that waits for room has enough now; it then waits no more.
    pub fn take_room(&mut self, queue: Option<&SendQueue>, bounds: &SendBounds) -> bool {
        // Not for each segment: once a third of the buffer is free, as waking costs more than
        // a segment.
        let room = self.room(queue, bounds);
        let enough = match bounds.unsent_low_water {
            // As Linux: half of what may wait unsent is to be gone.
            Some(most) => self.unsent(queue) < most.div_ceil(2) && room > 0,
            None => {
                let share = self.share().map_or(u32::MAX, |share| share / 2);
                // Without SACK one repair leaves in a round trip, and what waits behind many would be more than two
                // thirds.
                let waits = queue.map_or(0, |queue| queue.recovery.credit());
                let turns_over = self.limit(bounds).saturating_sub(waits);
                room >= (turns_over / 3).min(self.drained_soon(queue)).min(share)
            }
        };
        if enough {
            self.flags.clear(Flags::WANTS_ROOM);
        }
        enough
    }

    /// The bytes that the path takes in a millisecond, if all of a full buffer was sent: while the application
    /// sleeps the path runs dry. Waiting for a third, 256 KiB carried 19.6 Mb/s over 70 ms, and not
    /// the 29.1 that a buffer in each round trip makes.
    fn drained_soon(&self, queue: Option<&SendQueue>) -> u32 {
        let srtt = self.rtt.srtt().filter(|_| self.unsent(queue) == 0).unwrap_or_default();
        let millis = u32::try_from(srtt.as_millis()).unwrap_or(u32::MAX);
        self.size.checked_div(millis).unwrap_or(u32::MAX)
    }

    /// Nothing is in flight, and text is about to be: what was learnt of the path is out of date if
    /// none was sent for long.
    pub fn restart_after_idle(&mut self, cx: &Env, queue: Option<&mut SendQueue>) {
        let idle = cx.tick.millis_since(self.text_sent);
        if idle > 0
            && (u64::from(idle) * 1_000 > self.rtt.rto_micros(&cx.tunables)
                || self.window.is_out_of_date(cx.tick))
        {
            self.restart_window(cx, idle, queue);
        }
    }

    /// The congestion window begins anew, or part of it, after `idle` milliseconds without text.
    #[inline(never)]
    pub(super) fn restart_window(&mut self, cx: &Env, idle: u32, queue: Option<&mut SendQueue>) {
        let initial = initial_cwnd(self.mss.into(), cx.tunables.initial_window);
        let pauses = u64::from(idle) * 1_000 > self.rtt.rto_micros(&cx.tunables);
        // RFC 5681 4.1: "a TCP SHOULD set cwnd to no more than RW before beginning transmission if
        // the TCP has not sent data in an interval exceeding the retransmission timeout."
        if pauses && cx.tunables.slow_start_after_idle {
            return reduce_unused(&mut self.window, cx, initial, queue);
        }
        // RFC 7661 4.5.2: "the sender can then take into account how many units of the NVP have passed and make one
        // reduction (defined in Section 4.4.3) for each NVP." 4.4.3: "cwnd = max((1/2)*cwnd, IW)".
        let periods = self.window.unused_periods(cx.tick, idle);
        if periods > 0 {
            let rest = self.window.cwnd.checked_shr(periods).unwrap_or_default();
            reduce_unused(&mut self.window, cx, rest.max(initial), queue);
        }
        if pauses && self.window.cwnd > initial {
            self.window.preserve();
        }
    }

    /// The connection is over: nothing is due.
    pub fn finish(&mut self) {
        for flag in [Flags::RETRANSMIT, Flags::PROBE, Flags::LOSS_PROBE, Flags::FIN_QUEUED] {
            self.flags.clear(flag);
        }
    }
}

/// The congestion window is `most` bytes at most, as more was not used.
fn reduce_unused(window: &mut Window, cx: &Env, most: u32, queue: Option<&mut SendQueue>) {
    window.note_used(cx.tick);
    match queue {
        Some(queue) => queue.control(window).on_idle(most),
        None => window.on_idle(most),
    }
}

/// The bytes that may wait unsent where many wait, at least: 16 KiB are left as the application is woken,
/// which 260 Mb/s take half a millisecond to send.
const SHARE: u32 = 32 << 10;
/// Milliseconds since the last text was sent after which it is a while ago.
const LATE: u32 = 1;
