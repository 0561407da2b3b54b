//! The bound of all connections of a server together, and an honest client while others fill it.

use std::collections::VecDeque;
use std::net::Ipv4Addr;

use whimbrel_apps::http::{FixedBody, Limits};
use whimbrel_apps::transport::{ConnectOptions, OpenError, SenderStats, StackUsage};
use whimbrel_apps::{ConnError, Reading, TransportEvent};

use whimbrel_wire::Address;

use super::super::*;
use super::peer::Peer;

/// As many peers as there are connections.
#[derive(Default)]
struct Peers {
    peers: Vec<Peer>,
    accepted: usize,
    events: VecDeque<u32>,
    /// Those that are deaf have an address each, and not one together.
    apart: bool,
}

impl Peers {
    /// One more, which says that.
    fn join(&mut self, mut peer: Peer, says: &[u8]) -> u32 {
        peer.say(says);
        self.peers.push(peer);
        let id = self.peers.len() as u32 - 1;
        self.events.push_back(id);
        id
    }

    fn of(&mut self, id: u32) -> &mut Peer {
        &mut self.peers[id as usize]
    }
}

impl Transport for Peers {
    type Id = u32;
    type Listener = ();

    fn place(id: u32) -> u32 {
        id
    }

    fn connect(
        &mut self,
        _: Endpoint,
        _: &ConnectOptions,
        _: &mut Bytes,
    ) -> Result<u32, OpenError> {
        Err(ConnError::Unreachable.into())
    }

    fn accept(&mut self, (): ()) -> Option<u32> {
        let next = self.accepted;
        (next < self.peers.len()).then(|| {
            self.accepted += 1;
            next as u32
        })
    }

    fn send(&mut self, id: u32, data: &mut Bytes) -> Result<usize, ConnError> {
        self.of(id).send(0, data)
    }

    fn recv(&mut self, id: u32) -> Reading {
        self.of(id).recv(0)
    }

    fn shutdown(&mut self, _: u32) {}

    fn close(&mut self, id: u32) {
        self.of(id).closed = true;
    }

    fn abort(&mut self, id: u32) {
        self.of(id).closed = true;
    }

    fn poll_event(&mut self) -> Option<TransportEvent<Self>> {
        if self.accepted < self.peers.len() {
            return Some(TransportEvent::Accepted(()));
        }
        self.events.pop_front().map(TransportEvent::Readable)
    }

    fn sender_stats(&self, _: u32) -> Option<SenderStats> {
        None
    }

    fn retransmits(&self) -> Option<u64> {
        None
    }

    fn stack_usage(&self) -> Option<StackUsage> {
        None
    }

    fn local(&self, _: u32) -> Option<Endpoint> {
        None
    }

    fn remote(&self, id: u32) -> Option<Endpoint> {
        let number = match self.peers[id as usize].heard {
            Some(_) => u32::MAX - id,
            None if self.apart => id,
            None => 0,
        };
        Some(Endpoint::new(Address::from(Ipv4Addr::from_bits(number)), 4_711))
    }
}

/// The beginning of a connection whose streams have this window, and so many requests.
fn requests(window: u32, streams: u8) -> Vec<u8> {
    let settings = [&[0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 4][..], &window.to_be_bytes()].concat();
    let get = |number: u8| {
        [&[0, 0, 6, 1, 5, 0, 0, 0, 2 * number + 1][..], &[0x82, 0x86, 0x84, 0x41, 1, b'a']].concat()
    };
    [PREFACE.to_vec(), settings, (0..streams).flat_map(get).collect()].concat()
}

/// Fifty connections a second, each with so many requests for bodies of which it takes a byte, for ten seconds,
/// where a few of them hold all there is. In each second a client takes 60,000 bytes, a piece in each tenth of it.
fn besiege(streams: u8, apart: bool) {
    const BODY: usize = 60_000;
    let limits = Limits { held: 800_000, ..Limits::default() };
    let mut server = H2Server::new(FixedBody::new(BODY as u64), limits, Pace::default(), None);
    let (mut peers, mut served, mut most) = (Peers { apart, ..Peers::default() }, 0, 0);
    let mut honest = None;
    for tick in 0..100 {
        let now = Instant::from_millis(tick * 100);
        if tick % 10 == 0 {
            let mut client = Peer::default();
            client.takes = 0;
            honest = Some(peers.join(client, &requests(65_535, 1)));
        }
        if let Some(honest) = honest {
            peers.of(honest).takes += 8_000;
            peers.events.push_back(honest);
        }
        (0..5).for_each(|_| {
            _ = peers.join(Peer::deaf(usize::MAX), &requests(1, streams));
            while server.poll(&mut peers, now, 64) {}
            most = most.max(server.shares.held());
        });
        if tick % 10 == 9 {
            let client = peers.of(honest.take().expect("it came"));
            assert!(!client.closed, "it was closed in second {}", tick / 10);
            let heard = client.heard.as_ref().map_or(0, Vec::len);
            assert!(heard > BODY, "it has {heard} bytes");
            served += 1;
        }
    }
    assert_eq!(served, 10);
    assert!(most <= 800_000, "{most} bytes were held");
    assert!(server.statistics().failed > 450, "{:?}", server.statistics());
}

#[test]
fn honest_client_is_answered_amid_connections_that_take_nothing() {
    // From many addresses much each, from one address little each.
    besiege(100, true);
    besiege(1, false);
}
