//! Packets of a host to itself, to an address of its own or to 127.0.0.1 and ::1 (RFC 1122 3.2.1.3 (g)),
//! comes in without having been on a wire.
//!
//! [`Shard::tx`](super::Shard::tx) puts it aside, and [`Shard::advance`](super::Shard::advance) takes it in,
//! as much as its budget allows: an exchange of a host with itself never runs within one call. A packet is
//! as it would have left, so its MTU is the link's and captures at the device do not show it; it is copied
//! once, as from a frame, and its checksum is not looked at: nothing stood between that could have changed it.
//!
//! With several shards each has its own: the ports of a connection lead both of its ends to one shard, as
//! the rule by which queues are chosen is the same in both directions.

use alloc::vec::Vec;

use whimbrel_base::packet::{RxChecksum, SegMeta, TxSegment};

use super::Shard;
use crate::RxFrame;
use crate::ip::Origin;

impl Shard {
    /// Takes in up to `left` packets that this host sent to itself, and takes them from `left`.
    #[inline(never)]
    pub(super) fn advance_looped(&mut self, left: &mut usize) {
        self.net.ip.origin = Origin::Host;
        let mut packet = Vec::new();
        while *left > 0
            && let Some(segment) = self.net.pop_looped()
        {
            *left -= 1;
            packet.resize(segment.len(), 0);
            if segment.copy_to(&mut packet).is_some() {
                let at = self.net.ip.link_header_len();
                let bytes = packet.get(at..).unwrap_or_default();
                self.rx_looped(&RxFrame::new(bytes, meta_of(&segment)));
            }
        }
        self.net.ip.origin = Origin::Wire;
    }

    fn rx_looped(&mut self, packet: &RxFrame<'_>) {
        self.net.ip.counters.in_receives += 1;
        let mut whole = Vec::new();
        let read = self.net.ip.read(self.cx.now, packet);
        if let Some(arrival) = self.on_read(read, packet, &mut whole) {
            self.find_and_process(arrival);
        }
        for packet in whole {
            self.rx_whole(&packet);
        }
    }
}

/// Returns what a device would say of it, had it merged what it was to cut.
fn meta_of(segment: &TxSegment) -> SegMeta {
    let checksum = RxChecksum::Verified;
    match segment.gso_size {
        0 => SegMeta { segs: 1, gso_size: 0, checksum },
        gso_size => {
            let segs = segment.payload.bytes().div_ceil(gso_size.into());
            SegMeta { segs: u16::try_from(segs).unwrap_or(u16::MAX), gso_size, checksum }
        }
    }
}
