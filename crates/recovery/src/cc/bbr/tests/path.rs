//! A paced flow over one queue, packet by packet: rate samples as the draft has them, and losses that are found
//! by the next packet that arrives. What is lost goes again as a new packet.

use std::collections::VecDeque;
use std::time::Duration;

use whimbrel_base::{Instant, Micros};

use super::super::{Bbr, State};
use crate::cc::{
    Ack, Algorithm, CongestionControl, Loss, LostText, Phase, Rate, Sent, SlowStart, Timeout,
    TimeoutKind, Window,
};

pub(super) const MSS: u32 = 1_448;

/// The path, and what the application does.
#[derive(Clone, Copy, Debug)]
pub(super) struct Path {
    /// Bytes per second.
    pub(super) rate: u64,
    /// The round trip of an empty queue.
    pub(super) trip: Duration,
    /// The most bytes that wait.
    pub(super) queue: u64,
    /// One of so many packets is lost; 0: none.
    pub(super) lost_of: u64,
    /// Acknowledgments arrive at multiples of this.
    pub(super) ack_batch: Duration,
    /// Bytes per second that the application has to send; `None`: any.
    pub(super) app_rate: Option<u64>,
    /// Selective acknowledgments were negotiated.
    pub(super) sack: bool,
}

impl Path {
    /// A path of so many megabits per second and milliseconds, whose queue is endless.
    pub(super) const fn new(megabits: u64, millis: u64) -> Self {
        Self {
            rate: megabits * 125_000,
            trip: Duration::from_millis(millis),
            queue: u64::MAX,
            lost_of: 0,
            ack_batch: Duration::ZERO,
            app_rate: None,
            sack: true,
        }
    }

    /// Bytes in flight that fill it, and not its queue.
    pub(super) fn product(&self) -> u32 {
        (u128::from(self.rate) * self.trip.as_nanos() / 1_000_000_000) as u32
    }
}

struct Packet {
    sent: Instant,
    /// When its acknowledgment arrives; `None`: it is lost.
    acked: Option<Instant>,
    number: u64,
    delivered: u64,
    delivered_at: Instant,
    first_at: Instant,
    in_flight: u32,
    lost: u64,
    app_limited: bool,
}

/// A flow.
pub(super) struct Flow {
    pub(super) bbr: Bbr,
    pub(super) window: Window,
    pub(super) path: Path,
    pub(super) now: Instant,
    /// States in the order in which they were entered.
    pub(super) entered: Vec<State>,
    /// Bytes that arrived.
    pub(super) delivered: u64,
    phase: Phase,
    recover: u64,
    flying: VecDeque<Packet>,
    next: u64,
    next_send: Instant,
    app_next: Instant,
    link_free: Instant,
    lost: u64,
    delivered_at: Instant,
    first_at: Instant,
    app_limited_until: Option<u64>,
    srtt: Option<Micros>,
}

impl Flow {
    pub(super) fn new(path: Path) -> Self {
        let mut window = Window::new(Algorithm::BBR, MSS);
        let mut bbr = Bbr::default();
        bbr.begin(&mut window, MSS);
        let now = Instant::ZERO + Duration::from_secs(1);
        Self {
            bbr,
            window,
            path,
            now,
            entered: vec![State::Startup],
            delivered: 0,
            phase: Phase::Open,
            recover: 0,
            flying: VecDeque::new(),
            next: 0,
            next_send: now,
            app_next: now,
            link_free: now,
            lost: 0,
            delivered_at: now,
            first_at: now,
            app_limited_until: None,
            srtt: None,
        }
    }

    /// A flow that has reached a state.
    pub(super) fn at(path: Path, state: State) -> Self {
        let mut flow = Self::new(path);
        flow.run_to(state);
        flow
    }

    pub(super) fn run(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end && self.step(end) {}
        self.now = self.now.max(end);
    }

    /// Runs until it enters a state, for a minute at most. Returns how long that took.
    pub(super) fn run_to(&mut self, state: State) -> Duration {
        let begun = self.now;
        let end = begun + Duration::from_secs(60);
        let before = self.entered.len();
        while !self.entered[before..].contains(&state) {
            assert!(self.now < end && self.step(end), "never {state:?}: {:?}", self.entered);
        }
        self.now.since(begun)
    }

    /// Runs until a round trip ends.
    pub(super) fn run_round(&mut self) {
        let end = self.now + Duration::from_secs(60);
        while self.step(end) {
            if self.bbr.round_start {
                return;
            }
        }
        panic!("no round trip ended in a minute");
    }

    pub(super) fn in_flight(&self) -> u32 {
        self.flying.len() as u32 * MSS
    }

    /// Bits per second that arrive in this time.
    pub(super) fn rate_in(&mut self, time: Duration) -> f64 {
        let before = self.delivered;
        self.run(time);
        (self.delivered - before) as f64 / time.as_secs_f64()
    }

    /// All that is in flight is lost, and the timer runs out.
    pub(super) fn time_out(&mut self) {
        self.now = self.now + Duration::from_secs(1);
        let in_flight = self.in_flight();
        let timeout = Timeout { kind: TimeoutKind::First, in_flight, mss: MSS };
        self.bbr.on_rto(&mut self.window, &timeout);
        (self.phase, self.recover) = (Phase::AfterTimeout, self.next);
        while let Some(packet) = self.flying.pop_front() {
            self.lose(&packet);
        }
        self.note_state();
    }

    /// Undoes the last recovery, whose losses were none.
    pub(super) fn undo(&mut self) {
        let before = self.window;
        self.bbr.undo(&mut self.window, &before);
        self.phase = Phase::Open;
        self.note_state();
    }

    /// A router marked what is acknowledged next.
    pub(super) fn mark(&mut self) {
        let loss = Loss { in_flight: self.in_flight(), mss: MSS };
        self.bbr.on_ecn(&mut self.window, &loss);
        self.note_state();
    }

    /// The next event, before `end`. Returns false if there is none.
    fn step(&mut self, end: Instant) -> bool {
        let has_room = self.in_flight() + MSS <= self.window.cwnd;
        let send = has_room.then(|| self.next_send.max(self.app_next).max(self.now));
        let ack = self.flying.iter().find_map(|packet| packet.acked);
        match (send, ack) {
            (Some(send), ack) if ack.is_none_or(|ack| send <= ack) && send < end => {
                self.note_app_limit(send);
                self.now = send;
                self.send();
            }
            (_, Some(ack)) if ack < end => {
                self.now = ack;
                self.on_ack();
            }
            (Some(_), _) | (_, Some(_)) => return false,
            (None, None) => self.time_out(),
        }
        self.note_state();
        true
    }

    fn note_state(&mut self) {
        if self.entered.last() != Some(&self.bbr.state) {
            self.entered.push(self.bbr.state);
        }
    }

    /// If the application is what the next packet waits for, it limits the sender.
    fn note_app_limit(&mut self, send: Instant) {
        if self.path.app_rate.is_some() && self.app_next == send && send > self.now {
            self.app_limited_until = Some(self.delivered + u64::from(self.in_flight()));
        }
    }

    fn send(&mut self) {
        if self.flying.is_empty() {
            (self.delivered_at, self.first_at) = (self.now, self.now);
        }
        let nanos =
            |bytes: u64, rate: u64| Duration::from_nanos(bytes * 1_000_000_000 / rate.max(1));
        let mss = u64::from(MSS);
        let waiting = self.link_free.since(self.now).as_nanos() * u128::from(self.path.rate);
        let is_full = waiting / 1_000_000_000 + u128::from(mss) > u128::from(self.path.queue);
        self.next += 1;
        let is_lost =
            is_full || self.path.lost_of > 0 && self.next.is_multiple_of(self.path.lost_of);
        let acked = (!is_lost).then(|| {
            self.link_free = self.link_free.max(self.now) + nanos(mss, self.path.rate);
            self.in_batch(self.link_free + self.path.trip)
        });
        let in_flight = self.in_flight() + MSS;
        self.flying.push_back(Packet {
            sent: self.now,
            acked,
            number: self.next,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_at: self.first_at,
            in_flight,
            lost: self.lost,
            app_limited: self.app_limited_until.is_some(),
        });
        let sent = Sent { now: self.now, bytes: MSS, in_flight, mss: MSS };
        self.bbr.on_sent(&mut self.window, &sent);
        let rate = self.bbr.pacing_rate(&self.window).expect("it paces");
        self.next_send = self.next_send.max(self.now) + nanos(mss, rate);
        if let Some(rate) = self.path.app_rate {
            self.app_next = self.app_next.max(self.now) + nanos(mss, rate);
        }
    }

    fn in_batch(&self, at: Instant) -> Instant {
        let batch = self.path.ack_batch.as_nanos() as u64;
        let at = at.as_nanos();
        Instant::from_nanos(if batch == 0 { at } else { at.next_multiple_of(batch) })
    }

    fn on_ack(&mut self) {
        let mut found = 0;
        let packet = loop {
            let packet = self.flying.pop_front().expect("one of them arrives");
            if packet.acked.is_some() {
                break packet;
            }
            found += 1;
            self.lose(&packet);
        };
        if self.phase != Phase::Open && packet.number >= self.recover {
            if self.phase == Phase::FastRecovery {
                self.bbr.on_recovered(&mut self.window, &Loss { in_flight: 0, mss: MSS });
            }
            self.phase = Phase::Open;
        }
        if found > 0 && self.phase == Phase::Open {
            (self.phase, self.recover) = (Phase::FastRecovery, self.next);
            let loss = Loss { in_flight: self.in_flight(), mss: MSS };
            self.bbr.on_loss_event(&mut self.window, &loss);
        }
        self.tell(&packet);
    }

    fn lose(&mut self, packet: &Packet) {
        self.lost += u64::from(MSS);
        let lost = LostText {
            bytes: MSS,
            in_flight: packet.in_flight,
            lost: (self.lost - packet.lost) as u32,
            app_limited: packet.app_limited,
            sack: self.path.sack,
        };
        self.bbr.on_lost(&mut self.window, &lost);
    }

    fn tell(&mut self, packet: &Packet) {
        self.delivered += u64::from(MSS);
        self.app_limited_until = self.app_limited_until.filter(|until| self.delivered <= *until);
        let interval =
            (packet.sent.since(packet.first_at)).max(self.now.since(packet.delivered_at));
        let rate = Rate {
            delivered: self.delivered - packet.delivered,
            interval: Some(Micros::from(interval)),
            app_limited: packet.app_limited,
            total: self.delivered,
            in_flight: packet.in_flight,
            lost: (self.lost - packet.lost) as u32,
            sack: self.path.sack,
        };
        (self.delivered_at, self.first_at) = (self.now, packet.sent);
        let rtt = Micros::from(self.now.since(packet.sent));
        let srtt = *self.srtt.get_or_insert(rtt);
        let ack = Ack {
            now: self.now,
            delivered: MSS,
            arrived: MSS,
            limited: MSS,
            in_flight: self.in_flight(),
            rtt: Some(rtt),
            srtt,
            rate: Some(rate),
            phase: self.phase,
            mss: MSS,
            slow_start: SlowStart::default(),
        };
        self.bbr.on_ack(&mut self.window, &ack);
    }
}
