//! Frames in: a burst is worked on in passes, so that the cache misses of one frame overlap with
//! those of the others instead of following each other.

use alloc::vec::Vec;

use whimbrel_base::packet::SegMeta;
use whimbrel_base::{Instant, cold_path};
use whimbrel_tcp::table::{Kind, ReuseBy};
use whimbrel_tcp::{DropReason, Reply, Verdict};
use whimbrel_wire::Protocol;
use whimbrel_wire::tcp::TcpFlags;

use super::Shard;
use crate::RxFrame;
use crate::ip::{Arrival, FrameDrop, Input, Refused};
use crate::net::replies::PendingReply;
use crate::protocol::PacketProtocol;
use crate::tcp_host::coalesce::join;
use crate::tcp_host::found::{BURST, FoundSegment, ReusedFlow};
use crate::tcp_host::half_open::HandshakeStep;
use crate::tcp_host::time_wait::{WaitStep, asks_to_open};
use crate::tcp_host::work::Cause;

/// Frames that arrived, from the device to the record that they are for.
impl Shard {
    /// Takes in frames that arrived, in the order of their arrival, and does what follows at once.
    pub fn rx(&mut self, now: Instant, burst: &[RxFrame<'_>]) {
        self.set_now(now);
        let (mut frames, mut behind) =
            if burst.len() <= PASS { (burst, &[][..]) } else { split_pass(burst) };
        loop {
            self.rx_pass(frames);
            if behind.is_empty() {
                return;
            }
            (frames, behind) = split_pass(behind);
        }
    }

    fn rx_pass(&mut self, frames: &[RxFrame<'_>]) {
        let mut burst = self.tcp.burst.take();
        let mut whole = Vec::new();
        let mut others = 0;
        // Read all, hash all.
        for frame in frames {
            if let Some((key, segment)) = self.net.read_plain(frame) {
                let arrival = Arrival::of_plain(key, &segment, &frame.meta);
                burst.push(FoundSegment::new(&self.tcp.records, arrival));
            } else {
                others += 1;
                if !self.read_into(frame, &mut burst, &mut whole) {
                    continue;
                }
            }
            if let Some(chunk) = frame.chunk
                && let Some(found) = burst.last_mut()
            {
                found.arrival.stay_if_long(chunk);
            }
        }
        self.net.ip.counters.count_delivered((frames.len() - others) as u64);
        // Touch slots, then records: independent loads, all under way at once.
        for found in &mut burst {
            found.record = self.tcp.records.flows.candidate(found.hash);
        }
        for found in &mut burst {
            let key = &found.arrival.key;
            if found.record.is_some_and(|record| !self.tcp.records.is_record_of(record, key)) {
                found.record = self.tcp.records.find(found.hash, key);
            }
        }
        // Process each. What one segment changes in the table, the next must see.
        self.tcp.records.flows.forget_changes();
        let mut rest = burst.as_mut_slice();
        while let Some((found, behind)) = rest.split_first_mut() {
            rest = behind;
            let key = &found.arrival.key;
            if self.tcp.records.flows.may_differ(found.hash)
                && !self.tcp.records.still_leads(found.record, key)
            {
                found.record = self.tcp.records.find(found.hash, key);
            }
            match self.tcp.records.coalescible(found, rest, &self.cx.pool.budget) {
                0 => self.process(found),
                count => {
                    let (joined, behind) = rest.split_at_mut(count);
                    self.process_joined(found, joined);
                    rest = behind;
                }
            }
        }
        self.tcp.burst.give_back(burst);
        if !whole.is_empty() {
            self.rx_wholes(whole);
        }
        if self.net.ip.addresses.accepts_any_address() {
            self.tcp.reclaim_addresses(&mut self.net);
        }
    }

    /// A segment with those that follow it.
    #[inline(never)]
    fn process_joined(&mut self, first: &FoundSegment<'_>, behind: &[FoundSegment<'_>]) {
        self.process(&join(first, behind, &mut [&[]; BURST]));
    }

    /// A frame of a burst that is not a segment in plain IPv4. Returns whether it became one of another kind.
    #[inline(never)]
    fn read_into<'a>(
        &mut self,
        frame: &RxFrame<'a>,
        burst: &mut Vec<FoundSegment<'a>>,
        whole: &mut Vec<Vec<u8>>,
    ) -> bool {
        if let Some((packet, arrived)) = self.net.read_plain_datagram(frame) {
            self.packets.udp.on_packet(&mut self.cx, &mut self.net, &packet, &arrived);
            return false;
        }
        let Some(arrival) = self.read_frame(frame, whole) else { return false };
        burst.push(FoundSegment::new(&self.tcp.records, arrival));
        true
    }

    #[cold]
    #[inline(never)]
    fn rx_wholes(&mut self, whole: Vec<Vec<u8>>) {
        for packet in whole {
            self.rx_whole(&packet);
        }
    }

    /// A packet whose last fragment came: it goes alone, behind its burst.
    pub(super) fn rx_whole(&mut self, packet: &[u8]) {
        let read = self.net.ip.read_whole(packet);
        let frame = RxFrame::new(packet, SegMeta::SINGLE);
        if let Some(arrival) = self.on_read(read, &frame, &mut Vec::new()) {
            self.find_and_process(arrival);
        }
    }

    /// A segment that is not of a burst: its record is found, and processes it.
    #[inline(always)]
    pub(super) fn find_and_process(&mut self, arrival: Arrival<'_>) {
        let mut found = FoundSegment::new(&self.tcp.records, arrival);
        found.record = self.tcp.records.find(found.hash, &found.arrival.key);
        self.process(&found);
    }

    /// A frame that became a segment, or was dealt with. What became whole by it is added to
    /// `whole`.
    // Always: what it returns would be copied.
    #[inline(always)]
    fn read_frame<'a>(
        &mut self,
        frame: &RxFrame<'a>,
        whole: &mut Vec<Vec<u8>>,
    ) -> Option<Arrival<'a>> {
        let packet = self.net.unframe(self.cx.now, frame)?;
        let read = self.net.ip.read(self.cx.now, &packet);
        self.on_read(read, &packet, whole)
    }

    pub(super) fn on_read<'a>(
        &mut self,
        read: Result<Input<'a>, Refused>,
        packet: &RxFrame<'_>,
        whole: &mut Vec<Vec<u8>>,
    ) -> Option<Arrival<'a>> {
        match read {
            Ok(Input::Segment(arrival)) => {
                self.net.ip.counters.in_delivers += 1;
                return Some(arrival);
            }
            Ok(Input::Echo(echo)) => self.net.on_echo(echo),
            Ok(Input::EchoReply(reply)) => self.net.on_echo_reply(self.cx.now, &reply),
            Ok(Input::Udp(arrived)) => {
                self.packets.udp.on_packet(&mut self.cx, &mut self.net, packet, &arrived);
            }
            Ok(Input::Report(report)) => self.on_report(packet, &report),
            Ok(Input::Held) => {}
            // Behind what its sender sent before, and in front of what followed.
            Ok(Input::Whole(packet)) if is_udp(&packet) => self.rx_whole(&packet),
            Ok(Input::Whole(packet)) => whole.push(packet),
            Err(Refused { reason, .. }) if self.net.claim(packet, reason) => {}
            Err(Refused { reason, answer }) => {
                match reason {
                    FrameDrop::TcpChecksum => self.cx.counters.in_csum_errors += 1,
                    FrameDrop::TcpHeader | FrameDrop::TcpPort => self.cx.counters.in_errs += 1,
                    _ => self.packets.udp.on_refused(reason),
                }
                self.net.ip.counters.drop_frame(reason);
                if let Some(answer) = answer {
                    self.net.refuse(&mut self.cx, packet.bytes, answer);
                }
            }
        }
        None
    }

    /// A segment meets its record, or nothing.
    #[inline(always)]
    pub(super) fn process(&mut self, found: &FoundSegment<'_>) {
        let segs = u64::from(found.arrival.segment.meta.segs);
        self.cx.counters.in_segs += segs;
        let arrival = &found.arrival;
        // Kinds are compared one by one: a match of all would make a number of its own of them, by five
        // instructions.
        let verdict = match found.record {
            Some(record) if record.kind() == Kind::Connection => {
                self.on_connection_segment(record.index(), arrival)
            }
            Some(record) if record.kind() == Kind::SynEntry => {
                let step = self.process_half_open(record.index(), found);
                self.settle(step, found)
            }
            Some(record) => self.on_waiting_segment(record.index(), found),
            None => {
                let step = self.on_unmatched_segment(found);
                self.settle(step, found)
            }
        };
        // Two comparisons, of which nearly always the first decides: a match of both would make a number of its
        // own of the variant, and a match of all would jump by a table.
        if matches!(verdict, Verdict::Accepted) || matches!(verdict, Verdict::Closed(_)) {
            self.cx.counters.accepted_segs += segs;
        } else {
            self.refuse(found, &verdict);
        }
    }

    #[cold]
    #[inline(never)]
    fn refuse(&mut self, found: &FoundSegment<'_>, verdict: &Verdict) {
        let (key, segs) = (found.arrival.key, u64::from(found.arrival.segment.meta.segs));
        match *verdict {
            Verdict::Accepted | Verdict::Closed(_) => {}
            Verdict::Drop(reason) => self.cx.counters.drop_segments(reason, segs),
            Verdict::Reply(reply, reason) => {
                self.cx.counters.drop_segments(reason, segs);
                if reason == DropReason::UnacceptableAck {
                    self.on_unacceptable_ack(found);
                }
                let marking = self.tcp.marking_of(&self.cx, found.record);
                self.net.reply_from(
                    &mut self.cx,
                    key.local_index,
                    PendingReply::Reply(key, reply, marking),
                );
            }
        }
    }

    /// An acknowledgment of what a connection did not send: it may challenge our SYN.
    fn on_unacceptable_ack(&mut self, found: &FoundSegment<'_>) {
        if found.record.is_some_and(|record| record.kind() == Kind::Connection) {
            let addresses = &self.net.ip.addresses;
            self.tcp.active.on_refused(&mut self.cx, addresses, &found.arrival.key);
        }
    }

    pub(super) fn on_connection_segment(&mut self, index: u32, arrival: &Arrival<'_>) -> Verdict {
        let Some(slot) = self.tcp.records.connections.0.get_mut(index) else {
            return Verdict::Drop(DropReason::Closed);
        };
        let connection = &mut slot.connection;
        let opens_fast = connection.is_fast_opening().then(|| connection.has_syn_data());
        let verdict = connection.on_segment(&mut self.cx, &arrival.segment);
        if let Some(deadline) = self.tcp.work.update(slot, index, Cause::Call)
            && !self.tcp.work.timers.defer(slot, index, deadline, self.cx.now)
        {
            self.update_timer(index, deadline);
        }
        if let Some(text) = opens_fast {
            cold_path();
            self.tcp.on_fast_opening(&mut self.cx, index, text, arrival);
        }
        verdict
    }

    /// Carries out what follows from a segment that found no connection.
    #[inline(always)]
    fn settle(&mut self, step: HandshakeStep, found: &FoundSegment<'_>) -> Verdict {
        match step {
            HandshakeStep::Established(place) => self.on_connection_segment(place, &found.arrival),
            HandshakeStep::Verdict(verdict) => verdict,
            HandshakeStep::Unheard => self.process_anew(found),
        }
    }

    /// A segment meets what there is without the half-open entry that it found.
    #[cold]
    #[inline(never)]
    fn process_anew(&mut self, found: &FoundSegment<'_>) -> Verdict {
        if let Some(wait) = self.tcp.records.find(found.hash, &found.arrival.key) {
            return self.on_waiting_segment(wait.index(), found);
        }
        let step = self.on_unmatched_segment(found);
        self.settle(step, found)
    }

    /// A segment that hit a half-open entry.
    // Apart, and all that it comes to within: few segments are.
    #[inline(never)]
    fn process_half_open(&mut self, index: u32, found: &FoundSegment<'_>) -> HandshakeStep {
        self.tcp.on_half_open_segment(&mut self.cx, &mut self.net, index, found)
    }

    /// A SYN for a listener.
    // Apart, and all that it comes to within: few segments are.
    #[inline(never)]
    fn process_syn(
        &mut self,
        listener: u32,
        found: &FoundSegment<'_>,
        opening: ReusedFlow,
    ) -> Verdict {
        self.tcp.on_syn(&mut self.cx, &mut self.net, listener, found, opening)
    }

    /// A segment for a flow in TIME-WAIT.
    // Apart: few segments are.
    #[inline(never)]
    pub(super) fn on_waiting_segment(&mut self, index: u32, found: &FoundSegment<'_>) -> Verdict {
        match self.tcp.on_waiting_segment(&mut self.cx, &mut self.net, index, found) {
            WaitStep::Verdict(verdict) => verdict,
            WaitStep::Reopen(opening) => self.reopen(index, opening, found),
        }
    }

    /// A SYN that may open a connection in place of the record at `index`, in TIME-WAIT.
    fn reopen(&mut self, index: u32, opening: ReusedFlow, found: &FoundSegment<'_>) -> Verdict {
        let arrival = &found.arrival;
        let Some(listener) = self.tcp.passive.listener_for(&self.net, &arrival.key) else {
            // New, but without a listener: not a connection that could be accepted. RFC 9293 3.10.7.4, SYN in
            // TIME-WAIT: "For all other cases", the challenge ACK of RFC 5961.
            self.cx.counters.time_wait_without_listener += 1;
            return self.tcp.refuse_reopening(&mut self.cx, &self.net, index, arrival);
        };
        let verdict = self.process_syn(listener, found, opening);
        if verdict == Verdict::Accepted {
            self.cx.counters.time_wait_recycled += 1;
            match opening.replaces {
                Some((_, ReuseBy::Timestamp)) => {
                    self.cx.counters.time_wait_reused_by_timestamp += 1;
                }
                _ => self.cx.counters.time_wait_reused_by_sequence += 1,
            }
        }
        verdict
    }

    /// No record: a SYN may open one, everything else is refused (RFC 9293 3.10.7.1 and .2).
    pub(super) fn on_unmatched_segment(&mut self, found: &FoundSegment<'_>) -> HandshakeStep {
        let arrival = &found.arrival;
        let flags = arrival.segment.header.flags;
        if flags.contains(TcpFlags::RST) {
            cold_path();
            // RFC 9293 3.10.7.1: "An incoming segment containing a RST is discarded."
            return HandshakeStep::Verdict(Verdict::Drop(DropReason::ResetWithoutSocket));
        }
        let verdict = match self.tcp.passive.listener_for(&self.net, &arrival.key) {
            Some(listener) if self.tcp.passive.may_bring_cookie(&self.cx, listener, flags) => {
                return self.tcp.on_cookie(&mut self.cx, &self.net, listener, found);
            }
            // RFC 9293 3.10.7.2: "Any acknowledgment is bad if it arrives on a connection still in
            // the LISTEN state. An acceptable reset segment should be formed".
            Some(listener) if !flags.contains(TcpFlags::ACK) => {
                if asks_to_open(flags, &self.cx.tunables) {
                    self.process_syn(listener, found, ReusedFlow::FRESH)
                } else {
                    Verdict::Drop(DropReason::Flags)
                }
            }
            _ => {
                cold_path();
                Verdict::Reply(Reply::reset_for(&arrival.segment), DropReason::NoSocket)
            }
        };
        HandshakeStep::Verdict(verdict)
    }
}

/// Splits off the frames that a pass takes together. They are few, so that the record that a pass fetched for a segment is
/// still in the cache when the segment is processed. Long ones follow each other into one pass, up to [`BURST`], because
/// text that is in order is joined.
// Out of line: most bursts are one pass.
#[inline(never)]
fn split_pass<'a, 'b>(burst: &'b [RxFrame<'a>]) -> (&'b [RxFrame<'a>], &'b [RxFrame<'a>]) {
    let most = burst.len().min(BURST);
    let behind = burst.iter().take(most).skip(PASS - 1);
    let long = behind.take_while(|frame| frame.bytes.len() > LONG).count();
    burst.split_at_checked(most.min(PASS + long)).unwrap_or((burst, &[]))
}

/// Frames of a pass that are short.
const PASS: usize = 16;
/// Bytes of a frame in plain IPv4 whose text is one byte too short to be joined.
const LONG: usize = 552;

/// True if a packet that was made whole, and so has no options or extension headers, is a datagram.
fn is_udp(packet: &[u8]) -> bool {
    let protocol = match packet.first() {
        Some(0x45) => packet.get(9),
        _ => packet.get(6),
    };
    protocol == Some(&Protocol::UDP.0)
}
