//! A network namespace, and programs in it that end with their starter.

use std::io::{BufRead, BufReader, Read};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use std::{env, fs, io};

use serde_json::Value;
use whimbrel_base::Foreign;
use whimbrel_io::process::{Namespace, end_with_starter};
use whimbrel_io::{Stop, text};

/// A namespace, with its loopback interface up. It ends when this and all programs in it have ended.
pub(super) struct Testbed<'s> {
    namespace: Namespace,
    stop: &'s Stop,
}

/// A program that runs; killed at the end.
pub(super) struct Running {
    child: Child,
    /// Number of answered requests, if the server reports it.
    answered: Arc<AtomicU64>,
}

impl<'s> Testbed<'s> {
    pub(super) fn new(stop: &'s Stop) -> Result<Self, String> {
        let namespace = Namespace::fresh().map_err(|error| format!("a namespace: {error}"))?;
        let testbed = Self { namespace, stop };
        testbed.ip("link set lo up")?;
        Ok(testbed)
    }

    /// A path by which another process can enter the namespace.
    pub(super) fn path(&self) -> PathBuf {
        self.namespace.path()
    }

    /// Does `work` with this thread in the namespace.
    pub(super) fn within<T>(&self, work: impl FnOnce() -> T) -> Result<T, String> {
        self.namespace.within(work).map_err(|error| format!("to enter a namespace: {error}"))
    }

    /// `ip` with these words.
    pub(super) fn ip(&self, words: &str) -> Result<(), String> {
        self.run("ip", &words.split(' ').collect::<Vec<_>>(), Duration::from_secs(10)).map(drop)
    }

    /// Sets a variable of the namespace's kernel.
    pub(super) fn set(&self, variable: &str, value: &str) -> Result<(), String> {
        let file = format!("/proc/sys/{}", variable.replace('.', "/"));
        let written = self.within(|| fs::write(&file, value))?;
        written.map_err(|error| format!("{file}: {error}"))
    }

    /// Starts a program.
    pub(super) fn start(&self, program: &str, words: &[&str]) -> Result<Running, String> {
        let mut command = Command::new(program);
        command.args(words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.spawn(&mut command).map(Running::of)
    }

    /// Starts this program with other words.
    pub(super) fn start_whimbrel(&self, words: &[&str]) -> Result<Running, String> {
        self.start(&own()?, words)
    }

    /// Starts a server, this program with other words, which reports its answered requests each second.
    pub(super) fn start_server(&self, words: &[&str]) -> Result<Running, String> {
        let mut command = Command::new(own()?);
        command.arg("serve").args(words).arg("--json-stream");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut running = Running::of(self.spawn(&mut command)?);
        if let Some(stdout) = running.child.stdout.take() {
            let answered = Arc::clone(&running.answered);
            thread::spawn(move || {
                for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                    let line: Value = serde_json::from_str(&line).unwrap_or_default();
                    let requests = line["data"]["requests"].as_u64().unwrap_or(0);
                    answered.fetch_add(requests, Ordering::Relaxed);
                }
            });
        }
        Ok(running)
    }

    /// Output of a program that has this time; its exit code does not matter if it printed something.
    pub(super) fn run(
        &self,
        program: &str,
        words: &[&str],
        most: Duration,
    ) -> Result<String, String> {
        let mut command = Command::new(program);
        command.args(words).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut running = Running::of(self.spawn(&mut command)?);
        let outputs =
            [running.child.stdout.take().map(read_all), running.child.stderr.take().map(read_all)];
        let began = Instant::now();
        while running.child.try_wait().map_err(|error| error.to_string())?.is_none() {
            if self.stop.is_set() {
                return Err("interrupted".into());
            }
            if began.elapsed() > most {
                return Err(format!("{program}: it did not end within {most:?}"));
            }
            thread::sleep(POLL);
        }
        let status = running.child.wait().map_err(|error| error.to_string())?;
        let [stdout, stderr] =
            outputs.map(|it| it.and_then(|it| it.join().ok()).unwrap_or_default());
        let output = Output { status, stdout, stderr };
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        if text.is_empty() && !status.success() {
            let error = Foreign::new(output.stderr.trim_ascii());
            return Err(format!("{program} {}: {status}: {error}", words.join(" ")));
        }
        Ok(text)
    }

    /// Output of this program with other words.
    pub(super) fn run_whimbrel(&self, words: &[&str], most: Duration) -> Result<String, String> {
        self.run(&own()?, words, most)
    }

    /// Waits until a server answers there, ten seconds at most.
    pub(super) fn await_answer(&self, running: &mut Running, at: SocketAddr) -> Result<(), String> {
        let began = Instant::now();
        while began.elapsed() < READY {
            let connected = self.within(|| TcpStream::connect_timeout(&at, POLL * 10))?;
            if connected.is_ok() {
                return Ok(());
            }
            if let Ok(Some(status)) = running.child.try_wait() {
                return Err(format!("the server at {at} ended: {status}"));
            }
            self.pause(POLL)?;
        }
        Err(format!("no server at {at} after {READY:?}"))
    }

    /// True if the run is interrupted.
    pub(super) fn is_stopped(&self) -> bool {
        self.stop.is_set()
    }

    /// Waits, unless it is interrupted.
    pub(super) fn pause(&self, time: Duration) -> Result<(), String> {
        let began = Instant::now();
        while began.elapsed() < time {
            if self.stop.is_set() {
                return Err("interrupted".into());
            }
            thread::sleep(POLL.min(time));
        }
        Ok(())
    }

    /// SYNs that the namespace's kernel sent again so far: TcpExtTCPSynRetrans of `nstat`.
    pub(super) fn syns_again(&self) -> u64 {
        let text = self.within(|| fs::read_to_string("/proc/thread-self/net/netstat"));
        let text = text.ok().and_then(Result::ok).unwrap_or_default();
        let mut lines = text.lines().filter_map(|line| line.strip_prefix("TcpExt:"));
        let (names, values) = (lines.next().unwrap_or(""), lines.next().unwrap_or(""));
        let mut both = names.split_whitespace().zip(values.split_whitespace());
        let found = both.find(|(name, _)| *name == "TCPSynRetrans");
        found.and_then(|(_, value)| value.parse().ok()).unwrap_or(0)
    }

    fn spawn(&self, command: &mut Command) -> Result<Child, String> {
        let program = text::path(Path::new(command.get_program())).to_string();
        let spawned = self.within(|| end_with_starter(command).spawn())?;
        spawned.map_err(|error| format!("{program}: {error}"))
    }
}

impl Running {
    fn of(child: Child) -> Self {
        Self { child, answered: Arc::default() }
    }

    /// Number of requests answered until about a second ago, if reported.
    pub(super) fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A folder that goes at the end.
pub(super) struct Folder(pub(super) PathBuf);

impl Folder {
    pub(super) fn new() -> io::Result<Self> {
        let path = env::temp_dir().join(format!("whimbrel-real-{}", std::process::id()));
        fs::create_dir(&path).map(|()| Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn own() -> Result<String, String> {
    let path = env::current_exe().map_err(|error| error.to_string())?;
    path.into_os_string()
        .into_string()
        .map_err(|path| format!("{}: the path is not valid UTF-8", text::path(Path::new(&path))))
}

fn read_all(mut from: impl Read + Send + 'static) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // Partial output is better than none.
        let _ = from.read_to_end(&mut bytes);
        bytes
    })
}

const POLL: Duration = Duration::from_millis(20);
const READY: Duration = Duration::from_secs(10);
