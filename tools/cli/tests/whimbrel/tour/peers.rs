//! Servers that are not there, that stall, and that speak something else.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use super::case::{Case, End};

/// A faulty server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Peer {
    /// No listener.
    NoListener,
    /// It accepts and sends nothing.
    Mute,
    /// It accepts and closes.
    HangsUp,
    /// It resets when a request comes.
    Resets,
    /// It sends this to each client, and then nothing.
    Says(&'static str),
    /// It sends this and closes.
    SaysAndCloses(&'static str),
    /// It begins with the first, and repeats the second without end.
    Repeats(&'static str, &'static str),
}

/// It is there until this is dropped.
pub(super) struct PeerThere {
    at: SocketAddr,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Peer {
    /// Begins on a port of the loopback.
    pub(super) fn begin(self) -> PeerThere {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (at, over) = (listener.local_addr().unwrap(), Arc::new(AtomicBool::new(false)));
        let heard = Arc::clone(&over);
        let serve = move || {
            while let Ok((stream, _)) = listener.accept() {
                if heard.load(Ordering::Relaxed) {
                    return;
                }
                thread::spawn(move || self.meet(stream));
            }
        };
        let thread = (self != Self::NoListener).then(|| thread::spawn(serve));
        PeerThere { at, over, thread }
    }

    /// Ends when the other side has gone.
    fn meet(self, mut stream: TcpStream) {
        let mut asked = [0; 4096];
        match self {
            Self::NoListener | Self::HangsUp => return,
            Self::Mute => {}
            // A close with an unread request resets.
            Self::Resets => return drop(stream.peek(&mut asked)),
            Self::Says(text) => {
                let _ = stream.read(&mut asked).and_then(|_| stream.write_all(text.as_bytes()));
            }
            Self::SaysAndCloses(text) => {
                let _ = stream.read(&mut asked).and_then(|_| stream.write_all(text.as_bytes()));
                return;
            }
            Self::Repeats(first, text) => {
                let _ = stream.read(&mut asked).and_then(|_| stream.write_all(first.as_bytes()));
                let many = text.repeat(64);
                while stream.write_all(many.as_bytes()).is_ok() {}
            }
        }
        while stream.read(&mut asked).is_ok_and(|bytes| bytes > 0) {}
    }
}

impl PeerThere {
    /// Its address.
    pub(super) const fn at(&self) -> SocketAddr {
        self.at
    }
}

impl Drop for PeerThere {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = TcpStream::connect(self.at);
            let _ = thread.join();
        }
    }
}

const LOAD: &str = "load http://AT/ -w kernel: -c 2 -n 4 --timeout 300ms --connect-timeout 300ms";
const CRR: &str = "crr AT -w kernel: -n 2 --timeout 300ms";
const TEST: &str = "bulk send AT -w kernel: -t 200ms --timeout 300ms";
const SEND: &str = "bulk send AT --peer plain -w kernel: -t 200ms --timeout 300ms";
const RECEIVE: &str = "bulk recv AT --peer plain -w kernel: -t 200ms --timeout 300ms";
const OK: &str = "HTTP/1.1 200 OK\r\n";

const fn f(line: &'static str, peer: Peer, says: &'static [&'static str]) -> Case {
    Case::fails(line, says).with(peer)
}

pub(super) const CASES: &[Case] = &[
    f(LOAD, Peer::NoListener, &["connection refused", "is a server listening"]),
    f(CRR, Peer::NoListener, &["connection refused", "is a server listening"]),
    f(SEND, Peer::NoListener, &["connection refused", "is a server listening"]),
    f(RECEIVE, Peer::NoListener, &["connection refused", "is a server listening"]),
    f(LOAD, Peer::Mute, &["response timeout", "--timeout"]),
    f(CRR, Peer::Mute, &["response timeout", "--timeout"]),
    f(RECEIVE, Peer::Mute, &["no data received", "does the server send"]),
    f(LOAD, Peer::HangsUp, &["the peer"]),
    f(CRR, Peer::HangsUp, &["the peer"]),
    f(LOAD, Peer::Resets, &["connection reset", "its log"]),
    f(CRR, Peer::Resets, &["connection reset", "its log"]),
    f(SEND, Peer::Resets, &["the peer"]),
    f(TEST, Peer::NoListener, &["connection refused", "is a server listening"]),
    f(TEST, Peer::Mute, &["timeout: waited for an answer to the cookie", "iperf3 -s"]),
    f(TEST, Peer::HangsUp, &["the control connection ended", "--peer plain"]),
    f(TEST, Peer::Resets, &["the control connection ended", "--peer plain"]),
    f(
        TEST,
        Peer::Says("SSH-2.0-OpenSSH_9.9\r\n"),
        &["control message 83", "is the other side iperf3?"],
    ),
    f(TEST, Peer::Says("\u{9}\u{9}"), &["control message 9 has no place here"]),
    f(TEST, Peer::Says("\u{9}\u{b}"), &["was ended by its user"]),
    f(LOAD, Peer::Says("SSH-2.0-OpenSSH_9.9\r\n"), &["malformed answer", "another protocol"]),
    f(LOAD, Peer::Says("\u{15}\u{3}\u{1}\0\u{2}\u{2}P"), &["malformed answer", "TLS"]),
    f(LOAD, Peer::Says("HTTP/1.1 200 OK\r\nContent-Le"), &["response timeout"]),
    f(LOAD, Peer::Says("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"), &["response timeout"]),
    f(
        LOAD,
        Peer::SaysAndCloses("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"),
        &["closed before the answer was complete"],
    ),
    f(LOAD, Peer::Says("HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n"), &["malformed answer"]),
    f(
        LOAD,
        Peer::Says("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nnone\r\n"),
        &["malformed answer"],
    ),
    f(LOAD, Peer::Says("HTTP/1.1 99999 What\r\n\r\n"), &["malformed answer"]),
    f(
        LOAD,
        Peer::Repeats(OK, "X-Again: and again\r\n"),
        &["response head too long", "262144 bytes", "received without its end"],
    ),
    f(LOAD, Peer::Repeats("", "HTTP/1.1 100 Continue\r\n\r\n"), &["response timeout"]),
    f(LOAD, Peer::Repeats(OK, "\0\0\0\0\0\0\0\0"), &["malformed answer"]),
    Case::ends(
        "load http://AT/ -w kernel: -c 1 -n 1 --timeout 300ms --fail-if 'errors>0'",
        End::Code(3),
        &["no response", "response timeout"],
    )
    .with(Peer::Mute),
    Case::fails("load http://AT/ -w kernel: -c 1 -z 300ms", &["no response", "1 request"])
        .with(Peer::Mute),
    Case::fails("load http://AT/ -w kernel: -c 2 -n 4 -K --timeout 300ms --json", &["reset"])
        .with(Peer::Resets),
    Case::fails("load http://AT/ -w kernel: -c 2 -z 300ms --json-stream", &["refused"])
        .with(Peer::NoListener),
    Case::fails("load http://AT/ -w kernel: -c 2 -z 300ms --csv", &["refused"])
        .with(Peer::NoListener),
];
