use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::effort::LOOK;
use crate::http::{Body, BodySource, LongAnswer, Request, Response, SiteResponse, SourceError};
use crate::test_transport::{TestConnection, TestTransport};

/// Adds a client that sends `request` so many times, and reads `room` bytes of the responses.
fn ask(net: &mut TestTransport, request: &str, times: usize, room: usize) -> usize {
    let text = format!("{request} HTTP/1.1\r\nHost: a\r\n\r\n").repeat(times);
    let input = [Reading::Data(Bytes::from(text))].into();
    net.connections.push(TestConnection { input, room, ..TestConnection::default() });
    net.connections.len() - 1
}

fn answers(net: &TestTransport, client: usize) -> usize {
    let output = String::from_utf8_lossy(&net.connections[client].output).into_owned();
    output.matches("HTTP/1.1 200 OK\r\n").count()
}

/// A site with long work at `/page` and a file of 1 MiB at `/file`; all other paths cost six looks.
#[derive(Clone, Default)]
struct Costly {
    pages: Arc<AtomicUsize>,
    bytes: Arc<AtomicUsize>,
    answers: Arc<AtomicUsize>,
}

impl Site for Costly {
    fn respond(&mut self, request: &Request<'_>) -> SiteResponse {
        self.answers.fetch_add(1, Ordering::Relaxed);
        match request.path() {
            "/page" => SiteResponse::Long(Box::new(self.clone())),
            "/file" => {
                let source = Box::new(self.clone());
                let body = Body::Source { length: 1 << 20, source };
                Response::new(Status::OK, "text/plain", body).into()
            }
            _ => Response::text(Status::OK, "text\n").into(),
        }
    }

    fn cost(&self) -> u64 {
        6 * LOOK
    }
}

impl LongAnswer for Costly {
    fn make(self: Box<Self>) -> Response {
        self.pages.fetch_add(1, Ordering::Relaxed);
        Response::text(Status::OK, "page\n")
    }
}

impl BodySource for Costly {
    fn read(&mut self, at_most: usize) -> Result<Bytes, SourceError> {
        self.bytes.fetch_add(at_most, Ordering::Relaxed);
        Ok(Bytes::from(vec![b'x'; at_most]))
    }
}

/// A turn of the server; returns true if there is more to do.
fn turn(server: &mut HttpServer<Costly, TestTransport>, net: &mut TestTransport) -> bool {
    server.poll(net, Instant::ZERO, 256)
}

#[test]
fn cheap_request_waits_for_one_long_answer_at_most() {
    let site = Costly::default();
    let mut server = HttpServer::new(site.clone(), Limits::default());
    let mut net = TestTransport::default();
    let greedy: Vec<_> = (0..100).map(|_| ask(&mut net, "GET /page", 500, usize::MAX)).collect();
    for round in 0..50 {
        turn(&mut server, &mut net);
        let before = site.pages.load(Ordering::Relaxed);
        let honest = ask(&mut net, "GET /", 1, usize::MAX);
        while answers(&net, honest) == 0 {
            turn(&mut server, &mut net);
        }
        // It came between two turns: the page is the last of its own.
        let waited = site.pages.load(Ordering::Relaxed) - before;
        assert!(waited <= 1, "in round {round} it waited for {waited} pages");
    }
    // No page and no connection is forgotten.
    while turn(&mut server, &mut net) {}
    assert!(greedy.iter().all(|client| answers(&net, *client) == 500));
    assert_eq!(site.pages.load(Ordering::Relaxed), 50_000);
}

#[test]
fn long_request_waits_for_two_pages_of_each_other_source() {
    let site = Costly::default();
    let mut server = HttpServer::new(site.clone(), Limits::default());
    let mut net = TestTransport::default();
    // Two sources with a hundred connections each.
    for number in 0..200 {
        let greedy = ask(&mut net, "GET /page", 50, usize::MAX);
        net.connections[greedy].host = 1 + number % 2;
    }
    for round in 0..20 {
        (0..5).for_each(|_| _ = turn(&mut server, &mut net));
        let before = site.pages.load(Ordering::Relaxed);
        let honest = ask(&mut net, "GET /page", 1, usize::MAX);
        net.connections[honest].host = 9;
        while answers(&net, honest) == 0 {
            turn(&mut server, &mut net);
        }
        // Theirs, its own, and one whose turn it was as it came.
        let made = site.pages.load(Ordering::Relaxed) - before;
        assert!(made <= 6, "in round {round} {made} pages were made");
    }
    while turn(&mut server, &mut net) {}
    assert_eq!(site.pages.load(Ordering::Relaxed), 10_020);
}

#[test]
fn long_answers_are_made_though_cheap_requests_never_end() {
    let site = Costly::default();
    let mut server = HttpServer::new(site.clone(), Limits::default());
    let mut net = TestTransport::default();
    let patient = ask(&mut net, "GET /page", 1, usize::MAX);
    for _ in 0..60 {
        // More than a turn has room for.
        (0..60).for_each(|_| _ = ask(&mut net, "GET /", 1, usize::MAX));
        turn(&mut server, &mut net);
    }
    assert_eq!(answers(&net, patient), 1);
}

#[test]
fn cost_and_bytes_end_a_turn() {
    let site = Costly::default();
    let mut server = HttpServer::new(site.clone(), Limits::default());
    let mut net = TestTransport::default();
    (0..100).for_each(|_| _ = ask(&mut net, "GET /", 100, usize::MAX));
    assert!(turn(&mut server, &mut net));
    assert!(site.answers.load(Ordering::Relaxed) <= 43);
    let mut net = TestTransport::default();
    let mut server = HttpServer::new(site.clone(), Limits::default());
    (0..100).for_each(|_| _ = ask(&mut net, "GET /file", 100, usize::MAX));
    assert!(turn(&mut server, &mut net));
    let made = site.bytes.load(Ordering::Relaxed);
    assert!((1..=5 << 20).contains(&made), "{made} bytes in one turn");
}

#[test]
fn client_taking_nothing_has_1_kib_made() {
    let site = Costly::default();
    let mut server = HttpServer::new(site.clone(), Limits::default());
    let mut net = TestTransport::default();
    for _ in 0..100 {
        // It takes the head and 4,000 bytes of the body.
        ask(&mut net, "GET /file", 10, 4_100);
    }
    // Another client takes all.
    let honest = ask(&mut net, "GET /file", 1, usize::MAX);
    while turn(&mut server, &mut net) {}
    assert!(net.connections[honest].output.len() > 1 << 20);
    assert!(net.connections[..honest].iter().all(|client| client.output.len() == 4_100));
    let made = site.bytes.load(Ordering::Relaxed) - (1 << 20);
    assert!(made <= 100 * (4_100 + 1_024), "{made} bytes were made");
    // The rest is made when it is read.
    net.connections[7].room = usize::MAX;
    net.events.push_back(TransportEvent::Writable(7));
    while turn(&mut server, &mut net) {}
    assert_eq!(answers(&net, 7), 10);
    assert!(net.connections[7].output.len() > 10 << 20);
}
