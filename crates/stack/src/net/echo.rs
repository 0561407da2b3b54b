//! Echo requests, where they meet addresses, routes and queues.

use alloc::vec;

use whimbrel_base::Instant;
use whimbrel_base::packet::IcmpError;
use whimbrel_tcp::Context;
use whimbrel_udp::Fragmenting;
use whimbrel_wire::{Address, IcmpMessage, Icmpv6Message};

use super::Net;
use crate::ip::{Datagram, EchoReport, FrameDrop, IcmpDatagram};
use crate::net::replies::PendingReply;
use crate::ping::{
    EchoReply, Ping, PingEnd, PingError, PingFailure, PingId, Pings, Reported, Waiting, data_of,
};
use crate::udp_error::socket_error;

impl Net {
    /// Queues an echo request.
    pub(crate) fn ping(&mut self, cx: &Context, ping: &Ping) -> Result<PingId, PingError> {
        if self.pings.len() >= Pings::MOST {
            return Err(PingError::TooMany { limit: Pings::MOST });
        }
        let local_index = self.ping_source(ping)?;
        let (len, most) = (usize::from(ping.size), self.most_echo(cx, ping));
        if len > most {
            return Err(PingError::TooLong { len, most });
        }
        let (number, waiting) = self.pings.begin(*ping, local_index, cx.now);
        let request = self.echo_request(cx, number, &waiting);
        if request.is_some_and(|request| self.replies.push(PendingReply::EchoRequest(request))) {
            return Ok(waiting.id);
        }
        self.pings.forget(number);
        Err(PingError::Full)
    }

    /// The next echo request of which is known what came of it.
    pub(crate) fn poll_ping(&mut self) -> Option<PingEnd> {
        self.pings.pop_ended()
    }

    fn ping_source(&mut self, ping: &Ping) -> Result<u16, PingError> {
        let to = ping.to;
        let is_broadcast = self.ip.routes.is_broadcast(&to);
        if to.is_unspecified() || to.is_multicast_or_broadcast() || is_broadcast {
            return Err(PingError::NotAHost(to));
        }
        let (addresses, routes) = (&self.ip.addresses, &self.ip.routes);
        let is_itself = addresses.is_local(&to);
        if !is_itself && (to.to_ip().is_loopback() || routes.find(&to).is_none()) {
            return Err(PingError::NoRoute(to));
        }
        let source = match ping.source {
            Some(own) => addresses.source_index_of(&own, &to).ok_or(PingError::NotLocal(own)),
            None => addresses.source_for(&to).ok_or(PingError::NoSource(to)),
        };
        if is_itself {
            self.enable_destination_check();
        }
        source
    }

    fn most_echo(&self, cx: &Context, ping: &Ping) -> usize {
        // The header of an echo request is as long as UDP's.
        match (ping.fragmenting, ping.to.is_v4()) {
            (Fragmenting::Refused, _) => self.ip.whole_udp(cx.now, &ping.to),
            (Fragmenting::Allowed, true) => 65_535 - 20 - 8,
            (Fragmenting::Allowed, false) => 65_535 - 8,
        }
    }

    fn echo_request(&self, cx: &Context, number: u32, waiting: &Waiting) -> Option<Datagram> {
        let local = self.ip.addresses.get(waiting.local_index)?;
        let (remote, data) = (waiting.ping.to, data_of(waiting));
        let (identifier, sequence) = ((number >> 16) as u16, number as u16);
        let mut message = vec![0; data.len() + 8];
        if remote.is_v4() {
            IcmpMessage::EchoRequest { identifier, sequence, data: &data }.emit(&mut message);
        } else {
            let echo = Icmpv6Message::EchoRequest { identifier, sequence, data: &data };
            echo.emit(v6(local), v6(&remote), &mut message);
        }
        let usual = cx.tunables.hop_limit;
        Some(Datagram::of_icmp(IcmpDatagram {
            local: *local,
            remote,
            hop_limit: waiting.ping.hop_limit.unwrap_or(usual),
            fragmenting: waiting.ping.fragmenting,
            message: message.into(),
        }))
    }

    /// Queues the answer to an echo request.
    pub(crate) fn on_echo(&mut self, echo: Datagram) {
        if self.replies.push(PendingReply::Echo(echo)) {
            self.ip.counters.in_delivers += 1;
        } else {
            self.ip.counters.drop_frame(FrameDrop::ReplyLimit);
        }
    }

    /// An echo reply arrived, perhaps to a request of ours.
    pub(crate) fn on_echo_reply(&mut self, now: Instant, reply: &EchoReply<'_>) {
        if self.pings.on_reply(reply, now) {
            self.ip.counters.in_delivers += 1;
        } else {
            self.ip.counters.drop_frame(FrameDrop::IcmpType);
        }
    }

    /// A host says that an echo request did not arrive. Returns whether one of ours is under way that can
    /// be meant.
    pub(crate) fn on_echo_report(&mut self, cx: &mut Context, report: &EchoReport) -> bool {
        let EchoReport { from, to, number, code, error } = *report;
        let failure = PingFailure::Reported { from, error: socket_error(error), code };
        let outcome = self.pings.on_report(number, &to, failure);
        if let (IcmpError::TooBig { mtu }, Reported::Again(_) | Reported::Ended) = (error, &outcome)
        {
            self.ip.datagram_mtus.note(cx.now, to, mtu);
        }
        match outcome {
            Reported::Unknown => return false,
            Reported::Ended => {}
            Reported::Again(waiting) => {
                // Without room it is lost, as on the way.
                if let Some(request) = self.echo_request(cx, number, &waiting) {
                    self.reply(cx, PendingReply::EchoRequest(request));
                }
            }
        }
        true
    }
}

fn v6(addr: &Address) -> core::net::Ipv6Addr {
    core::net::Ipv6Addr::from(*addr.as_bytes())
}
