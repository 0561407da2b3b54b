//! Two hosts whose shards have threads, and a control socket of one of them.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use std::time::Duration;
use std::{env, fs};

use serde_json::{Value, json};
use whimbrel_base::{Instant, Secrets};
use whimbrel_io::control::{ControlHost, ControlInfo, ControlPlace, ControlServer};
use whimbrel_io::{
    Activity, Clock, DuplicateAddressDetection, Inspect, Inspector, MemEnd, Port, StackConfig,
    StackShard, Stop, Waker, stack,
};
use whimbrel_link::LinkConfig;
use whimbrel_stack::{InterfaceAddress, Shard};
use whimbrel_tcp::Tunables;
use whimbrel_wire::{Address, Endpoint};

/// An application that accepts what comes and reads nothing.
struct Idle;

impl Port for Idle {
    fn flush(&mut self, _now: Instant, shard: &mut Shard) -> Activity {
        while let Some(event) = shard.poll_event() {
            if let whimbrel_stack::Event::Accepted(listener) = event {
                while shard.accept(listener).is_some() {}
            }
        }
        Activity::Idle
    }
}

/// A client and a server of two shards, which has a control socket.
pub(crate) struct World {
    pub(crate) client: Inspector,
    pub(crate) server: Vec<Inspector>,
    pub(crate) control: Option<ControlServer>,
    folder: PathBuf,
    stop: Stop,
    wakers: Vec<Waker>,
    threads: Vec<JoinHandle<()>>,
}

impl World {
    pub(crate) fn new() -> Self {
        let (near, far) = MemEnd::pair(LinkConfig::default(), LinkConfig::default(), 7);
        let clock = Clock::start();
        let open = |end, shards, addr: u8| {
            let addr = Address::from_v4_bytes([10, 0, 0, addr]);
            stack::open_mem(end, shards, clock, config(addr)).expect("a wire in memory")
        };
        let (client, server) = (open(near, 1, 1), open(far, 2, 2));
        let stop = Stop::new().expect("a descriptor");
        let mut world = Self {
            client: Inspector::new(Waker::new().expect("a descriptor")).0,
            server: Vec::new(),
            control: None,
            folder: folder(),
            stop,
            wakers: Vec::new(),
            threads: Vec::new(),
        };
        world.client = world.start(client).remove(0);
        world.server = world.start(server);
        for shard in &world.server {
            call(shard, |shard| shard.listen(server_at(), 4_096).map(drop)).expect("free");
        }
        let shards = world.server.iter().map(|it| Arc::new(it.clone()) as Arc<dyn Inspect>);
        let host = ControlHost::new(shards.collect());
        let place = ControlPlace::Path(world.path());
        let info = ControlInfo::new("test").with_origins(vec![("isn".into(), "a test".into())]);
        world.control = Some(ControlServer::start(&place, info, vec![host]).expect("served"));
        world
    }

    fn start(&mut self, shards: Vec<StackShard>) -> Vec<Inspector> {
        let start = |mut shard: StackShard| {
            let (inspector, stop) = (shard.inspector(), self.stop.clone());
            self.wakers.push(shard.waker.clone());
            let mut worker = shard.worker(Idle);
            self.threads.push(std::thread::spawn(move || worker.run(&stop).expect("no device")));
            inspector
        };
        shards.into_iter().map(start).collect()
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.join("control.sock")
    }

    /// Opens this many connections to the server, and waits until it has them.
    pub(crate) fn connect(&self, count: usize) {
        let before = self.established();
        call(&self.client, move |shard| {
            for _ in 0..count {
                shard.connect(server_at(), None).expect("a free port");
            }
        });
        wait_until(|| self.established() == before + count);
    }

    fn established(&self) -> usize {
        self.server.iter().map(|shard| call(shard, |shard| shard.census().connections)).sum()
    }

    /// Ends the shards, but not the control socket.
    pub(crate) fn stop(&mut self) {
        self.stop.set();
        self.wakers.iter().for_each(Waker::wake);
        self.threads.drain(..).for_each(|thread| thread.join().expect("no panic"));
    }
}

impl Drop for World {
    fn drop(&mut self) {
        drop(self.control.take());
        self.stop();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// A client of a control socket.
pub(crate) struct Control {
    pub(crate) stream: UnixStream,
    lines: BufReader<UnixStream>,
    pub(crate) greeting: Value,
}

impl Control {
    pub(crate) fn new(path: &Path) -> Self {
        let stream = whimbrel_io::control::connect(path, Duration::from_secs(10)).expect("served");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("an option");
        let lines = BufReader::new(stream.try_clone().expect("a descriptor"));
        let mut control = Self { stream, lines, greeting: Value::Null };
        control.greeting = control.line().expect("a greeting");
        control
    }

    /// The next line; `None` at the end.
    pub(crate) fn line(&mut self) -> Option<Value> {
        let mut line = String::new();
        loop {
            line.clear();
            match self.lines.read_line(&mut line) {
                Ok(0) | Err(_) => return None,
                Ok(_) if line.trim().is_empty() => {}
                Ok(_) => {
                    // The line during which a slow client lost its stream has no end.
                    let value = serde_json::from_str(&line).unwrap_or(Value::String(line));
                    if value.is_object() {
                        crate::schema::check(&value);
                    }
                    return Some(value);
                }
            }
        }
    }

    pub(crate) fn send(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).expect("a stream");
    }

    /// Sends a request, and returns its last line.
    pub(crate) fn ask(&mut self, method: &str, params: Value) -> Value {
        self.send(&format!("{}\n", json!({ "id": 1, "method": method, "params": params })));
        self.line().expect("an answer")
    }

    /// Lists sockets: each, and the last line.
    pub(crate) fn list(&mut self, params: Value) -> (Vec<Value>, Value) {
        let mut line = self.ask("ss", params);
        let mut sockets = Vec::new();
        while line.get("socket").is_some() {
            sockets.push(line["socket"].clone());
            line = self.line().expect("a last line");
        }
        (sockets, line)
    }
}

/// Makes a call on a shard, and returns its result.
pub(crate) fn call<T: Send + 'static>(
    shard: &Inspector,
    call: impl FnOnce(&mut Shard) -> T + Send + 'static,
) -> T {
    let (sender, answer) = channel();
    shard.inspect(Box::new(move |shard| sender.send(call(shard)).expect("awaited")));
    answer.recv_timeout(Duration::from_secs(60)).expect("an answer")
}

pub(crate) fn wait_until(mut holds: impl FnMut() -> bool) {
    let began = std::time::Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(60), "it takes more than a minute");
        std::thread::sleep(Duration::from_millis(2));
    }
}

pub(crate) fn server_at() -> Endpoint {
    Endpoint::new(Address::from_v4_bytes([10, 0, 0, 2]), 80)
}

fn folder() -> PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let folder = env::temp_dir().join(format!("whim-control-{}-{number}", std::process::id()));
    fs::create_dir(&folder).expect("a temporary folder");
    folder
}

fn config(addr: Address) -> StackConfig {
    StackConfig {
        tunables: Tunables::default(),
        secrets: Secrets::from_seed(addr.to_ip().to_string().len() as u64 + 3),
        addresses: vec![InterfaceAddress { addr, prefix_len: 24 }],
        routes: Vec::new(),
        dad: DuplicateAddressDetection::Off,
        group: None,
    }
}
