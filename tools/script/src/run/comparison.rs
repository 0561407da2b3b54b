//! Comparison of a packet of the host with the one that is written.

use alloc::format;

use whimbrel_wire::Flow;

use super::super::ast::{Packet, TcpPacket};
use super::super::host::ScriptHost;
use super::super::packet::judge::{Judge, mismatch};
use super::super::packet::{Fit, Mismatch, Rules, Segment};
use super::Run;
use super::packets::{Emitted, PacketOut, written};

impl<H: ScriptHost> Run<'_, H> {
    /// Compares a packet with the script, apart from its time.
    pub(super) fn judge(
        &self,
        packet: &Packet,
        body: &TcpPacket,
        arrival: &PacketOut,
    ) -> Result<(usize, Fit, Rules), Mismatch> {
        let (index, segment) = match &arrival.body {
            Emitted::Segment(index, segment) => (*index, segment),
            Emitted::Broken(what) => return Err(mismatch("packet", "a correct segment", what)),
            Emitted::Other(_) => {
                return Err(mismatch("packet", written(body), arrival.text(&self.flows)));
            }
        };
        self.judge_connection(packet, index, segment)?;
        let flow = self.flows.at(index);
        let (setup, mode, text) = (&self.setup, self.settings.mode, self.text);
        let from = packet.ends.map(|ends| ends.from.port);
        let is_bound = from.is_some_and(|port| self.calls.bound.values().any(|it| *it == port));
        let judge = Judge { flow, setup, mode, text, is_bound, isns: &self.isns };
        judge.judge(packet, body, segment).map(|(fit, rules)| (index, fit, rules))
    }

    /// Without ends, a packet belongs to the connection of the packets before, or opens one.
    fn judge_connection(
        &self,
        packet: &Packet,
        index: usize,
        segment: &Segment,
    ) -> Result<(), Mismatch> {
        let opens = segment.flags.is_syn() && !segment.flags.is_ack();
        match self.flows.current() {
            Some(current) if packet.ends.is_none() && current != index && !opens => {
                let name = |index| {
                    let Flow { local, remote } = self.flows.at(index).live;
                    format!("{local} > {remote}")
                };
                Err(mismatch("connection", name(current), name(index)))
            }
            _ => Ok(()),
        }
    }
}
