//! Echo requests, where they meet addresses, routes and queues.

use alloc::vec;

use whimbrel_base::packet::IcmpError;
use whimbrel_udp::Fragmenting;
use whimbrel_wire::{Address, IcmpMessage, Icmpv6Message};

use super::Shard;
use super::udp::socket_error;
use crate::ip::{Datagram, EchoReport, IcmpDatagram};
use crate::ping::{
    EchoReply, Ping, PingEnd, PingError, PingFailure, PingId, Pings, Reported, Waiting, data_of,
};
use crate::replies::Pending;

impl Shard {
    /// Sends an echo request. [`Shard::poll_ping`] says what came of it. With several shards it is the first
    /// that hears of replies.
    pub fn ping(&mut self, ping: &Ping) -> Result<PingId, PingError> {
        if self.net.pings.len() >= Pings::MOST {
            return Err(PingError::TooMany { limit: Pings::MOST });
        }
        let local_index = self.ping_source(ping)?;
        let (len, most) = (usize::from(ping.size), self.most_echo(ping));
        if len > most {
            return Err(PingError::TooLong { len, most });
        }
        let (number, waiting) = self.net.pings.begin(*ping, local_index, self.cx.now);
        let request = self.echo_request(number, &waiting);
        if request.is_some_and(|request| self.net.replies.push(Pending::EchoRequest(request))) {
            return Ok(waiting.id);
        }
        self.net.pings.forget(number);
        Err(PingError::Full)
    }

    /// The next echo request of which is known what came of it.
    pub fn poll_ping(&mut self) -> Option<PingEnd> {
        self.net.pings.pop_ended()
    }

    fn ping_source(&mut self, ping: &Ping) -> Result<u16, PingError> {
        let to = ping.to;
        let is_broadcast = self.net.ip.routes.is_broadcast(&to);
        if to.is_unspecified() || to.is_multicast_or_broadcast() || is_broadcast {
            return Err(PingError::NotAHost(to));
        }
        let (addresses, routes) = (&self.net.ip.addresses, &self.net.ip.routes);
        let is_itself = addresses.is_local(&to);
        if !is_itself && (to.to_ip().is_loopback() || routes.find(&to).is_none()) {
            return Err(PingError::NoRoute(to));
        }
        let source = match ping.source {
            Some(own) => addresses.source_index_of(&own, &to).ok_or(PingError::NotLocal(own)),
            None => addresses.source_for(&to).ok_or(PingError::NoSource(to)),
        };
        if is_itself {
            self.net.look_at_destinations();
        }
        source
    }

    fn most_echo(&self, ping: &Ping) -> usize {
        // The header of an echo request is as long as UDP's.
        match (ping.fragmenting, ping.to.is_v4()) {
            (Fragmenting::Refused, _) => self.udp_whole(&ping.to),
            (Fragmenting::Allowed, true) => 65_535 - 20 - 8,
            (Fragmenting::Allowed, false) => 65_535 - 8,
        }
    }

    fn echo_request(&self, number: u32, waiting: &Waiting) -> Option<Datagram> {
        let local = self.net.ip.addresses.get(waiting.local_index)?;
        let (remote, data) = (waiting.ping.to, data_of(waiting));
        let (identifier, sequence) = ((number >> 16) as u16, number as u16);
        let mut message = vec![0; data.len() + 8];
        if remote.is_v4() {
            IcmpMessage::EchoRequest { identifier, sequence, data: &data }.emit(&mut message);
        } else {
            let echo = Icmpv6Message::EchoRequest { identifier, sequence, data: &data };
            echo.emit(v6(local), v6(&remote), &mut message);
        }
        let usual = self.cx.tunables.hop_limit;
        Some(Datagram::of_icmp(IcmpDatagram {
            local: *local,
            remote,
            hop_limit: waiting.ping.hop_limit.unwrap_or(usual),
            fragmenting: waiting.ping.fragmenting,
            message: message.into(),
        }))
    }

    /// An echo reply arrived. Returns whether it is one to something that was asked.
    pub(super) fn on_echo_reply(&mut self, reply: &EchoReply<'_>) -> bool {
        self.net.pings.on_reply(reply, self.cx.now)
    }

    /// Somebody says that an echo request did not arrive. Returns whether one of ours is under way that can
    /// be meant.
    pub(super) fn on_echo_report(&mut self, report: &EchoReport) -> bool {
        let EchoReport { from, to, number, code, error } = *report;
        let failure = PingFailure::Reported { from, error: socket_error(error), code };
        let outcome = self.net.pings.on_report(number, &to, failure);
        if let (IcmpError::TooBig { mtu }, Reported::Again(_) | Reported::Ended) = (error, &outcome)
        {
            self.net.ip.datagram_mtus.note(self.cx.now, to, mtu);
        }
        match outcome {
            Reported::Unknown => return false,
            Reported::Ended => {}
            Reported::Again(waiting) => {
                // Without room it is lost, as on the way.
                if let Some(request) = self.echo_request(number, &waiting) {
                    self.reply(Pending::EchoRequest(request));
                }
            }
        }
        true
    }
}

fn v6(addr: &Address) -> core::net::Ipv6Addr {
    core::net::Ipv6Addr::from(*addr.octets())
}
