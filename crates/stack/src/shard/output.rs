//! Frames out: stateless replies first, then datagrams, then one segment for each dirty connection in turn.

use whimbrel_base::cold_path;
use whimbrel_base::packet::TxSegment;
use whimbrel_tcp::conn::{Connection, Marking, OutgoingSegment, RareOptions};
use whimbrel_tcp::{Context, Reply};
use whimbrel_wire::tcp::TcpFlags;

use super::Shard;
use crate::TxBatch;
use crate::ip::{FlowKey, IpLayer, SegmentOut};
use crate::link::AddressCheck;
use crate::net::replies::PendingReply;
use crate::protocol::Protocol;
use crate::tcp_host::work::{Cause, WorkQueues};

/// Output.
impl Shard {
    /// Fills `batch` with what is to be sent. Returns whether more waits.
    pub fn tx(&mut self, batch: &mut TxBatch) -> bool {
        // ARP and NDP first: packets may be waiting for what they ask.
        self.net.tx_link(batch);
        // Until our addresses are known to be free, nothing but the questions whether they are is sent.
        if self.net.address_check() != AddressCheck::Done {
            cold_path();
            return self.net.link_waits();
        }
        // What a connection sends is not overtaken by what it says next.
        self.finish_segmentation(batch);
        // Replies hold up other hosts' handshakes, and a list of connections may be long.
        while !batch.is_full() && self.net.replies.len() > 0 {
            batch.fill(|tx| self.send_reply(tx));
        }
        self.packets.transmit(&mut self.cx, &mut self.net, batch);
        while !batch.is_full() {
            let Some(index) = self.tcp.work.dirty.pop_front() else { break };
            batch.fill(|tx| self.write_segment(index, tx) && self.net.transmit(tx, self.cx.now));
            self.finish_segmentation(batch);
        }
        self.net.ip.addresses.sweep();
        self.net.replies.len() > 0
            || self.tcp.has_output()
            || self.packets.has_output()
            || self.net.link_waits()
    }

    /// Writes what is left of a super-segment that is cut here.
    #[inline]
    fn finish_segmentation(&mut self, batch: &mut TxBatch) {
        while !self.tcp.segmentation.is_empty() && !batch.is_full() {
            batch.fill(|tx| self.tcp.segmentation.transmit(&self.cx, &mut self.net, tx));
        }
    }

    /// The first of the replies.
    #[inline(always)]
    fn send_reply(&mut self, tx: &mut TxSegment) -> bool {
        let written = match self.net.replies.first() {
            // In their place: all of them would be copied at the length of the longest.
            Some(&PendingReply::SynAck(index)) => {
                self.net.replies.skip_front();
                self.tcp.write_syn_ack(&mut self.cx, &mut self.net, index, tx)
            }
            Some(PendingReply::Reply(key, reply, marking)) => {
                let out = ReplyOut { key, reply, marking: *marking };
                let written = write_reply(&out, &mut self.cx, &mut self.net.ip, tx);
                self.net.replies.skip_front();
                written
            }
            _ => return self.net.replies.pop().is_some_and(|rare| self.send_rare_reply(rare, tx)),
        };
        written && self.net.transmit(tx, self.cx.now)
    }

    /// One that few hosts send.
    #[inline(never)]
    fn send_rare_reply(&mut self, rare: PendingReply, tx: &mut TxSegment) -> bool {
        match rare {
            PendingReply::SynCookie(entry) => {
                self.tcp.write_cookie(&mut self.cx, &mut self.net, &entry, tx)
                    && self.net.transmit(tx, self.cx.now)
            }
            other => self.net.write_reply(other, tx, self.cx.now),
        }
    }

    /// Writes one segment of a connection, or begins a super-segment that is cut here, which
    /// [`Shard::finish_segmentation`] writes. The connection goes to the end of the list if there is more.
    fn write_segment(&mut self, index: u32, tx: &mut TxSegment) -> bool {
        // The place may have been freed, or taken by another, since it was listed.
        let slot = self.tcp.records.connections.0.get_mut(index).filter(|slot| slot.dirty);
        let Some(slot) = slot else { return false };
        slot.dirty = false;
        let connection = &mut slot.connection;
        let max_text = self.tcp.segmentation.turn;
        let written = if connection.syn_is_next() {
            write_syn(connection, &mut self.cx, &mut self.net.ip, tx)
        } else {
            // It may have been listed for what windows do not admit, or for what was withdrawn since.
            let outgoing = connection.poll_behind_syn(&mut self.cx, max_text, &mut tx.payload);
            let Some(outgoing) = outgoing else {
                if slot.connection.is_paced() {
                    self.tcp.work.follow_pace(slot, index, self.cx.now);
                }
                if let Some(deadline) = WorkQueues::timer_update(slot) {
                    self.update_timer(index, deadline);
                }
                return false;
            };
            let marking = connection.marking(&self.cx.tunables);
            // At once: what it is made of would be put aside while the lists are brought in line.
            if outgoing.gso_size > 0
                && (self.tcp.segmentation.is_here || outgoing.has_ace_with_cwr())
            {
                // Its segments follow, from the first on.
                self.tcp.segmentation.begin(FlowKey::of(connection), outgoing, marking, tx);
                if slot.connection.is_paced() {
                    self.begin_pacing_wait(index);
                    return false;
                }
                false
            } else {
                let order = self.cx.tunables.option_order;
                let out = SegmentOut::of_connection(connection, &outgoing, marking, order);
                self.net.ip.write_segment(&out, tx)
            }
        };
        if let Some(deadline) = self.tcp.work.update(slot, index, Cause::Sent)
            && !self.tcp.work.timers.defer(slot, index, deadline, self.cx.now)
        {
            self.update_timer(index, deadline);
        }
        written
    }
}

/// Waits of paced connections.
impl Shard {
    /// A quantum of a paced connection leaves: the text behind it waits, and the lists follow.
    // Here, and not in the update behind each segment, which would take 40 instructions more of a short connection.
    #[inline(never)]
    fn begin_pacing_wait(&mut self, index: u32) {
        let Some(slot) = self.tcp.records.connections.0.get_mut(index) else { return };
        self.tcp.work.follow_pace(slot, index, self.cx.now);
        // What leaves brings no news to the application, so that all else is as behind any call.
        if let Some(deadline) = self.tcp.work.update(slot, index, Cause::Call)
            && !self.tcp.work.timers.defer(slot, index, deadline, self.cx.now)
        {
            self.update_timer(index, deadline);
        }
    }
}

/// A segment that answers, for no connection.
struct ReplyOut<'a> {
    key: &'a FlowKey,
    reply: &'a Reply,
    marking: Marking,
}

// Few segments are: inlined, it would take registers from those that are not.
#[inline(never)]
fn write_reply(out: &ReplyOut<'_>, cx: &mut Context, ip: &mut IpLayer, tx: &mut TxSegment) -> bool {
    let ReplyOut { key, reply, marking } = *out;
    // What a connection sends, the connection counts; a reply has none.
    cx.counters.out_segs += 1;
    if reply.flags.contains(TcpFlags::RST) {
        cx.counters.out_rsts += 1;
    }
    let outgoing = OutgoingSegment {
        seq: reply.seq,
        ack: reply.ack,
        flags: reply.flags,
        window: reply.window,
        urgent: 0,
        gso_size: 0,
        timestamps: reply.timestamps,
        rare: RareOptions::None,
    };
    let order = cx.tunables.option_order;
    let written = ip.write_segment(&SegmentOut::of_flow(key, &outgoing, marking, order), tx);
    ip.addresses.release(key.local_index);
    written
}

/// Writes the SYN of a connection.
// One segment of each is: inlined, its options would stand in memory for those that have none of them.
#[inline(never)]
fn write_syn(
    connection: &mut Connection,
    cx: &mut Context,
    ip: &mut IpLayer,
    tx: &mut TxSegment,
) -> bool {
    let syn = connection.poll_syn(cx, &mut tx.payload);
    let (marking, order) = (connection.marking(&cx.tunables), cx.tunables.option_order);
    ip.write_opening(&SegmentOut::of_connection(connection, &syn, marking, order), tx)
}
