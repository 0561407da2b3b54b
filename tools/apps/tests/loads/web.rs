//! The HTTP load against servers that deviate from the RFC: none of them closes a connection,
//! unless a case is about that.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use whimbrel_apps::load::{Ending, Load, LoadPlan, StopCondition};
use whimbrel_apps::{ConnError, Destination, Model, Reading, Transport, TransportEvent};
use whimbrel_base::Instant;
use whimbrel_sim::pair::server_at;
use whimbrel_stack::{Handle, Shard};
use whimbrel_wire::{Address, Endpoint, Family};

use crate::http::plan;
use crate::world::{NoServer, Ran, target};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// The server's reaction to a request, or to a number of its bytes.
#[derive(Clone)]
enum Deed {
    Say(Bytes),
    /// Sends a response after this many bytes of the request.
    SayAfter(usize, Bytes),
    /// Sends it, and the rest a moment later.
    SayTwice(Bytes, Bytes),
    /// Closes the connection after the response.
    SayAndEnd(Bytes),
    End,
}

fn say(text: &str) -> Deed {
    Deed::Say(Bytes::copy_from_slice(text.as_bytes()))
}

/// Performs the deeds of its list on each connection, one for each request, and the last again and
/// again.
struct Odd {
    deeds: Vec<Deed>,
    accepted: usize,
    open: Vec<(Handle, usize, Vec<u8>)>,
    later: VecDeque<(Instant, Handle, Bytes)>,
    /// Most connections open at a time.
    most: usize,
    requests: usize,
}

impl Odd {
    fn new(deeds: &[Deed]) -> Self {
        let (deeds, open, later) = (deeds.to_vec(), Vec::new(), VecDeque::new());
        Self { deeds, accepted: 0, open, later, most: 0, requests: 0 }
    }

    fn serve(&mut self, shard: &mut Shard, place: usize, now: Instant) -> bool {
        let Some((id, done, heard)) = self.open.get_mut(place) else { return true };
        let id = *id;
        loop {
            match Transport::recv(shard, id) {
                Reading::Data(bytes) => heard.extend_from_slice(&bytes),
                Reading::Pending => break,
                Reading::End | Reading::Failed(_) => {
                    Transport::close(shard, id);
                    return false;
                }
            }
        }
        while let Some(deed) = self.deeds.get((*done).min(self.deeds.len() - 1)) {
            let end = match deed {
                Deed::SayAfter(bytes, _) => Some(*bytes).filter(|bytes| heard.len() >= *bytes),
                _ => heard.windows(4).position(|end| end == b"\r\n\r\n").map(|at| at + 4),
            };
            let Some(end) = end else { return true };
            heard.drain(..end);
            (*done, self.requests) = (*done + 1, self.requests + 1);
            match deed.clone() {
                Deed::Say(text) | Deed::SayAfter(_, text) => give(shard, id, text),
                Deed::SayTwice(text, rest) => {
                    give(shard, id, text);
                    self.later.push_back((now + Duration::from_millis(1), id, rest));
                }
                Deed::SayAndEnd(text) => {
                    give(shard, id, text);
                    Transport::close(shard, id);
                    return false;
                }
                Deed::End => {
                    Transport::close(shard, id);
                    return false;
                }
            }
        }
        true
    }
}

fn give(shard: &mut Shard, id: Handle, mut text: Bytes) {
    // The client may have closed.
    let _gone = Transport::send(shard, id, &mut text);
}

impl Model<Shard> for Odd {
    fn poll(&mut self, shard: &mut Shard, now: Instant, _: usize) -> bool {
        while let Some(event) = Transport::poll_event(shard) {
            if let TransportEvent::Accepted(listener) = event {
                while let Some(id) = Transport::accept(shard, listener) {
                    self.open.push((id, 0, Vec::new()));
                    self.accepted += 1;
                }
            }
        }
        while self.later.front().is_some_and(|(due, _, _)| *due <= now) {
            let Some((_, id, text)) = self.later.pop_front() else { break };
            give(shard, id, text);
        }
        for place in (0..self.open.len()).rev() {
            if !self.serve(shard, place, now) {
                self.open.remove(place);
            }
        }
        self.most = self.most.max(self.open.len());
        false
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.later.front().map(|(due, _, _)| *due)
    }
}

fn run(plan: LoadPlan, deeds: &[Deed]) -> Ran<Load<Shard>, Odd> {
    Ran::new("delay=10ms", Load::new(plan), Odd::new(deeds))
}

fn get(count: u64) -> LoadPlan {
    LoadPlan { connections: 2, ..plan(Ending::KeepAlive, StopCondition::Exchanges(count)) }
}

fn upload(bytes: usize) -> LoadPlan {
    let mut plan = get(8);
    let mut request =
        format!("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: {bytes}\r\n\r\n").into_bytes();
    request.resize(request.len() + bytes, b'x');
    plan.exchange.request = request.into();
    plan
}

#[test]
fn connections_of_no_further_use_are_closed_at_once() {
    let heads = [
        "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
        "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
        "HTTP/1.0 200 OK\r\nConnection: close, keep-alive\r\nContent-Length: 2\r\n\r\nok",
        "HTTP/1.0 200 OK\r\nProxy-Connection: keep-alive\r\nContent-Length: 2\r\n\r\nok",
        "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok and more",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 9\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        "HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\nok",
        "HTTP/1.1 304 Not Modified\r\nContent-Length: 2\r\n\r\nok",
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
    ];
    for head in heads {
        let ran = run(get(20), &[say(head)]);
        let (record, server) = (ran.client().record(), ran.server());
        assert_eq!((record.succeeded(), record.failed(), record.unclosed), (20, 0, 0), "{head}");
        assert_eq!((record.opened, server.accepted), (20, 20), "{head}");
        // Round trips of 20 ms, two for each of ten requests in sequence.
        assert_eq!(record.elapsed(), Duration::from_millis(400), "{head}");
        // The next one opens while the end of the last is under way.
        assert!(server.most <= 4, "{} at a time: {head}", server.most);
        ran.assert_nothing_leaked();
    }
}

#[test]
fn reusable_connections_are_reused() {
    let heads = [
        "HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 2, 02\r\n\r\nok",
        "HTTP/1.1 204 No Content\r\n\r\n",
        "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n2;a=b\r\nok\r\n0\r\nT: x\r\n\r\n",
        "HTTP/1.1 200 OK\nContent-Length: 2\n\nok",
        "HTTP/1.1 200 OK\r\nContent-Length : 2\r\nX: a\r\n folded\r\n\r\nok",
    ];
    for head in heads {
        let ran = run(get(20), &[say(head)]);
        let record = ran.client().record();
        assert_eq!((record.succeeded(), record.failed(), record.opened), (20, 0, 2), "{head}");
        assert_eq!(record.repeated, 0, "{head}");
        ran.assert_nothing_leaked();
    }
}

#[test]
fn empty_lines_between_responses_leave_connection_in_use() {
    let deed = Deed::SayTwice(Bytes::from_static(OK.as_bytes()), Bytes::from_static(b"\r\n"));
    for rate in [None, Some(100.0)] {
        let ran = run(LoadPlan { rate, ..get(20) }, std::slice::from_ref(&deed));
        let record = ran.client().record();
        assert_eq!((record.succeeded(), record.failed(), record.opened), (20, 0, 2), "{rate:?}");
    }
}

#[test]
fn unrequested_bytes_end_connection() {
    let late = "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n";
    for rest in ["x", late] {
        let deed = Deed::SayTwice(OK.into(), Bytes::copy_from_slice(rest.as_bytes()));
        let ran = run(LoadPlan { rate: Some(10.0), ..get(20) }, &[deed]);
        let record = ran.client().record();
        assert_eq!((record.succeeded(), record.failed(), record.opened), (20, 0, 20), "{rest}");
        assert_eq!((record.statuses.len(), record.repeated), (1, 0), "{rest}");
    }
}

#[test]
fn stale_connection_has_idempotent_requests_begun_anew() {
    for second in [Deed::End, say("no response\r\n\r\n")] {
        let deeds = [say(OK), second];
        let ran = run(get(20), &deeds);
        let record = ran.client().record();
        assert_eq!((record.succeeded(), record.failed()), (20, 0));
        // Each connection has one response, and one request in vain except for the last.
        assert!((18..=19).contains(&record.repeated), "{}", record.repeated);
        assert_eq!(record.opened, 20);
        ran.assert_nothing_leaked();
    }
    let mut post = get(20);
    post.exchange.request = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n".into();
    let ran = run(post, &[say(OK), Deed::End]);
    let record = ran.client().record();
    assert_eq!((record.succeeded(), record.repeated), (10, 0));
    assert_eq!(record.conn_errors.iter().collect::<Vec<_>>(), [(&ConnError::EndedEarly, &10)]);
}

#[test]
fn new_connection_without_answer_is_failure() {
    let ran = run(get(4), &[Deed::End]);
    let record = ran.client().record();
    assert_eq!((record.answered(), record.repeated), (0, 0));
    assert_eq!(record.conn_errors.keys().collect::<Vec<_>>(), [&ConnError::EndedEarly]);
}

#[test]
fn answer_before_request_was_sent_ends_connection() {
    let early = "HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\n\r\nno";
    for ending in [Ending::KeepAlive, Ending::Server, Ending::Client] {
        let deed = Deed::SayAfter(1_000, Bytes::from_static(early.as_bytes()));
        let ran = run(LoadPlan { ending, ..upload(8 << 20) }, &[deed]);
        let record = ran.client().record();
        assert_eq!(record.statuses.iter().collect::<Vec<_>>(), [(&413, &8)], "{ending:?}");
        assert_eq!((record.failed(), record.unclosed), (0, 0), "{ending:?}");
        assert_eq!(record.opened, 8, "{ending:?}");
        assert!(record.elapsed() < Duration::from_secs(2), "{:?}", record.elapsed());
    }
}

#[test]
fn body_without_length_ends_with_its_connection() {
    for head in ["HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, x\r\n"] {
        let text = format!("{head}\r\nok");
        let ran = run(get(20), &[Deed::SayAndEnd(text.into())]);
        let record = ran.client().record();
        assert_eq!((record.succeeded(), record.failed(), record.body), (20, 0, 40), "{head}");
        assert_eq!((record.opened, record.repeated), (20, 0), "{head}");
        ran.assert_nothing_leaked();
    }
}

#[test]
fn heads_may_have_256_kib() {
    let with = |bytes: usize| {
        let (begin, end) = ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n", "\r\n\r\n");
        // As many short fields as fit, and one that fills the rest.
        let mut head = begin.to_owned() + &"a: b\r\n".repeat(20_000) + "x: ";
        head.extend(std::iter::repeat_n('y', bytes - head.len() - end.len()));
        run(get(4), &[say(&(head + end))])
    };
    let ran = with(256 << 10);
    let record = ran.client().record();
    assert_eq!((record.succeeded(), record.failed(), record.longest_head), (4, 0, 0));
    let ran = with((256 << 10) + 1);
    let record = ran.client().record();
    assert_eq!(record.conn_errors.keys().collect::<Vec<_>>(), [&ConnError::HeadTooLong]);
    assert_eq!(record.answered(), 0);
    assert!(record.longest_head >= 256 << 10, "{}", record.longest_head);
}

fn seek(destinations: &[Endpoint]) -> LoadPlan {
    let destinations: Vec<_> = destinations.iter().copied().map(Destination::from).collect();
    LoadPlan { target: destinations[0].at, destinations, ..get(20) }
}

#[test]
fn next_address_is_tried_where_one_refuses() {
    let refuses = server_at(Family::V6, 80);
    for ending in [Ending::KeepAlive, Ending::Client] {
        let ran = run(LoadPlan { ending, ..seek(&[refuses, target()]) }, &[say(OK)]);
        let record = ran.client().record();
        assert_eq!((record.succeeded(), record.failed()), (20, 0), "{ending:?}");
        assert_eq!(record.unreached, [(refuses, ConnError::Refused)]);
        assert_eq!(ran.client().plan().target, target());
        // The connection that found the server is used if connections are kept.
        let kept = ending == Ending::KeepAlive;
        assert_eq!(ran.server().accepted, if kept { 2 } else { 21 }, "{ending:?}");
        ran.assert_nothing_leaked();
    }
}

#[test]
fn next_address_does_not_wait_for_silent_one() {
    let silent = Endpoint::new(Address::from_v4_bytes([10, 0, 0, 77]), 80);
    let ran = run(seek(&[silent, target()]), &[say(OK)]);
    let (shard, _) = ran.pair.world.host(ran.pair.client);
    assert_eq!(shard.counters().active_opens, 3);
    let record = ran.client().record();
    assert_eq!((record.succeeded(), record.failed()), (20, 0));
    // The attempt without an answer is given up, and is no failure.
    assert_eq!(record.unreached, []);
    assert_eq!(record.began.since(Instant::ZERO), Duration::from_millis(250 + 20));
    ran.assert_nothing_leaked();
}

#[test]
fn name_without_server_reports_each_failed_address() {
    let silent = Endpoint::new(Address::from_v4_bytes([10, 0, 0, 77]), 80);
    let refuses = server_at(Family::V6, 80);
    let ran = Ran::new("delay=10ms", Load::new(seek(&[refuses, silent])), NoServer);
    let record = ran.client().record();
    assert_eq!((record.answered(), record.failed()), (0, 2));
    let failed = [(refuses, ConnError::Refused), (silent, ConnError::ConnectTimeout)];
    assert_eq!(record.unreached, failed);
    ran.assert_nothing_leaked();
}
