use whimbrel_apps::ConnError;
use whimbrel_apps::transport::{ConnectOptions, OpenError, SenderStats, StackUsage};

use whimbrel_apps::http::FixedBody;

use super::*;

/// A transport of one connection, whose peer is the test.
#[derive(Default)]
struct Peer {
    accepted: bool,
    said: VecDeque<Bytes>,
    heard: Vec<u8>,
    closed: bool,
}

impl Peer {
    /// Says that, in the server's next turn.
    fn say(&mut self, server: &mut H2Server<FixedBody, Self>, now: Instant, octets: &[u8]) {
        self.said.push_back(Bytes::copy_from_slice(octets));
        while server.poll(self, now, 64) {}
    }
}

impl Transport for Peer {
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
        (!std::mem::replace(&mut self.accepted, true)).then_some(0)
    }

    fn send(&mut self, _: u32, data: &mut Bytes) -> Result<usize, ConnError> {
        self.heard.extend_from_slice(data);
        Ok(std::mem::take(data).len())
    }

    fn recv(&mut self, _: u32) -> Reading {
        self.said.pop_front().map_or(Reading::Pending, Reading::Data)
    }

    fn shutdown(&mut self, _: u32) {}

    fn close(&mut self, _: u32) {
        self.closed = true;
    }

    fn abort(&mut self, _: u32) {
        self.closed = true;
    }

    fn poll_event(&mut self) -> Option<TransportEvent<Self>> {
        if !self.accepted {
            return Some(TransportEvent::Accepted(()));
        }
        (!self.said.is_empty() && !self.closed).then_some(TransportEvent::Readable(0))
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

    fn remote(&self, _: u32) -> Option<Endpoint> {
        None
    }
}

/// With the frame of settings that follows.
const BEGINNING: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
const PING: &[u8] = b"\0\0\x08\x06\0\0\0\0\0pingpong";
/// GET / of http://a on stream 1: four fields of the static table, the last with a value of its own.
const GET: &[u8] = b"\0\0\x06\x01\x05\0\0\0\x01\x82\x86\x84\x41\x01a";

fn server() -> H2Server<FixedBody, Peer> {
    H2Server::new(FixedBody::new(5), Limits::default(), Pace::default(), None)
}

fn at(seconds: u64) -> Instant {
    Instant::ZERO + std::time::Duration::from_secs(seconds)
}

/// How many seconds a peer that pings every five is borne with.
fn borne(server: &mut H2Server<FixedBody, Peer>, peer: &mut Peer, from: u64) -> u64 {
    for second in (from..from + 600).step_by(5) {
        peer.say(server, at(second), PING);
        if peer.closed {
            return second;
        }
    }
    panic!("it is borne with for ever");
}

#[test]
fn whoever_only_pings_is_closed_a_minute_after_it_came() {
    let (mut server, mut peer) = (server(), Peer::default());
    peer.say(&mut server, at(0), BEGINNING);
    assert_eq!(borne(&mut server, &mut peer, 5), 60);
    // It was answered, and still.
    assert_eq!(peer.heard.windows(8).filter(|octets| octets == b"pingpong").count(), 12);
    assert_eq!((server.statistics().silent, server.statistics().open), (1, 0));
}

#[test]
fn a_request_is_a_sign_of_life() {
    let (mut server, mut peer) = (server(), Peer::default());
    peer.say(&mut server, at(0), BEGINNING);
    peer.say(&mut server, at(40), GET);
    assert_eq!(server.statistics().requests, 1);
    assert_eq!(borne(&mut server, &mut peer, 45), 100);
}

#[test]
fn whoever_begins_with_a_request_of_http_1_is_answered_in_it() {
    let (mut server, mut peer) = (server(), Peer::default());
    // The first three octets are those of the preface.
    for piece in ["PR", "OPFIND / HTTP/1.1\r\nHost: a\r\n\r\n"] {
        peer.say(&mut server, at(0), piece.as_bytes());
    }
    assert!(peer.heard.starts_with(b"HTTP/1.1 501 "), "{:?}", String::from_utf8_lossy(&peer.heard));
    peer.heard.clear();
    let mut peer = Peer::default();
    let mut server = H2Server::new(FixedBody::new(5), Limits::default(), Pace::default(), None);
    peer.say(
        &mut server,
        at(0),
        b"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
    );
    let heard = String::from_utf8_lossy(&peer.heard).into_owned();
    assert_eq!(heard.matches("HTTP/1.1 200 OK\r\n").count(), 2, "{heard}");
    let Statistics { accepted, open, requests, .. } = server.statistics();
    assert_eq!((accepted, open, requests), (1, 1, 2));
}

#[test]
fn a_preface_may_come_in_pieces_and_its_beginning_alone_is_borne_with_for_a_minute() {
    let (mut server, mut peer) = (server(), Peer::default());
    for piece in [&BEGINNING[..1], &BEGINNING[1..20], &BEGINNING[20..]] {
        peer.say(&mut server, at(0), piece);
    }
    peer.say(&mut server, at(1), GET);
    assert_eq!((server.statistics().requests, server.statistics().accepted), (1, 1));

    let mut server = H2Server::new(FixedBody::new(5), Limits::default(), Pace::default(), None);
    let mut peer = Peer::default();
    for second in 0..20 {
        peer.say(&mut server, at(second * 5), &PREFACE[second as usize..second as usize + 1]);
        if peer.closed {
            assert_eq!(second * 5, 60);
            return;
        }
    }
    panic!("it is borne with for ever");
}
