//! Packets of the host, and those that the script expects.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use whimbrel_wire::{Flow, IpHeader, Protocol};

use super::super::ast::{Direction, IcmpPacket, Packet, PacketBody, PacketEnds, Seq, TcpPacket};
use super::super::host::ScriptHost;
use super::super::packet::{Fit, Flows, Rule, Segment, icmp, notation};
use super::super::report::{Fault, seconds};
use super::clock::Moment;
use super::{Played, Run, Stop};

/// A packet of the host.
#[derive(Clone, Debug)]
pub(super) struct PacketOut {
    pub(super) at: Duration,
    pub(super) body: Emitted,
}

/// A packet of the host, by its validity.
#[derive(Clone, Debug)]
pub(super) enum Emitted {
    /// A segment, and the index of its connection.
    Segment(usize, Segment),
    /// A packet of another protocol.
    Other(Vec<u8>),
    /// A packet that a peer would drop.
    Broken(&'static str),
}

impl PacketOut {
    /// In the notation of scripts.
    pub(super) fn text(&self, flows: &Flows) -> String {
        match &self.body {
            Emitted::Segment(flow, segment) => {
                notation::segment(segment, Direction::Out, flows.at(*flow))
            }
            Emitted::Other(packet) => other(packet),
            Emitted::Broken(what) => (*what).into(),
        }
    }
}

fn other(packet: &[u8]) -> String {
    match IpHeader::parse(packet) {
        Ok((ip, [icmp_type, code, ..]))
            if [Protocol::ICMP, Protocol::ICMPV6].contains(&ip.protocol) =>
        {
            format!("icmp type {icmp_type} code {code}")
        }
        Ok((ip, _)) => format!("packet of protocol {}", ip.protocol.0),
        Err(_) => "packet that cannot be read".into(),
    }
}

impl<H: ScriptHost> Run<'_, H> {
    /// Waits for a written packet; returns the time it came.
    pub(super) fn expect(
        &mut self,
        line: u32,
        packet: &Packet,
        moment: Moment,
    ) -> Result<Duration, Stop> {
        match &packet.body {
            PacketBody::Icmp(body) => self.expect_icmp(line, body, moment),
            PacketBody::Tcp(body) => {
                let wanted = Wanted { line, packet, moment };
                self.expect_segment(wanted, body.clone())
            }
        }
    }

    fn expect_icmp(
        &mut self,
        line: u32,
        body: &IcmpPacket,
        moment: Moment,
    ) -> Result<Duration, Stop> {
        self.await_packet(moment)?;
        let Some(arrival) = self.queue.pop_front() else {
            return Err(self.nothing_came(line, &format!("icmp {}", body.kind), moment));
        };
        let judged = match &arrival.body {
            Emitted::Other(packet) => {
                icmp::judge(body, packet, self.flows.current().map(|index| self.flows.at(index)))
            }
            _ => Err((format!("icmp {}", body.kind), arrival.text(&self.flows))),
        };
        judged.map_err(|(expected, came)| Fault::new(line, expected, came))?;
        self.check_time(line, &arrival, moment, Duration::ZERO)?;
        Ok(arrival.at)
    }

    fn expect_segment(
        &mut self,
        wanted: Wanted<'_>,
        mut body: TcpPacket,
    ) -> Result<Duration, Stop> {
        if let Some(at) = self.came_early(&wanted, &body) {
            return Ok(at);
        }
        loop {
            self.await_packet(wanted.moment)?;
            let Some(arrival) = self.queue.pop_front() else {
                if self.owe(&wanted, &body) {
                    return Ok(wanted.moment.from);
                }
                let text = written(&body);
                return Err(self.nothing_came(wanted.line, &text, wanted.moment));
            };
            match self.judge(wanted.packet, &body, &arrival) {
                Ok((index, fit, rules)) => {
                    self.rules.extend(rules);
                    self.accept(index, &body, &arrival, &wanted)?;
                    match fit {
                        Fit::Whole => return Ok(arrival.at),
                        Fit::Part(rest) => body = rest,
                        Fit::More(rest) => {
                            let body = Emitted::Segment(index, rest);
                            self.queue.push_front(PacketOut { at: arrival.at, body });
                            return Ok(arrival.at);
                        }
                    }
                }
                Err(_) if self.is_made_needless(&body, &arrival) => {
                    self.queue.push_front(arrival);
                    self.rules.insert(Rule::LateAck);
                    return Ok(wanted.moment.from);
                }
                Err(_) if self.may_skip(&arrival) => self.skip(arrival),
                Err(_) if is_reply(&arrival) => {}
                Err(mismatch) => return Err(Fault::of(wanted.line, mismatch).into()),
            }
        }
    }

    /// Accepts a matching packet: checks its time, and updates the connection.
    fn accept(
        &mut self,
        index: usize,
        body: &TcpPacket,
        arrival: &PacketOut,
        wanted: &Wanted<'_>,
    ) -> Played {
        self.check_time(wanted.line, arrival, wanted.moment, self.slack(body))?;
        let Emitted::Segment(_, segment) = &arrival.body else { return Ok(()) };
        self.flows.go_on_with(index);
        let flow = self.flows.at_mut(index);
        if let Some(ends) = wanted.packet.ends {
            let PacketEnds { from, to } = self.setup.ends(ends, Direction::Out);
            flow.written.get_or_insert(Flow { local: from, remote: to });
        }
        flow.on_sent(body, segment);
        Ok(())
    }

    /// Lets time pass until there is a packet, or `moment` is over.
    fn await_packet(&mut self, moment: Moment) -> Played {
        let until = match moment.until {
            Some(until) => until + self.setup.tolerance_after(moment.gap),
            None => self.host.now() + PATIENCE,
        };
        // Calls that end now and packets of this moment come first.
        self.collect()?;
        if self.queue.is_empty() { self.pump(until, |run| !run.queue.is_empty()) } else { Ok(()) }
    }

    fn check_time(
        &mut self,
        line: u32,
        arrival: &PacketOut,
        moment: Moment,
        slack: Duration,
    ) -> Played {
        let Some(until) = moment.until else { return Ok(()) };
        let tolerance = self.setup.tolerance_after(moment.gap);
        let (early, late) = (arrival.at + tolerance < moment.from, arrival.at > until + tolerance);
        let within = arrival.at + tolerance + slack >= moment.from
            && arrival.at <= until + tolerance + slack;
        if !within {
            let expected = format!("time {}", interval(moment.from, until, tolerance));
            let came = format!("{} ({})", seconds(arrival.at), arrival.text(&self.flows));
            return Err(Fault::new(line, expected, came).into());
        }
        self.rules.extend(early.then_some(Rule::EarlyAck));
        self.rules.extend(late.then_some(Rule::LateAck));
        Ok(())
    }

    fn nothing_came(&self, line: u32, expected: &str, moment: Moment) -> Stop {
        let at = match moment.until {
            Some(until) => {
                let tolerance = self.setup.tolerance_after(moment.gap);
                format!(" at {}", interval(moment.from, until, tolerance))
            }
            None => String::new(),
        };
        Fault::new(line, format!("> {expected}{at}"), "nothing").into()
    }
}

/// A `>` of the script.
#[derive(Clone, Copy)]
pub(super) struct Wanted<'a> {
    pub(super) line: u32,
    pub(super) packet: &'a Packet,
    pub(super) moment: Moment,
}

/// A segment in the script's notation.
pub(super) fn written(body: &TcpPacket) -> String {
    use super::super::ast::{Ack, OptionList};
    let seq = match body.seq {
        Seq::Any => format!("...({})", body.len),
        Seq::Relative(n) => format!("{n}:{}({})", n.wrapping_add(body.len), body.len),
        Seq::Absolute(n) => format!("{n}:{}({})!", n.wrapping_add(body.len), body.len),
    };
    let mut text = format!("{} {seq}", notation::flags(body.flags));
    match body.ack {
        None => {}
        Some(Ack::Any) => text += " ack ...",
        Some(Ack::Relative(n)) => text += &format!(" ack {n}"),
        Some(Ack::Absolute(n)) => text += &format!(" ack {n}!"),
    }
    if let Some(win) = body.win {
        text += &format!(" win {win}");
    }
    match &body.options {
        OptionList::These(list) if list.is_empty() => {}
        OptionList::These(list) => text += &format!(" <{}>", notation::options(list)),
        OptionList::Any => text += " <...>",
    }
    text
}

fn interval(from: Duration, until: Duration, tolerance: Duration) -> String {
    let tolerance = seconds(tolerance);
    if from == until {
        return format!("{} (give or take {tolerance})", seconds(from));
    }
    format!("{}~{} (give or take {tolerance})", seconds(from), seconds(until))
}

/// Neighbour discovery and multicast listener reports, which hosts send on their own.
pub(super) fn is_housekeeping(packet: &[u8]) -> bool {
    match IpHeader::parse(packet) {
        Ok((ip, [icmp_type, ..])) => {
            ip.protocol == Protocol::ICMPV6 && (130..=143).contains(icmp_type)
                || ip.dst.is_multicast_or_broadcast()
        }
        _ => false,
    }
}

/// True if a packet only answers an ICMP request of the peer.
pub(super) fn is_reply(arrival: &PacketOut) -> bool {
    let Emitted::Other(packet) = &arrival.body else { return false };
    match IpHeader::parse(packet) {
        Ok((ip, [icmp_type, ..])) => {
            const ECHO_REPLY: [(Protocol, u8); 2] = [(Protocol::ICMP, 0), (Protocol::ICMPV6, 129)];
            ECHO_REPLY.contains(&(ip.protocol, *icmp_type))
        }
        _ => false,
    }
}

/// Time that `*` waits.
const PATIENCE: Duration = Duration::from_secs(120);
