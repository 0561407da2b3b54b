//! Effects of ICMP errors on a connection (RFC 1122 4.2.3.9, RFC 5461, RFC 5927, RFC 1191, RFC 8201).
//!
//! Anybody can send them, so that each must quote a segment that is in flight, and none ends a
//! connection that is established: the retransmission timer finds out better than a router does.
//! Before that, a hard error spares the application two minutes of SYNs.

use whimbrel_base::packet::{IcmpError, SoftError};
use whimbrel_wire::SeqNum;

use crate::conn::path_mtu::TooBig;
use crate::conn::{Connection, State};
use crate::tunables::{FragNeeded, ProhibitedByIcmp, TimeExceededByIcmp, UnreachableByIcmp};
use crate::verdict::{CloseReason, IcmpVerdict};
use crate::{Context, Tunables};

impl Connection {
    /// A router or the peer's host sent an error that quotes the segment at `seq`.
    pub fn on_icmp(&mut self, cx: &mut Context, seq: SeqNum, error: IcmpError) -> IcmpVerdict {
        if matches!(self.transfer.tcb.state, State::Closed | State::TimeWait) {
            return IcmpVerdict::Ignored;
        }
        // RFC 5927 4.1: "the TCP sequence number contained in the payload of the ICMP error
        // message is within the range SND.UNA =< SEG.SEQ < SND.NXT". SND.NXT may have gone back:
        // SND.MAX it is. A bare acknowledgment stands at SND.MAX itself, and may be undeliverable,
        // but neither too big nor refused by a peer that has sent no SYN yet.
        let beyond = seq.offset_from(self.transfer.tcb.sender.seq().una);
        let sent = self.transfer.tcb.sender.unacknowledged();
        let bare =
            self.transfer.tcb.is_synchronized() && !matches!(error, IcmpError::TooBig { .. });
        if beyond > sent || beyond == sent && !bare {
            cx.counters.icmp_out_of_window += 1;
            return IcmpVerdict::OutOfWindow;
        }
        match error {
            IcmpError::Refused => self.on_hard_error(cx, CloseReason::Refused, SoftError::Refused),
            IcmpError::NoTcp => self.on_hard_error(cx, CloseReason::Refused, SoftError::NoTcp),
            IcmpError::Prohibited => {
                let reason = match cx.tunables.icmp_prohibited {
                    ProhibitedByIcmp::Unreachable => CloseReason::Unreachable,
                    ProhibitedByIcmp::Refused => CloseReason::Refused,
                };
                self.on_hard_error(cx, reason, SoftError::Prohibited)
            }
            IcmpError::Soft(error) if self.ends_attempt(error, &cx.tunables) => {
                self.on_hard_error(cx, CloseReason::Unreachable, error)
            }
            IcmpError::Soft(error) => self.note_soft_error(cx, error),
            IcmpError::TooBig { mtu } => match cx.tunables.frag_needed {
                FragNeeded::Verified => self.on_too_big(cx, TooBig { seq, mtu }),
                FragNeeded::Immediate => self.on_path_mtu(cx, mtu),
            },
        }
    }

    /// The last soft error, if no new data was acknowledged since (RFC 1122 4.2.3.9: "TCP MUST NOT
    /// abort the connection, and it SHOULD make the information available to the application").
    pub fn soft_error(&self) -> Option<SoftError> {
        self.transfer.tcb.cold().record()?.soft_error
    }

    /// Takes the last soft error, which is then forgotten.
    pub fn take_soft_error(&mut self) -> Option<SoftError> {
        let error = self.soft_error()?;
        self.transfer.tcb.cold_mut().soft_error = None;
        Some(error)
    }

    /// RFC 5927 5.2: in a synchronized state hard errors are treated as soft ones. A forger of
    /// one then gains nothing, and a host that restarted or a firewall that changed its mind is
    /// found out by retransmissions.
    ///
    /// `reason` is the reported reason if an attempt ends, and `error` is noted otherwise.
    fn on_hard_error(
        &mut self,
        cx: &mut Context,
        reason: CloseReason,
        error: SoftError,
    ) -> IcmpVerdict {
        if self.transfer.tcb.is_synchronized() || !cx.tunables.icmp_aborts {
            return self.note_soft_error(cx, error);
        }
        cx.counters.icmp_aborts += 1;
        self.transfer.tcb.cold_mut().soft_error = Some(error);
        self.end(cx, reason);
        IcmpVerdict::Closed(reason)
    }

    /// True if an error that is soft in itself ends an attempt, by the rules that are in force.
    fn ends_attempt(&self, error: SoftError, tunables: &Tunables) -> bool {
        if self.transfer.tcb.is_synchronized() || !tunables.icmp_aborts {
            return false;
        }
        let any = tunables.icmp_unreachable == UnreachableByIcmp::Hard;
        match error {
            // A host that has the peer's SYN knows that there is a way.
            SoftError::TimeExceeded => {
                let hard = tunables.icmp_time_exceeded == TimeExceededByIcmp::Hard;
                hard && (any || self.transfer.tcb.state == State::SynSent)
            }
            // The packet reached a host, which had to reassemble it.
            SoftError::FragmentsLost => false,
            _ => any,
        }
    }

    fn note_soft_error(&mut self, cx: &mut Context, error: SoftError) -> IcmpVerdict {
        cx.counters.icmp_soft_errors += 1;
        self.transfer.tcb.cold_mut().soft_error = Some(error);
        IcmpVerdict::Noted
    }
}
