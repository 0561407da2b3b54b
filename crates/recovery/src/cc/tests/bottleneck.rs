//! A bulk transfer over one queue: what leaves waits its turn or finds the queue full, and what arrives is
//! acknowledged one by one. Losses are repaired as by RACK and PRR (RFC 8985, RFC 9937), ideally.

use std::collections::VecDeque;
use std::time::Duration;

use whimbrel_base::{Instant, Micros};

use super::ack;
use crate::cc::{
    Ack, Algorithm, CcState, Control, INITIAL_SEGMENTS, Loss, Phase, Sent, Timeout, TimeoutKind,
    Window, initial_cwnd,
};

/// The path. Its queue holds as much as is in flight without it, and 16 packets at least.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bottleneck {
    /// Bytes per second.
    pub(super) rate: u64,
    pub(super) round_trip: Duration,
    pub(super) mss: u32,
}

impl Bottleneck {
    /// Bytes in flight that fill the path and not the queue.
    pub(super) fn product(&self) -> u64 {
        (u128::from(self.rate) * self.round_trip.as_nanos() / 1_000_000_000) as u64
    }

    /// The share of the rate that a transfer has, once its beginning is over.
    pub(super) fn run(&self, algorithm: Algorithm) -> f64 {
        let doublings = (self.product() as f64
            / f64::from(initial_cwnd(self.mss, INITIAL_SEGMENTS)))
        .log2()
        .max(0.0);
        let start = self.round_trip.mul_f64(2.0 * doublings) + Duration::from_secs(2);
        let lasts = (self.round_trip * 20).max(Duration::from_secs(20));
        let mut transfer = Transfer::new(*self, algorithm);
        transfer.run_until(Instant::ZERO + start);
        let before = transfer.delivered;
        transfer.run_until(Instant::ZERO + start + lasts);
        (transfer.delivered - before) as f64 / (self.rate as f64 * lasts.as_secs_f64())
    }
}

impl Bottleneck {
    /// The share of the packets that the queue refuses until eight times what the path holds has arrived.
    pub(super) fn lost_at_first(&self, algorithm: Algorithm) -> f64 {
        let mut transfer = Transfer::new(*self, algorithm);
        let mut end = Instant::ZERO;
        while transfer.delivered < 8 * self.product() {
            end = end + self.round_trip;
            transfer.run_until(end);
        }
        transfer.refused as f64 / transfer.next as f64
    }
}

/// A packet that the queue took.
struct Flying {
    number: u64,
    sent: Instant,
    acked: Instant,
}

struct Transfer {
    path: Bottleneck,
    state: CcState,
    window: Window,
    now: Instant,
    /// When the queue is empty.
    idle: Instant,
    flying: VecDeque<Flying>,
    /// The number of the next packet; those that go again have new ones.
    next: u64,
    /// The number of the next packet that is to be acknowledged or found lost.
    expected: u64,
    phase: Phase,
    recover: u64,
    recovery: Prr,
    srtt: u64,
    delivered: u64,
    /// Packets that found the queue full.
    refused: u64,
}

/// Proportional rate reduction, bytes.
#[derive(Default)]
struct Prr {
    recover_fs: u64,
    delivered: u64,
    out: u64,
}

impl Transfer {
    fn new(path: Bottleneck, algorithm: Algorithm) -> Self {
        Self {
            path,
            state: CcState::default(),
            window: Window::new(algorithm, path.mss),
            now: Instant::ZERO,
            idle: Instant::ZERO,
            flying: VecDeque::new(),
            next: 0,
            expected: 0,
            phase: Phase::Open,
            recover: 0,
            recovery: Prr::default(),
            srtt: 0,
            delivered: 0,
            refused: 0,
        }
    }

    fn control(&mut self) -> Control<'_> {
        Control { window: &mut self.window, state: &mut self.state }
    }

    fn run_until(&mut self, end: Instant) {
        let window = u64::from(self.window.cwnd);
        self.send(window.saturating_sub(self.pipe()));
        loop {
            match self.flying.front() {
                Some(next) if next.acked > end => return,
                Some(_) => self.on_ack(),
                None => self.on_timeout(),
            }
        }
    }

    fn pipe(&self) -> u64 {
        (self.next - self.expected) * u64::from(self.path.mss)
    }

    /// As many full segments leave as so many bytes have room for.
    fn send(&mut self, room: u64) {
        let mss = u64::from(self.path.mss);
        for _ in 0..room / mss {
            let waits = self.idle.since(self.now).as_nanos() as u64;
            let queued = (u128::from(waits) * u128::from(self.path.rate) / 1_000_000_000) as u64;
            if queued + mss <= self.path.product().max(16 * mss) {
                let nanos = mss * 1_000_000_000 / self.path.rate;
                self.idle = self.idle.max(self.now) + Duration::from_nanos(nanos);
                let acked = self.idle + self.path.round_trip;
                self.flying.push_back(Flying { number: self.next, sent: self.now, acked });
            } else {
                self.refused += 1;
            }
            self.next += 1;
            self.recovery.out += mss;
            let (now, in_flight) = (self.now, self.pipe() as u32);
            let sent = Sent { now, bytes: self.path.mss, in_flight, mss: self.path.mss };
            self.control().on_sent(&sent);
        }
    }

    fn on_ack(&mut self) {
        let Some(packet) = self.flying.pop_front() else { return };
        let (mss, before) = (self.path.mss, self.pipe());
        self.now = packet.acked;
        self.delivered += u64::from(mss);
        let lost = packet.number - self.expected;
        self.expected = packet.number + 1;
        if self.phase != Phase::Open && packet.number >= self.recover {
            if self.phase == Phase::FastRecovery {
                let end = Loss { in_flight: self.pipe() as u32, mss };
                self.control().on_recovered(&end);
            }
            self.phase = Phase::Open;
        }
        if lost > 0 && self.phase == Phase::Open {
            self.recovery = Prr { recover_fs: before, ..Prr::default() };
            (self.phase, self.recover) = (Phase::FastRecovery, self.next);
            let loss = Loss { in_flight: before as u32, mss };
            self.control().on_loss_event(&loss);
        }
        let rtt = packet.acked.since(packet.sent).as_micros() as u64;
        self.srtt = if self.srtt == 0 { rtt } else { self.srtt - self.srtt / 8 + rtt / 8 };
        self.tell(rtt);
        let room = self.room();
        self.send(room);
    }

    fn tell(&mut self, rtt: u64) {
        let (now, mss, phase, in_flight) =
            (self.now, self.path.mss, self.phase, self.pipe() as u32);
        let [rtt, srtt] = [rtt, self.srtt].map(|micros| Micros::new(micros as u32));
        self.control().on_ack(mss, |limited| {
            let rtt = Some(rtt);
            Ack { now, limited, in_flight, rtt, srtt, phase, ..ack(mss, mss) }
        });
    }

    /// Sends what may leave now.
    fn room(&mut self) -> u64 {
        let (pipe, mss) = (self.pipe(), u64::from(self.path.mss));
        if self.phase != Phase::FastRecovery {
            return u64::from(self.window.cwnd).saturating_sub(pipe);
        }
        let ssthresh = u64::from(self.window.ssthresh);
        let prr = &mut self.recovery;
        prr.delivered += mss;
        if pipe > ssthresh {
            (prr.delivered * ssthresh).div_ceil(prr.recover_fs).saturating_sub(prr.out)
        } else {
            (ssthresh - pipe).min(prr.delivered.saturating_sub(prr.out).max(mss) + mss)
        }
    }

    /// All that was out is lost.
    fn on_timeout(&mut self) {
        self.now = self.now + Duration::from_secs(1);
        let (in_flight, mss) = (self.pipe() as u32, self.path.mss);
        let timeout = Timeout { kind: TimeoutKind::First, in_flight, mss };
        self.control().on_rto(&timeout);
        (self.phase, self.recover, self.expected) = (Phase::AfterTimeout, self.next, self.next);
        self.send(u64::from(self.window.cwnd));
    }
}
