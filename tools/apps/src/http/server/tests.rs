use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicUsize, Ordering};

use whimbrel_wire::Endpoint;

use super::*;
use crate::effort::LOOK;
use crate::http::{Body, BodySource, LongAnswer, Request, Response, SiteResponse, SourceError};
use crate::transport::{ConnError, ConnectOptions, OpenError, SenderStats, StackUsage};

/// A transport of clients that send all requests at once, and read a given number of bytes.
#[derive(Default)]
struct Clients {
    clients: Vec<Client>,
    accepted: usize,
    events: VecDeque<u32>,
}

#[derive(Default)]
struct Client {
    asked: Option<Bytes>,
    heard: Vec<u8>,
    takes: usize,
}

impl Clients {
    /// Adds a client that sends `request` so many times, and reads `takes` bytes of the responses.
    fn ask(&mut self, request: &str, times: usize, takes: usize) -> usize {
        let text = format!("{request} HTTP/1.1\r\nHost: a\r\n\r\n").repeat(times);
        let client = Client { asked: Some(Bytes::from(text)), heard: Vec::new(), takes };
        self.clients.push(client);
        self.clients.len() - 1
    }

    fn answers(&self, client: usize) -> usize {
        let heard = String::from_utf8_lossy(&self.clients[client].heard).into_owned();
        heard.matches("HTTP/1.1 200 OK\r\n").count()
    }
}

impl Transport for Clients {
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
        (next < self.clients.len()).then(|| {
            self.accepted += 1;
            next as u32
        })
    }

    fn send(&mut self, id: u32, data: &mut Bytes) -> Result<usize, ConnError> {
        let client = &mut self.clients[id as usize];
        let taken = data.split_to(data.len().min(client.takes));
        client.takes -= taken.len();
        client.heard.extend_from_slice(&taken);
        Ok(taken.len())
    }

    fn room(&self, id: u32) -> usize {
        self.clients[id as usize].takes
    }

    fn recv(&mut self, id: u32) -> Reading {
        self.clients[id as usize].asked.take().map_or(Reading::Pending, Reading::Data)
    }

    fn shutdown(&mut self, _: u32) {}

    fn close(&mut self, _: u32) {}

    fn abort(&mut self, _: u32) {}

    fn poll_event(&mut self) -> Option<TransportEvent<Self>> {
        if self.accepted < self.clients.len() {
            return Some(TransportEvent::Accepted(()));
        }
        self.events.pop_front().map(TransportEvent::Writable)
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
fn turn(server: &mut HttpServer<Costly, Clients>, clients: &mut Clients) -> bool {
    server.poll(clients, Instant::ZERO, 256)
}

#[test]
fn cheap_request_waits_for_one_long_answer_at_most() {
    let site = Costly::default();
    let mut server = HttpServer::new(site.clone(), Limits::default());
    let mut clients = Clients::default();
    let greedy: Vec<_> = (0..100).map(|_| clients.ask("GET /page", 500, usize::MAX)).collect();
    for round in 0..50 {
        turn(&mut server, &mut clients);
        let before = site.pages.load(Ordering::Relaxed);
        let honest = clients.ask("GET /", 1, usize::MAX);
        while clients.answers(honest) == 0 {
            turn(&mut server, &mut clients);
        }
        // It came between two turns: the page is the last of its own.
        let waited = site.pages.load(Ordering::Relaxed) - before;
        assert!(waited <= 1, "in round {round} it waited for {waited} pages");
    }
    // No page and no connection is forgotten.
    while turn(&mut server, &mut clients) {}
    assert!(greedy.iter().all(|client| clients.answers(*client) == 500));
    assert_eq!(site.pages.load(Ordering::Relaxed), 50_000);
}

#[test]
fn long_answers_are_made_though_cheap_requests_never_end() {
    let site = Costly::default();
    let mut server = HttpServer::new(site.clone(), Limits::default());
    let mut clients = Clients::default();
    let patient = clients.ask("GET /page", 1, usize::MAX);
    for _ in 0..60 {
        // More than a turn has room for.
        (0..60).for_each(|_| _ = clients.ask("GET /", 1, usize::MAX));
        turn(&mut server, &mut clients);
    }
    assert_eq!(clients.answers(patient), 1);
}

#[test]
fn cost_and_bytes_end_a_turn() {
    let site = Costly::default();
    let mut server = HttpServer::new(site.clone(), Limits::default());
    let mut clients = Clients::default();
    (0..100).for_each(|_| _ = clients.ask("GET /", 100, usize::MAX));
    assert!(turn(&mut server, &mut clients));
    assert!(site.answers.load(Ordering::Relaxed) <= 43);
    let mut clients = Clients::default();
    let mut server = HttpServer::new(site.clone(), Limits::default());
    (0..100).for_each(|_| _ = clients.ask("GET /file", 100, usize::MAX));
    assert!(turn(&mut server, &mut clients));
    let made = site.bytes.load(Ordering::Relaxed);
    assert!((1..=5 << 20).contains(&made), "{made} bytes in one turn");
}

#[test]
fn client_taking_nothing_has_1_kib_made() {
    let site = Costly::default();
    let mut server = HttpServer::new(site.clone(), Limits::default());
    let mut clients = Clients::default();
    for _ in 0..100 {
        // It takes the head and 4,000 bytes of the body.
        clients.ask("GET /file", 10, 4_100);
    }
    // Another client takes all.
    let honest = clients.ask("GET /file", 1, usize::MAX);
    while turn(&mut server, &mut clients) {}
    assert!(clients.clients[honest].heard.len() > 1 << 20);
    assert!(clients.clients[..honest].iter().all(|client| client.heard.len() == 4_100));
    let made = site.bytes.load(Ordering::Relaxed) - (1 << 20);
    assert!(made <= 100 * (4_100 + 1_024), "{made} bytes were made");
    // The rest is made when it is read.
    clients.clients[7].takes = usize::MAX;
    clients.events.push_back(7);
    while turn(&mut server, &mut clients) {}
    assert_eq!(clients.answers(7), 10);
    assert!(clients.clients[7].heard.len() > 10 << 20);
}
