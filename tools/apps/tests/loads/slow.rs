//! Clients that send a request slowly to the web server.

use std::time::Duration;

use bytes::Bytes;
use whimbrel_apps::http::{FixedBody, HttpServer, Limits};
use whimbrel_apps::{Model, Reading, Transport, TransportEvent};
use whimbrel_base::Instant;
use whimbrel_stack::{Handle, Shard};

use crate::world::{Ran, target};

const SECOND: Duration = Duration::from_secs(1);

/// Sends a request a byte at a time, and goes on until the server closes.
struct Trickle {
    request: &'static [u8],
    every: Duration,
    connection: Option<Handle>,
    sent: usize,
    next: Instant,
    heard: Vec<u8>,
    /// Time of the server's end, and time when nothing more could be sent.
    ended: Option<Instant>,
    over: Option<Instant>,
}

impl Trickle {
    fn new(request: &'static str, every: Duration) -> Self {
        let request = request.as_bytes();
        let (heard, next) = (Vec::new(), Instant::ZERO);
        Self { request, every, connection: None, sent: 0, next, heard, ended: None, over: None }
    }

    fn seconds(&self) -> [u64; 2] {
        [self.ended, self.over].map(|at| at.expect("it is over").since(Instant::ZERO).as_secs())
    }

    fn hear(&mut self, shard: &mut Shard, id: Handle, now: Instant) {
        loop {
            match Transport::recv(shard, id) {
                Reading::Data(bytes) => self.heard.extend_from_slice(&bytes),
                Reading::Pending => return,
                Reading::End => {
                    self.ended.get_or_insert(now);
                    return;
                }
                Reading::Failed(_) => {
                    self.over.get_or_insert(now);
                    return;
                }
            }
        }
    }
}

impl Model<Shard> for Trickle {
    fn poll(&mut self, shard: &mut Shard, now: Instant, _: usize) -> bool {
        let id = *self.connection.get_or_insert_with(|| shard.connect(target(), None).unwrap());
        while let Some(event) = Transport::poll_event(shard) {
            if let TransportEvent::Closed(..) = event {
                self.over.get_or_insert(now);
            }
        }
        self.hear(shard, id, now);
        if now >= self.next && self.over.is_none() {
            // After the whole request, it repeats the last byte.
            let at = self.sent.min(self.request.len() - 1);
            let mut byte = Bytes::copy_from_slice(&self.request[at..=at]);
            self.sent += Transport::send(shard, id, &mut byte).unwrap_or(0);
            self.next = now + self.every;
        }
        false
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.over.is_none().then_some(self.next)
    }

    fn is_done(&self) -> bool {
        self.over.is_some()
    }
}

fn run(client: Trickle, limits: Limits) -> Ran<Trickle, HttpServer<FixedBody>> {
    Ran::new("delay=10ms", client, HttpServer::new(FixedBody::new(10), limits))
}

#[test]
fn slow_head_times_out_after_30s() {
    let endless =
        "GET / HTTP/1.1\r\nHost: a\r\nX: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";
    let ran = run(Trickle::new(endless, 5 * SECOND), Limits::default());
    let heard = String::from_utf8(ran.client().heard.clone()).unwrap();
    assert!(heard.starts_with("HTTP/1.1 408 Request Timeout\r\n"), "{heard}");
    assert!(heard.contains("Connection: close\r\n"), "{heard}");
    // Its further bytes do not count as activity: the connection is closed a minute later.
    let [ended, over] = ran.client().seconds();
    assert!(ended == 30 && (90..=96).contains(&over), "{ended} {over}");
    let statistics = *ran.server().statistics();
    assert_eq!((statistics.slow_heads, statistics.requests, statistics.refused), (1, 1, 1));
    assert_eq!((statistics.silent, statistics.open), (1, 0));
}

#[test]
fn head_time_restarts_for_each_request() {
    let pair = "GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\nGET";
    let ran = run(Trickle::new(pair, SECOND), Limits::default());
    let heard = String::from_utf8(ran.client().heard.clone()).unwrap();
    // 28 bytes each: two are in time. Of the third all bytes are the same, and none the last.
    assert_eq!(heard.matches("HTTP/1.1 200 OK").count(), 2, "{heard}");
    assert_eq!(heard.matches("HTTP/1.1 408 ").count(), 1, "{heard}");
    assert_eq!(ran.client().seconds()[0], 2 * 28 + 30);
    assert_eq!(ran.server().statistics().slow_heads, 1);
}

#[test]
fn silent_connection_is_closed_without_response() {
    let limits = Limits { head_time: 3 * SECOND, idle: 7 * SECOND, ..Limits::default() };
    let ran = run(Trickle::new("GET", 100 * SECOND), limits);
    // Its first byte came at once, so it is a late head.
    assert_eq!(ran.client().seconds()[0], 3);
    let statistics = *ran.server().statistics();
    assert_eq!((statistics.slow_heads, statistics.silent), (1, 1));
}
