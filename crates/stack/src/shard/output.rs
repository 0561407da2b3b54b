//! Frames out: stateless replies first, then datagrams, then one segment for each dirty connection in turn.

use whimbrel_base::cold_path;
use whimbrel_base::packet::TxSegment;
use whimbrel_tcp::conn::{Marking, OutgoingSegment, RareOptions};
use whimbrel_tcp::{Context, Reply};
use whimbrel_wire::tcp::TcpFlags;

use super::Shard;
use crate::TxBatch;
use crate::ip::{FlowKey, IpLayer, SegmentOut};
use crate::link::AddressCheck;
use crate::net::replies::Pending;

/// What to do next.
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
        self.tcp.finish_segmentation(&self.cx, &mut self.net, batch);
        // Replies hold up other hosts' handshakes, and a list of connections may be long.
        while !batch.is_full() && self.net.replies.len() > 0 {
            batch.fill(|tx| self.send_reply(tx));
        }
        self.transmit(batch);
        self.net.ip.addresses.sweep();
        self.net.replies.len() > 0 || self.has_transport_output() || self.net.link_waits()
    }

    /// The first of the replies.
    #[inline(always)]
    fn send_reply(&mut self, tx: &mut TxSegment) -> bool {
        let written = match self.net.replies.first() {
            // In their place: all of them would be copied at the length of the longest.
            Some(&Pending::SynAck(index)) => {
                self.net.replies.pass_first();
                self.tcp.write_syn_ack(&mut self.cx, &mut self.net, index, tx)
            }
            Some(Pending::Reply(key, reply, marking)) => {
                let out = ReplyOut { key, reply, marking: *marking };
                let written = write_reply(&out, &mut self.cx, &mut self.net.ip, tx);
                self.net.replies.pass_first();
                written
            }
            _ => return self.net.replies.pop().is_some_and(|rare| self.send_rare_reply(rare, tx)),
        };
        written && self.net.depart(tx, self.cx.now)
    }

    /// One that few hosts send.
    #[inline(never)]
    fn send_rare_reply(&mut self, rare: Pending, tx: &mut TxSegment) -> bool {
        match rare {
            Pending::SynCookie(entry) => {
                self.tcp.write_cookie(&mut self.cx, &mut self.net, &entry, tx)
                    && self.net.depart(tx, self.cx.now)
            }
            other => self.net.write_reply(other, tx, self.cx.now),
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
