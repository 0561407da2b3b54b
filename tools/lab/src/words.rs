//! Outcomes of packets, in words.

use std::time::Duration;

use whimbrel_stack::shard::SocketState;
use whimbrel_tcp::DropReason;

use super::{PacketVerdict, SeenPacket};

impl SeenPacket {
    /// Outcome at its receiver, in a few words; `None` if it is not remarkable.
    pub fn outcome(&self) -> Option<&'static str> {
        let (ruling, (view, _)) = (self.ruling.as_ref()?, self.header()?);
        let (opens, is_rst) = (view.flags.is_syn() && !view.flags.is_ack(), view.flags.is_rst());
        match (ruling.states[0], ruling.dropped) {
            (Some(SocketState::TimeWait), Some(_)) if opens => Some(self.refusal(ruling)),
            (Some(SocketState::TimeWait), Some(_)) if is_rst => Some("reset ignored"),
            (Some(SocketState::SynSent), Some(DropReason::UnacceptableAck)) => {
                Some("no valid answer: the client sends a reset")
            }
            (_, Some(reason)) => Some(reason.name()),
            (Some(SocketState::TimeWait), None) if opens => Some(self.admission(ruling)),
            (Some(SocketState::TimeWait), None) if is_rst => Some("reset taken: port forgotten"),
            (Some(SocketState::SynSent), None) if is_rst => Some("refused for good"),
            (None, None) if opens => Some("nothing remembered: let in"),
            _ => None,
        }
    }

    /// Reason for which a SYN does not replace the record.
    fn refusal(&self, ruling: &PacketVerdict) -> &'static str {
        match self.beyond {
            _ if judged_by(ruling, &["never"]) && is_unanswered(ruling) => {
                "port remembered: ignored"
            }
            _ if judged_by(ruling, &["never"]) => "port remembered: refused",
            Some(beyond) if beyond > 0 => "in the old window: refused",
            _ => "number looks old: refused",
        }
    }

    /// Reason for which it does.
    fn admission(&self, ruling: &PacketVerdict) -> &'static str {
        let is_newer = self.newer.is_some_and(|newer| newer > Duration::ZERO);
        match judged_by(ruling, &["rfc6191", "linux"]) && is_newer {
            true => "newer timestamp: let in",
            false => "newer number: let in",
        }
    }
}

/// True if it would have been answered without another a moment before.
fn is_unanswered(ruling: &PacketVerdict) -> bool {
    ruling.counted.iter().any(|(name, _)| *name == "TcpExtTCPACKSkippedTimeWait")
}

/// True if one of these rules judged the SYN in TIME-WAIT.
fn judged_by(ruling: &PacketVerdict, rules: &[&str]) -> bool {
    ruling.rules.iter().any(|(key, value)| *key == "tw.syn" && rules.contains(&value.as_str()))
}
