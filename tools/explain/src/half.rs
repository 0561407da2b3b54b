//! One direction of a flow: what its sender has sent, and what came back for it.
//!
//! ```text
//!        una            next                    edge
//!   ------|--------------|-----------------------|------
//!  acked  |  in flight   |  may be sent          |  beyond the receiver's window
//! ```

use std::collections::VecDeque;

use whimbrel_wire::SeqNum;

use crate::segment::{Offer, Segment};
use crate::shares::{TimeShares, Wait};

mod acks;
mod losses;
mod pace;

pub(crate) use losses::{Again, LossPoint, Losses};
pub(crate) use pace::Pace;

pub(crate) const MS: u64 = 1_000_000;
pub(crate) const SECOND: u64 = 1_000 * MS;

/// A direction of a flow, by its sender's segments and the other end's acknowledgments.
#[derive(Clone, Default, Debug)]
pub(crate) struct Half {
    pub(crate) segments: u64,
    /// Bytes of text, each counted once.
    pub(crate) text: u64,
    /// Bytes of all IP packets.
    pub(crate) bytes: u64,
    pub(crate) opening: Opening,
    /// Number after the highest that was sent.
    pub(crate) next: Option<SeqNum>,
    /// Highest number acknowledged.
    pub(crate) una: Option<SeqNum>,
    /// Right edge of the receiver's window.
    pub(crate) edge: Option<SeqNum>,
    /// Shift of the windows that the receiver announces, if known.
    pub(crate) edge_shift: Option<u8>,
    pub(crate) flight: VecDeque<Sent>,
    /// Longest text of a segment.
    pub(crate) mss: u32,
    /// Text of the last new segment.
    pub(crate) last_text: u32,
    /// Time of the last new text, and of the last that acknowledged some.
    pub(crate) last_new: u64,
    pub(crate) last_progress: u64,
    pub(crate) rtt: Rtt,
    pub(crate) rounds: Rounds,
    pub(crate) losses: Losses,
    pub(crate) pace: Option<Box<Pace>>,
    pub(crate) zero_window: Pause,
    pub(crate) delayed_acks: Pause,
    /// Waits of this application while nothing was in flight.
    pub(crate) app: AppWaits,
    pub(crate) shares: TimeShares,
    pub(crate) fin: Option<(u64, u64)>,
    pub(crate) identity: Identity,
    /// Acknowledgments of numbers that the capture never showed.
    pub(crate) unseen_acked: u64,
    pub(crate) unseen_frame: u64,
    /// Segments longer than the MSS that their receiver announced.
    pub(crate) oversized: u64,
    pub(crate) oversized_frame: u64,
    duplicate_acks: u32,
}

/// SYNs of a side.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Opening {
    pub(crate) count: u32,
    pub(crate) first: u64,
    pub(crate) last: u64,
    pub(crate) frame: u64,
    pub(crate) last_frame: u64,
    pub(crate) seq: SeqNum,
    pub(crate) offer: Offer,
    /// TSval of the latest, and whether the one before it had another.
    pub(crate) timestamp: Option<u32>,
    pub(crate) has_own_timestamp: bool,
}

/// A segment in flight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(crate) start: SeqNum,
    pub(crate) end: SeqNum,
    /// Times of its first and its latest transmission.
    pub(crate) first: u64,
    pub(crate) last: u64,
    pub(crate) transmissions: u16,
    pub(crate) is_sacked: bool,
    /// Shortest text with which it was sent.
    pub(crate) shortest: u32,
    /// TSval of the first, and IP id of the latest.
    pub(crate) timestamp: Option<u32>,
    pub(crate) ip_id: Option<u16>,
    /// Bytes of packets sent before its latest transmission.
    pub(crate) bytes_before: u64,
}

/// Round trips from text to its acknowledgment, nanoseconds.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Rtt {
    pub(crate) samples: u64,
    pub(crate) least: u64,
    /// The most while much was in flight.
    pub(crate) most: u64,
    /// The last four.
    recent: [u64; 4],
    /// Samples of at least four times the least and 100 ms, and the first of their frames.
    pub(crate) high: u64,
    pub(crate) high_frame: u64,
    /// Time during which they were high.
    pub(crate) high_time: u64,
    last_at: u64,
}

impl Rtt {
    /// The least of the last four: one alone may contain the wait of a delayed acknowledgment.
    pub(crate) fn now(&self) -> u64 {
        self.recent.into_iter().filter(|rtt| *rtt > 0).min().unwrap_or(0)
    }

    /// True if the last round trips are a tenth longer than the least, which a queue of the path makes.
    fn is_queued(&self) -> bool {
        self.now() > self.least.saturating_add(self.least / 10).saturating_add(2 * MS)
    }

    pub(crate) fn add(&mut self, rtt: u64, at: u64, frame: u64, is_loaded: bool) {
        self.least = if self.samples == 0 { rtt } else { self.least.min(rtt) };
        self.samples += 1;
        if is_loaded && rtt >= self.least.saturating_mul(4).max(100 * MS) {
            self.high += 1;
            self.high_frame = if self.high == 1 { frame } else { self.high_frame };
            let time = at.saturating_sub(self.last_at).min(rtt);
            self.high_time = self.high_time.saturating_add(time);
        }
        self.recent.rotate_left(1);
        self.recent[3] = rtt;
        self.last_at = at;
        if is_loaded {
            self.most = self.most.max(self.now());
        }
    }
}

/// Amounts in flight, round trip by round trip.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Rounds {
    pub(crate) count: u32,
    /// End of this round: a number to be acknowledged.
    end: Option<SeqNum>,
    begun: u64,
    most: u32,
    /// Rounds without growth and without a queue, in a row: now, and at most.
    steady: u32,
    level: u32,
    steady_since: u64,
    pub(crate) plateau: u32,
    pub(crate) plateau_rounds: u32,
    pub(crate) plateau_time: u64,
    pub(crate) plateau_frame: u64,
    /// True if a window was nearly full in this round.
    is_at_edge: bool,
    /// New segments of this round, and those that an acknowledgment released.
    sent: u32,
    released: u32,
    /// True if that holds for the latest.
    is_released: bool,
}

/// A kind of wait that repeats.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Pause {
    pub(crate) count: u32,
    pub(crate) time: u64,
    pub(crate) frame: u64,
    pub(crate) since: Option<u64>,
}

impl Pause {
    pub(crate) fn add(&mut self, time: u64, frame: u64) {
        self.frame = if self.count == 0 { frame } else { self.frame };
        self.count = self.count.saturating_add(1);
        self.time = self.time.saturating_add(time);
    }
}

/// Waits for an application while nothing is in flight.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct AppWaits {
    /// Before an answer: the other side spoke last.
    pub(crate) answering: Pause,
    /// In the middle of what it sends: it spoke last itself.
    pub(crate) pausing: Pause,
}

/// Signs of a host, which others in its place do not have.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Identity {
    pub(crate) ttl: Option<u8>,
    pub(crate) ip_id: Option<u16>,
    pub(crate) timestamp: Option<u32>,
}

impl Half {
    /// Memory of its lists, bytes.
    pub(crate) fn held(&self) -> usize {
        let losses = &self.losses;
        self.flight.capacity() * size_of::<Sent>()
            + losses.points.capacity() * size_of::<LossPoint>()
            + losses.gaps.capacity() * size_of::<(SeqNum, SeqNum, u64)>()
            + (losses.silences.capacity() * 3 + losses.frames.capacity()) * size_of::<u64>()
            + self.pace.as_ref().map_or(0, |pace| pace.held())
    }

    /// Bytes in flight.
    pub(crate) fn in_flight(&self) -> u32 {
        match (self.una, self.next) {
            (Some(una), Some(next)) if next.after(una) => next.offset_from(una),
            _ => 0,
        }
    }

    /// True if a full segment does not fit the receiver's window.
    pub(crate) fn is_at_edge(&self) -> bool {
        let (Some(next), Some(edge)) = (self.next, self.edge) else { return false };
        self.in_flight() > 0 && edge.distance_from(next) < self.mss.max(1).cast_signed()
    }

    /// True if the receiver's window is closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.edge.zip(self.una).is_some_and(|(edge, una)| edge.at_or_before(una))
    }

    /// Reason that the sender waits now, once the handshake is over.
    pub(crate) fn wait(&self) -> Wait {
        if self.losses.is_recovering() {
            Wait::Recovery
        } else if self.is_closed() && self.edge_shift.is_some() {
            Wait::ReceiveWindow
        } else if self.in_flight() == 0 {
            Wait::Application
        } else if self.is_at_edge() {
            Wait::ReceiveWindow
        } else if self.last_text < self.mss {
            Wait::Application
        } else {
            Wait::CongestionWindow
        }
    }

    /// Handles text or FIN that was never sent before, or that fills a hole.
    pub(crate) fn on_new(&mut self, segment: &Segment) {
        let next = self.next.unwrap_or(segment.seq);
        if segment.seq.after(next) {
            self.losses.on_gap(next, segment);
        }
        let sent = Sent {
            start: segment.seq,
            end: segment.end(),
            first: segment.at,
            last: segment.at,
            transmissions: 1,
            is_sacked: false,
            shortest: segment.text,
            timestamp: segment.timestamps.map(|[val, _]| val),
            ip_id: segment.ip_id,
            bytes_before: self.bytes,
        };
        Pace::on_new(&mut self.pace, segment.at, self.bytes, self.segments);
        if self.una.is_none() {
            self.una = Some(segment.seq);
        }
        // Released by an acknowledgment, or part of a train that one released (which may be paced).
        let limit = (self.rtt.least / 20).max(MS / 2);
        let is_just = |since: u64| segment.at.saturating_sub(since) < limit;
        let is_train = self.rounds.is_released && is_just(self.last_new);
        let is_released = self.in_flight() > 0 && (is_just(self.last_progress) || is_train);
        self.rounds.is_released = is_released;
        self.rounds.sent += 1;
        self.rounds.released += u32::from(is_released);
        if self.in_flight() == 0 {
            self.last_progress = segment.at;
        }
        if self.flight.len() >= Self::MOST_SENT {
            self.flight.pop_front();
        }
        self.flight.push_back(sent);
        self.next = Some(segment.end());
        self.mss = self.mss.max(segment.text);
        self.text += u64::from(segment.text);
        if segment.text > 0 {
            self.last_text = segment.text;
            self.last_new = segment.at;
        }
        if self.rounds.end.is_none() {
            self.rounds.end = Some(segment.end());
            self.rounds.begun = segment.at;
        }
    }

    /// True if no more than a constant amount was in flight for eight round trips, without a loss or a queue
    /// and below the window.
    pub(crate) fn has_plateau(&self) -> bool {
        let is_steady = self.rounds.plateau_rounds >= 8;
        is_steady && self.rounds.plateau >= self.mss.saturating_mul(2) && self.losses.repeated == 0
    }

    /// Time by what was waited for, with that of the send buffer set apart.
    pub(crate) fn shares_by_limit(&self) -> TimeShares {
        let mut shares = self.shares;
        if self.has_plateau() {
            let time = self.rounds.plateau_time;
            let of_window = shares.of(Wait::CongestionWindow).min(time);
            shares.shift(Wait::CongestionWindow, Wait::SendBuffer, time);
            shares.shift(Wait::Application, Wait::SendBuffer, time - of_window);
        }
        shares
    }

    /// Time since the transmission of which this segment is a copy: it has the same text and the same IP id, or
    /// without one a TSval that is older than the sender's latest.
    pub(crate) fn age_of_copied(&self, segment: &Segment) -> Option<u64> {
        self.next.filter(|next| segment.text > 0 && segment.seq.before(*next))?;
        let sent = self.flight.get(self.place_of(segment.seq)?)?;
        let age = segment.at.saturating_sub(sent.last);
        let is_same = (sent.start, sent.end) == (segment.seq, segment.end());
        let stamp = segment.timestamps.map(|[val, _]| val);
        let is_old = || {
            let latest = stamp.filter(|_| stamp == sent.timestamp).zip(self.identity.timestamp);
            latest.is_some_and(|(now, latest)| latest != now && latest.wrapping_sub(now) < 1 << 31)
        };
        let is_copy = sent.ip_id == segment.ip_id && (segment.ip_id.is_some() || is_old());
        (is_same && is_copy && age <= SECOND).then_some(age)
    }

    /// Place in the flight of the segment that has this number.
    pub(crate) fn place_of(&self, seq: SeqNum) -> Option<usize> {
        let first = self.flight.front()?.start;
        let from = seq.distance_from(first);
        let after = self.flight.partition_point(|sent| sent.start.distance_from(first) <= from);
        let place = after.checked_sub(1)?;
        self.flight.get(place).filter(|sent| sent.end.after(seq)).map(|_| place)
    }

    /// Most segments in flight that are followed.
    const MOST_SENT: usize = 4_096;
}

impl Rounds {
    /// Ends a round, if `ack` does. The amount in flight before it is `flight`; `is_queued` tells that a queue
    /// holds some of it.
    fn on_ack(
        &mut self,
        segment: &Segment,
        next: SeqNum,
        [flight, mss]: [u32; 2],
        is_queued: bool,
    ) {
        let Segment { ack, at, frame, .. } = *segment;
        self.most = self.most.max(flight);
        if self.end.is_none_or(|end| ack.before(end)) {
            return;
        }
        self.count = self.count.saturating_add(1);
        let is_clocked = self.sent > 0 && self.released * 10 >= self.sent * 9;
        // A buffer holds more or less text with the overhead of each segment, but never more than so much; a
        // congestion window grows.
        let is_below = self.most < self.level.saturating_add(mss);
        let is_near = self.most >= self.level / 5 * 2;
        if self.is_at_edge || !is_clocked || !is_below || !is_near || is_queued {
            (self.level, self.steady, self.steady_since) = (self.most, 0, at);
        } else {
            self.steady += 1;
            if self.steady > self.plateau_rounds {
                self.plateau_rounds = self.steady;
                self.plateau = self.level;
                self.plateau_time = at.saturating_sub(self.steady_since);
                self.plateau_frame = frame;
            }
        }
        self.most = 0;
        self.is_at_edge = false;
        (self.sent, self.released) = (0, 0);
        (self.end, self.begun) = (Some(next), at);
    }

    /// Begins to count anew: a loss explains what is in flight.
    pub(crate) fn interrupt(&mut self) {
        (self.steady, self.level) = (0, 0);
    }

    pub(crate) const fn note(&mut self, is_at_edge: bool) {
        self.is_at_edge |= is_at_edge;
    }
}
