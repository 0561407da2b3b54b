//! A server of `GET /metrics`: four requests at a time, ten seconds each, of 8 KiB.
//!
//! A client that accepts OpenMetrics gets it. Others get Prometheus' older text format, as from other exporters.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::Stop;
use crate::control::ControlHost;
use crate::poll::{Interest, PollFd, ppoll};

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
    let scrapes = Arc::<AtomicUsize>::default();
    while !stop.is_set() {
        let mut fds = [PollFd::new(listener, Interest::Read), PollFd::new(stop, Interest::Read)];
        if ppoll(&mut fds, None).is_err() {
            return;
        }
        let Ok((stream, _)) = listener.accept() else {
            // No descriptor is left, or the client has gone.
            thread::sleep(ACCEPT_PAUSE);
            continue;
        };
        let (hosts, scrapes) = (Arc::clone(hosts), Arc::clone(&scrapes));
        let number = scrapes.fetch_add(1, Ordering::Relaxed);
        let counted = Counted(scrapes);
        if number >= MOST_THREADS {
            // The stream closes without an answer.
            continue;
        }
        let serve = move || {
            let _counted = counted;
            // A scraper that has gone, or is too slow, needs no answer.
            let _ = serve(&stream, number, &hosts);
        };
        let _refused = thread::Builder::new().name("whimbrel-metric".into()).spawn(serve);
    }
}

/// A scrape that counts until it is dropped.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn serve(stream: &TcpStream, number: usize, hosts: &[ControlHost]) -> io::Result<()> {
    let until = Instant::now() + LIMIT;
    stream.set_nonblocking(false)?;
    stream.set_write_timeout(Some(LIMIT))?;
    let head = read_head(stream, until)?;
    if number >= MOST {
        return answer(stream, "503 Service Unavailable", TEXT, "four scrapes run already\n");
    }
    let mut words = head.split_whitespace();
    match (words.next(), words.next()) {
        (Some("GET"), Some("/metrics")) => match super::text(hosts) {
            Ok(text) if accepts_open_metrics(&head) => {
                answer(stream, "200 OK", OPEN_METRICS, &text)
            }
            Ok(text) => answer(stream, "200 OK", TEXT_FORMAT, &super::text_format(&text)),
            Err(error) => answer(stream, "500 Internal Server Error", TEXT, &(error + "\n")),
        },
        (Some("GET"), _) => answer(stream, "404 Not Found", TEXT, "metrics are at /metrics\n"),
        _ => answer(stream, "405 Method Not Allowed", TEXT, "use GET\n"),
    }
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
        if left.is_zero() || head.len() > MOST_HEAD {
            return Err(io::ErrorKind::TimedOut.into());
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

fn answer(mut stream: &TcpStream, status: &str, kind: &str, body: &str) -> io::Result<()> {
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())
}

/// Limit of scrapes at a time.
const MOST: usize = 4;
/// Limit of threads: the scrapes, and some that are being refused.
const MOST_THREADS: usize = 32;
const MOST_HEAD: usize = 8 << 10;
/// Time for a scrape.
const LIMIT: Duration = Duration::from_secs(10);
/// Pause after a refused accept(2).
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
const TEXT_FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";
const TEXT: &str = "text/plain; charset=utf-8";
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
