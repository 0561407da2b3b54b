//! `whimbrel serve --file-root` and clients that do not read, over a socket between two processes: a
//! server with very few descriptors, against a shard of this process.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant as WallInstant};

use bytes::Bytes;
use whimbrel_apps::{Reading, Transport, TransportEvent};
use whimbrel_base::Instant;
use whimbrel_io::{
    Activity, Clock, Device, Port, Stop, UnixWire, Waker, WireSpec, Worker, entropy,
};
use whimbrel_stack::{Handle, Shard, ShardConfig};
use whimbrel_tcp::Tunables;
use whimbrel_wire::{Address, Endpoint};

use crate::running::Running;
use crate::scratch::scratch;

/// Clients that do not read.
const READERS: usize = 100;
/// The length of a file, bytes: more than all buffers between its disk and a client that does not
/// read.
const LONG: u64 = 16 << 20;

/// A server over a socket, in a separate folder.
struct Server {
    folder: PathBuf,
    running: Running,
}

impl Server {
    /// In a shell that ran `limits` before.
    fn start(limits: &str, options: &str) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = scratch(&format!("slow-{number}"));
        let root = folder.join("root");
        fs::create_dir_all(&root).unwrap();
        for number in 0..READERS {
            File::create(root.join(number.to_string())).unwrap().set_len(LONG).unwrap();
        }
        fs::write(root.join("honest"), vec![b'a'; 200_000]).unwrap();
        let line = format!(
            "{limits}; exec {} serve -w unix:{},addr=10.9.0.2/24 --file-root {} {options}",
            env!("CARGO_BIN_EXE_whimbrel"),
            folder.join("wire").display(),
            root.display()
        );
        let mut command = Command::new("sh");
        command.args(["-c", &line]).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut running = Running::start(&mut command);
        let mut text = String::new();
        let mut output = BufReader::new(running.take_stdout());
        while !text.contains("try  ") {
            if output.read_line(&mut text).unwrap() == 0 {
                running.take_stderr().read_to_string(&mut text).unwrap();
                panic!("{text}");
            }
        }
        Self { folder, running }
    }

    /// The system's file on the process.
    fn told(&self, file: &str) -> PathBuf {
        Path::new("/proc").join(self.running.id().to_string()).join(file)
    }

    fn descriptors(&self) -> usize {
        fs::read_dir(self.told("fd")).unwrap().count()
    }

    /// The client's end of its wire.
    fn worker(&self, clients: Clients) -> Worker<UnixWire, Clients> {
        let path = self.folder.join("wire");
        let spec = format!("unix:{},addr=10.9.0.1/24", path.display()).parse().unwrap();
        let WireSpec::Unix(config) = spec else { panic!("no unix:") };
        let wire = UnixWire::open(&config).unwrap();
        let shard = Shard::new(ShardConfig {
            // Unread data must not fill this process.
            tunables: Tunables { recv_buffer: 16 << 10, ..Tunables::default() },
            secrets: entropy::secrets().unwrap(),
            capabilities: wire.capabilities(),
            addresses: config.addresses().to_vec(),
            routes: config.routes(),
        });
        let (clock, waker) = (Clock::start(), Waker::new().unwrap());
        Worker::new(wire, shard.unwrap(), clients, clock, waker)
    }

    /// Runs the clients until they are done.
    fn run(&self, clients: Clients) -> Clients {
        let stop = clients.stop.clone();
        let mut worker = self.worker(clients);
        worker.run(&stop).unwrap();
        let (_, _, clients) = worker.into_parts();
        clients
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Clients that do not read, clients whose heads do not end, and an honest one.
struct Clients {
    stop: Stop,
    /// Those that do not read.
    readers: Vec<Handle>,
    /// Those that send a head a byte at a time.
    tricklers: Vec<Handle>,
    how_many: (usize, usize),
    /// Time for the slow ones to settle before the honest one begins.
    settle: Duration,
    next_byte: Instant,
    honest: Option<Handle>,
    begun: WallInstant,
    left: usize,
    heard: Vec<u8>,
    /// Duration of each response to the honest one.
    took: Vec<Duration>,
}

impl Clients {
    fn new(readers: usize, tricklers: usize, requests: usize) -> Self {
        Self {
            stop: Stop::new().unwrap(),
            readers: Vec::new(),
            tricklers: Vec::new(),
            how_many: (readers, tricklers),
            settle: Duration::from_millis(1_500),
            next_byte: Instant::ZERO,
            honest: None,
            begun: WallInstant::now(),
            left: requests,
            heard: Vec::new(),
            took: Vec::new(),
        }
    }

    fn begin(&mut self, shard: &mut Shard) {
        let open = |shard: &mut Shard, first: &str| {
            let id = shard.connect(server(), None).unwrap();
            // It leaves with the end of the handshake.
            let mut first = Bytes::copy_from_slice(first.as_bytes());
            Transport::send(shard, id, &mut first).unwrap();
            id
        };
        let (readers, tricklers) = self.how_many;
        self.readers =
            (0..readers).map(|number| open(shard, &request(&number.to_string()))).collect();
        self.tricklers = (0..tricklers).map(|_| open(shard, "GET / HTTP/1.1\r\nX: ")).collect();
    }

    /// Sends the honest client's next request, on a new connection.
    fn ask(&mut self, shard: &mut Shard) {
        if let Some(last) = self.honest.take() {
            shard.close(last);
        }
        if self.left == 0 {
            self.stop.set();
            return;
        }
        self.left -= 1;
        self.begun = WallInstant::now();
        self.heard.clear();
        let id = shard.connect(server(), None).unwrap();
        let mut bytes = Bytes::from(request("honest"));
        Transport::send(shard, id, &mut bytes).unwrap();
        self.honest = Some(id);
    }

    fn listen(&mut self, shard: &mut Shard) {
        let Some(id) = self.honest else { return };
        while let Reading::Data(bytes) = Transport::recv(shard, id) {
            self.heard.extend_from_slice(&bytes);
        }
        let text = String::from_utf8_lossy(&self.heard).into_owned();
        let body = text.split_once("\r\n\r\n").map_or(0, |(_, body)| body.len());
        let refused = !text.is_empty() && !text.starts_with("HTTP/1.1 200 OK\r\n");
        assert!(!refused, "{text}");
        if body == 200_000 {
            self.took.push(self.begun.elapsed());
            self.ask(shard);
        }
        assert!(self.begun.elapsed() < Duration::from_secs(20), "no answer, but {text}");
    }
}

impl Port for Clients {
    fn drain(&mut self, _: Instant, _: &mut Shard) -> Activity {
        Activity::Idle
    }

    fn flush(&mut self, now: Instant, shard: &mut Shard) -> Activity {
        if self.readers.len() < self.how_many.0 || self.tricklers.len() < self.how_many.1 {
            self.begin(shard);
        }
        while let Some(event) = Transport::poll_event(shard) {
            if let TransportEvent::Closed(id, _) = event {
                assert!(!self.readers.contains(&id), "a reader was disconnected");
            }
        }
        if now >= self.next_byte {
            for id in &self.tricklers {
                let _ = Transport::send(shard, *id, &mut Bytes::from_static(b"x"));
            }
            self.next_byte = now + Duration::from_millis(5);
        }
        if now < Instant::ZERO + self.settle {
        } else if self.honest.is_none() {
            self.ask(shard);
        } else {
            self.listen(shard);
        }
        Activity::Idle
    }

    fn next_deadline(&self) -> Option<Instant> {
        Some(self.next_byte)
    }
}

fn server() -> Endpoint {
    Endpoint::new(Address::from_v4_bytes([10, 9, 0, 2]), 80)
}

fn request(name: &str) -> String {
    format!("GET /{name} HTTP/1.1\r\nHost: a\r\n\r\n")
}

/// The soft and the hard limit of descriptors.
fn limits(server: &Server) -> [String; 2] {
    let text = fs::read_to_string(server.told("limits")).unwrap();
    let line = text.lines().find(|line| line.starts_with("Max open files")).unwrap();
    let mut words = line.split_whitespace().skip(3).map(str::to_owned);
    [words.next().unwrap(), words.next().unwrap()]
}

#[test]
fn hundred_unread_files_leave_descriptors_for_others() {
    let server = Server::start("ulimit -n 64", "");
    assert_eq!(limits(&server), ["64", "64"]);
    let clients = server.run(Clients::new(READERS, 0, 20));
    assert_eq!(clients.took.len(), 20);
    let open = server.descriptors();
    assert!(open <= 48, "{open} descriptors");
}

#[test]
fn descriptor_limit_is_raised_to_the_maximum() {
    let server = Server::start("ulimit -Sn 64; ulimit -Hn 512", "");
    assert_eq!(limits(&server), ["512", "512"]);
}

/// Tests for which only an optimised build is fast enough.
mod long {
    use super::*;

    #[test]
    #[cfg_attr(
        debug_assertions,
        ignore = "how long a client waits is a matter of a release: give --release"
    )]
    fn slow_readers_and_heads_delay_others_less_than_100_ms() {
        let server = Server::start("ulimit -n 64", "");
        let clients = server.run(Clients::new(READERS, 200, 50));
        assert_eq!(clients.took.len(), 50);
        let worst = clients.took.iter().max().copied().unwrap_or_default();
        assert!(worst < Duration::from_millis(100), "{worst:?} of {:?}", clients.took);
    }
}
