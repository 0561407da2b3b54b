//! ICMP errors, in both directions, where they meet connections and queues.

use whimbrel_base::packet::{IcmpError, SoftError};
use whimbrel_tcp::conn::IcmpVerdict;
use whimbrel_tcp::table::Kind;

use super::Shard;
use crate::ip::{ErrorReport, FrameDrop, IcmpReport};
use crate::protocol::PacketProtocol;
use crate::{Handle, RxFrame};

/// Soft errors of connections.
impl Shard {
    /// Why segments of this connection did not arrive, as a host on the path last reported
    /// (RFC 1122 4.2.4.1); forgotten when new data is acknowledged.
    pub fn soft_error(&self, handle: Handle) -> Option<SoftError> {
        self.tcp.records.soft_error(handle)
    }

    /// Takes the soft error of a connection: what `SO_ERROR` returns once.
    pub fn take_soft_error(&mut self, handle: Handle) -> Option<SoftError> {
        self.tcp.records.take_soft_error(handle)
    }
}

impl Shard {
    /// An ICMP error, `packet`, about something of ours.
    pub(super) fn on_report(&mut self, packet: &RxFrame<'_>, report: &ErrorReport) {
        let known = match report {
            ErrorReport::Segment(report) => self.on_segment_report(report),
            ErrorReport::Datagram(report) => {
                self.packets.udp.on_error(&mut self.cx, &mut self.net, report)
            }
            ErrorReport::Echo(report) => self.net.on_echo_report(&mut self.cx, report),
            ErrorReport::EchoReply { to, mtu } => {
                self.net.ip.reply_mtus.note(self.cx.now, *to, *mtu);
                true
            }
        };
        if known {
            self.net.ip.counters.in_delivers += 1;
        } else if matches!(report, ErrorReport::Segment(_))
            || !self.net.claim(packet, FrameDrop::IcmpNoSocket)
        {
            self.net.ip.counters.drop_frame(FrameDrop::IcmpNoSocket);
        }
    }

    /// Acts upon an error about a segment. Returns whether it is about a record that can lose something by it.
    fn on_segment_report(&mut self, report: &IcmpReport) -> bool {
        let record = self.tcp.records.find(self.tcp.records.hash(&report.key), &report.key);
        match record.map(|record| (record.kind(), record.index())) {
            Some((Kind::Connection, index)) => self.on_connection_report(index, report),
            Some((Kind::SynEntry, index)) => {
                self.tcp.on_half_open_report(&mut self.cx, &mut self.net, index, report);
            }
            // A record in TIME-WAIT has nothing to lose.
            Some((Kind::TimeWait, _)) | None => return false,
        }
        true
    }

    /// Packets that could not leave: their connections and sockets learn of it.
    pub(super) fn report_unreachable(&mut self) {
        while let Some(report) = self.net.pop_unreachable() {
            let report = match report {
                ErrorReport::Segment(report) => report,
                ErrorReport::Datagram(report) => {
                    self.packets.udp.on_error(&mut self.cx, &mut self.net, &report);
                    continue;
                }
                ErrorReport::Echo(report) => {
                    self.net.on_echo_report(&mut self.cx, &report);
                    continue;
                }
                // What did not leave was not too big.
                ErrorReport::EchoReply { .. } => continue,
            };
            let record = self.tcp.records.find(self.tcp.records.hash(&report.key), &report.key);
            if let Some(record) = record.filter(|record| record.kind() == Kind::Connection) {
                self.on_connection_report(record.index(), &report);
            }
        }
    }

    fn on_connection_report(&mut self, index: u32, report: &IcmpReport) {
        let has_fragments = self.net.ip.path_mtus.has_fragments(self.cx.now, &report.key.remote);
        let Some((connection, cx)) = self.connection(index) else { return };
        if !has_fragments {
            // What the host has forgotten of the path is news again.
            connection.forget_fragments();
        }
        let verdict = connection.on_icmp(cx, report.seq, report.error);
        if let (IcmpVerdict::Lowered, IcmpError::TooBig { mtu }) = (verdict, report.error) {
            self.net.note_path_mtu(self.cx.now, report.key.remote, mtu);
        }
        self.after_change(index);
    }

    /// Applies to a connection what others found out of its path: when a timer of its runs out, as when it
    /// opened, so that a lesser path costs each flow at most one time-out, and segments that flow cost nothing.
    pub(super) fn refresh_path_mtu(&mut self, index: u32) {
        let Some(slot) = self.tcp.records.connections.0.get(index) else { return };
        let paths = &self.net.ip.path_mtus;
        let Some(mtu) = paths.said_of(self.cx.now, slot.connection.remote()) else { return };
        if let Some((connection, cx)) = self.connection(index) {
            let _ = connection.on_path_mtu(cx, mtu);
        }
    }
}
