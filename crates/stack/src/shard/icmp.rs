//! ICMP errors, in both directions, where they meet connections and queues.

use whimbrel_base::packet::SoftError;
use whimbrel_tcp::table::Kind;

use super::Shard;
use crate::ip::{ErrorReport, FrameDrop};
use crate::protocol::Protocol;
use crate::{Handle, RxFrame};

/// What ICMP errors said of a connection.
impl Shard {
    /// Why segments of this connection did not arrive, as somebody on the path last reported
    /// (RFC 1122 4.2.4.1); forgotten when new data is acknowledged.
    pub fn soft_error(&self, handle: Handle) -> Option<SoftError> {
        self.tcp.records.soft_error(handle)
    }

    /// The same, and it is forgotten: what `SO_ERROR` tells once.
    pub fn take_soft_error(&mut self, handle: Handle) -> Option<SoftError> {
        self.tcp.records.take_soft_error(handle)
    }
}

impl Shard {
    /// An ICMP error, `packet`, about something of ours.
    pub(super) fn on_report(&mut self, packet: &RxFrame<'_>, report: &ErrorReport) {
        let known = match report {
            ErrorReport::Segment(report) => self.tcp.on_error(&mut self.cx, &mut self.net, report),
            ErrorReport::Datagram(report) => self.udp.on_error(&mut self.cx, &mut self.net, report),
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

    /// Packets that could not leave: their connections and sockets learn of it.
    pub(super) fn report_unreachable(&mut self) {
        while let Some(report) = self.net.pop_unreachable() {
            let report = match report {
                ErrorReport::Segment(report) => report,
                ErrorReport::Datagram(report) => {
                    self.udp.on_error(&mut self.cx, &mut self.net, &report);
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
                self.tcp.on_connection_report(&mut self.cx, &mut self.net, record.index(), &report);
            }
        }
    }
}
