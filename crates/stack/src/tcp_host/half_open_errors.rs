//! ICMP errors about half-open entries.

use whimbrel_base::packet::IcmpError;
use whimbrel_tcp::Context;

use super::TcpHost;
use crate::ip::IcmpReport;
use crate::net::Net;

impl TcpHost {
    /// RFC 5461 and Linux: a hard error about the SYN-ACK ends the attempt.
    pub(crate) fn on_half_open_report(
        &mut self,
        cx: &mut Context,
        net: &mut Net,
        index: u32,
        report: &IcmpReport,
    ) {
        let Some(entry) = self.records.syns.get(index) else { return };
        // Before its SYN-ACK nothing of it was sent that anybody could report.
        if entry.iss() != report.seq || entry.is_held() {
            cx.counters.icmp_out_of_window += 1;
            return;
        }
        match report.error {
            IcmpError::Refused | IcmpError::NoTcp | IcmpError::Prohibited
                if cx.tunables.icmp_aborts =>
            {
                cx.counters.icmp_aborts += 1;
                cx.counters.attempt_fails += 1;
                if let Some(entry) = self.records.syns.remove(index, &mut self.passive.listeners) {
                    self.forget_half_open(cx, net, index, &entry);
                }
            }
            _ => cx.counters.icmp_soft_errors += 1,
        }
    }
}
