//! Ports of a client towards one server, for exhaustion: the one finding that no single flow shows.

use std::collections::BTreeMap;

use whimbrel_wire::{Address, Endpoint};

use crate::findings::Confidence;
use crate::half::{MS, SECOND};

/// Ports of all clients.
#[derive(Default, Debug)]
pub(crate) struct PortUses {
    clients: BTreeMap<(Address, Endpoint), PortUse>,
}

/// Use of ports by one client towards one server.
#[derive(Debug, Default)]
pub(crate) struct PortUse {
    /// A bit for each port.
    used: Vec<u64>,
    distinct: u32,
    least: u16,
    most: u16,
    opens: u64,
    first: u64,
    last: u64,
    /// Longest time between two openings, its end, and the ports used before it.
    gap: u64,
    gap_frame: u64,
    gap_distinct: u32,
    /// Time of all gaps of a second and more.
    gaps: u64,
    /// Pauses of ports between a close and the next SYN: number, least, and those near the least.
    pauses: u64,
    least_pause: u64,
    near_least: u64,
}

/// A client without free ports.
pub(crate) struct Exhausted {
    pub(crate) client: Address,
    pub(crate) server: Endpoint,
    pub(crate) frame: u64,
    pub(crate) flows: u64,
    pub(crate) time: u64,
    pub(crate) kind: &'static str,
    pub(crate) confidence: Confidence,
}

impl PortUses {
    /// Notes a SYN, and the end of the former connection of its ports.
    pub(crate) fn on_syn(
        &mut self,
        [client, server]: [Endpoint; 2],
        at: u64,
        frame: u64,
        closed_at: Option<u64>,
    ) {
        let key = (client.addr, server);
        if !self.clients.contains_key(&key) && self.clients.len() >= Self::MOST {
            return;
        }
        let ports = self.clients.entry(key).or_default();
        ports.on_syn(client.port, at, frame, closed_at);
    }

    /// Clients that have used all of their ports. The capture ends at `end`.
    pub(crate) fn exhausted(self, end: u64, end_frame: u64) -> impl Iterator<Item = Exhausted> {
        self.clients.into_iter().filter_map(move |((client, server), mut ports)| {
            ports.on_gap(end, end_frame);
            ports.judge(client, server)
        })
    }

    /// Most clients and servers in mind.
    const MOST: usize = 1_024;
}

impl PortUse {
    fn on_syn(&mut self, port: u16, at: u64, frame: u64, closed_at: Option<u64>) {
        if self.opens > 0 {
            self.on_gap(at, frame);
        } else {
            (self.used, self.first) = (vec![0; 1 << 10], at);
            (self.least, self.most) = (port, port);
        }
        (self.least, self.most) = (self.least.min(port), self.most.max(port));
        if let Some(word) = self.used.get_mut(usize::from(port / 64)) {
            let bit = 1 << (port % 64);
            self.distinct += u32::from(*word & bit == 0);
            *word |= bit;
        }
        self.opens += 1;
        self.last = at;
        let Some(pause) = closed_at.map(|closed| at.saturating_sub(closed)) else { return };
        if self.pauses == 0 || pause < self.least_pause {
            // Those near the former least are near this one, or no pause is the rule.
            let was_near =
                pause.saturating_add(pause / 10).saturating_add(SECOND) >= self.least_pause;
            self.near_least = if was_near { self.near_least } else { 0 };
            self.least_pause = pause;
        }
        self.pauses += 1;
        self.near_least += u64::from(pause / 11 * 10 <= self.least_pause.saturating_add(SECOND));
    }

    fn on_gap(&mut self, at: u64, frame: u64) {
        let gap = at.saturating_sub(self.last);
        if gap >= SECOND {
            self.gaps = self.gaps.saturating_add(gap);
        }
        if gap > self.gap {
            (self.gap, self.gap_frame, self.gap_distinct) = (gap, frame, self.distinct);
        }
    }

    /// Sees a range of which every port, or every second, is used, and then a stop, or ports that come back
    /// after the same pause each.
    fn judge(&self, client: Address, server: Endpoint) -> Option<Exhausted> {
        let range = u32::from(self.most - self.least) + 1;
        let is_whole =
            |used: u32| used * 20 >= range * 19 || (used * 2).abs_diff(range) * 20 <= range;
        if self.distinct < 200 || !is_whole(self.distinct) {
            return None;
        }
        let returns = self.pauses >= 50
            && self.least_pause >= 5 * SECOND
            && self.near_least * 10 >= self.pauses * 8;
        let usual =
            self.last.saturating_sub(self.first).saturating_sub(self.gap) / self.opens.max(1);
        let stops = self.gap >= SECOND.max(usual.saturating_mul(50))
            && is_whole(self.gap_distinct)
            && self.gap_distinct == self.distinct;
        let kind = match (returns, stops) {
            (true, _) => "ports come back after the same pause",
            (false, true) => "no opening once all ports are used",
            (false, false) => return None,
        };
        Some(Exhausted {
            client,
            server,
            frame: self.gap_frame,
            flows: self.opens,
            time: self.gaps.max(MS),
            kind,
            confidence: Confidence::Medium,
        })
    }
}
