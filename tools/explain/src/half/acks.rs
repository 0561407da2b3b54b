//! Acknowledgments of a direction's text.

use whimbrel_wire::SeqNum;

use super::{Half, MS};
use crate::segment::Segment;

impl Half {
    /// Handles an acknowledgment from the other end.
    pub(crate) fn on_ack(&mut self, segment: &Segment) {
        let Some(una) = self.una else {
            self.una = Some(segment.ack);
            self.next.get_or_insert(segment.ack);
            self.on_window(segment);
            return;
        };
        let next = self.next.unwrap_or(una);
        if segment.ack.after(next) {
            self.on_unseen(next, segment);
        }
        self.on_sack(segment);
        if segment.ack.after(una) {
            self.on_progress(segment);
        } else if segment.ack == una && segment.is_pure_ack() && !self.flight.is_empty() {
            let is_update = self.edge != Some(self.edge_of(segment));
            self.duplicate_acks += u32::from(!is_update);
        }
        self.on_window(segment);
    }

    /// Number of duplicate ACKs since the last progress.
    pub(crate) const fn duplicate_acks(&self) -> u32 {
        self.duplicate_acks
    }

    /// Handles an acknowledgment of text that the capture does not have.
    fn on_unseen(&mut self, next: SeqNum, segment: &Segment) {
        // Text and FIN; numbers of another connection are no sign.
        if segment.ack.offset_from(next) < 1 << 24 && self.segments > 0 {
            self.note_unseen(1, segment);
        }
        self.next = Some(segment.ack);
    }

    const fn note_unseen(&mut self, count: u64, segment: &Segment) {
        self.unseen_frame = if self.unseen_acked == 0 { segment.frame } else { self.unseen_frame };
        self.unseen_acked += count;
    }

    fn on_progress(&mut self, segment: &Segment) {
        let flight = self.in_flight();
        let mut newest = None;
        while let Some(sent) = self.flight.pop_front_if(|sent| sent.end.at_or_before(segment.ack)) {
            self.losses.longest_acked = self.losses.longest_acked.max(sent.shortest);
            if sent.transmissions > 1 {
                self.losses.on_repeated_acked(&sent, segment);
            } else if !sent.is_sacked {
                newest = Some(sent);
            }
        }
        // While holes are filled, an acknowledgment tells of text that came long before (RFC 6298 3).
        if let Some(sent) = newest.filter(|_| !self.losses.is_recovering()) {
            let rtt = segment.at.saturating_sub(sent.last);
            self.rtt.add(rtt, segment.at, segment.frame, flight > self.mss.saturating_mul(3));
        }
        self.duplicate_acks = 0;
        self.una = Some(segment.ack);
        let unseen = self.losses.on_progress(segment);
        if unseen > 0 {
            self.note_unseen(unseen, segment);
        }
        let next = self.next.unwrap_or(segment.ack);
        self.rounds.on_ack(segment, next, [flight, self.mss], self.rtt.is_queued());
        self.last_progress = segment.at;
    }

    /// Marks what SACK blocks say. One below the acknowledgment tells of text that came twice (RFC 2883 4).
    fn on_sack(&mut self, segment: &Segment) {
        let mut blocks = segment.sack.iter();
        let Some(first) = blocks.next() else { return };
        let una = segment.ack;
        let is_within =
            segment.sack.iter().nth(1).is_some_and(|(start, end)| {
                first.0.at_or_after(start) && first.1.at_or_before(end)
            });
        if first.1.at_or_before(una) || is_within {
            self.losses.note_spurious(segment.frame);
        }
        for (start, end) in segment.sack.iter().filter(|(start, _)| start.at_or_after(una)) {
            let Some(mut place) = self.place_of(end + u32::MAX) else { continue };
            loop {
                match self.flight.get_mut(place) {
                    Some(sent) if sent.start.at_or_after(start) && !sent.is_sacked => {
                        sent.is_sacked = true;
                    }
                    _ => break,
                }
                let Some(before) = place.checked_sub(1) else { break };
                place = before;
            }
        }
    }

    fn edge_of(&self, segment: &Segment) -> SeqNum {
        let shift = if segment.flags.is_syn() { 0 } else { self.edge_shift.unwrap_or(0) };
        segment.ack + (u32::from(segment.window) << shift)
    }

    fn on_window(&mut self, segment: &Segment) {
        let edge = self.edge_of(segment);
        self.edge = Some(edge);
        let is_closed = segment.window == 0 && self.segments > 0;
        match (is_closed, self.zero_window.since) {
            (true, None) => self.zero_window.since = Some(segment.at),
            (false, Some(since)) => {
                let time = segment.at.saturating_sub(since);
                self.zero_window.since = None;
                self.zero_window.add(time, segment.frame);
            }
            _ => {}
        }
    }

    /// Looks at new text for the sign of Nagle's algorithm: it leaves with an ACK that came 40 to 500 ms late.
    pub(crate) fn note_nagle(&mut self, segment: &Segment, waited: Option<u64>, since_ack: u64) {
        let Some(waited) = waited else { return };
        let late = waited.saturating_sub(self.rtt.least);
        let is_delayed = (35 * MS..520 * MS).contains(&late) && late > self.rtt.least / 2;
        let is_short = segment.text > 0 && segment.text < self.mss_or(536);
        let is_first = self.losses.last_repeated <= self.last_new;
        if is_delayed && is_short && is_first && since_ack < 5 * MS {
            self.delayed_acks.add(late, segment.frame);
        }
    }

    /// The MSS that the receiver allows.
    fn mss_or(&self, default: u32) -> u32 {
        self.mss.max(default)
    }
}
