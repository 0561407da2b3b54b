//! A server of `GET /metrics`: four requests at a time, ten seconds each, of 8 KiB.
//!
//! A client that accepts OpenMetrics gets it. Others get Prometheus' older text format, as from other exporters.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::Stop;
use crate::control::ControlHost;
use crate::descriptors::SpareDescriptor;
use crate::linger;
use crate::poll::{Interest, PollFd, ppoll};
use streams::{Place, Streams};

mod streams;

/// Reason why metrics are not served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MetricsError {
    /// The address cannot be listened at.
    #[error("{at}: {error}; use another port, or an address of this machine")]
    Listen {
        /// The address.
        at: SocketAddr,
        /// The system's error.
        error: io::Error,
    },
    /// The system gave no thread or descriptor.
    #[error("cannot serve metrics: {0}")]
    System(#[from] io::Error),
}

/// A running server of metrics. Dropping it ends it.
#[derive(Debug)]
pub struct MetricsServer {
    at: SocketAddr,
    stop: Stop,
    thread: Option<JoinHandle<()>>,
}

impl MetricsServer {
    /// Serves the metrics of `hosts` at an address of this machine; port 0 is a free one.
    ///
    /// # Errors
    ///
    /// [`MetricsError`]: the address is in use, or is no address of this machine.
    pub fn start(at: SocketAddr, hosts: Vec<ControlHost>) -> Result<Self, MetricsError> {
        let failed = |error| MetricsError::Listen { at, error };
        let listener = TcpListener::bind(at).map_err(failed)?;
        listener.set_nonblocking(true)?;
        super::record_latencies(&hosts);
        let (at, stop) = (listener.local_addr()?, Stop::new()?);
        let until = stop.clone();
        let accept = move || accept(&listener, &Arc::new(hosts), &until);
        let thread = thread::Builder::new().name("whimbrel-metric".into()).spawn(accept)?;
        Ok(Self { at, stop, thread: Some(thread) })
    }

    /// Returns the address with its port.
    pub const fn at(&self) -> SocketAddr {
        self.at
    }
}

impl Drop for MetricsServer {
    fn drop(&mut self) {
        self.stop.set();
        // A panic of the thread was printed.
        let _ended = self.thread.take().map(JoinHandle::join);
    }
}

/// Accepts scrapers until `stop` is set. Those that are being answered then are not waited for.
fn accept(listener: &TcpListener, hosts: &Arc<Vec<ControlHost>>, stop: &Stop) {
    let (streams, mut spare) = (Arc::<Streams>::default(), SpareDescriptor::of(listener));
    while !stop.is_set() {
        let mut fds = [PollFd::new(listener, Interest::Read), PollFd::new(stop, Interest::Read)];
        if ppoll(&mut fds, None).is_err() {
            return;
        }
        let Ok((stream, _)) = spare.accept(listener, TcpListener::accept) else {
            // No descriptor is left, or the client has gone.
            streams.end_idle();
            thread::sleep(ACCEPT_PAUSE);
            continue;
        };
        let stream = Arc::new(stream);
        let Some(place) = Streams::admit(&streams, &stream) else {
            refuse(&stream, "every thread of this server answers a scrape: try again\n");
            continue;
        };
        let (hosts, own) = (Arc::clone(hosts), Arc::clone(&stream));
        let serve = move || {
            // A scraper that has gone, or is too slow, needs no answer.
            let _ = serve(&own, &place, &hosts, Instant::now() + LIMIT);
        };
        let thread = thread::Builder::new().name("whimbrel-metric".into()).spawn(serve);
        if thread.is_err() {
            refuse(&stream, "the system gave no thread: try again\n");
        }
    }
}

/// Answers 503 without waiting for the client.
fn refuse(stream: &TcpStream, why: &str) {
    // What the client has sent is read, so that the close is no reset. It may have gone.
    let _ = stream.set_nonblocking(true).and_then(|()| {
        let _none_yet = (&mut &*stream).read(&mut [0; MOST_HEAD]);
        answer(stream, Instant::now() + LIMIT, UNAVAILABLE, TEXT, why)
    });
}

/// Reads a request and answers it, until a time.
fn serve(
    stream: &TcpStream,
    place: &Place,
    hosts: &[ControlHost],
    until: Instant,
) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    let (status, kind, body) = match read_head(stream, until) {
        Ok(head) => respond(&head, place, hosts),
        Err(error) => refusal_of(&error, place).ok_or(error)?,
    };
    // At the end of the time there is none left to say so.
    let until = until.max(Instant::now() + LINGER);
    answer(stream, until, status, kind, &body)?;
    stream.shutdown(Shutdown::Write)?;
    linger::read_to_end(stream, |left| stream.set_read_timeout(left), LINGER)
}

/// The answer to a request: status, type and body.
fn respond(
    head: &str,
    place: &Place,
    hosts: &[ControlHost],
) -> (&'static str, &'static str, String) {
    let mut words = head.split_whitespace();
    match (words.next(), words.next()) {
        (Some("GET"), Some("/metrics")) => {
            // A place is held while shards are asked, and not while a scraper reads.
            let Some(_scrape) = place.begin_scrape() else {
                return (UNAVAILABLE, TEXT, "four scrapes run already: try again\n".into());
            };
            match super::text(hosts) {
                Ok(text) if accepts_open_metrics(head) => ("200 OK", OPEN_METRICS, text),
                Ok(text) => ("200 OK", TEXT_FORMAT, super::text_format(&text)),
                Err(error) => ("500 Internal Server Error", TEXT, error + "\n"),
            }
        }
        (Some("GET"), _) => ("404 Not Found", TEXT, "metrics are at /metrics\n".into()),
        _ => ("405 Method Not Allowed", TEXT, "use GET\n".into()),
    }
}

/// The answer to a client without a whole request; `None` if it has gone.
fn refusal_of(error: &io::Error, place: &Place) -> Option<(&'static str, &'static str, String)> {
    let (status, why) = match error.kind() {
        io::ErrorKind::FileTooLarge => {
            ("431 Request Header Fields Too Large", "a request has at most 8192 bytes\n")
        }
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => {
            ("408 Request Timeout", "no whole request came within 10 s\n")
        }
        _ if place.gave_way() => {
            (UNAVAILABLE, "no whole request came while other clients waited\n")
        }
        _ => return None,
    };
    Some((status, TEXT, why.into()))
}

/// True if the client names OpenMetrics in its Accept fields.
fn accepts_open_metrics(head: &str) -> bool {
    let accepts = |line: &str| {
        let (name, value) = line.split_once(':')?;
        let is_accept = name.eq_ignore_ascii_case("accept");
        Some(is_accept && value.to_ascii_lowercase().contains("application/openmetrics-text"))
    };
    head.lines().any(|line| accepts(line) == Some(true))
}

/// Reads up to the empty line, within a time and 8 KiB.
fn read_head(mut stream: &TcpStream, until: Instant) -> io::Result<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") && !head.ends_with(b"\n\n") {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        if head.len() > MOST_HEAD {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        stream.set_read_timeout(Some(left))?;
        let mut bytes = [0; 1_024];
        let len = stream.read(&mut bytes)?;
        if len == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        head.extend(bytes.get(..len).unwrap_or_default());
    }
    String::from_utf8(head).map_err(io::Error::other)
}

/// Writes an answer, until a time.
fn answer(
    mut stream: &TcpStream,
    until: Instant,
    status: &str,
    kind: &str,
    body: &str,
) -> io::Result<()> {
    let text = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    let mut rest = text.as_bytes();
    while !rest.is_empty() {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_write_timeout(Some(left))?;
        let len = stream.write(rest)?;
        rest = rest.get(len..).unwrap_or_default();
    }
    Ok(())
}

const MOST_HEAD: usize = 8 << 10;
/// Time for a scrape.
const LIMIT: Duration = Duration::from_secs(10);
/// Pause after a refused accept(2).
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Time for a client to read its answer and leave.
const LINGER: Duration = Duration::from_millis(500);
const UNAVAILABLE: &str = "503 Service Unavailable";
const TEXT_FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";
const TEXT: &str = "text/plain; charset=utf-8";
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

#[cfg(test)]
mod tests;
