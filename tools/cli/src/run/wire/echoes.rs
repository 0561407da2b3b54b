//! Echo requests by a stack on a wire: it sends its own, and the program gets a reply to the one that it
//! sent.

use std::collections::BTreeMap;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use bytes::Bytes;
use whimbrel_base::Instant;
use whimbrel_stack::Shard;
use whimbrel_stack::ip::Unreachable;
use whimbrel_stack::ping::{Ping, PingError, PingFailure, PingId};
use whimbrel_stack::udp::Fragmenting;
use whimbrel_wire::{Address, Endpoint, IcmpMessage};

use super::super::destinations::Destinations;
use super::super::far::Refusal;
use super::super::ping::{
    Echo, EchoKind, FarPings, HOP_LIMIT, MOST_WAITING, PingStatistics, pass_reply, pass_requests,
    refuse_request,
};
use super::WireNet;
use super::datagrams::{meaning, too_big};
use crate::failure::Failure;
use crate::refusals::Refusals;

/// Echo requests of the program that are under way: as many as the stack has.
pub(in crate::run) struct WirePings {
    waiting: BTreeMap<PingId, Request>,
    /// Of the last reply that was cut into fragments.
    identification: u32,
    statistics: PingStatistics,
}

/// A request of the program.
struct Request {
    from: Address,
    to: Address,
    identifier: u16,
    sequence: u16,
    data: Bytes,
}

impl Request {
    fn echo(&self, kind: EchoKind) -> Echo<'_> {
        let Self { from, to, identifier, sequence, data } = self;
        let (from, to) = match kind {
            EchoKind::Request => (*from, *to),
            EchoKind::Reply => (*to, *from),
        };
        let (identifier, sequence) = (*identifier, *sequence);
        let (dont_fragment, hop_limit) = (false, HOP_LIMIT);
        Echo { kind, from, to, identifier, sequence, data, dont_fragment, hop_limit }
    }
}

impl FarPings<WireNet> for WirePings {
    fn new(near: &mut Shard, _most: usize) -> Result<Self, Failure> {
        near.keep_unclaimed(MOST_WAITING);
        let statistics = PingStatistics::default();
        Ok(Self { waiting: BTreeMap::new(), identification: 0, statistics })
    }

    fn statistics(&self) -> PingStatistics {
        self.statistics
    }

    fn take_near(
        &mut self,
        near: &mut Shard,
        far: &mut WireNet,
        to: &Destinations,
        refused: &mut Refusals,
        _: Instant,
    ) -> bool {
        pass_requests(near, to, refused, |echo, outside| self.send_on(far, echo, outside))
    }

    fn take_far(
        &mut self,
        near: &mut Shard,
        far: &mut WireNet,
        to: &Destinations,
        refused: &mut Refusals,
    ) -> bool {
        for _ in 0..AT_ONCE {
            let Some(end) = far.pings.pop_front() else { return false };
            let Some(request) = self.waiting.remove(&end.id) else { continue };
            match end.result {
                Ok(_) => {
                    self.identification = self.identification.wrapping_add(1);
                    let reply = request.echo(EchoKind::Reply);
                    let from = to.inside(Endpoint::new(reply.from, 0)).addr;
                    match pass_reply(near, &Echo { from, ..reply }, self.identification) {
                        true => self.statistics.received += 1,
                        false => self.statistics.dropped += 1,
                    }
                }
                Err(PingFailure::Reported { from, error, .. }) => {
                    let Some((what, why)) = meaning(error) else { continue };
                    refused.count(why);
                    let router =
                        (!far.is_own(from)).then(|| to.inside(Endpoint::new(from, 0)).addr);
                    refuse_request(near, &request.echo(EchoKind::Request), what, router);
                }
                Err(_) => {}
            }
        }
        true
    }

    /// The stack ends them.
    fn expire(&mut self, _: Instant) {}

    fn next_deadline(&self) -> Option<Instant> {
        None
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

impl WirePings {
    /// Sends one request on, or returns what to tell the program, and why.
    fn send_on(
        &mut self,
        far: &mut WireNet,
        echo: &Echo<'_>,
        outside: Address,
    ) -> Result<(), Refusal> {
        let mut ping = Ping::new(outside.to_ip());
        ping.size = u16::try_from(echo.data.len()).unwrap_or(u16::MAX);
        ping.hop_limit = Some(echo.hop_limit);
        ping.timeout = PATIENCE;
        // The stack is the source of the packet, which may cut it in IPv6 (RFC 8200 4.5).
        ping.fragmenting = match outside.is_v4() && echo.dont_fragment {
            true => Fragmenting::Refused,
            false => Fragmenting::Allowed,
        };
        let sent = far.shard_mut().ping(&ping);
        let id = sent.map_err(|error| {
            let refusal = refusal_of(error, outside);
            self.statistics.dropped += u64::from(refusal.0.is_none());
            refusal
        })?;
        let Echo { from, to, identifier, sequence, data, .. } = *echo;
        let data = Bytes::copy_from_slice(data);
        self.waiting.insert(id, Request { from, to, identifier, sequence, data });
        self.statistics.sent += 1;
        Ok(())
    }
}

/// Answer to the program for a request that the stack refused.
fn refusal_of(error: PingError, to: Address) -> Refusal {
    match error {
        PingError::NoRoute(_) | PingError::NoSource(_) => {
            (Some(Unreachable::Network), "network unreachable")
        }
        PingError::NotAHost(_) => (Some(Unreachable::Prohibited), "denied"),
        PingError::TooLong { most, .. } => {
            let most = most + IcmpMessage::HEADER_LEN;
            (Some(too_big(most, to.family())), super::super::far::TOO_LONG)
        }
        _ => (None, "no room for an echo request"),
    }
}

/// Time for a reply: longer than any path takes, as 256 wait at most.
const PATIENCE: Duration = Duration::from_secs(10);
/// Replies dealt with in one turn.
const AT_ONCE: usize = 64;
