//! Cost of a short connection, both ends, by workers over a wire in memory, while the server's stack can be looked
//! into, and of a slice of a listing: instructions, as [`Looking`] has it. It is a separate program, as in-flight is.

use std::collections::VecDeque;
use std::hint::black_box;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, mpsc};
use std::task;
use std::thread;
use std::time::{Duration, Instant as StdInstant};

use bytes::Bytes;
use whimbrel_base::packet::SegMeta;
use whimbrel_base::{Instant, Secrets};
use whimbrel_io::control::{ControlHost, ControlInfo, ControlPlace, ControlServer, connect};
use whimbrel_io::device::{MAX_BURST, boxed};
use whimbrel_io::inspect::Inspection;
use whimbrel_io::metrics::MetricsServer;
use whimbrel_io::stack::open_devices;
use whimbrel_io::{
    Activity, Clock, Device, DeviceCounters, DuplicateAddressDetection, Inspect, Inspector, Port,
    StackConfig, StackShard, StackWorker, Stop, TxOutcome, Waker,
};
use whimbrel_stack::{
    Capabilities, Event, InterfaceAddress, ListenerId, Medium, Recv, RxFrame, Shard, TxBatch,
};
use whimbrel_tcp::Tunables;
use whimbrel_wire::{Address, Endpoint};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Ways to look into the server's stack.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Looking {
    /// None: `--control off`.
    Off,
    /// A control socket without clients.
    Control,
    /// A server of metrics that were read, and are not now.
    Metrics,
    /// A capture by the control socket has ended.
    Captured,
    /// The control socket lists idle connections, with this detail: only that counts.
    Listed(&'static str),
}

const LOOKING: [(&str, Looking); 6] = [
    ("off", Looking::Off),
    ("control", Looking::Control),
    ("metrics", Looking::Metrics),
    ("pcap-ended", Looking::Captured),
    ("slice-brief", Looking::Listed("brief")),
    ("slice-full", Looking::Listed("full")),
];

/// Prints the number of connections that were measured, or of slices.
fn main() -> Result<(), Failure> {
    let words: Vec<_> = std::env::args().skip(1).collect();
    let [name] = words.as_slice() else { return Err("operated NAME".into()) };
    let looking = LOOKING.iter().find(|(known, _)| known == name);
    let (_, looking) = looking.ok_or_else(|| format!("{name}: not a case"))?;
    let mut world = World::new(*looking)?;
    if let Looking::Listed(detail) = looking {
        world.list(detail)?;
        println!("{}", IDLE / if *detail == "full" { 128 } else { 256 });
        return Ok(());
    }
    (0..WARM_UP).try_for_each(|_| world.round())?;
    let switched = world.look(*looking)?;
    (0..WARM_UP).try_for_each(|_| world.round())?;
    let mut result = Ok(());
    measured(&mut || result = (0..ROUNDS).try_for_each(|_| world.round()));
    result?;
    world.check(*looking)?;
    drop(switched);
    println!("{}", ROUNDS * BATCH);
    Ok(())
}

/// While this is on the stack, instructions count.
#[inline(never)]
fn measured(work: &mut dyn FnMut()) {
    work();
    // Or the call above would be a jump, which ends the function that is looked for.
    black_box(());
}

/// An application that acts between the turns of its worker.
struct Outside;

impl Port for Outside {
    fn flush(&mut self, _: Instant, _: &mut Shard) -> Activity {
        Activity::Idle
    }
}

/// Two hosts, in a time that [`pass`] moves.
struct World {
    client: StackWorker<Outside>,
    server: StackWorker<Outside>,
    /// Callers of the server's shard, until they are used.
    hosts: Vec<ControlHost>,
    listener: ListenerId,
    stop: Stop,
    /// Connections that ended.
    ended: u64,
}

/// The servers of an operator.
#[derive(Default)]
struct Switched {
    control: Option<ControlServer>,
    metrics: Option<MetricsServer>,
}

impl World {
    fn new(looking: Looking) -> Result<Self, Failure> {
        let clock = Clock::start_with(virtual_time);
        let lines = [(); 2].map(|()| Arc::<Mutex<Line>>::default());
        let [there, back] = &lines;
        let client = shard([back, there], clock, CLIENT)?;
        let mut server = shard([there, back], clock, SERVER)?;
        let shard: Option<Arc<dyn Inspect>> = match looking {
            Looking::Off => None,
            Looking::Listed(_) => Some(Arc::new(Counted(server.inspector()))),
            _ => Some(Arc::new(server.inspector())),
        };
        let hosts = shard.map(|shard| ControlHost::new(vec![shard])).into_iter().collect();
        let listener = server.shard.listen(endpoint(SERVER, 80), 4_096)?;
        let (client, server) = (client.worker(Outside), server.worker(Outside));
        Ok(Self { client, server, hosts, listener, stop: Stop::new()?, ended: 0 })
    }

    /// Begins to look into the server's stack, until the result is dropped.
    fn look(&mut self, looking: Looking) -> Result<Switched, Failure> {
        let (hosts, mut switched) = (std::mem::take(&mut self.hosts), Switched::default());
        match looking {
            Looking::Off => (0..WARM_UP).try_for_each(|_| self.round())?,
            Looking::Metrics => {
                let server = MetricsServer::start((Ipv4Addr::LOCALHOST, 0).into(), hosts)?;
                self.while_asked(scrape, server.at())?;
                switched.metrics = Some(server);
            }
            Looking::Listed(_) => {}
            Looking::Control | Looking::Captured => {
                let server = control(hosts)?;
                let client = if looking == Looking::Captured { capture } else { greet };
                self.while_asked(client, server.path().to_owned())?;
                switched.control = Some(server);
            }
        }
        Ok(switched)
    }

    /// Has connections come and go while the client `ask` of the server at `at` is answered, and waits for its end. As
    /// many come in each case, or what the hosts hold would differ.
    fn while_asked<T: Send + 'static>(
        &mut self,
        ask: fn(T, &mpsc::Sender<()>) -> Result<(), Failure>,
        at: T,
    ) -> Result<(), Failure> {
        let (begun, has_begun) = mpsc::channel();
        let client = thread::spawn(move || ask(at, &begun));
        while has_begun.try_recv() == Err(mpsc::TryRecvError::Empty) {
            self.turn()?;
        }
        (0..WARM_UP).try_for_each(|_| self.round())?;
        while !client.is_finished() {
            self.turn()?;
        }
        client.join().expect("it does not panic")
    }

    /// Opens connections that stay idle, and lists them by the control socket.
    fn list(&mut self, detail: &'static str) -> Result<(), Failure> {
        for opened in (BATCH..=IDLE).step_by(BATCH as usize) {
            for _ in 0..BATCH {
                self.client.shard_mut().connect(endpoint(SERVER, 80), None)?;
            }
            while (self.server.shard().census().connections as u64) < opened {
                self.poll()?;
                self.serve()?;
            }
            // The client sends nothing on them.
            while self.client.shard_mut().poll_event().is_some() {}
        }
        let server = control(std::mem::take(&mut self.hosts))?;
        let path = server.path().to_owned();
        let client = thread::spawn(move || list(path, detail));
        while !client.is_finished() {
            self.poll()?;
        }
        client.join().expect("it does not panic")
    }

    /// Connections from the first SYN to the end of TIME-WAIT.
    fn round(&mut self) -> Result<(), Failure> {
        let goal = self.ended + BATCH;
        for _ in 0..BATCH {
            self.client.shard_mut().connect(endpoint(SERVER, 80), None)?;
        }
        while self.ended < goal {
            self.turn()?;
            pass(Duration::from_micros(100));
        }
        while self.census() != (0, 0) {
            pass(Duration::from_secs(1));
            self.turn()?;
        }
        Ok(())
    }

    /// Polls the workers, and acts as both applications.
    fn turn(&mut self) -> Result<(), Failure> {
        self.poll()?;
        self.serve()?;
        self.drive()
    }

    fn poll(&mut self) -> Result<(), Failure> {
        for worker in [&mut self.client, &mut self.server] {
            let _left = worker.poll(task::Waker::noop(), &self.stop, 4)?;
        }
        Ok(())
    }

    fn serve(&mut self) -> Result<(), Failure> {
        let server = self.server.shard_mut();
        while let Some(event) = server.poll_event() {
            match event {
                Event::Accepted(_) => while server.accept(self.listener).is_some() {},
                Event::Readable(handle) => {
                    if let Recv::Data(_) = server.recv(handle) {
                        server.send(handle, &mut Bytes::from_static(&[b'r'; 256]))?;
                        server.close(handle);
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn drive(&mut self) -> Result<(), Failure> {
        let client = self.client.shard_mut();
        while let Some(event) = client.poll_event() {
            match event {
                Event::Connected(handle) => {
                    client.send(handle, &mut Bytes::from_static(&[b'q'; 64]))?;
                }
                Event::Readable(handle) => loop {
                    match client.recv(handle) {
                        Recv::Data(_) => {}
                        Recv::Pending => break,
                        Recv::End => {
                            client.close(handle);
                            self.ended += 1;
                            break;
                        }
                        other => return Err(format!("a connection ended: {other:?}").into()),
                    }
                },
                _ => {}
            }
        }
        Ok(())
    }

    fn census(&self) -> (usize, usize) {
        (self.client.shard().census().flows, self.server.shard().census().flows)
    }

    /// Checks that the stack was looked into as the case has it.
    fn check(&self, looking: Looking) -> Result<(), Failure> {
        let is_timed = self.server.shard().latencies().is_some();
        if is_timed == (looking == Looking::Metrics) { Ok(()) } else { Err("not switched".into()) }
    }
}

/// A shard each of whose calls counts.
struct Counted(Inspector);

impl Inspect for Counted {
    fn inspect(&self, call: Inspection) {
        let mut call = Some(call);
        self.0.inspect(Box::new(move |shard| {
            measured(&mut || call.take().into_iter().for_each(|call| call(shard)));
        }));
    }
}

/// A control socket of these hosts.
fn control(hosts: Vec<ControlHost>) -> Result<ControlServer, Failure> {
    let path = std::env::temp_dir().join(format!("operated-{}", std::process::id()));
    let info = ControlInfo::new("operated");
    Ok(ControlServer::start(&ControlPlace::Path(path), info, hosts)?)
}

/// A host with this address at such lines, inward and outward.
fn shard(
    [inward, outward]: [&Arc<Mutex<Line>>; 2],
    clock: Clock,
    address: [u8; 4],
) -> Result<StackShard, Failure> {
    let mut tunables = Tunables::default();
    tunables.set_by_name("msl", "1s")?;
    let addr = Address::from_v4_bytes(address);
    let config = StackConfig {
        tunables,
        secrets: Secrets::from_seed(u64::from(address[3])),
        addresses: vec![InterfaceAddress { addr, prefix_len: 8 }],
        routes: Vec::new(),
        dad: DuplicateAddressDetection::Off,
        group: None,
    };
    let (inward, outward, waker) = (Arc::clone(inward), Arc::clone(outward), Waker::new()?);
    let counters = DeviceCounters::default();
    let wire = Wire { inward, outward, waker: waker.clone(), counters };
    let shards = open_devices(boxed([wire]), vec![waker], clock, config)?;
    Ok(shards.into_iter().next().ok_or("no shard")?)
}

/// One end of a wire, whose frames are copied into buffers that are used again and again: what is measured allocates
/// nothing for them.
#[derive(Debug)]
struct Wire {
    inward: Arc<Mutex<Line>>,
    outward: Arc<Mutex<Line>>,
    waker: Waker,
    counters: DeviceCounters,
}

/// Frames on their way in one direction.
#[derive(Default, Debug)]
struct Line {
    /// Buffers, of which the first have frames.
    buffers: VecDeque<Vec<u8>>,
    waiting: usize,
}

impl Device for Wire {
    fn name(&self) -> String {
        "operated".into()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::plain(Medium::Ip, 1_500)
    }

    fn rx_burst(&mut self, deliver: &mut dyn FnMut(&[RxFrame<'_>])) -> io::Result<usize> {
        let mut line = self.inward.lock().expect("no thread panicked");
        let taken = line.waiting.min(MAX_BURST);
        if taken > 0 {
            let mut frames = [RxFrame::new(&[], SegMeta::SINGLE); MAX_BURST];
            for (frame, buffer) in frames.iter_mut().zip(line.buffers.iter().take(taken)) {
                *frame = RxFrame::new(buffer, SegMeta::SINGLE);
            }
            deliver(&frames[..taken]);
            line.buffers.rotate_left(taken);
            line.waiting -= taken;
        }
        Ok(taken)
    }

    fn tx_burst(&mut self, batch: &mut TxBatch) -> io::Result<TxOutcome> {
        let mut line = self.outward.lock().expect("no thread panicked");
        batch.drain(|segment| {
            let place = line.waiting;
            if place == line.buffers.len() {
                line.buffers.push_back(Vec::with_capacity(1_500));
            }
            let buffer = &mut line.buffers[place];
            buffer.clear();
            buffer.extend_from_slice(segment.header());
            for slice in segment.payload.as_slice() {
                buffer.extend_from_slice(slice);
            }
            line.waiting += 1;
        });
        Ok(TxOutcome::Drained)
    }

    fn counters(&self) -> &DeviceCounters {
        &self.counters
    }
}

impl AsFd for Wire {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.waker.as_fd()
    }
}

/// Reads the greeting of the control socket.
fn greet(path: PathBuf, begun: &mpsc::Sender<()>) -> Result<(), Failure> {
    let mut line = String::new();
    BufReader::new(connect(&path, ANSWER)?).read_line(&mut line)?;
    begun.send(())?;
    if line.contains("whimbrel.control/1") { Ok(()) } else { Err(line.into()) }
}

/// Captures some frames at the control socket, up to the server's last line.
fn capture(path: PathBuf, begun: &mpsc::Sender<()>) -> Result<(), Failure> {
    let mut stream = connect(&path, ANSWER)?;
    let request = format!("{{\"id\":1,\"method\":\"pcap\",\"params\":{{\"count\":{FRAMES}}}}}\n");
    stream.write_all(request.as_bytes())?;
    for line in BufReader::new(stream).lines() {
        let line = line?;
        if line.contains("\"error\"") {
            return Err(line.into());
        }
        if line.contains("\"pcapng\"") && line.contains("\"frames\":0,") {
            begun.send(())?;
        }
        if line.contains(&format!("\"frames\":{FRAMES}}}")) && line.contains("\"done\"") {
            return Ok(());
        }
    }
    Err("the capture broke off".into())
}

/// Lists all connections at the control socket.
fn list(path: PathBuf, detail: &str) -> Result<(), Failure> {
    let mut stream = connect(&path, ANSWER)?;
    let params = format!("{{\"detail\":\"{detail}\",\"states\":[\"ESTABLISHED\"]}}");
    stream.write_all(format!("{{\"method\":\"ss\",\"params\":{params}}}\n").as_bytes())?;
    let last = BufReader::new(stream).lines().find(|line| match line {
        Ok(line) => line.contains("\"done\"") || line.contains("\"error\""),
        Err(_) => true,
    });
    let last = last.ok_or("the listing broke off")??;
    let all = format!("\"sockets\":{IDLE}}}");
    if last.contains(&all) { Ok(()) } else { Err(last.into()) }
}

/// Reads the metrics once.
fn scrape(at: SocketAddr, begun: &mpsc::Sender<()>) -> Result<(), Failure> {
    let mut stream = TcpStream::connect(at)?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n")?;
    let text = io::read_to_string(stream)?;
    begun.send(())?;
    if text.contains("whimbrel_handshake_seconds_count") { Ok(()) } else { Err(text.into()) }
}

fn endpoint(address: [u8; 4], port: u16) -> Endpoint {
    Endpoint::new(Address::from_v4_bytes(address), port)
}

/// Moves the time of both hosts.
fn pass(time: Duration) {
    NANOS.fetch_add(time.as_nanos() as u64, Ordering::Relaxed);
}

fn virtual_time() -> StdInstant {
    *ORIGIN.get_or_init(full_second) + Duration::from_nanos(NANOS.load(Ordering::Relaxed))
}

/// A full second of the machine's clock. From another time, sums and differences would carry now and then, which takes
/// an instruction more. Only its Debug form tells the nanoseconds; without them, counts vary by 3.
fn full_second() -> StdInstant {
    let now = StdInstant::now();
    let text = format!("{now:?}");
    let nanos = text.rsplit_once("tv_nsec: ").and_then(|(_, rest)| rest.split(' ').next());
    let nanos = nanos.and_then(|digits| digits.parse::<u64>().ok()).unwrap_or_default();
    now + Duration::from_nanos(1_000_000_000 - nanos)
}

static ORIGIN: OnceLock<StdInstant> = OnceLock::new();
/// Nanoseconds since the start.
static NANOS: AtomicU64 = AtomicU64::new(0);

const CLIENT: [u8; 4] = [10, 0, 0, 2];
const SERVER: [u8; 4] = [10, 0, 0, 1];
/// Connections at a time.
const BATCH: u64 = 64;
/// Rounds whose instructions are counted.
const ROUNDS: u64 = 64;
const WARM_UP: u64 = 16;
/// Connections that are listed.
const IDLE: u64 = 4_096;
/// Frames of a capture.
const FRAMES: u64 = 1_000;
/// For a control socket to take a client.
const ANSWER: Duration = Duration::from_secs(10);
