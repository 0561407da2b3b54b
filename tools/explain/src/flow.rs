//! A flow: both of its directions, its handshake and its end, as one capture shows them.

use whimbrel_wire::tcp::TcpFlags;
use whimbrel_wire::{Endpoint, SeqNum};

use crate::duplicates::Recent;
use crate::half::{Again, Half, Identity, Losses, MS, SECOND};
use crate::segment::Segment;
use crate::shares::Wait;

/// Number of a side: the client's or the server's.
pub(crate) const CLIENT: usize = 0;
pub(crate) const SERVER: usize = 1;

/// A connection, or an attempt at one.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    /// The client, which sent the first SYN, and the server. Without a SYN the lower port is the server's.
    pub(crate) ends: [Endpoint; 2],
    /// The client's direction, and the server's.
    pub(crate) halves: [Half; 2],
    pub(crate) first: u64,
    pub(crate) first_frame: u64,
    pub(crate) last: u64,
    pub(crate) last_frame: u64,
    /// Time of each side's latest segment.
    pub(crate) heard: [u64; 2],
    /// Time of the handshake's third segment.
    pub(crate) established: Option<u64>,
    pub(crate) ack_frame: u64,
    /// SYN-ACKs after the third segment.
    pub(crate) late_syn_acks: u32,
    pub(crate) late_syn_ack_frame: u64,
    /// Time of the server's first segment behind its SYN-ACKs.
    pub(crate) answered: Option<u64>,
    /// Round trip from the capture's place to each side and back, nanoseconds.
    pub(crate) reach: [Option<u64>; 2],
    /// Segments that answer the client's SYN without being a SYN-ACK.
    pub(crate) refusal: Option<Refusal>,
    pub(crate) resets: Vec<Reset>,
    /// The side of the latest new text.
    pub(crate) last_speaker: Option<usize>,
    pub(crate) quiet_since: Option<u64>,
    pub(crate) idle: Option<Idle>,
    pub(crate) prior: Option<Prior>,
    pub(crate) recent: Recent,
    /// Frames that were doubled.
    pub(crate) doubled: u64,
    /// Of these, those of which the first was at least a millisecond older.
    pub(crate) doubled_far: u64,
    pub(crate) doubled_frame: u64,
}

/// The connection of the same ports before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prior {
    pub(crate) closed_at: u64,
    pub(crate) is_closed: bool,
    /// Side that closed first.
    pub(crate) closer: Option<usize>,
    /// Numbers after each side's last.
    pub(crate) next: [Option<SeqNum>; 2],
}

/// An answer to a SYN that refuses it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refusal {
    pub(crate) frame: u64,
    pub(crate) is_reset: bool,
    /// Number that it acknowledges.
    pub(crate) ack: SeqNum,
}

/// A reset.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reset {
    pub(crate) at: u64,
    pub(crate) frame: u64,
    pub(crate) side: usize,
    /// Signs that another host has sent it: TTL, IP id, numbers, and that the end goes on.
    pub(crate) foreign_ttl: bool,
    pub(crate) foreign_id: bool,
    pub(crate) foreign_seq: bool,
    pub(crate) goes_on: bool,
    /// Idle time before it, nanoseconds.
    pub(crate) idle: u64,
    /// True if its side had got text after the last that it sent, or after its own FIN.
    pub(crate) has_unread: bool,
}

/// A time without segments, and what came then.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Idle {
    pub(crate) at: u64,
    /// The side that spoke then.
    pub(crate) side: usize,
    pub(crate) is_answered: bool,
}

impl Flow {
    pub(crate) fn new(segment: &Segment, prior: Option<Prior>) -> Self {
        let [from, to] = segment.ends;
        let is_server = match (segment.flags.is_syn(), segment.flags.is_ack()) {
            (true, is_answer) => is_answer,
            (false, _) => from.port < to.port,
        };
        Self {
            ends: if is_server { [to, from] } else { [from, to] },
            halves: Default::default(),
            first: segment.at,
            first_frame: segment.frame,
            last: segment.at,
            last_frame: segment.frame,
            heard: [0; 2],
            established: None,
            ack_frame: 0,
            late_syn_acks: 0,
            late_syn_ack_frame: 0,
            answered: None,
            reach: [None; 2],
            refusal: None,
            resets: Vec::new(),
            last_speaker: None,
            quiet_since: None,
            idle: None,
            prior,
            recent: Recent::default(),
            doubled: 0,
            doubled_far: 0,
            doubled_frame: 0,
        }
    }

    /// Memory that it takes, bytes.
    pub(crate) fn held(&self) -> usize {
        let lists: usize = self.halves.iter().map(Half::held).sum();
        size_of::<Self>() + lists + self.recent.held() + self.resets.capacity() * size_of::<Reset>()
    }

    /// The side that sent a segment.
    pub(crate) fn side_of(&self, segment: &Segment) -> usize {
        usize::from(segment.ends[0] != self.ends[CLIENT])
    }

    /// True if both ends have closed, or one has reset.
    pub(crate) fn is_closed(&self) -> bool {
        let fins = self.halves.each_ref().map(|half| half.fin.is_some());
        fins == [true; 2] || self.resets.iter().any(|reset| !reset.goes_on)
    }

    /// True if the SYN opens another connection of the same ports.
    pub(crate) fn is_reopened_by(&self, segment: &Segment) -> bool {
        let is_syn = segment.flags.is_syn() && !segment.flags.is_ack();
        let [client, server] = &self.halves;
        is_syn
            && (self.side_of(segment) == SERVER && server.opening.count == 0
                || client.opening.count == 0
                || client.opening.seq != segment.seq)
    }

    /// The state that the next connection of these ports meets.
    pub(crate) fn as_prior(&self) -> Prior {
        let fins = self.halves.each_ref().map(|half| half.fin.map(|(at, _)| at));
        let closer = match fins {
            [Some(client), Some(server)] => Some(usize::from(server < client)),
            [Some(_), None] => Some(CLIENT),
            [None, Some(_)] => Some(SERVER),
            [None, None] => None,
        };
        // A connection that was refused keeps what refused it in mind.
        if let Some(prior) = self.prior.filter(|_| self.established.is_none()) {
            return prior;
        }
        Prior {
            closed_at: self.last,
            is_closed: self.is_closed(),
            closer,
            next: self.halves.each_ref().map(|half| half.next),
        }
    }

    /// True if the capture has most frames twice, at least a millisecond apart.
    pub(crate) const fn is_of_two_places(&self) -> bool {
        self.doubled_far.saturating_mul(2) > self.doubled
    }

    /// True if the capture was taken at this side, or close to it.
    pub(crate) fn is_near(&self, side: usize) -> bool {
        // A handshake with repeats may lack one of both; text shows it, too.
        let of_text = |side: usize| {
            let rtt = self.halves.get(1 - side.min(1)).map(|half| half.rtt);
            rtt.filter(|rtt| rtt.samples > 0 && self.reach != [None; 2]).map(|rtt| rtt.least)
        };
        let reach = |side: usize| self.reach.get(side).copied().flatten().or_else(|| of_text(side));
        let (near, far) = (reach(side), reach(1 - side.min(1)));
        near.zip(far).is_some_and(|(near, far)| {
            near < far && near.saturating_mul(4) <= far.saturating_add(MS)
        })
    }

    /// Time, end and frame of the silence after the third segment of the handshake, in which the client repeats
    /// its first text: the server's host does not know the connection.
    pub(crate) fn unaccepted(&self) -> Option<(u64, u64, u64)> {
        if self.halves[SERVER].opening.count == 0 {
            return None;
        }
        let losses = &self.halves[CLIENT].losses;
        let open = losses.silence.filter(|silence| silence.repeats >= 2);
        let open = open.map(|silence| (silence.since, self.last, silence.frame));
        let mut all = losses.silences.iter().copied().chain(open);
        all.find(|(_, until, _)| self.answered.is_none_or(|at| *until <= at))
    }

    /// Time in which SYNs were repeated and nothing came back, from the first to the last, before the handshake
    /// succeeded.
    pub(crate) fn unheeded_syns(&self) -> Option<(u64, u64)> {
        let [client, server] = self.halves.each_ref().map(|half| half.opening);
        let is_late = client.count > 1 && server.count > 0 && server.first >= client.last;
        (is_late && self.refusal.is_none()).then_some((client.first, client.last))
    }

    /// Takes the next segment.
    pub(crate) fn take(&mut self, segment: &Segment) {
        let half = &self.halves[self.side_of(segment)];
        let mut age = self.recent.age_of_original(segment);
        if age.is_none() {
            age = half.age_of_copied(segment);
            if age.is_some() && self.recent.widen() {
                // What were repeats so far may have been copies.
                self.halves.iter_mut().for_each(|half| half.losses = Losses::default());
            }
        }
        if let Some(age) = age {
            self.doubled_far += u64::from(age >= MS);
            self.doubled_frame = if self.doubled == 0 { segment.frame } else { self.doubled_frame };
            self.doubled += 1;
            return;
        }
        let side = self.side_of(segment);
        let waits = self.account(segment.at);
        self.note_idle(side, segment);
        if segment.flags.is_syn() {
            self.on_syn(side, segment);
        } else if self.established.is_none() {
            self.on_answer(side, segment);
        }
        if side == SERVER && !segment.flags.is_syn() {
            self.answered.get_or_insert(segment.at);
        }
        let [own, other] = self.both(side);
        own.segments += 1;
        other.losses.on_sign(segment.at);
        if segment.flags.is_ack() && !segment.flags.is_rst() {
            other.on_ack(segment);
        }
        if segment.flags.is_rst() {
            self.on_reset(side, segment);
        } else if !segment.flags.is_syn() {
            self.on_text(side, segment, waits[side]);
        }
        self.finish(side, segment);
    }

    /// Both directions: that of a side, and the other.
    fn both(&mut self, side: usize) -> [&mut Half; 2] {
        let [client, server] = &mut self.halves;
        if side == CLIENT { [client, server] } else { [server, client] }
    }

    /// Counts the time since the last segment, and returns what each direction waited for.
    fn account(&mut self, at: u64) -> [Wait; 2] {
        let passed = at.saturating_sub(self.last);
        let is_open = self.established.is_some() || self.halves[CLIENT].opening.count == 0;
        self.halves.each_mut().map(|half| {
            let wait = if is_open { half.wait() } else { Wait::Handshake };
            half.shares.add(wait, passed);
            if wait == Wait::Application && half.in_flight() > 0 {
                half.shares.note_under_way(passed);
            }
            wait
        })
    }

    fn note_idle(&mut self, side: usize, segment: &Segment) {
        let gap = segment.at.saturating_sub(self.last);
        let is_quiet = self.halves.iter().all(|half| half.in_flight() == 0);
        if gap >= 10 * SECOND && is_quiet && self.established.is_some() {
            self.idle = Some(Idle { at: segment.at, side, is_answered: false });
        } else if let Some(idle) = &mut self.idle {
            idle.is_answered |= side != idle.side && !segment.flags.is_rst();
        }
    }

    fn on_syn(&mut self, side: usize, segment: &Segment) {
        let is_answer = segment.flags.is_ack();
        let opening = &mut self.halves[side].opening;
        if opening.count == 0 {
            opening.first = segment.at;
            opening.frame = segment.frame;
            opening.seq = segment.seq;
            opening.offer = segment.offer;
        }
        let before = opening.timestamp;
        opening.timestamp = segment.timestamps.map(|[val, _]| val);
        opening.has_own_timestamp = opening.count == 0 || before != opening.timestamp;
        opening.count += 1;
        (opening.last, opening.last_frame) = (segment.at, segment.frame);
        let half = &mut self.halves[side];
        half.next = Some(half.next.map_or(segment.end(), |next| next.later(segment.end())));
        half.una.get_or_insert(segment.end());
        if !is_answer {
            return;
        }
        if self.established.is_some() {
            let frame = segment.frame;
            self.late_syn_ack_frame =
                if self.late_syn_acks == 0 { frame } else { self.late_syn_ack_frame };
            self.late_syn_acks += 1;
        }
        let offers = self.halves.each_ref().map(|half| half.opening.offer);
        let shifts = offers.map(|offer| offer.scale);
        let is_scaled = shifts.iter().all(Option::is_some);
        for (number, half) in self.halves.iter_mut().enumerate() {
            let other = shifts[1 - number];
            let shift = if is_scaled { other.unwrap_or(0) } else { 0 };
            half.edge_shift = Some(shift).filter(|_| !offers.iter().any(|offer| offer.is_cut));
        }
        let client = &self.halves[CLIENT].opening;
        let echo = segment.timestamps.map(|[_, ecr]| ecr);
        // The echo tells which SYN is answered.
        let is_of_last = client.has_own_timestamp && client.timestamp == echo && echo.is_some();
        if (client.count == 1 || is_of_last) && self.halves[SERVER].opening.count == 1 {
            let reach = segment.at.saturating_sub(client.last);
            self.reach[SERVER] = Some(reach);
            self.halves[CLIENT].rtt.add(reach, segment.at, segment.frame, false);
        }
    }

    /// Handles a segment after SYNs that is none.
    fn on_answer(&mut self, side: usize, segment: &Segment) {
        let [client, server] = self.halves.each_ref().map(|half| half.opening);
        if side == SERVER && server.count == 0 && client.count > 0 {
            let is_reset = segment.flags.is_rst();
            let (frame, ack) = (segment.frame, segment.ack);
            self.refusal.get_or_insert(Refusal { frame, is_reset, ack });
        }
        let is_third = side == CLIENT && server.count > 0 && segment.flags.is_ack();
        if (is_third || client.count == 0) && !segment.flags.is_rst() {
            self.established = Some(segment.at);
            self.ack_frame = segment.frame;
            if is_third && server.count == 1 {
                let reach = segment.at.saturating_sub(server.first);
                self.reach[CLIENT] = Some(reach);
                self.halves[SERVER].rtt.add(reach, segment.at, segment.frame, false);
            }
        }
    }

    fn on_reset(&mut self, side: usize, segment: &Segment) {
        let own = &self.halves[side];
        let ttl = own.identity.ttl.is_some_and(|ttl| ttl.abs_diff(segment.ttl) > 2);
        let foreign_id = match (own.identity.ip_id, segment.ip_id) {
            (Some(last), Some(now)) => now.wrapping_sub(last).min(last.wrapping_sub(now)) > 2_000,
            (None, Some(_)) => own.identity.ttl.is_some(),
            // A host without a socket may send 0.
            (_, None) => false,
        };
        let other = &self.halves[1 - side];
        // Those of a host that has forgotten the connection repeat the number that was acknowledged.
        let is_echo = own.next.zip(own.una).is_some_and(|(next, una)| {
            segment.seq.at_or_after(una) && segment.seq.at_or_before(next + 1)
        });
        let last_own = own.last_new.max(own.fin.map_or(0, |(at, _)| at));
        let reset = Reset {
            at: segment.at,
            frame: segment.frame,
            side,
            foreign_ttl: ttl,
            foreign_id,
            foreign_seq: !is_echo && own.next.is_some(),
            goes_on: false,
            idle: segment.at.saturating_sub(self.last),
            // A host that does not know the connection answers without ACK (RFC 9293 3.10.7.1).
            has_unread: segment.flags.is_ack()
                && other.text > 0
                && other.last_new >= last_own
                && other.last_new > 0,
        };
        if self.resets.len() < 8 {
            self.resets.push(reset);
        }
    }

    fn on_text(&mut self, side: usize, segment: &Segment, waited_for: Wait) {
        if segment.text == 0 && !segment.flags.is_fin() {
            return;
        }
        let (heard, is_speaker) = (self.heard[1 - side], self.last_speaker == Some(side));
        let reach = self.reach[side].unwrap_or(0);
        let passed = segment.at.saturating_sub(self.last);
        let half = &mut self.halves[side];
        let is_new = half.next.is_none_or(|next| segment.seq.at_or_after(next));
        if is_new {
            if segment.text > 0 {
                self.note_wait(side, segment);
            }
            let half = &mut self.halves[side];
            if is_speaker && half.in_flight() == 0 && half.last_text > 0 {
                let waited = half.last_progress.checked_sub(half.last_new);
                let since_ack = segment.at.saturating_sub(half.last_progress);
                half.note_nagle(
                    segment,
                    waited,
                    since_ack.saturating_sub(reach.saturating_add(reach / 2)),
                );
            }
            half.on_new(segment);
            self.last_speaker = if segment.text > 0 { Some(side) } else { self.last_speaker };
            self.quiet_since = None;
        } else {
            if segment.text > 1 && is_speaker {
                // Recovery ends this silence, no application. A keep-alive has one byte at most.
                self.quiet_since = None;
            }
            let overtakes = half.identity.is_after(segment, passed, half.rtt.least);
            let again = half.judge_again(segment);
            half.on_again(segment, again, heard, overtakes);
            if again == Again::Timeout {
                half.shares.shift(waited_for, Wait::Recovery, passed);
            }
        }
        let half = &mut self.halves[side];
        half.rounds.note(half.is_at_edge());
        if segment.flags.is_fin() {
            half.fin.get_or_insert((segment.at, segment.frame));
        }
    }

    /// Counts how long this side's application was waited for.
    fn note_wait(&mut self, side: usize, segment: &Segment) {
        let Some(since) = self.quiet_since else { return };
        let wait = segment.at.saturating_sub(since);
        // From here to that side and back passes no wait for an application; a queue may double it.
        let path = self.reach[side].unwrap_or(0).saturating_mul(2);
        if wait < path.saturating_add(50 * MS) {
            return;
        }
        let wait = wait - path / 2;
        let is_speaker = self.last_speaker == Some(side);
        let app = &mut self.halves[side].app;
        let pause = if is_speaker { &mut app.pausing } else { &mut app.answering };
        pause.add(wait, segment.frame);
    }

    /// Notes what holds after the segment.
    fn finish(&mut self, side: usize, segment: &Segment) {
        let is_reset = segment.flags.contains(TcpFlags::RST);
        for reset in self.resets.iter_mut().filter(|reset| reset.side == side && !is_reset) {
            reset.goes_on = true;
        }
        let half = &mut self.halves[side];
        half.bytes += u64::from(segment.packet);
        if !is_reset {
            half.identity.note(segment);
        }
        let mss = u32::from(self.halves[1 - side].opening.offer.mss.unwrap_or(u16::MAX));
        let half = &mut self.halves[side];
        if segment.text > mss {
            half.oversized_frame =
                if half.oversized == 0 { segment.frame } else { half.oversized_frame };
            half.oversized += 1;
        }
        let is_quiet = self.halves.iter().all(|half| half.in_flight() == 0 && !half.is_closed());
        if is_quiet && self.established.is_some() {
            self.quiet_since.get_or_insert(segment.at);
        } else if !is_quiet {
            self.quiet_since = None;
        }
        self.heard[side] = segment.at;
        self.last = self.last.max(segment.at);
        self.last_frame = segment.frame;
    }
}

impl Identity {
    /// True if the segment was sent before the latest of its side.
    fn is_after(&self, segment: &Segment, passed: u64, rtt: u64) -> bool {
        let id = self.ip_id.zip(segment.ip_id).filter(|(last, now)| last != now);
        if let Some((last, now)) = id {
            // Near each other: of one counter.
            let ahead = last.wrapping_sub(now);
            return ahead < 1_000;
        }
        if let Some((last, [now, _])) = self.timestamp.zip(segment.timestamps)
            && last != now
        {
            return last.wrapping_sub(now) < 1 << 31;
        }
        // Of the same millisecond: less than any repeat needs.
        passed < (rtt / 2).max(MS)
    }

    fn note(&mut self, segment: &Segment) {
        self.ttl = Some(segment.ttl);
        self.ip_id = segment.ip_id;
        let later = |last: u32, now: u32| if now.wrapping_sub(last) < 1 << 31 { now } else { last };
        let now = segment.timestamps.map(|[val, _]| val);
        self.timestamp = match (self.timestamp, now) {
            (Some(last), Some(now)) => Some(later(last, now)),
            (last, now) => now.or(last),
        };
    }
}
