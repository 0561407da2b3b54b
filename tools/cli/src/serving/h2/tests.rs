use whimbrel_apps::http::{FixedBody, LongAnswer, Response, SiteResponse, Status};

use super::*;

// Named by its file, as all that tests elsewhere find, too.
#[path = "tests/bounds.rs"]
mod bounds;
#[path = "tests/peer.rs"]
pub(crate) mod peer;

use peer::Peer;

/// With the frame of settings that follows.
const BEGINNING: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
const PING: &[u8] = b"\0\0\x08\x06\0\0\0\0\0pingpong";
/// GET / of http://a on stream 1: four fields of the static table, the last with a new value.
const GET: &[u8] = b"\0\0\x06\x01\x05\0\0\0\x01\x82\x86\x84\x41\x01a";

/// Sends the bytes, and lets the server act on them.
fn say<S: Site>(peer: &mut Peer, server: &mut H2Server<S, Peer>, now: Instant, bytes: &[u8]) {
    peer.say(bytes);
    while server.poll(peer, now, 64) {}
}

fn heard(peer: &Peer) -> &[u8] {
    peer.heard.as_deref().unwrap()
}

fn server() -> H2Server<FixedBody, Peer> {
    H2Server::new(FixedBody::new(5), Limits::default(), Pace::default(), None)
}

fn at(seconds: u64) -> Instant {
    Instant::ZERO + std::time::Duration::from_secs(seconds)
}

/// Seconds until a peer that pings every five is disconnected.
fn borne(server: &mut H2Server<FixedBody, Peer>, peer: &mut Peer, from: u64) -> u64 {
    for second in (from..from + 600).step_by(5) {
        say(peer, server, at(second), PING);
        if peer.closed {
            return second;
        }
    }
    panic!("it is borne with for ever");
}

#[test]
fn client_that_only_pings_is_closed_after_60s() {
    let (mut server, mut peer) = (server(), Peer::default());
    say(&mut peer, &mut server, at(0), BEGINNING);
    assert_eq!(borne(&mut server, &mut peer, 5), 60);
    // It was answered, and still.
    assert_eq!(heard(&peer).windows(8).filter(|bytes| bytes == b"pingpong").count(), 12);
    assert_eq!((server.statistics().silent, server.statistics().open), (1, 0));
}

#[test]
fn request_resets_idle_timeout() {
    let (mut server, mut peer) = (server(), Peer::default());
    say(&mut peer, &mut server, at(0), BEGINNING);
    say(&mut peer, &mut server, at(40), GET);
    assert_eq!(server.statistics().requests, 1);
    assert_eq!(borne(&mut server, &mut peer, 45), 100);
}

#[test]
fn http_1_request_gets_http_1_response() {
    let (mut server, mut peer) = (server(), Peer::default());
    // The first three bytes are those of the preface.
    for piece in ["PR", "OPFIND / HTTP/1.1\r\nHost: a\r\n\r\n"] {
        say(&mut peer, &mut server, at(0), piece.as_bytes());
    }
    assert!(
        heard(&peer).starts_with(b"HTTP/1.1 501 "),
        "{:?}",
        String::from_utf8_lossy(heard(&peer))
    );
    let mut peer = Peer::default();
    let mut server = H2Server::new(FixedBody::new(5), Limits::default(), Pace::default(), None);
    say(
        &mut peer,
        &mut server,
        at(0),
        b"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
    );
    let heard = String::from_utf8_lossy(heard(&peer)).into_owned();
    assert_eq!(heard.matches("HTTP/1.1 200 OK\r\n").count(), 2, "{heard}");
    let Statistics { accepted, open, requests, .. } = server.statistics();
    assert_eq!((accepted, open, requests), (1, 1, 2));
}

#[test]
fn partial_h2_preface_times_out_after_60s() {
    let (mut server, mut peer) = (server(), Peer::default());
    for piece in [&BEGINNING[..1], &BEGINNING[1..20], &BEGINNING[20..]] {
        say(&mut peer, &mut server, at(0), piece);
    }
    say(&mut peer, &mut server, at(1), GET);
    assert_eq!((server.statistics().requests, server.statistics().accepted), (1, 1));

    let mut server = H2Server::new(FixedBody::new(5), Limits::default(), Pace::default(), None);
    let mut peer = Peer::default();
    for second in 0..20 {
        say(&mut peer, &mut server, at(second * 5), &PREFACE[second as usize..second as usize + 1]);
        if peer.closed {
            assert_eq!(second * 5, 60);
            return;
        }
    }
    panic!("it is borne with for ever");
}

/// Pages at every path but /, each of which is long work.
#[derive(Clone, Default)]
struct Pages(Arc<std::sync::atomic::AtomicUsize>);

impl Pages {
    fn made(&self) -> usize {
        self.0.load(std::sync::atomic::Ordering::Relaxed)
    }
}

impl Site for Pages {
    fn respond(&mut self, request: &whimbrel_apps::http::Request<'_>) -> SiteResponse {
        match request.path() {
            "/" => Response::text(Status::OK, "at once").into(),
            _ => SiteResponse::Long(Box::new(self.clone())),
        }
    }
}

impl LongAnswer for Pages {
    fn make(self: Box<Self>) -> Response {
        self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Response::text(Status::OK, "a page")
    }
}

/// GET /p and GET / on a stream.
fn get(stream: u8, path: &[u8]) -> Vec<u8> {
    let head = [&[0x82, 0x86, 4, path.len() as u8][..], path, &[0x41, 1, b'a']].concat();
    [&[0, 0, head.len() as u8, 1, 5, 0, 0, 0, stream][..], &head].concat()
}

#[test]
fn each_page_takes_a_separate_turn() {
    let (site, mut peer) = (Pages::default(), Peer::default());
    let mut server = H2Server::new(site.clone(), Limits::default(), Pace::default(), None);
    say(&mut peer, &mut server, at(0), BEGINNING);
    (0..50).for_each(|number| peer.say(&get(2 * number + 1, b"/p")));
    peer.say(&get(101, b"/"));
    let mut turns = 0;
    while server.poll(&mut peer, at(0), 64) {
        turns += 1;
        assert!(site.made() <= turns, "{} pages in {turns} turns", site.made());
        let answered = |text: &[u8]| heard(&peer).windows(text.len()).any(|it| it == text);
        assert!(site.made() < 2 || answered(b"at once"), "it waited for two pages");
    }
    assert_eq!((site.made(), server.statistics().requests), (50, 51));
}

#[test]
fn reset_stream_leaves_the_long_work_queue() {
    let (site, mut peer) = (Pages::default(), Peer::default());
    let mut server = H2Server::new(site.clone(), Limits::default(), Pace::default(), None);
    say(&mut peer, &mut server, at(0), BEGINNING);
    (0..9).for_each(|number| peer.say(&get(2 * number + 1, b"/p")));
    // RST_STREAM of all but the last: each has 4 bytes.
    (0..8).for_each(|number| peer.say(&[0, 0, 4, 3, 0, 0, 0, 0, 2 * number + 1, 0, 0, 0, 8]));
    while server.poll(&mut peer, at(0), 64) {}
    assert!(site.made() <= 2, "{} pages", site.made());
    assert!(server.shared.long.is_empty());
    assert_eq!(server.statistics().open, 1);
}
