//! Compares a segment of the host with the written one.
//!
//! Judging changes nothing: the caller updates the connection afterwards ([`FlowState::on_sent`]).

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use whimbrel_wire::tcp::TcpFlags;
use whimbrel_wire::{Flow, SeqNum};

use super::super::ast::{
    Ack, Direction, IpMarks, OptionList, Packet, PacketEnds, Seq, TcpOption, TcpPacket,
};
use super::super::setup::{Segments, Setup};
use super::build::codepoints;
use super::notation;
use super::{FlowState, Mode, Rule, Rules, Segment};

/// A field that differs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mismatch {
    /// Name of the field, for people: `SEG.ACK`, `options`.
    pub field: &'static str,
    /// Value in the script.
    pub expected: String,
    /// Value in the packet.
    pub came: String,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: expected {}, came {}", self.field, self.expected, self.came)
    }
}

/// Part of both that matches.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Fit {
    /// The whole written packet matches.
    Whole,
    /// The segment is the beginning of the written one; this is the rest.
    Part(TcpPacket),
    /// The script's packet is the beginning of the segment: this is its rest, and the next `>` must
    /// match it.
    More(Segment),
}

/// Context of a judgement.
#[derive(Clone, Copy, Debug)]
pub struct Judge<'a> {
    /// Connection of the segment.
    pub flow: &'a FlowState,
    /// Configuration of the script.
    pub setup: &'a Setup,
    /// Mode of comparison.
    pub mode: Mode,
    /// Expected text.
    pub text: Text,
    /// True if the script bound a socket to the written source port.
    pub is_bound: bool,
    /// ISNs that the host's SYNs have in this script, apart from 0.
    pub isns: &'a BTreeSet<u32>,
}

/// Expected text of the host's segments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Text {
    /// Zeros: the application wrote no text of its own.
    Zeros,
    /// Any: the application wrote text of its own.
    Any,
}

/// Result of one field: a rule of semantic mode if one was needed.
type Field = Result<Option<Rule>, Mismatch>;

impl Judge<'_> {
    /// Compares `segment` with `packet` (with `body`, its segment or the rest of it); returns the
    /// rules of semantic mode that it took.
    pub fn judge(
        &self,
        packet: &Packet,
        body: &TcpPacket,
        segment: &Segment,
    ) -> Result<(Fit, Rules), Mismatch> {
        self.ends(packet.ends, segment)?;
        if let Some(rule) = self.simultaneous_close(body, segment) {
            return Ok((Fit::Whole, Rules::from([rule])));
        }
        let (fit, written, came) = self.align(body, segment);
        let fields = [
            self.flags(&written, &came, &fit)?,
            self.sequence(&written, &came)?,
            length(&written, &came)?,
            self.acknowledgment(&written, &came)?,
            self.window(&written, &came)?,
            urgent(&written, &came)?,
        ];
        let mut rules: Rules = fields.into_iter().flatten().collect();
        rules.extend(self.options(&written, &came)?);
        marks(packet.marks, &came)?;
        self.text(&came)?;
        Ok((fit, rules))
    }

    fn ends(&self, written: Option<PacketEnds>, segment: &Segment) -> Result<(), Mismatch> {
        let Some(ends) = written else { return Ok(()) };
        let PacketEnds { from, to } = self.setup.ends(ends, Direction::Out);
        let wanted = Flow { local: from, remote: to };
        let came = segment.flow();
        // The host chooses the port if the application did not; the script's name for it is learned
        // from the SYN.
        let chosen = segment.flags.is_syn() && !segment.flags.is_ack() && !self.is_bound;
        let learned = self.flow.written == Some(wanted);
        let fits =
            came == wanted || learned || chosen && self.flow.written.is_none() && to == segment.dst;
        if fits {
            return Ok(());
        }
        let ends = |flow: Flow| format!("{} > {}", flow.local, flow.remote);
        Err(mismatch("ends", ends(wanted), ends(self.flow.written.unwrap_or(came))))
    }

    /// Cuts the longer of both to the shorter if a segment may come in pieces.
    fn align(&self, body: &TcpPacket, segment: &Segment) -> (Fit, TcpPacket, Segment) {
        let (wanted, came) = (body.len, segment.len());
        let whole = || (Fit::Whole, body.clone(), segment.clone());
        let indivisible = wanted == came || wanted == 0 || came == 0 || segment.flags.is_syn();
        if indivisible || self.setup.segments == Segments::Strict {
            return whole();
        }
        if came > wanted {
            let (first, rest) = segment.clone().split(wanted);
            return (Fit::More(rest), body.clone(), first);
        }
        let Some(seq) = ahead(body.seq, came) else { return whole() };
        let rest = TcpPacket {
            seq,
            len: wanted - came,
            flags: body.flags.without(TcpFlags::CWR),
            ..body.clone()
        };
        let first =
            TcpPacket { len: came, flags: body.flags.without(TcpFlags::FIN), ..body.clone() };
        (Fit::Part(rest), first, segment.clone())
    }

    fn flags(&self, written: &TcpPacket, came: &Segment, fit: &Fit) -> Field {
        if written.flags == came.flags {
            return Ok(None);
        }
        let alike = written.flags.without(TcpFlags::PSH) == came.flags.without(TcpFlags::PSH);
        match (alike, fit, self.mode) {
            // PSH belongs to the last piece only.
            (true, Fit::Part(_) | Fit::More(_), _) => Ok(None),
            (true, Fit::Whole, Mode::Semantic) => Ok(Some(Rule::Push)),
            _ => {
                let [wanted, came] = [written.flags, came.flags].map(notation::flags);
                Err(mismatch("flags", wanted, came))
            }
        }
    }

    fn sequence(&self, written: &TcpPacket, came: &Segment) -> Field {
        let wanted = match written.seq {
            Seq::Any => return Ok(None),
            Seq::Absolute(n) => SeqNum::new(n),
            Seq::Relative(n) if came.flags.is_syn() && self.flow.may_learn => {
                // The number is the script's choice, and must stay the same.
                let is_known = n == 0 || self.isns.contains(&n);
                return if is_known { Ok(None) } else { Err(mismatch("sequence number", n, 0)) };
            }
            Seq::Relative(n) if came.flags.is_syn() => self.flow.local_base(came.flags) + n,
            // RFC 9293 3.5.2: a reset that answers a segment without ACK has sequence number 0.
            Seq::Relative(0) if self.is_reset_from_nowhere(came) => SeqNum::new(0),
            Seq::Relative(n) => self.flow.local(n),
        };
        if wanted == came.seq {
            return Ok(None);
        }
        let [wanted, actual] = match written.seq {
            Seq::Absolute(n) => [n, came.seq.raw()],
            _ => {
                let base = self.flow.local_base(came.flags);
                [wanted, came.seq].map(|seq| seq.offset_from(base))
            }
        };
        Err(mismatch("sequence number", wanted, actual))
    }

    fn is_reset_from_nowhere(&self, came: &Segment) -> bool {
        came.flags.is_rst() && came.seq == SeqNum::new(0) && !self.flow.asked_with_ack
    }

    fn acknowledgment(&self, written: &TcpPacket, came: &Segment) -> Field {
        let bases: Vec<SeqNum> = self.flow.remote_bases(came.flags).collect();
        let relative =
            |base: Option<&SeqNum>| came.ack.offset_from(base.copied().unwrap_or_default());
        match written.ack {
            // The flags were compared already.
            None | Some(Ack::Any) => Ok(None),
            Some(Ack::Absolute(n)) if came.ack == SeqNum::new(n) => Ok(None),
            Some(Ack::Absolute(n)) => Err(mismatch("acknowledgment number", n, came.ack)),
            Some(Ack::Relative(n)) if bases.iter().any(|base| *base + n == came.ack) => Ok(None),
            Some(Ack::Relative(n)) => {
                Err(mismatch("acknowledgment number", n, relative(bases.first())))
            }
        }
    }

    fn window(&self, written: &TcpPacket, came: &Segment) -> Field {
        match (written.win, self.mode) {
            (None, _) => Ok(None),
            (Some(win), _) if win == came.win => Ok(None),
            (Some(win), Mode::Semantic) if (win == 0) == (came.win == 0) || came.flags.is_rst() => {
                Ok(Some(Rule::WindowSize))
            }
            (Some(win), _) => Err(mismatch("window", win, came.win)),
        }
    }

    /// `F.` repeats the FIN that crossed the peer's; a bare ACK takes it as sent. Hosts do either.
    fn simultaneous_close(&self, written: &TcpPacket, came: &Segment) -> Option<Rule> {
        let fin = self.flow.host_fin?;
        let Some(Ack::Relative(ack)) = written.ack else { return None };
        let Seq::Relative(seq) = written.seq else { return None };
        let closing = self.mode == Mode::Semantic
            && self.flow.fins_crossed
            && written.len == 0
            && came.is_empty()
            && self.flow.remote(ack) == came.ack;
        let repeated = TcpFlags::FIN | TcpFlags::ACK;
        let wanted = (written.flags, self.flow.local(seq));
        let actual = (came.flags, came.seq);
        let [fin_again, bare] = [(repeated, fin), (TcpFlags::ACK, fin + 1)];
        let either = [(fin_again, bare), (bare, fin_again)].contains(&(wanted, actual));
        (closing && either).then_some(Rule::SimultaneousClose)
    }

    fn options(&self, written: &TcpPacket, came: &Segment) -> Result<Rules, Mismatch> {
        let OptionList::These(list) = &written.options else { return Ok(Rules::new()) };
        let wanted = self.live(list);
        let (in_order, as_set) = (trimmed(&wanted), trimmed(&came.options));
        if self.same_list(&in_order, &as_set) {
            return Ok(Rules::new());
        }
        match self.mode {
            Mode::Strict => Err(self.options_differ(list, came)),
            Mode::Semantic if came.flags.is_rst() && stamped(&wanted) != stamped(&came.options) => {
                let rules = self.same_set(&unstamped(&wanted), &unstamped(&came.options));
                let mut rules = rules.ok_or_else(|| self.options_differ(list, came))?;
                rules.insert(Rule::ResetTimestamps);
                Ok(rules)
            }
            Mode::Semantic => {
                let rules = self.same_set(&wanted, &came.options);
                let mut rules = rules.ok_or_else(|| self.options_differ(list, came))?;
                if with_scale_of(&came.options, &wanted) != wanted {
                    rules.insert(Rule::WindowScale);
                }
                Ok(rules)
            }
        }
    }

    /// The host's options from the script, with live numbers. TSval stays unchanged.
    fn live(&self, list: &[TcpOption]) -> Vec<TcpOption> {
        let edge = |edge: &u32| self.flow.live_sack_edge(*edge).raw();
        let live = |option: &TcpOption| match option {
            TcpOption::Sack(blocks) => {
                TcpOption::Sack(blocks.iter().map(|(a, b)| (edge(a), edge(b))).collect())
            }
            other => other.clone(),
        };
        list.iter().map(live).collect()
    }

    fn same_list(&self, wanted: &[TcpOption], came: &[TcpOption]) -> bool {
        let mut pairs = wanted.iter().zip(came);
        wanted.len() == came.len() && pairs.all(|(wanted, came)| self.same(wanted, came))
    }

    fn same(&self, wanted: &TcpOption, came: &TcpOption) -> bool {
        match (wanted, came) {
            (
                TcpOption::Timestamps { val: script, ecr: wanted },
                TcpOption::Timestamps { val: live, ecr: came },
            ) => wanted == came && self.clock_fits(*script, *live),
            (
                TcpOption::SomeTimestamps { val: script, ecr: wanted },
                TcpOption::Timestamps { val: live, ecr: came },
            ) => {
                wanted.is_none_or(|wanted| wanted == *came)
                    && script.is_none_or(|script| self.clock_fits(script, *live))
            }
            _ => wanted == came,
        }
    }

    /// Compares ticks of TSval since the first one, if the script gives the length of a tick.
    fn clock_fits(&self, script: u32, live: u32) -> bool {
        let Some(tick) = self.setup.timestamp_tick_usecs else { return true };
        let (wanted, came) = self.flow.ticks(script, live);
        let off = u64::from(wanted.abs_diff(came)) * u64::from(tick);
        off <= self.setup.tolerance.as_micros() as u64 + u64::from(tick)
    }

    /// The rules under which both are equal, if they differ only in padding, order and scale.
    fn same_set(&self, wanted: &[TcpOption], came: &[TcpOption]) -> Option<Rules> {
        let mut rules = Rules::new();
        let wanted = with_scale_of(came, wanted);
        if !self.same_list(&trimmed(&wanted), &trimmed(came)) {
            rules.insert(Rule::OptionsAsSet);
        }
        let is_padding = |option: &&TcpOption| matches!(option, TcpOption::Nop | TcpOption::Eol);
        let mut left: Vec<_> = came.iter().filter(|it| !is_padding(it)).collect();
        for option in wanted.iter().filter(|it| !is_padding(it)) {
            let found = left.iter().position(|other| self.same(option, other))?;
            left.remove(found);
        }
        left.is_empty().then_some(rules)
    }

    fn options_differ(&self, wanted: &[TcpOption], came: &Segment) -> Mismatch {
        let relative = |edge: &u32| self.flow.remote_relative(SeqNum::new(*edge));
        let script = |option: &TcpOption| match option {
            TcpOption::Sack(blocks) => {
                TcpOption::Sack(blocks.iter().map(|(a, b)| (relative(a), relative(b))).collect())
            }
            other => other.clone(),
        };
        let came: Vec<_> = came.options.iter().map(script).collect();
        let list = |options: &[TcpOption]| format!("<{}>", notation::options(options));
        mismatch("options", list(wanted), list(&came))
    }

    fn text(&self, came: &Segment) -> Result<(), Mismatch> {
        let stray = came.text.iter().position(|byte| *byte != 0);
        match (self.text, stray) {
            (Text::Zeros, Some(at)) => {
                let byte = came.text.get(at).copied().unwrap_or_default();
                Err(mismatch("text", "zeros", format!("{byte:#04x} at byte {at}")))
            }
            _ => Ok(()),
        }
    }
}

fn length(written: &TcpPacket, came: &Segment) -> Field {
    if written.len == came.len() {
        return Ok(None);
    }
    let bytes = |len: u32| format!("{len} bytes");
    Err(mismatch("length", bytes(written.len), bytes(came.len())))
}

fn urgent(written: &TcpPacket, came: &Segment) -> Field {
    match written.urg {
        Some(urg) if urg != came.urg => Err(mismatch("urgent pointer", urg, came.urg)),
        _ => Ok(None),
    }
}

fn marks(written: IpMarks, came: &Segment) -> Result<(), Mismatch> {
    let class = came.traffic_class;
    if let Some(ecn) = written.ecn.filter(|ecn| !codepoints(*ecn).contains(&class.ecn())) {
        let names: Vec<_> = codepoints(ecn).iter().map(|ecn| ecn_name(*ecn)).collect();
        return Err(mismatch("ECN field", names.join(" or "), ecn_name(class.ecn())));
    }
    if let Some(tos) = written.tos.filter(|tos| *tos != class.0) {
        return Err(mismatch("traffic class", format!("{tos:#04x}"), format!("{:#04x}", class.0)));
    }
    match written.ttl {
        Some(ttl) if ttl != came.hop_limit => Err(mismatch("hop limit", ttl, came.hop_limit)),
        _ => Ok(()),
    }
}

const fn ecn_name(ecn: whimbrel_wire::Ecn) -> &'static str {
    match ecn {
        whimbrel_wire::Ecn::NotEct => "noecn",
        whimbrel_wire::Ecn::Ect0 => "ect0",
        whimbrel_wire::Ecn::Ect1 => "ect1",
        whimbrel_wire::Ecn::Ce => "ce",
    }
}

/// Without end-of-list bytes at the end, which are padding.
fn trimmed(options: &[TcpOption]) -> Vec<TcpOption> {
    let end = options.iter().rposition(|option| *option != TcpOption::Eol).map_or(0, |at| at + 1);
    options.get(..end).unwrap_or_default().to_vec()
}

fn is_stamp(option: &TcpOption) -> bool {
    matches!(option, TcpOption::Timestamps { .. } | TcpOption::SomeTimestamps { .. })
}

fn stamped(options: &[TcpOption]) -> bool {
    options.iter().any(is_stamp)
}

/// Without timestamps and their padding.
fn unstamped(options: &[TcpOption]) -> Vec<TcpOption> {
    let is_nop = |option: &TcpOption| *option == TcpOption::Nop;
    options.iter().filter(|option| !is_stamp(option) && !is_nop(option)).cloned().collect()
}

/// `options` with the window scale of `other`, if both have one.
fn with_scale_of(other: &[TcpOption], options: &[TcpOption]) -> Vec<TcpOption> {
    let is_scale = |option: &&TcpOption| matches!(option, TcpOption::WindowScale(_));
    let scale = other.iter().find(is_scale);
    let scaled = |option| scale.filter(|_| is_scale(&option)).unwrap_or(option).clone();
    options.iter().map(scaled).collect()
}

fn ahead(seq: Seq, len: u32) -> Option<Seq> {
    match seq {
        Seq::Relative(n) => Some(Seq::Relative(n.wrapping_add(len))),
        Seq::Absolute(n) => Some(Seq::Absolute(n.wrapping_add(len))),
        Seq::Any => None,
    }
}

pub(in super::super) fn mismatch(
    field: &'static str,
    expected: impl ToString,
    came: impl ToString,
) -> Mismatch {
    Mismatch { field, expected: expected.to_string(), came: came.to_string() }
}

#[cfg(test)]
mod tests;
