//! Progress of a run: time passes, and the host's packets and results come.

use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use super::super::ast::Direction;
use super::super::host::ScriptHost;
use super::super::packet::Segment;
use super::super::packet::segment::NotASegment;
use super::super::report::{LOGGED, LoggedPacket};
use super::packets::{Emitted, PacketOut, is_housekeeping};
use super::{Played, Run, Stop};

impl<H: ScriptHost> Run<'_, H> {
    /// Lets time pass to `until`, and collects the host's packets and results.
    pub(super) fn wait_until(&mut self, until: Duration) -> Played {
        self.pump(until, |_| false)
    }

    /// Lets time pass to `until`, or until `enough`.
    pub(super) fn pump(&mut self, until: Duration, enough: impl Fn(&Self) -> bool) -> Played {
        let mut idle = 0;
        loop {
            let goal = self.next_deadline().map_or(until, |deadline| deadline.min(until));
            let before = self.host.now();
            self.host.run_until(goal);
            let progress = self.collect()? || self.host.now() > before;
            self.check_deadlines()?;
            idle = if progress { 0 } else { idle + 1 };
            if enough(self) || self.host.now() >= until || idle > IDLE_ROUNDS {
                return Ok(());
            }
        }
    }

    /// Collects packets and results of the host. Returns true if there were any.
    pub(super) fn collect(&mut self) -> Result<bool, Stop> {
        let mut progress = false;
        while let Some((at, packet)) = self.host.poll_packet() {
            progress = true;
            self.on_packet(at, packet)?;
        }
        Ok(self.collect_calls()? || progress)
    }

    /// Handles a packet of the host.
    fn on_packet(&mut self, at: Duration, packet: Vec<u8>) -> Played {
        let body = match Segment::parse(&packet) {
            Ok(segment) => Emitted::Segment(self.flows.sending(segment.flow()), segment),
            Err(NotASegment::Protocol(_)) if is_housekeeping(&packet) => return Ok(()),
            Err(NotASegment::Protocol(_)) => Emitted::Other(packet),
            Err(NotASegment::Broken) => Emitted::Broken("a packet with a broken header"),
            Err(NotASegment::Checksum) => Emitted::Broken("a segment with a wrong checksum"),
        };
        let arrival = PacketOut { at, body };
        self.log(at, Direction::Out, arrival.text(&self.flows));
        if !self.pays_debt(&arrival) {
            self.queue.push_back(arrival);
        }
        Ok(())
    }

    /// The next time at which something is overdue.
    pub(super) fn next_deadline(&self) -> Option<Duration> {
        self.calls.deadline().into_iter().chain(self.forgiven.deadline()).min()
    }

    fn check_deadlines(&mut self) -> Played {
        let now = self.host.now();
        self.calls.check_deadlines(now)?;
        self.forgiven.check_deadlines(now)?;
        self.forget_early(now)
    }

    pub(super) fn log(&mut self, at: Duration, direction: Direction, text: String) {
        if self.log.len() == LOGGED {
            self.log.pop_front();
        }
        self.log.push_back(LoggedPacket { at, direction, text });
    }
}

/// A host that stays idle and lets no time pass this often is taken to be done.
const IDLE_ROUNDS: u32 = 10_000;
