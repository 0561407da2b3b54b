use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec;
use std::sync::Mutex;

use super::*;
use crate::http::{FixedBody, KeepAlive, SourceError};

mod streams;

/// Result of a whole conversation.
#[derive(PartialEq, Eq, Debug)]
struct Outcome {
    output: Vec<u8>,
    last: Step,
    shut_down: bool,
}

impl Outcome {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.output).into_owned()
    }

    /// The status lines, one per response.
    fn statuses(&self) -> Vec<u16> {
        self.text()
            .split("HTTP/1.1 ")
            .skip(1)
            .filter_map(|response| response.get(..3).unwrap_or_default().parse().ok())
            .collect()
    }
}

/// Gives `pieces` one after the other, then the end, and collects what is sent.
fn converse(site: &mut impl Site, terms: &ServerSettings, pieces: &[&[u8]]) -> Outcome {
    let mut connection = Connection::new();
    let mut pieces = pieces.iter().filter(|piece| !piece.is_empty());
    let mut outcome = Outcome { output: Vec::new(), last: Step::NeedInput, shut_down: false };
    for _ in 0..1_000_000 {
        match connection.poll(site, terms) {
            Step::Send(bytes) => {
                assert!(!bytes.is_empty() && !outcome.shut_down);
                outcome.output.extend_from_slice(&bytes);
            }
            Step::NeedInput => match pieces.next() {
                Some(piece) => connection.on_bytes(Bytes::copy_from_slice(piece)),
                None => connection.on_end(),
            },
            Step::Shutdown => outcome.shut_down = true,
            Step::Later => panic!("it is driven without a bound"),
            last @ (Step::Close | Step::Abort) => {
                outcome.last = last;
                return outcome;
            }
        }
    }
    panic!("the conversation has no end");
}

fn fixed(length: u64, stream: &str) -> Outcome {
    converse(&mut FixedBody::new(length), &ServerSettings::default(), &[stream.as_bytes()])
}

fn with_limits(limits: Limits, stream: &str) -> Outcome {
    converse(
        &mut FixedBody::new(5),
        &ServerSettings { limits, ..ServerSettings::default() },
        &[stream.as_bytes()],
    )
}

fn refused(stream: &str) -> u16 {
    let outcome = fixed(5, stream);
    assert_eq!(outcome.statuses().len(), 1, "{}", outcome.text());
    assert!(outcome.text().contains("Connection: close\r\n"), "{}", outcome.text());
    assert_eq!(outcome.last, Step::Close);
    outcome.statuses()[0]
}

#[test]
fn get_is_answered_and_connection_stays_open() {
    let outcome = fixed(5, "GET /any HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(
        outcome.text(),
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=us-ascii\r\n\
         Content-Length: 5\r\n\r\n0000\n"
    );
    assert_eq!((outcome.last, outcome.shut_down), (Step::Close, false));
}

#[test]
fn date_is_sent_only_with_a_clock() {
    let date = Some(crate::http::HttpDate::from_unix_seconds(0));
    let terms = ServerSettings { date, ..ServerSettings::default() };
    let stream = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let outcome = converse(&mut FixedBody::new(1), &terms, &[stream]);
    assert!(outcome.text().contains("\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\n"));
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let outcome = fixed(
        3,
        "GET /1 HTTP/1.1\r\nHost: a\r\n\r\nHEAD /2 HTTP/1.1\r\nHost: a\r\n\r\n\
         DELETE /3 HTTP/1.1\r\nHost: a\r\n\r\nPOST /4 HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc\
         GET /5 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
    );
    assert_eq!(outcome.statuses(), [200, 200, 405, 200, 200]);
    assert!(outcome.text().contains("\r\nAllow: GET, HEAD, POST, PUT\r\n"));
    assert!(outcome.text().contains("3 bytes, crc32 352441c2\n"));
    assert!(outcome.text().ends_with("Connection: close\r\n\r\n00\n"));
}

#[test]
fn head_has_the_fields_of_get_and_no_body() {
    let outcome = fixed(7, "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert!(outcome.text().contains("Content-Length: 7\r\n"));
    assert!(outcome.text().ends_with("\r\n\r\n"));
}

#[test]
fn http_1_0_closes_unless_keep_alive_is_requested() {
    let plain = fixed(1, "GET / HTTP/1.0\r\n\r\n");
    assert!(plain.text().contains("Connection: close"));
    let kept = fixed(1, "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET / HTTP/1.0\r\n\r\n");
    assert_eq!(kept.statuses(), [200, 200]);
    assert!(kept.text().contains("Connection: keep-alive\r\n"));
}

#[test]
fn server_closes_first_by_default() {
    let stream = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    for (close_by, expected) in [(CloseBy::Server, Step::Close), (CloseBy::Client, Step::NeedInput)]
    {
        let terms = ServerSettings {
            limits: Limits { close_by, ..Limits::default() },
            ..ServerSettings::default()
        };
        let (mut connection, mut site) = (Connection::new(), FixedBody::new(1));
        connection.on_bytes(Bytes::copy_from_slice(stream.as_bytes()));
        assert!(matches!(connection.poll(&mut site, &terms), Step::Send(_)));
        assert_eq!(connection.poll(&mut site, &terms), expected);
        connection.on_end();
        assert_eq!(connection.poll(&mut site, &terms), Step::Close);
    }
}

#[test]
fn expectation_to_continue_is_met_before_the_body() {
    let head = b"PUT /x HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n";
    let (mut connection, mut site) = (Connection::new(), FixedBody::new(1));
    let terms = ServerSettings::default();
    connection.on_bytes(Bytes::from_static(head));
    let go_ahead = Bytes::from_static(b"HTTP/1.1 100 Continue\r\n\r\n");
    assert_eq!(connection.poll(&mut site, &terms), Step::Send(go_ahead));
    assert_eq!(connection.poll(&mut site, &terms), Step::NeedInput);
    connection.on_bytes(Bytes::from_static(b"abcd"));
    let Step::Send(response) = connection.poll(&mut site, &terms) else { panic!("no response") };
    assert!(response.starts_with(b"HTTP/1.1 200 OK\r\n"));
    assert_eq!(connection.poll(&mut site, &terms), Step::NeedInput);
    assert!(connection.is_idle());
}

#[test]
fn refused_expectation_ends_the_connection_without_a_reset() {
    let outcome = fixed(
        1,
        "DELETE / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\nabcd",
    );
    assert_eq!(outcome.statuses(), [405]);
    assert!(outcome.shut_down);
    assert_eq!(outcome.last, Step::Close);
}

#[test]
fn short_unwanted_body_is_discarded() {
    let outcome = fixed(
        1,
        "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nGET GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    );
    assert_eq!(outcome.statuses(), [200, 200]);
}

#[test]
fn chunked_upload_is_put_together() {
    let outcome = fixed(
        1,
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\
         1\r\na\r\n2;x=y\r\nbc\r\n0\r\nTrailer: x\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
    );
    assert_eq!(outcome.statuses(), [200, 200]);
    assert!(outcome.text().contains("3 bytes, crc32 352441c2\n"));
}

#[test]
fn each_fault_has_its_status() {
    let long_target = alloc::format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "x".repeat(20_000));
    let long_field =
        alloc::format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "x".repeat(20_000));
    let many_fields = alloc::format!(
        "GET / HTTP/1.1\r\nHost: a\r\n{}\r\n",
        "X: y\r\n".repeat(crate::http::limits::MAX_FIELDS)
    );
    let cases: &[(&str, u16)] = &[
        ("\u{16}\u{3}\u{1}", 400),
        ("GET / HTTP/1.1\n\n", 400),
        ("GET /\r\n\r\n", 400),
        ("\r\n\r\n", 400),
        ("GET  / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        ("GET / FTP/1.1\r\nHost: a\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost : a\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n", 400),
        ("GET x HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nContent-Le", 400),
        ("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nabc", 400),
        ("PUT / HTTP/1.1\r\nHost: a\r\n\r\n", 411),
        ("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999\r\n\r\n", 413),
        ("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n", 413),
        ("PUT / HTTP/1.1\r\nHost: a\r\nExpect: miracle\r\nContent-Length: 0\r\n\r\n", 417),
        ("BREW / HTTP/1.1\r\nHost: a\r\n\r\n", 501),
        ("GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
        (&long_target, 414),
        (&long_field, 431),
        (&many_fields, 431),
    ];
    for (stream, status) in cases {
        assert_eq!(refused(stream), *status, "{}", &stream[..stream.len().min(80)]);
    }
}

#[test]
fn request_smuggling_is_refused() {
    for fields in [
        "Content-Length: 3\r\nTransfer-Encoding: chunked",
        "Content-Length: 3\r\nContent-Length: 4",
        "Content-Length: 3, 4",
        "Content-Length: +3",
        "Content-Length: 0x3",
        "Content-Length: 3 3",
        "Content-Length:",
        "Transfer-Encoding: chunked, chunked",
        "Transfer-Encoding: chunked, identity",
        "Transfer-Encoding: xchunked",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: cow",
        "Transfer-Encoding:",
        "Transfer-Encoding : chunked",
    ] {
        let stream = alloc::format!("POST / HTTP/1.1\r\nHost: a\r\n{fields}\r\n\r\n0\r\n\r\n");
        assert_eq!(refused(&stream), 400, "{fields}");
    }
    let http_1_0 = "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
    assert_eq!(refused(http_1_0), 400);
    let coded = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n";
    assert_eq!(refused(coded), 501);
    let twice = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx";
    assert_eq!(fixed(1, twice).statuses(), [200]);
}

#[test]
fn server_without_keep_alive_sends_close_each_time() {
    let limits = Limits { keep_alive: KeepAlive::Never, ..Limits::default() };
    let terms = ServerSettings { limits, ..ServerSettings::default() };
    let stream = b"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET /next HTTP/1.1\r\nHost: a\r\n\r\n";
    let outcome = converse(&mut FixedBody::new(3), &terms, &[stream]);
    assert_eq!(outcome.statuses(), [200]);
    assert!(outcome.text().contains("Connection: close\r\n"), "{}", outcome.text());
    assert!(outcome.shut_down && outcome.last == Step::Close, "{:?}", outcome.last);
}

#[test]
fn connection_closes_after_last_permitted_request() {
    let limits = Limits { keep_alive: KeepAlive::UpTo(2), ..Limits::default() };
    let terms = ServerSettings { limits, ..ServerSettings::default() };
    let request = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let outcome = converse(&mut FixedBody::new(3), &terms, &[request.repeat(3).as_bytes()]);
    assert_eq!(outcome.statuses(), [200, 200]);
    let text = outcome.text();
    let (first, second) = text.split_at(text.rfind("HTTP/1.1").unwrap());
    assert!(!first.contains("Connection:"), "{first}");
    assert!(second.contains("Connection: close\r\n"), "{second}");
    assert!(outcome.shut_down && outcome.last == Step::Close, "{:?}", outcome.last);

    // A client may end it sooner.
    let closing = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let outcome = converse(&mut FixedBody::new(3), &terms, &[closing]);
    assert!(outcome.text().contains("Connection: close\r\n"), "{}", outcome.text());
}

#[test]
fn body_over_its_limit_is_refused_in_any_framing() {
    let limits = Limits { body: 3, ..Limits::default() };
    for body in [
        "Content-Length: 4\r\n\r\nabcd",
        "Transfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n0\r\n\r\n",
        "Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n2\r\ncd\r\n0\r\n\r\n",
        "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
    ] {
        let stream = alloc::format!("POST / HTTP/1.1\r\nHost: a\r\n{body}");
        let outcome = with_limits(limits, &stream);
        assert_eq!(outcome.statuses(), [413], "{body}");
        assert!(outcome.text().contains("its limit of 3 bytes"), "{}", outcome.text());
    }
    let fits =
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
    assert_eq!(with_limits(limits, fits).statuses(), [200]);
}

#[test]
fn target_may_be_absolute() {
    let outcome = fixed(1, "GET http://a/b HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(outcome.statuses(), [200]);
}

#[test]
fn silence_gets_408_within_a_request_only() {
    let terms = ServerSettings::default();
    let mut site = FixedBody::new(1);
    let mut between = Connection::new();
    assert_eq!(between.poll(&mut site, &terms), Step::NeedInput);
    between.on_silence(&terms);
    assert_eq!(between.poll(&mut site, &terms), Step::Close);
    let mut within = Connection::new();
    within.on_bytes(Bytes::from_static(b"GET / HT"));
    assert_eq!(within.poll(&mut site, &terms), Step::NeedInput);
    within.on_silence(&terms);
    let Step::Send(response) = within.poll(&mut site, &terms) else { panic!("no response") };
    assert!(response.starts_with(b"HTTP/1.1 408 Request Timeout\r\n"));
    assert_eq!(within.poll(&mut site, &terms), Step::Shutdown);
}

#[test]
fn slow_head_gets_408_then_close_after_linger() {
    let terms = ServerSettings::default();
    let mut site = FixedBody::new(1);
    let mut slow = Connection::new();
    slow.on_bytes(Bytes::from_static(b"GET / HT"));
    assert_eq!(slow.poll(&mut site, &terms), Step::NeedInput);
    assert!(slow.is_within_head());
    slow.on_late_head(&terms);
    let Step::Send(response) = slow.poll(&mut site, &terms) else { panic!("no response") };
    let response = String::from_utf8(response.to_vec()).unwrap();
    assert!(response.starts_with("HTTP/1.1 408 Request Timeout\r\n"), "{response}");
    assert!(response.ends_with("within 30 s, the limit: send it in one go\n"), "{response}");
    assert_eq!(slow.poll(&mut site, &terms), Step::Shutdown);
    slow.on_bytes(Bytes::from_static(b"TP"));
    assert_eq!(slow.poll(&mut site, &terms), Step::NeedInput);
    assert!(slow.is_over() && !slow.is_within_head());
    slow.on_silence(&terms);
    assert_eq!(slow.poll(&mut site, &terms), Step::Close);
    slow.on_late_bytes(Bytes::from_static(b"/1.1"), &terms);
    assert_eq!(slow.poll(&mut site, &terms), Step::Close);
}

/// A site with a configurable source, whose upload keeps its bytes.
struct Odd {
    pieces: Vec<Result<Bytes, SourceError>>,
    length: u64,
    received: Arc<Mutex<Vec<u8>>>,
}

impl BodySource for vec::IntoIter<Result<Bytes, SourceError>> {
    fn read(&mut self, _: usize) -> Result<Bytes, SourceError> {
        self.next().unwrap_or(Ok(Bytes::new()))
    }
}

struct Remember(Arc<Mutex<Vec<u8>>>);

impl Upload for Remember {
    fn write(&mut self, bytes: &[u8]) -> Result<(), Response> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        if bytes.contains(&b'!') {
            return Err(Response::text(Status::INSUFFICIENT_STORAGE, "no room\n"));
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Response {
        Response::text(Status::CREATED, "kept\n")
    }
}

impl Site for Odd {
    fn respond(&mut self, request: &Request<'_>) -> SiteResponse {
        if request.method == Method::Put {
            return SiteResponse::Upload(Box::new(Remember(Arc::clone(&self.received))));
        }
        let source = Box::new(core::mem::take(&mut self.pieces).into_iter());
        let body = Body::Source { length: self.length, source };
        Response::new(Status::OK, "text/plain", body).into()
    }
}

fn odd(length: u64, pieces: Vec<Result<Bytes, SourceError>>) -> Odd {
    Odd { pieces, length, received: Arc::default() }
}

#[test]
fn source_failure_or_wrong_length_resets_the_connection() {
    let part = || Ok(Bytes::from_static(b"abc"));
    for pieces in [vec![part(), Err(SourceError)], vec![part()], vec![part(), part()]] {
        let stream = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
        let outcome = converse(&mut odd(5, pieces), &ServerSettings::default(), &[stream]);
        assert!(outcome.text().ends_with("Content-Length: 5\r\n\r\nabc"));
        assert_eq!(outcome.last, Step::Abort);
    }
}

#[test]
fn upload_that_fails_is_answered_at_once() {
    let stream = b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabcd!";
    let outcome = converse(&mut odd(0, vec![]), &ServerSettings::default(), &[stream]);
    assert_eq!(outcome.statuses(), [507]);
    assert!(outcome.shut_down);
}

#[test]
fn response_is_sent_before_more_of_the_request_is_read() {
    let request = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let (mut connection, mut site) = (Connection::new(), FixedBody::new(1 << 20));
    let terms = ServerSettings::default();
    connection.on_bytes(Bytes::copy_from_slice(request.repeat(3).as_bytes()));
    let mut total = 0;
    loop {
        match connection.poll(&mut site, &terms) {
            Step::Send(bytes) => {
                assert!(bytes.len() <= terms.limits.piece);
                total += bytes.len();
            }
            Step::NeedInput => break,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(connection.responses(), 3);
    assert!(total > 3 << 20);
}
