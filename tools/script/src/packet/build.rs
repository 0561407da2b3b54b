//! Builds a written packet as the peer sends it, with every field as in the script, right or wrong.

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use whimbrel_wire::{Ecn, SeqNum, TrafficClass};

use super::super::ast::{self, Ack, IpMarks, OptionList, Seq, TcpOption, TcpPacket};
use super::super::setup::Setup;
use super::{FlowState, Segment, options};

/// A segment of the peer with live numbers. The connection does not know it yet: see
/// [`FlowState::on_received`].
///
/// `moved` is added to its number ([`FlowState::aim`]). An error says what cannot be sent.
pub fn segment(
    packet: &TcpPacket,
    marks: IpMarks,
    flow: &FlowState,
    setup: &Setup,
    moved: u32,
) -> Result<Segment, String> {
    let OptionList::These(list) = &packet.options else {
        return Err("options of a packet that is sent cannot be left open".into());
    };
    let list = live_options(list, flow, setup);
    if packet.len > MAX_TEXT {
        return Err(format!("{} bytes of text are more than a packet holds", packet.len));
    }
    if options::encode(&list).len() > options::MAX_LEN {
        return Err(format!("options take more than {} bytes", options::MAX_LEN));
    }
    Ok(Segment {
        src: flow.live.remote,
        dst: flow.live.local,
        traffic_class: traffic_class(marks),
        hop_limit: marks.ttl.unwrap_or(HOP_LIMIT),
        flags: packet.flags,
        seq: sequence(packet, flow) + moved,
        ack: match packet.ack {
            None => SeqNum::default(),
            Some(Ack::Relative(n)) => flow.local_base(packet.flags) + n,
            Some(Ack::Absolute(n)) => SeqNum::new(n),
            Some(Ack::Any) => flow.local(0),
        },
        win: packet.win.unwrap_or(0),
        urg: packet.urg.unwrap_or(0),
        options: list,
        text: vec![0; packet.len as usize],
    })
}

fn sequence(packet: &TcpPacket, flow: &FlowState) -> SeqNum {
    match packet.seq {
        Seq::Absolute(n) => SeqNum::new(n),
        Seq::Relative(n) if packet.flags.is_syn() => SeqNum::new(n),
        Seq::Relative(n) => flow.remote(n),
        Seq::Any => flow.remote(0),
    }
}

/// The peer's options: its acknowledgments and echoes use the host's numbers.
fn live_options(list: &[TcpOption], flow: &FlowState, setup: &Setup) -> Vec<TcpOption> {
    let live = |option: &TcpOption| match option {
        TcpOption::Sack(blocks) => TcpOption::Sack(
            blocks.iter().map(|(a, b)| (flow.local(*a).raw(), flow.local(*b).raw())).collect(),
        ),
        TcpOption::Timestamps { val, ecr } => {
            TcpOption::Timestamps { val: *val, ecr: flow.live_ecr(*ecr, setup) }
        }
        TcpOption::SomeTimestamps { val, ecr } => TcpOption::Timestamps {
            val: val.unwrap_or(0),
            ecr: ecr.map_or(0, |ecr| flow.live_ecr(ecr, setup)),
        },
        other => other.clone(),
    };
    list.iter().map(live).collect()
}

/// Traffic class of the marks.
pub(super) fn traffic_class(marks: IpMarks) -> TrafficClass {
    let class = TrafficClass(marks.tos.unwrap_or(0));
    marks.ecn.and_then(|ecn| codepoints(ecn).first()).map_or(class, |ecn| class.with_ecn(*ecn))
}

/// Codepoints that a mark matches.
pub(super) const fn codepoints(ecn: ast::Ecn) -> &'static [Ecn] {
    match ecn {
        ast::Ecn::NotEct => &[Ecn::NotEct],
        ast::Ecn::Ect0 => &[Ecn::Ect0],
        ast::Ecn::Ect1 => &[Ecn::Ect1],
        ast::Ecn::Ect0OrEct1 => &[Ecn::Ect0, Ecn::Ect1],
        ast::Ecn::Ce => &[Ecn::Ce],
    }
}

/// Room for text in IPv4 after the longest headers.
const MAX_TEXT: u32 = 65_535 - 20 - 60;

/// Hop limit of the peer's packets by default: as of a neighbour.
pub(super) const HOP_LIMIT: u8 = 255;

#[cfg(test)]
mod tests;
