//! The beginning of a sender: by its SYN, with what the peer's says, and with what the route knows.

use whimbrel_base::{Micros, cold_path};
use whimbrel_recovery::cc::Window;
use whimbrel_wire::{Mss, RawWindow, SeqNum, WindowScale};

use super::{Flags, SendTimer, Sender};
use crate::send::attempts::Attempts;
use crate::send::{RttEstimator, SendSequence};
use crate::{Env, Tunables};

impl Sender {
    /// One whose first number is `iss`, on a link that carries `mss` bytes of text and options.
    pub fn new(cx: &Env, iss: SeqNum, mss: u16) -> Self {
        let algorithm = cx.algorithms.usual(cx.tunables.congestion_control);
        let mut window = Window::new(algorithm, u32::from(mss));
        window.note_used(cx.tick);
        Self {
            seq: SendSequence::new(iss, SeqNum::new(0)),
            rtt: RttEstimator::default(),
            window,
            text_sent: cx.tick,
            size: cx.tunables.send_buffer,
            mss,
            acked_size: 0,
            flags: Flags::default(),
            scale: WindowScale::ZERO,
            attempts: Attempts::new(),
        }
    }

    /// Our SYN is the first thing to send.
    pub const fn queue_syn(&mut self) {
        self.flags.set(Flags::SYN);
    }

    /// The peer's SYN has the number `irs`, and ours was sent and acknowledged before this record began.
    pub fn begin_acknowledged(&mut self, irs: SeqNum) {
        self.seq = SendSequence::new(self.seq.una + 1, irs);
    }

    /// The peer's SYN has the number `irs` and announces `window`.
    pub fn on_syn(&mut self, irs: SeqNum, window: RawWindow) {
        // RFC 7323 2.2: "The window field in a segment where the SYN bit is set (...) MUST NOT
        // be scaled."
        self.seq.begin_window(irs, window.scaled(WindowScale::ZERO));
    }

    /// The peer's window fields are scaled by `scale`.
    pub const fn set_scale(&mut self, scale: WindowScale) {
        self.scale = scale;
    }

    /// Before the SYN is sent: segments carry at most `most` bytes of text and options.
    pub fn limit_mss(&mut self, most: u16) {
        self.mss = self.mss.min(most);
    }

    /// Eff.snd.MSS (RFC 9293 3.7.1): the peer's, which counts as the least of the tunables if it is less, or
    /// the link's, less `options` bytes of each segment. The initial congestion window follows from it.
    pub fn agree_mss(&mut self, peer: Mss, options: u16, tunables: &Tunables) {
        // Until here `mss` is what the link carries, and no packet may exceed that, however little
        // it is.
        let full = peer.get().max(tunables.least_mss).min(self.mss).max(1);
        self.mss = full.saturating_sub(options).max(1);
        self.window.begin(u32::from(self.mss), tunables.initial_window);
    }

    /// Takes the route's metrics of a new connection: at least so many segments of initial congestion window,
    /// and where slow start ends.
    pub fn begin_window(&mut self, initcwnd: u16, ssthresh: Option<u32>) {
        let mss = u32::from(self.mss);
        self.window.cwnd = self.window.cwnd.max(u32::from(initcwnd) * mss).min(Window::MOST);
        // RFC 5681 3.1, equation 4: no threshold is less.
        self.window.ssthresh = ssthresh.map_or(self.window.ssthresh, |bytes| bytes.max(2 * mss));
    }

    /// Our SYN is acknowledged, or the peer's has answered it.
    pub fn on_established(&mut self) {
        self.attempts.timer = SendTimer::Retransmission;
        if core::mem::take(&mut self.attempts.count) > 0 {
            cold_path();
            self.begin_after_lost_syn();
        }
    }

    /// Our SYN or SYN-ACK had to be repeated.
    pub fn begin_after_lost_syn(&mut self) {
        self.window.on_lost_syn(u32::from(self.mss));
        self.rtt.restart_after_lost_syn();
    }

    /// Our SYN or SYN-ACK arrived marked: congestion, and nothing that the window could be reduced from.
    pub fn on_opening_marked(&mut self) {
        self.window.on_lost_syn(u32::from(self.mss));
    }

    /// The handshake's round trip was measured before this record began.
    pub fn on_first_round_trip(&mut self, rtt: Micros) {
        self.rtt.on_sample(rtt);
    }
}
