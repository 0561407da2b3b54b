//! The state of congestion control that an idle connection keeps.

use whimbrel_base::Tick;

use super::{Algorithm, INITIAL_SEGMENTS, Loss, Timeout, TimeoutKind, initial_cwnd};

/// The congestion window, what was learnt with it, and by which algorithm. From these it goes on when
/// there is text to send again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Window {
    /// cwnd (RFC 5681 2): how much may be in flight, bytes of text, at least a full segment.
    pub cwnd: u32,
    /// ssthresh: the window at which slow start ends, bytes; `u32::MAX` before anything was lost.
    pub ssthresh: u32,
    /// CUBIC's W_max (RFC 9438 4.1.2), bytes: the window at which the path was last found full; 0 if that
    /// is not known. An algorithm that has another number to keep may keep it here.
    pub w_max: u32,
    /// The algorithm that sets the three numbers above.
    pub(super) algorithm: Algorithm,
    /// True from a pause that left cwnd as it was until the path was seen to carry half of it.
    pub(super) preserved: bool,
    /// When more than half of cwnd was in flight last, or its period began, in [units](PERIOD) modulo 2^16.
    pub(super) used_at: u16,
}

impl Window {
    /// No window beyond what a header can announce is ever useful.
    pub const MOST: u32 = 1 << 30;

    /// The initial window (RFC 6928) of a connection whose full segments have `mss` bytes of text.
    #[inline]
    pub fn new(algorithm: Algorithm, mss: u32) -> Self {
        // RFC 5681 3.1: "The initial value of ssthresh SHOULD be set arbitrarily high"
        let cwnd = initial_cwnd(mss, INITIAL_SEGMENTS);
        Self { cwnd, ssthresh: u32::MAX, w_max: 0, algorithm, preserved: false, used_at: 0 }
    }

    /// Which algorithm it is that sets it.
    #[inline]
    pub const fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// From now on another algorithm sets it.
    #[inline]
    pub const fn set_algorithm(&mut self, algorithm: Algorithm) {
        self.algorithm = algorithm;
        self.w_max = 0;
    }

    /// Full segments have `mss` bytes, as both ends agreed: the window is the initial one, of so many.
    #[inline]
    pub fn begin(&mut self, mss: u32, segments: u8) {
        (self.cwnd, self.ssthresh, self.w_max) = (initial_cwnd(mss, segments), u32::MAX, 0);
    }

    /// Our SYN had to be repeated, and is acknowledged now.
    pub fn on_lost_syn(&mut self, mss: u32) {
        // Of two rules the careful one (RFC 6928 2 would forgive the first loss): "if the SYN or SYN/ACK
        // is lost, the initial window used by a sender after a correctly transmitted SYN MUST be one
        // segment consisting of at most SMSS bytes."
        self.cwnd = mss;
    }

    /// More than half of it is in use, or a period begins in which it may remain unused (RFC 7661 4.4.3).
    #[inline]
    pub const fn note_used(&mut self, now: Tick) {
        self.used_at = unit(now);
    }

    /// True if it was not used for so long that [`Window::unused_periods`] has some.
    #[inline]
    pub const fn is_out_of_date(&self, now: Tick) -> bool {
        unit(now).wrapping_sub(self.used_at) >= PERIOD
    }

    /// The periods of five minutes in which less than half of it was used, nothing having been sent for `idle`
    /// milliseconds.
    pub fn unused_periods(&self, now: Tick, idle: u32) -> u32 {
        let unused = unit(now).wrapping_sub(self.used_at) / PERIOD;
        u32::from(unused).max(idle / PERIOD_MILLIS)
    }

    /// A pause leaves it unchanged, and unused (RFC 7661 4.3).
    pub const fn preserve(&mut self) {
        self.preserved = true;
    }

    /// True from a pause that left it as it was until the path was seen to carry half of it, or lost something.
    #[inline]
    pub const fn is_preserved(&self) -> bool {
        self.preserved
    }

    /// The path was seen to carry `pipe_ack` bytes in a round trip.
    pub(super) const fn validate(&mut self, pipe_ack: u32) {
        // RFC 7661 4.3: "Validated phase: pipeACK >=(1/2)*cwnd". In slow start the window of which that was a half
        // has grown by it.
        let least = if self.in_slow_start() { self.cwnd / 3 } else { self.cwnd / 2 };
        if pipe_ack >= least {
            self.preserved = false;
        }
    }

    /// RFC 7661 4.4: "If the sender receives an indication of congestion while in the non-validated phase (i.e.,
    /// detects loss), the sender MUST exit the non-validated phase".
    pub(super) const fn end_preservation(&mut self) {
        self.preserved = false;
    }

    /// Text is about to leave after a pause. RFC 5681 4.1: "RW = min(IW,cwnd)", where IW is `initial`. The threshold remembers
    /// three quarters of what there was, so that slow start leads back there (RFC 2861 3).
    pub fn on_idle(&mut self, initial: u32) {
        if self.cwnd > initial {
            self.ssthresh = self.ssthresh.max(self.cwnd / 4 * 3);
            self.cwnd = initial;
        }
    }

    /// True if the window grows by what is acknowledged, up to ssthresh.
    #[inline]
    pub const fn in_slow_start(&self) -> bool {
        // RFC 5681 3.1: "The slow start algorithm is used when cwnd < ssthresh"
        self.cwnd < self.ssthresh
    }

    /// The window grows by so many bytes.
    #[inline]
    pub fn grow(&mut self, bytes: u32) {
        self.cwnd = self.cwnd.saturating_add(bytes).min(Self::MOST);
    }

    /// Something was lost: ssthresh becomes `kept` of what was in flight.
    pub fn reduce(&mut self, loss: &Loss, kept: Share) {
        // RFC 5681 3.1: "ssthresh = max (FlightSize / 2, 2*SMSS)"; 3.2 step 2: "When [RFC3042] is in use,
        // additional data sent in limited transmit MUST NOT be included in this calculation." What a
        // peer reported out of order lets more go than that, and none of it counts.
        self.ssthresh = kept.of(loss.in_flight.min(self.cwnd)).max(2 * loss.mss);
    }

    /// The retransmission timer ran out; ssthresh is reduced to `kept` of what was in flight, as in
    /// [`Window::reduce`].
    pub fn time_out(&mut self, timeout: &Timeout, kept: Share) {
        let Timeout { kind, in_flight, mss, .. } = *timeout;
        // RFC 5681 3.1: "when a TCP sender detects segment loss using the retransmission timer and the
        // given segment has already been retransmitted by way of the retransmission timer at least once,
        // the value of ssthresh is held constant."
        if kind == TimeoutKind::First {
            self.reduce(&Loss { in_flight, mss }, kept);
        }
        // RFC 5681 3.1: "Furthermore, upon a timeout (...) cwnd MUST be set to no more than the loss
        // window, LW, which equals 1 full-sized segment".
        self.cwnd = mss;
    }

    /// A user's algorithm set it: a connection whose window has no room for a segment of `mss` bytes would
    /// wait for ever, and none uses more than [`Window::MOST`].
    pub(super) fn bound(&mut self, mss: u32) {
        self.cwnd = self.cwnd.clamp(mss.min(Self::MOST), Self::MOST);
    }

    /// Undoes a reduction after a spurious loss: cwnd is at least that of `before`, and the rest equals it.
    pub fn restore(&mut self, before: &Self) {
        self.cwnd = self.cwnd.max(before.cwnd);
        self.ssthresh = before.ssthresh;
        self.w_max = before.w_max;
    }
}

/// RFC 7661 4.4: "The NVP SHOULD NOT exceed five minutes." In units of 1,024 ms, one less than fit.
const PERIOD: u16 = 291;
const PERIOD_MILLIS: u32 = 300_000;

const fn unit(now: Tick) -> u16 {
    (now.raw() >> 10) as u16
}

/// A part of a window: so many of so many.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Share(pub u32, pub u32);

impl Share {
    /// So much of this.
    pub fn of(self, bytes: u32) -> u32 {
        (u64::from(bytes) * u64::from(self.0) / u64::from(self.1.max(1))) as u32
    }
}
