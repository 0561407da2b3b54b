//! Losses of a direction, and what looks like them.

use whimbrel_wire::SeqNum;

use super::{Half, MS, Sent};
use crate::segment::Segment;

/// Signs of losses.
#[derive(Clone, Default, Debug)]
pub(crate) struct Losses {
    /// Segments sent again, and lost as far as known; and their frames.
    pub(crate) repeated: u64,
    pub(crate) frames: Vec<u64>,
    /// Time of the latest.
    pub(crate) last_repeated: u64,
    /// Of these, those after a time-out without any sign from behind them.
    pub(crate) timeouts: u64,
    pub(crate) timeout_frame: u64,
    /// Time from the last progress until what was repeated after a time-out was acknowledged.
    pub(crate) timeout_time: u64,
    /// Time of time-outs that were repeated while the other end said nothing.
    pub(crate) silence: Option<Silence>,
    pub(crate) silences: Vec<(u64, u64, u64)>,
    /// Segments whose second copy the receiver reports, or whose first it echoes.
    pub(crate) spurious: u64,
    pub(crate) spurious_frame: u64,
    /// Segments sent again although acknowledged before.
    pub(crate) needless: u64,
    /// Segments that others overtook, and the frame of the first.
    pub(crate) overtaken: u64,
    pub(crate) overtaken_frame: u64,
    /// Segments that the capture lacks, as the gaps show: lost before its place.
    pub(crate) gaps: Vec<(SeqNum, SeqNum, u64)>,
    pub(crate) upstream: u64,
    /// Losses, and when the last of them was repaired.
    pub(crate) points: Vec<LossPoint>,
    pub(crate) points_until: u64,
    /// Round trips of the largest segments that are never acknowledged.
    pub(crate) stubborn: Stubborn,
    /// Longest text that was acknowledged, and longest that was repeated at least three times.
    pub(crate) longest_acked: u32,
    recovers_until: Option<SeqNum>,
}

/// A loss, also of a repeat.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LossPoint {
    pub(crate) at: u64,
    /// Bytes that had been sent before it.
    pub(crate) sent: u64,
    /// The last round trip before it, nanoseconds.
    pub(crate) rtt: u64,
}

/// A time without any segment from the other end, in which text was repeated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Silence {
    pub(crate) since: u64,
    pub(crate) repeats: u32,
    pub(crate) frame: u64,
}

/// A segment that is repeated again and again.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Stubborn {
    pub(crate) text: u32,
    pub(crate) repeats: u16,
    pub(crate) since: u64,
    pub(crate) until: u64,
    pub(crate) frame: u64,
}

/// Kind of a segment below the highest number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Again {
    /// A probe of a closed window, or a keep-alive.
    Probe,
    /// Acknowledged before.
    Needless,
    /// Sent again after signs from behind it.
    Fast,
    /// Sent again after a time-out.
    Timeout,
    /// Seen for the first time, but late.
    Late,
}

impl Losses {
    /// True while lost text is not acknowledged.
    pub(crate) const fn is_recovering(&self) -> bool {
        self.recovers_until.is_some()
    }

    pub(super) fn on_gap(&mut self, next: SeqNum, segment: &Segment) {
        if self.gaps.len() < Self::MOST {
            self.gaps.push((next, segment.seq, segment.at));
        }
    }

    /// Notes that the receiver got text twice.
    pub(super) fn note_spurious(&mut self, frame: u64) {
        self.spurious_frame = if self.spurious == 0 { frame } else { self.spurious_frame };
        self.spurious += 1;
    }

    /// Handles the acknowledgment of a segment that was sent more than once.
    pub(super) fn on_repeated_acked(&mut self, sent: &Sent, segment: &Segment) {
        // RFC 3522 3.2: the echo of the first transmission's timestamp.
        let echo = segment.timestamps.map(|[_, ecr]| ecr);
        if echo.is_some() && echo == sent.timestamp && segment.sack.iter().next().is_none() {
            self.note_spurious(segment.frame);
        }
    }

    /// Handles new acknowledgments. Returns the number of gaps that nothing has filled: the capture lacks them.
    pub(super) fn on_progress(&mut self, segment: &Segment) -> u64 {
        if self.recovers_until.is_some_and(|until| segment.ack.at_or_after(until)) {
            self.recovers_until = None;
        }
        let before = self.gaps.len();
        self.gaps.retain(|(start, ..)| start.at_or_after(segment.ack));
        (before - self.gaps.len()) as u64
    }

    fn add_point(&mut self, point: LossPoint, now: u64) {
        if self.points.len() < Self::MOST_POINTS {
            self.points.push(point);
            self.points_until = now;
        }
    }

    /// Handles any segment from the other end: a silence is over.
    pub(crate) fn on_sign(&mut self, at: u64) {
        if let Some(silence) = self.silence.take()
            && silence.repeats >= 2
            && self.silences.len() < Self::MOST
        {
            self.silences.push((silence.since, at, silence.frame));
        }
    }

    /// Most silences and gaps that are kept.
    pub(crate) const MOST: usize = 256;
    /// Most losses.
    pub(crate) const MOST_POINTS: usize = 1_024;
}

impl Half {
    /// Judges text below the highest number that was sent.
    pub(crate) fn judge_again(&self, segment: &Segment) -> Again {
        let una = self.una.unwrap_or(segment.seq);
        let is_probe = segment.text <= 1 && (self.is_closed() || segment.end().at_or_before(una));
        if is_probe
            || self.is_closed() && self.edge.is_some_and(|edge| segment.seq.at_or_after(edge))
        {
            return Again::Probe;
        }
        if segment.end().at_or_before(una) {
            return Again::Needless;
        }
        let Some(sent) = self.place_of(segment.seq).and_then(|place| self.flight.get(place)) else {
            return Again::Late;
        };
        let has_signs = self.duplicate_acks() >= 1 || self.flight.iter().any(|it| it.is_sacked);
        // A time-out has a floor of 200 ms; a probe of the tail leaves after two round trips.
        let waited = segment.at.saturating_sub(sent.last);
        match !has_signs && waited >= (self.rtt.least.saturating_add(self.rtt.least / 2)).max(MS) {
            true => Again::Timeout,
            false => Again::Fast,
        }
    }

    /// Handles text below the highest number that was sent. `heard` is the time of the other end's last
    /// segment.
    pub(crate) fn on_again(
        &mut self,
        segment: &Segment,
        again: Again,
        heard: u64,
        overtakes: bool,
    ) {
        match again {
            Again::Probe => {}
            Again::Needless => self.losses.needless += 1,
            Again::Late => self.on_late(segment, overtakes),
            Again::Fast | Again::Timeout => self.on_repeated(segment, again, heard),
        }
    }

    fn on_repeated(&mut self, segment: &Segment, again: Again, heard: u64) {
        let Some(place) = self.place_of(segment.seq) else { return };
        let rtt = self.rtt.now();
        let Some(sent) = self.flight.get_mut(place) else { return };
        let before = *sent;
        sent.transmissions = sent.transmissions.saturating_add(1);
        sent.last = segment.at;
        sent.bytes_before = self.bytes;
        sent.ip_id = segment.ip_id;
        sent.shortest = sent.shortest.min(segment.text);
        let transmissions = sent.transmissions;
        let losses = &mut self.losses;
        if losses.frames.len() < 8 {
            losses.frames.push(segment.frame);
        }
        losses.add_point(LossPoint { at: before.last, sent: before.bytes_before, rtt }, segment.at);
        losses.repeated += 1;
        losses.last_repeated = segment.at;
        if again == Again::Timeout {
            losses.timeout_frame =
                if losses.timeouts == 0 { segment.frame } else { losses.timeout_frame };
            losses.timeouts += 1;
            let waited = segment.at.saturating_sub(self.last_progress.max(before.last));
            losses.timeout_time = losses.timeout_time.saturating_add(waited);
            if heard <= before.last {
                let silence = losses.silence.get_or_insert(Silence {
                    since: before.last,
                    repeats: 0,
                    frame: segment.frame,
                });
                silence.repeats += 1;
            }
        }
        if transmissions >= losses.stubborn.repeats.saturating_add(1) && segment.text > 0 {
            losses.stubborn = Stubborn {
                text: before.end.offset_from(before.start),
                repeats: transmissions,
                since: before.first,
                until: segment.at,
                frame: segment.frame,
            };
        }
        losses.recovers_until = self.next;
        self.rounds.interrupt();
    }

    /// Handles text that fills a gap: it was overtaken, or lost before the capture's place and sent again.
    fn on_late(&mut self, segment: &Segment, overtakes: bool) {
        let losses = &mut self.losses;
        let gap = losses.gaps.iter().position(|(start, end, _)| {
            segment.seq.at_or_after(*start) && segment.seq.before(*end)
        });
        let Some(gap) = gap else { return };
        let (start, end, since) = losses.gaps.swap_remove(gap);
        for rest in [(start, segment.seq), (segment.end(), end)] {
            if rest.0.before(rest.1) && losses.gaps.len() < Losses::MOST {
                losses.gaps.push((rest.0, rest.1, since));
            }
        }
        self.text += u64::from(segment.text);
        if overtakes {
            losses.overtaken_frame =
                if losses.overtaken == 0 { segment.frame } else { losses.overtaken_frame };
            losses.overtaken += 1;
            return;
        }
        losses.upstream += 1;
        losses.repeated += 1;
        if losses.frames.len() < 8 {
            losses.frames.push(segment.frame);
        }
        let (sent, rtt) = (self.bytes, self.rtt.now());
        losses.add_point(LossPoint { at: since, sent, rtt }, segment.at);
        self.rounds.interrupt();
    }
}
