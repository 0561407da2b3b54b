//! The other end of a control socket: finds a running process, and asks it.

use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use clap::Args;
use serde_json::{Map, Value, json};
use whimbrel_base::Foreign;
use whimbrel_io::control::{connect, folders};
use whimbrel_io::text;

use crate::failure::Failure;

/// The option that names a host.
#[derive(Args, Clone, Debug)]
pub(crate) struct HostOption {
    /// The host, of a process that has both in memory: client or server.
    #[arg(long, value_name = "HOST", value_parser = ["client", "server"])]
    pub(crate) host: Option<String>,
}

/// Frames of a capture by a control socket.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct CaptureCounts {
    pub(crate) frames: u64,
    /// Frames left out because this process was slow.
    pub(crate) dropped: u64,
    pub(crate) has_process_ended: bool,
}

/// A connection to the control socket of a process.
#[derive(Debug)]
pub(crate) struct Attached {
    stream: UnixStream,
    lines: BufReader<UnixStream>,
    /// The process.
    pub(crate) pid: u64,
    /// Its command.
    pub(crate) command: String,
    host: Option<String>,
}

impl Attached {
    /// Connects to the process named by its number, its command or the path of its socket; without a name,
    /// to the only one that runs.
    pub(crate) fn new(name: Option<&str>, host: &HostOption) -> Result<Self, Failure> {
        let host = host.host.clone();
        if let Some(path) = name.filter(|name| name.contains('/')) {
            let path = Path::new(path);
            let attached = Self::connect(path, host).map_err(|error| refuse(path, &error))?;
            return Ok(attached);
        }
        let Running { mut found, failed, unreadable } = running(name, host.as_ref());
        match (found.pop(), found.as_slice(), name) {
            (Some(only), [], _) => Ok(only),
            (None, _, _) if !failed.is_empty() => Err(Failure::run(failed.join("; "))),
            (None, _, name) => {
                let name = name.map(|name| format!("{name}: ")).unwrap_or_default();
                let none = format!("{name}no process with a control socket {HOW}");
                Err(Failure::run([vec![none], unreadable].concat().join("; ")))
            }
            (Some(last), others, _) => {
                let each = others.iter().chain([&last]);
                let each = each.map(|it| format!("{} ({})", it.pid, it.command));
                let each = each.collect::<Vec<_>>().join(", ");
                Err(Failure::run(format!("several processes run: {each}; name one by its number")))
            }
        }
    }

    fn connect(path: &Path, host: Option<String>) -> io::Result<Self> {
        let stream = connect(path, GREETING)?;
        stream.set_read_timeout(Some(GREETING))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let lines = BufReader::new(stream.try_clone()?);
        let mut attached = Self { stream, lines, pid: 0, command: String::new(), host };
        let greeting = attached.line()?;
        attached.stream.set_read_timeout(Some(PATIENCE))?;
        if let Some(message) = greeting["error"]["message"].as_str() {
            let text = Foreign::new(message.as_bytes()).to_string();
            return Err(io::Error::other(text));
        }
        if greeting["schema"] != "whimbrel.control/1" {
            return Err(io::Error::other("it is no control socket of this version"));
        }
        attached.pid = greeting["pid"].as_u64().unwrap_or(0);
        let command = greeting["command"].as_str().unwrap_or_default();
        attached.command = Foreign::new(command.as_bytes()).to_string();
        Ok(attached)
    }

    /// Sends a request, and returns its result.
    pub(crate) fn ask(&mut self, method: &str, params: Value) -> Result<Value, Failure> {
        self.send(method, params)?;
        let mut answer = self.answer()?;
        Ok(answer["result"].take())
    }

    /// Returns the counters and the gauges by Linux' names, and this stack's own.
    pub(crate) fn counters(&mut self) -> Result<Map<String, Value>, Failure> {
        let mut answer = self.ask("counters", json!({}))?;
        let mut counters = Map::new();
        for part in ["counters", "gauges"] {
            if let Value::Object(part) = answer[part].take() {
                counters.extend(part);
            }
        }
        Ok(counters)
    }

    /// Lists sockets, and calls `each` for every one.
    pub(crate) fn list(
        &mut self,
        params: Value,
        mut each: impl FnMut(Value) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        self.send("ss", params)?;
        loop {
            let mut answer = self.answer()?;
            match answer["socket"].take() {
                Value::Null => return Ok(()),
                socket => each(socket)?,
            }
        }
    }

    /// Captures frames until the process ends the capture or itself, or `must_end` does. Calls `each` with each
    /// piece of pcapng, the first of which is the header.
    pub(crate) fn capture(
        &mut self,
        params: Value,
        must_end: impl Fn(&UnixStream) -> Result<bool, Failure>,
        mut each: impl FnMut(&[u8]) -> Result<(), Failure>,
    ) -> Result<CaptureCounts, Failure> {
        self.send("pcap", params)?;
        let (mut counts, mut is_ending) = (CaptureCounts::default(), false);
        loop {
            let is_read = self.lines.buffer().contains(&b'\n');
            if !is_ending && !is_read && must_end(&self.stream)? {
                // Any request ends a capture; if the process has ended, the next line says so.
                let _ended = self.send("hello", json!({}));
                is_ending = true;
            }
            let answer = match self.line() {
                Err(error) if has_ended(&error) => {
                    counts.has_process_ended = true;
                    return Ok(counts);
                }
                line => Self::whole(line.map_err(|error| lost(self.pid, &error))?)?,
            };
            let last = &answer["done"];
            let figures = if last.is_object() { last } else { &answer };
            counts.frames = figures["frames"].as_u64().unwrap_or(0);
            counts.dropped = figures["dropped"].as_u64().unwrap_or(0);
            match answer["pcapng"].as_str() {
                None => return Ok(counts),
                Some(text) => each(&BASE64_STANDARD.decode(text).map_err(Failure::run)?)?,
            }
        }
    }

    fn send(&mut self, method: &str, mut params: Value) -> Result<(), Failure> {
        if let (Some(host), Value::Object(params)) = (&self.host, &mut params) {
            params.insert("host".into(), host.clone().into());
        }
        let line = format!("{}\n", json!({ "id": 1, "method": method, "params": params }));
        self.stream.write_all(line.as_bytes()).map_err(|error| lost(self.pid, &error))
    }

    fn answer(&mut self) -> Result<Value, Failure> {
        Self::whole(self.line().map_err(|error| lost(self.pid, &error))?)
    }

    /// Fails if the answer is an error.
    fn whole(answer: Value) -> Result<Value, Failure> {
        match answer["error"]["message"].as_str() {
            Some(message) => Err(Failure::run(Foreign::new(message.as_bytes()))),
            None => Ok(answer),
        }
    }

    fn line(&mut self) -> io::Result<Value> {
        let line = self.text()?;
        serde_json::from_str(&line).or_else(|_| {
            // The process gave this client up within a line, and says why in the next.
            let why: Value = serde_json::from_str(&self.text()?).unwrap_or_default();
            let no_json = "it sent a line that is no JSON: is this a control socket of whimbrel?";
            if why["error"].is_object() { Ok(why) } else { Err(io::Error::other(no_json)) }
        })
    }

    /// The next line, with its end: what a killed process wrote of one is none.
    fn text(&mut self) -> io::Result<String> {
        let mut line = String::new();
        self.lines.read_line(&mut line)?;
        if line.ends_with('\n') { Ok(line) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }
}

/// The processes with a socket in the default folders.
#[derive(Default)]
struct Running {
    /// Those that answer, by number.
    found: Vec<Attached>,
    /// Why others do not.
    failed: Vec<String>,
    /// Folders that cannot be read, and why.
    unreadable: Vec<String>,
}

impl Running {
    /// Asks the processes of this folder; if `name` is a number, only that one.
    fn ask_in(&mut self, folder: &Path, name: Option<&str>, host: Option<&String>) {
        let number = name.filter(|name| name.parse::<u64>().is_ok());
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return,
            // Another may have what is meant.
            Err(error) => return self.unreadable.push(refusal(folder, &error)),
        };
        let named = |path: PathBuf| {
            let stem = path.file_name()?.to_str()?.strip_suffix(".sock")?;
            let pid = stem.split('-').next()?.to_owned();
            number.is_none_or(|number| pid == number).then_some((pid, path))
        };
        let sockets: Vec<_> = entries.filter_map(|entry| named(entry.ok()?.path())).collect();
        for some in sockets.chunks(AT_ONCE) {
            self.ask(some, host);
        }
        self.found
            .retain(|it| name.is_none_or(|name| it.command == name || it.pid.to_string() == name));
    }

    /// Asks the processes of these sockets, all at the same time: those that are stopped together cost one
    /// time limit.
    fn ask(&mut self, sockets: &[(String, PathBuf)], host: Option<&String>) {
        let results: Vec<_> = thread::scope(|scope| {
            let ask = |(_, path): &'_ (String, PathBuf)| {
                let (path, host) = (path.clone(), host.cloned());
                scope.spawn(move || Attached::connect(&path, host))
            };
            let asked: Vec<_> = sockets.iter().map(ask).collect();
            asked.into_iter().map(thread::ScopedJoinHandle::join).collect()
        });
        for ((pid, _), result) in sockets.iter().zip(results) {
            match result {
                Ok(Ok(attached)) => self.found.push(attached),
                // What a process that was killed left answers nothing.
                Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused => {}
                Ok(Err(error)) if error.kind() == io::ErrorKind::NotFound => {}
                Ok(Err(error)) => self.failed.push(format!("process {pid}: {}", told(&error))),
                // It was printed.
                Err(_panic) => {}
            }
        }
    }
}

/// Finds the processes of this name or number, or all, in the folders of this user's own, else in that of services.
fn running(name: Option<&str>, host: Option<&String>) -> Running {
    let mut running = Running::default();
    for folder in folders() {
        running.ask_in(&folder, name, host);
    }
    if running.found.is_empty() && (name.is_some() || running.failed.is_empty()) {
        running.ask_in(Path::new(SERVICES), name, host);
    }
    running.failed.sort();
    running.found.sort_by_key(|it| it.pid);
    running
}

/// True if the process closed its stream, by its end or otherwise.
fn has_ended(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), UnexpectedEof | ConnectionReset | BrokenPipe)
}

/// An error in words: a time-out is none of the system's.
fn told(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            "it does not answer in time; if ps shows it as stopped (T), kill -CONT continues it"
                .into()
        }
        _ if has_ended(error) => "it has ended, or closed the control socket".into(),
        _ => error.to_string(),
    }
}

fn refuse(path: &Path, error: &io::Error) -> Failure {
    Failure::run(refusal(path, error))
}

fn refusal(path: &Path, error: &io::Error) -> String {
    let remedy = match error.kind() {
        io::ErrorKind::PermissionDenied => ": only its user and root may use it",
        io::ErrorKind::ConnectionRefused if !is_socket(path) => ": it is no socket",
        io::ErrorKind::ConnectionRefused => ": its process has ended",
        _ => "",
    };
    format!("{}: {}{remedy}", text::path(path), told(error))
}

fn is_socket(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.file_type().is_socket())
}

fn lost(pid: u64, error: &io::Error) -> Failure {
    Failure::run(format!("process {pid}: {}", told(error)))
}

/// Time for the first line of a process, which none of its shards makes.
const GREETING: Duration = Duration::from_secs(5);
/// Time for an answer: longer than a process waits for its shards.
const PATIENCE: Duration = Duration::from_secs(15);
/// The folder of processes that were started without `XDG_RUNTIME_DIR`, as systemd and sudo do.
const SERVICES: &str = "/run/whimbrel";
/// Limit of processes that are asked at the same time.
const AT_ONCE: usize = 64;
const HOW: &str = "runs here; name it by the path of its socket, if --control has another folder";
