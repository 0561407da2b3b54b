//! Acts of a script: its calls, and the packets of the peer.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use whimbrel_posix::MsgFlags;
use whimbrel_wire::Flow;

use super::super::ast::{
    CallStep, Direction, Ending, IcmpPacket, IpMarks, Packet, PacketBody, PacketEnds, TcpPacket,
};
use super::super::call::{Call, Unconnected};
use super::super::host::{Progress, ScriptHost};
use super::super::lower::{LowerError, lower};
use super::super::packet::judge::Text;
use super::super::packet::{Mode, Rule, build, icmp, notation};
use super::super::report::Fault;
use super::calls::Made;
use super::clock::Moment;
use super::{Played, Run, Stop};

impl<H: ScriptHost> Run<'_, H> {
    /// Makes a call. One that is not written to block must end before the script continues.
    pub(super) fn call(&mut self, line: u32, step: &CallStep, moment: Moment) -> Played {
        let call = lower(step, &self.calls.names).map_err(|error| match error {
            LowerError::Unsupported(_) => Stop::Unsupported(format!("line {line}: {error}")),
            LowerError::Invalid(why) => Fault::new(line, "a call that can be made", why).into(),
        })?;
        self.before(&call);
        let (end, gap) = match step.ends {
            Some(Ending::Absolute(end)) => (end, end.saturating_sub(moment.base)),
            Some(Ending::Relative(gap)) => (moment.base + gap, gap),
            None => (self.host.now(), Duration::ZERO),
        };
        let tolerance = self.setup.tolerance_after(gap);
        let made = Made { line, step: step.clone(), call: call.clone(), end, tolerance };
        match self.host.call(call) {
            Progress::Done(returned) => self.after(&made, self.host.now(), &returned)?,
            Progress::Blocked(id) => {
                let deadline = made.deadline();
                self.calls.under_way.push((id, made));
                if step.ends.is_none() {
                    self.pump(deadline, |run| !run.calls.is_under_way(id))?;
                }
            }
        }
        self.collect().map(|_| ())
    }

    /// Notes the effect of a call on later packets, before the call is made.
    fn before(&mut self, call: &Call) {
        match call {
            Call::Connect { .. } => self.flows.on_connect(),
            Call::Send { with, flags, .. } => {
                let connects = with.to.is_some() && with.unconnected == Unconnected::Connects;
                if connects || flags.has(MsgFlags::MSG_FASTOPEN) {
                    self.flows.on_connect();
                }
                if with.pieces.iter().flatten().any(|byte| *byte != 0) {
                    self.text = Text::Any;
                }
            }
            _ => {}
        }
    }

    /// Sends a packet of the peer.
    pub(super) fn inject(&mut self, line: u32, packet: &Packet) -> Played {
        let unsupported = |why| Stop::Unsupported(format!("line {line}: {why}"));
        let (text, bytes) = match &packet.body {
            PacketBody::Tcp(body) => {
                let ends = packet.ends.map(|ends| self.setup.ends(ends, Direction::In));
                let index = self.flows.receiving(ends, body.flags);
                let moved = self.aim(index, body);
                let flow = self.flows.at_mut(index);
                flow.on_written_in(body);
                let segment = build::segment(body, packet.marks, flow, &self.setup, moved)
                    .map_err(unsupported)?;
                flow.on_received(&segment);
                (notation::segment(&segment, Direction::In, flow), segment.emit())
            }
            PacketBody::Icmp(body) => {
                let error = self.icmp_error(body, packet.marks).map_err(unsupported)?;
                (format!("icmp {} {}", body.kind, body.code.as_deref().unwrap_or("")), error)
            }
        };
        self.log(self.host.now(), Direction::In, text.trim_end().into());
        self.host.inject(&bytes);
        self.collect().map(|_| ())
    }

    /// Distance that a segment is moved to the end of our window; only in semantic mode.
    fn aim(&mut self, index: usize, body: &TcpPacket) -> u32 {
        if self.settings.mode == Mode::Strict {
            return 0;
        }
        let right_edge = self.host.right_edge(&self.flows.at(index).live);
        let flow = self.flows.at_mut(index);
        let Some(begin) = flow.begin(body) else { return 0 };
        let Some(by) = flow.aim(begin, body.len, right_edge) else { return 0 };
        flow.on_moved(begin, body.len, by);
        self.rules.insert(Rule::ReAimed);
        by
    }

    fn icmp_error(&self, body: &IcmpPacket, marks: IpMarks) -> Result<Vec<u8>, String> {
        let ends = body.quoted.as_deref().and_then(|quoted| quoted.ends);
        let written = |ends| {
            let PacketEnds { from, to } = self.setup.ends(ends, Direction::Out);
            Flow { local: from, remote: to }
        };
        let named = ends.map(written);
        let found = named.and_then(|flow| self.flows.written(flow));
        let index = found.or(self.flows.current());
        let flow = self.flows.at(index.ok_or("an ICMP error before anything was sent")?);
        // Ends that belong to no connection are quoted unchanged.
        let quoted = named.filter(|_| found.is_none()).unwrap_or(flow.live);
        icmp::error(body, marks, flow, quoted)
    }
}
