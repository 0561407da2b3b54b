//! Packets in the notation of scripts, for reports.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use whimbrel_wire::tcp::TcpFlags;

use super::super::ast::{Direction, TcpOption};
use super::{FlowState, Segment};

/// A segment with the script's numbers: `P. 1:1001(1000) ack 1 win 65535 <nop,nop,TS …>`.
pub fn segment(segment: &Segment, direction: Direction, flow: &FlowState) -> String {
    let is_syn = segment.flags.is_syn();
    let seq = match direction {
        Direction::In if is_syn => segment.seq.raw(),
        Direction::In => flow.remote_relative(segment.seq),
        Direction::Out if is_syn && (flow.may_learn || flow.local_isn.is_none()) => 0,
        Direction::Out => flow.local_relative(segment.seq),
    };
    let len = segment.len();
    let mut text = format!("{} {seq}:{}({len})", flags(segment.flags), seq.wrapping_add(len));
    if segment.flags.is_ack() {
        let ack = match direction {
            Direction::In => segment.ack.offset_from(flow.local_base(segment.flags)),
            Direction::Out => {
                let base = flow.remote_bases(segment.flags).next().unwrap_or_default();
                segment.ack.offset_from(base)
            }
        };
        text += &format!(" ack {ack}");
    }
    text += &format!(" win {}", segment.win);
    if segment.flags.contains(TcpFlags::URG) {
        text += &format!(" urg {}", segment.urg);
    }
    if !segment.options.is_empty() {
        text += &format!(" <{}>", options(&relative(segment, direction, flow)));
    }
    text
}

/// Selective acknowledgments count from the ISN of the other side.
fn relative(segment: &Segment, direction: Direction, flow: &FlowState) -> Vec<TcpOption> {
    let base = match direction {
        Direction::In => flow.local(0),
        Direction::Out => flow.remote(0),
    };
    let relative = |edge: &u32| edge.wrapping_sub(base.raw());
    let rewrite = |option: &TcpOption| match option {
        TcpOption::Sack(blocks) => {
            TcpOption::Sack(blocks.iter().map(|(a, b)| (relative(a), relative(b))).collect())
        }
        other => other.clone(),
    };
    segment.options.iter().map(rewrite).collect()
}

/// Control bits: `S.`, `SEW`, `FP.`, or `-`.
pub fn flags(flags: TcpFlags) -> String {
    if flags.is_empty() {
        return "-".into();
    }
    LETTERS.iter().filter(|(flag, _)| flags.contains(*flag)).map(|(_, letter)| letter).collect()
}

/// Options without their brackets.
pub fn options(options: &[TcpOption]) -> String {
    options.iter().map(option).collect::<Vec<_>>().join(",")
}

fn option(option: &TcpOption) -> String {
    match option {
        TcpOption::Eol => "eol".into(),
        TcpOption::Nop => "nop".into(),
        TcpOption::Mss(mss) => format!("mss {mss}"),
        TcpOption::WindowScale(shift) => format!("wscale {shift}"),
        TcpOption::SackPermitted => "sackOK".into(),
        TcpOption::Sack(blocks) => {
            blocks.iter().fold("sack".into(), |text, (a, b)| format!("{text} {a}:{b}"))
        }
        TcpOption::Timestamps { val, ecr } => format!("TS val {val} ecr {ecr}"),
        TcpOption::SomeTimestamps { val, ecr } => {
            let number = |it: &Option<u32>| it.map_or("...".into(), |it| format!("{it}"));
            format!("TS val {} ecr {}", number(val), number(ecr))
        }
        TcpOption::FastOpen(cookie) => format!("FO {}", hex(cookie)).trim_end().into(),
        TcpOption::FastOpenExperimental(cookie) => {
            format!("FOEXP {}", hex(cookie)).trim_end().into()
        }
        TcpOption::Md5 => "md5".into(),
        TcpOption::Raw(bytes) => format!("raw {}", hex(bytes)),
        TcpOption::Other { kind, data } => format!("kind {kind} {}", hex(data)).trim_end().into(),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

const LETTERS: [(TcpFlags, char); 9] = [
    (TcpFlags::SYN, 'S'),
    (TcpFlags::FIN, 'F'),
    (TcpFlags::RST, 'R'),
    (TcpFlags::PSH, 'P'),
    (TcpFlags::URG, 'U'),
    (TcpFlags::ECE, 'E'),
    (TcpFlags::CWR, 'W'),
    (TcpFlags::AE, 'A'),
    (TcpFlags::ACK, '.'),
];

#[cfg(test)]
mod tests;
