//! Replies: what a host sends for no connection and no socket, in the order in which it was asked for.

use whimbrel_base::packet::TxSegment;
use whimbrel_base::{Instant, cold_path};
use whimbrel_tcp::conn::Marking;
use whimbrel_tcp::{Context, Reply};
use whimbrel_udp::Received;
use whimbrel_wire::Address;

use super::Net;
use crate::ip::{Datagram, ErrorOut, FlowKey, RefusalReply, Unreachable};
use crate::net::replies::PendingReply;

impl Net {
    /// Queues an answer to what a host sent, if there is room.
    // Always: it would be copied twice.
    #[inline(always)]
    pub(crate) fn reply(&mut self, cx: &mut Context, pending: PendingReply) {
        if !self.replies.push(pending) {
            cx.counters.replies_refused += 1;
        }
    }

    /// Queues an answer that has its address by index, if there is room.
    pub(crate) fn reply_from(&mut self, cx: &mut Context, local_index: u16, pending: PendingReply) {
        if self.replies.push(pending) {
            self.ip.addresses.hold(local_index);
        } else {
            cx.counters.replies_refused += 1;
        }
    }

    /// Queues the last segment of a connection, for which there is room.
    // Always: it would be copied twice.
    #[inline(always)]
    pub(crate) fn reply_unbounded(&mut self, key: FlowKey, reply: Reply, marking: Marking) {
        self.ip.addresses.hold(key.local_index);
        self.replies.push_unbounded(PendingReply::Reply(key, reply, marking));
    }

    /// Answers a packet that was refused by an ICMP error, if that is allowed.
    pub(crate) fn refuse(&mut self, cx: &mut Context, packet: &[u8], with: RefusalReply) {
        if let Some(error) = self.ip.answer(cx.now, packet, with) {
            self.reply_from(cx, error.local_index(), PendingReply::Error(error));
        }
    }

    /// Refuses a datagram that a socket received, if that is allowed.
    pub(crate) fn refuse_datagram(
        &mut self,
        cx: &mut Context,
        received: &Received,
        what: Unreachable,
        reporter: Option<Address>,
    ) {
        if let Some(error) = self.ip.refuse_datagram(cx.now, received, what, reporter) {
            self.reply_from(cx, error.local_index(), PendingReply::Error(error));
        }
    }

    /// Refuses a packet that nothing here took, if that is allowed.
    pub(crate) fn refuse_unclaimed(
        &mut self,
        cx: &mut Context,
        packet: &[u8],
        what: Unreachable,
        reporter: Option<Address>,
    ) {
        if let Some(error) = self.ip.refuse_unclaimed(cx.now, packet, what, reporter) {
            self.reply_from(cx, error.local_index(), PendingReply::Error(error));
        }
    }

    /// The next datagram whose fragments did not all come in time; returns whether there was one.
    pub(crate) fn advance_reassembly(&mut self, cx: &mut Context) -> bool {
        !self.ip.reassembly.is_empty() && self.end_reassembly(cx)
    }

    #[inline(never)]
    fn end_reassembly(&mut self, cx: &mut Context) -> bool {
        let Some(expired) = self.ip.reassembly.pop_expired(cx.now) else { return false };
        self.ip.counters.reassembly_timeouts += 1;
        self.ip.counters.reassembly_failures += 1;
        // RFC 1122 3.3.2: "If this timeout expires, the partially-reassembled datagram MUST be
        // discarded and an ICMP Time Exceeded message sent to the source host (if fragment zero
        // has been received)."
        if let Some(first) = expired.first {
            self.refuse(cx, &first, RefusalReply::ReassemblyTimeOut);
        }
        true
    }

    /// Writes a reply that is no segment.
    pub(crate) fn write_reply(
        &mut self,
        reply: PendingReply,
        tx: &mut TxSegment,
        now: Instant,
    ) -> bool {
        let written = match reply {
            // Segments are TCP's.
            PendingReply::Reply(..) | PendingReply::SynAck(_) | PendingReply::SynCookie(_) => false,
            PendingReply::Echo(echo) => self.write_echo(echo, tx, now),
            PendingReply::EchoRequest(request) => self.write_echo_request(request, tx, now),
            PendingReply::Error(error) => self.write_error(error, tx),
            // What was injected goes by the wire, even to this host itself.
            PendingReply::Packet(packet) => {
                cold_path();
                return self.write_packet(&packet, tx) && self.transmit_to_device(tx, now);
            }
        };
        written && self.transmit(tx, now)
    }

    /// An echo reply, or the next fragment of it.
    #[inline(never)]
    fn write_echo(&mut self, mut echo: Datagram, tx: &mut TxSegment, now: Instant) -> bool {
        let written = self.ip.write_datagram(&mut echo, now, tx);
        if echo.is_done() {
            self.ip.counters.echo_replies += u64::from(written);
        } else {
            // More fragments follow: to the front, so that they leave together.
            self.replies.push_front(PendingReply::Echo(echo));
        }
        written
    }

    /// An echo request, or the next fragment of it.
    #[inline(never)]
    fn write_echo_request(
        &mut self,
        mut request: Datagram,
        tx: &mut TxSegment,
        now: Instant,
    ) -> bool {
        let written = self.ip.write_datagram(&mut request, now, tx);
        if request.is_done() {
            self.ip.counters.echo_requests += u64::from(written);
        } else {
            self.replies.push_front(PendingReply::EchoRequest(request));
        }
        written
    }

    #[inline(never)]
    fn write_error(&mut self, error: ErrorOut, tx: &mut TxSegment) -> bool {
        let local_index = error.local_index();
        let written = self.ip.write_error(error, tx);
        self.ip.addresses.release(local_index);
        written
    }
}
