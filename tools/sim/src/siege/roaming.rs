//! A host that accepts any destination and reaches itself, and whose addresses and routes change.

use std::time::Duration;

use whimbrel_stack::ip::Unreachable;
use whimbrel_stack::{Answer, Event, InterfaceAddress, ListenerId, Ping, Route, SynHandle};
use whimbrel_tcp::conn::SocketOptions;
use whimbrel_wire::{Address, Endpoint, Family};

use super::Siege;
use super::calls::MOST_HELD;
use super::fault::{Fault, judge};
use super::flow::Flow;
use super::fuzzed_host::{self, PORTS};
use super::script::Script;

/// An application's view of connections to any destination.
#[derive(Default)]
pub(super) struct AnyDestinationModel {
    listener: Option<ListenerId>,
    /// Handshakes that it was asked about and has not answered.
    asked: Vec<SynHandle>,
    /// Accepted handshakes without a connection yet.
    accepted: Vec<SynHandle>,
}

/// Most handshakes that an application has not answered.
const MOST_ASKED: usize = 32;
/// Ports of other hosts behind this one.
const OTHER_PORTS: [u16; 3] = [80, 443, 7];
const ANSWERS: [Answer; 6] = [
    Answer::Accept,
    Answer::Accept,
    Answer::Accept,
    Answer::Reset,
    Answer::Ignore,
    Answer::Unreachable(Unreachable::Host),
];

impl Siege {
    /// Makes one call on any destination, or changes the host's addresses and routes.
    pub(super) fn roam(&mut self, script: &mut Script<'_>) -> Result<(), Fault> {
        match script.below(16) {
            0 => self.listen_any(script),
            1..=4 => self.dial(script)?,
            5 | 6 => self.ask(),
            7 | 8 => self.answer(script)?,
            9 => self.take_dials()?,
            10 | 11 => self.change_addresses(script)?,
            12 => self.change_routes(script),
            13 => self.check_address(script),
            14 => self.dial_itself(script),
            _ => self.ping(script),
        }
        Ok(())
    }

    fn listen_any(&mut self, script: &mut Script<'_>) {
        self.shard.take_any_address();
        match self.roaming.listener {
            Some(_) if script.rarely(2) => self.stop_roaming(),
            Some(_) => {}
            None => self.roaming.listener = self.shard.listen_any().ok(),
        }
    }

    /// Closes all listeners for any destination.
    pub(super) fn stop_roaming(&mut self) {
        let AnyDestinationModel { listener, .. } = core::mem::take(&mut self.roaming);
        listener.into_iter().for_each(|listener| self.shard.close_listener(listener));
    }

    /// Sends a peer's SYN for any destination, usually for one of few.
    fn dial(&mut self, script: &mut Script<'_>) -> Result<(), Fault> {
        let family = script.one_of(self.families);
        let to = match (script.below(4), family) {
            (0, Family::V4) => Address::from_v4_bytes([192, 0, script.u8(), script.u8()]),
            (0, Family::V6) => fuzzed_host::v6(0x2003, script.u16()),
            (1, _) => fuzzed_host::ours(family, script.u8()),
            (_, Family::V4) => Address::from_v4_bytes([192, 0, 2, script.u8() % 4]),
            (_, Family::V6) => fuzzed_host::router(family, script.u8()),
        };
        let own = fuzzed_host::peer_end(family, script.u8(), 6_000 + u16::from(script.u8()));
        let to = Endpoint::new(to, script.one_of(&OTHER_PORTS));
        let place = self.add_flow(Flow::new(own, to));
        self.open(place)
    }

    fn ask(&mut self) {
        let Some(listener) = self.roaming.listener else { return };
        while self.roaming.asked.len() < MOST_ASKED {
            let Some(asked) = self.shard.asked(listener) else { return };
            self.roaming.asked.push(asked.syn);
        }
    }

    fn answer(&mut self, script: &mut Script<'_>) -> Result<(), Fault> {
        if self.roaming.asked.is_empty() {
            return Ok(());
        }
        let place = script.below(self.roaming.asked.len());
        let syn = self.roaming.asked.swap_remove(place);
        let answer = script.one_of(&ANSWERS);
        if self.shard.answer_syn(syn, answer) && answer == Answer::Accept {
            self.roaming.accepted.push(syn);
        }
        judge(!self.shard.answer_syn(syn, Answer::Reset), || format!("{syn:?} answered twice"))
    }

    /// Takes the pending connections and judges them.
    fn take_dials(&mut self) -> Result<(), Fault> {
        while let Some(event) = self.shard.poll_event() {
            match event {
                Event::Opened(syn) => {
                    let accepted = &mut self.roaming.accepted;
                    let place = accepted.iter().position(|it| *it == syn);
                    place.map(|place| accepted.swap_remove(place));
                    // The reported connection may be over: its listener closed.
                    let Some(handle) = self.shard.opened(syn) else { continue };
                    judge(place.is_some(), || format!("{syn:?} opened, and it was not accepted"))?;
                    judge(self.shard.opened(syn).is_none(), || format!("{syn:?} taken twice"))?;
                    self.hold_at_most(handle);
                }
                Event::Withdrawn(syn, why) => {
                    let is_there = self.shard.answer_syn(syn, Answer::Ignore);
                    judge(!is_there, || format!("{syn:?} is there, and was said gone: {why:?}"))?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn hold_at_most(&mut self, handle: whimbrel_stack::Handle) {
        if self.held.len() < MOST_HELD {
            self.held.push(handle);
        } else {
            self.shard.abort(handle);
        }
    }

    fn draw_own(&self, script: &mut Script<'_>) -> InterfaceAddress {
        let family = script.one_of(self.families);
        let which = script.u8();
        let addr = if script.rarely(4) {
            fuzzed_host::peer(family, which)
        } else {
            fuzzed_host::ours(family, which)
        };
        let lens = if family == Family::V4 { [24, 8, 32, 0] } else { [64, 48, 128, 0] };
        InterfaceAddress { addr, prefix_len: script.one_of(&lens) }
    }

    fn change_addresses(&mut self, script: &mut Script<'_>) -> Result<(), Fault> {
        let address = self.draw_own(script);
        if script.rarely(2) {
            let _ = self.shard.add_address(address);
            return Ok(());
        }
        let addr = address.addr;
        if self.shard.remove_address(&addr).is_err() {
            return Ok(());
        }
        let left = self.shard.sockets().find(|it| it.local.addr == addr && it.remote.is_some());
        judge(left.is_none(), || format!("its address is gone, and {left:?} is not"))
    }

    fn change_routes(&mut self, script: &mut Script<'_>) {
        let family = script.one_of(self.families);
        let lens = if family == Family::V4 { [0, 32] } else { [0, 128] };
        let prefix_len = script.one_of(&lens);
        let to = fuzzed_host::peer(family, script.u8());
        let network = if prefix_len == 0 { fuzzed_host::unspecified(family) } else { to };
        let mut route = Route::new(network.to_ip(), prefix_len);
        route.gateway = script.rarely(2).then(|| fuzzed_host::router(family, script.u8()));
        let route = route.with_metric(u32::from(script.u8() % 4));
        let _ = if script.rarely(2) {
            self.shard.add_route(route)
        } else {
            self.shard.remove_route(&route)
        };
    }

    /// Checks if another host already has the address.
    fn check_address(&mut self, script: &mut Script<'_>) {
        let _ = self.shard.check_address(self.draw_own(script).addr);
        while self.shard.poll_checked().is_some() {}
        let _ = self.shard.take_conflict();
    }

    /// Opens a connection of the host with itself, at an address of its own or at 127.0.0.1 and
    /// ::1.
    fn dial_itself(&mut self, script: &mut Script<'_>) {
        let family = script.one_of(self.families);
        let addr = match family {
            _ if script.rarely(2) => fuzzed_host::ours(family, script.u8()),
            Family::V4 => Address::from_v4_bytes([127, 0, 0, 1]),
            Family::V6 => Address::from(std::net::Ipv6Addr::LOCALHOST),
        };
        let to = Endpoint::new(addr, script.one_of(&PORTS));
        let connected = self.shard.connect_with(to, None, &SocketOptions::default());
        connected.into_iter().for_each(|handle| self.hold_at_most(handle));
    }

    fn ping(&mut self, script: &mut Script<'_>) {
        let family = script.one_of(self.families);
        let to = if script.rarely(2) {
            fuzzed_host::ours(family, script.u8())
        } else {
            fuzzed_host::peer(family, script.u8())
        };
        let mut ping = Ping::new(to.to_ip());
        ping.size = script.one_of(&[56, 0, 8, 1_472, 8_000, 65_507, u16::MAX]);
        ping.timeout = Duration::from_millis(u64::from(script.u16()));
        let _ = self.shard.ping(&ping);
        while self.shard.poll_ping().is_some() {}
    }
}
