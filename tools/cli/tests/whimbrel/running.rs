//! Programs that tests start: none outlives its test.

use std::fs;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{
    Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Output, Stdio,
};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, kill_process};
use serde_json::Value;
use whimbrel_io::process::end_with_starter;

use crate::schema::checked;

pub(crate) use rustix::process::Signal;

/// Time limit of a program: longer than any needs, and short enough for CI's own limit.
const LIMIT: Duration = Duration::from_secs(240);

/// A program that runs; killed at the end, and when it hangs.
pub(crate) struct Running {
    child: Child,
    /// Closed when the watch is over.
    _watched: mpsc::Sender<()>,
}

impl Running {
    /// Starts it.
    pub(crate) fn start(command: &mut Command) -> Self {
        let child = end_with_starter(command).spawn();
        let child = child.unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let (_watched, ended) = mpsc::channel();
        let (id, line) = (child.id(), format!("{command:?}"));
        thread::spawn(move || watch(id, &line, &ended));
        Self { child, _watched }
    }

    /// The number of its process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// The processor time it took so far.
    pub(crate) fn cpu_time(&self) -> Duration {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.id())).unwrap();
        // After the name in parentheses, which may hold anything: utime and stime are fields 14
        // and 15 of all, in ticks of 10 ms.
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        let ticks: u64 = fields[11..=12].iter().map(|field| field.parse::<u64>().unwrap()).sum();
        Duration::from_millis(ticks * 10)
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        send(self.id(), signal);
    }

    /// Takes its standard input, if piped and not yet taken.
    pub(crate) fn take_stdin(&mut self) -> ChildStdin {
        self.child.stdin.take().unwrap()
    }

    /// Takes its standard output, if piped and not yet taken.
    pub(crate) fn take_stdout(&mut self) -> ChildStdout {
        self.child.stdout.take().unwrap()
    }

    /// Takes its standard error, if piped and not yet taken.
    pub(crate) fn take_stderr(&mut self) -> ChildStderr {
        self.child.stderr.take().unwrap()
    }

    /// Its exit status, once it has ended.
    pub(crate) fn end(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().unwrap()
    }

    /// Waits for its end.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }

    /// Waits for its end; returns its piped output.
    pub(crate) fn output(mut self) -> Output {
        let errors = self.child.stderr.take().map(|stderr| thread::spawn(move || read(stderr)));
        let stdout = self.child.stdout.take().map(read).unwrap_or_default();
        let stderr = errors.map(|errors| errors.join().unwrap()).unwrap_or_default();
        Output { status: self.wait(), stdout, stderr }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Output of `command` until it ends, and its exit status.
pub(crate) fn output(command: &mut Command) -> Output {
    Running::start(command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()))
        .output()
}

/// The program with these words, between blanks, behind its name.
pub(crate) fn whimbrel(words: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_whimbrel"));
    command.args(words.split_whitespace());
    command
}

/// The JSON document that the program prints for these words.
pub(crate) fn document(words: &str) -> Value {
    checked(&succeed(&mut whimbrel(words)))
}

/// Standard output of `command`; it must succeed.
pub(crate) fn succeed(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = output(command);
    let text = String::from_utf8_lossy(&stdout).into_owned();
    let errors = String::from_utf8_lossy(&stderr);
    assert!(status.success(), "{command:?}: {status}\n{text}{errors}");
    text
}

/// The text in one line: text longer than 80 columns continues in the next line.
pub(crate) fn unbroken(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Output of a program that reads `input`; it must succeed.
pub(crate) fn succeed_with(command: &mut Command, input: impl Into<Stdio>) -> String {
    let running = Running::start(command.stdin(input).stdout(Stdio::piped()));
    let Output { status, stdout, .. } = running.output();
    assert!(status.success(), "{command:?}: {status}");
    String::from_utf8_lossy(&stdout).into_owned()
}

/// Errors of `command`, which must fail, and its exit code.
pub(crate) fn fail(command: &mut Command) -> (i32, String) {
    let Output { status, stdout, stderr } = output(command);
    let errors = String::from_utf8_lossy(&stderr).into_owned();
    assert!(!status.success(), "{command:?} succeeded: {}", String::from_utf8_lossy(&stdout));
    (status.code().unwrap_or_else(|| panic!("{command:?}: {status}\n{errors}")), errors)
}

/// Sends a signal to the process of this number.
pub(crate) fn send(id: u32, signal: Signal) {
    let pid = Pid::from_raw(id.cast_signed()).expect("a process has a number");
    kill_process(pid, signal).unwrap_or_else(|error| panic!("{signal:?} to {id}: {error}"));
}

/// Waits until process `id` handles SIGINT by itself, then sends it.
pub(crate) fn interrupt(id: u32) {
    await_handler(id);
    send(id, Signal::INT);
}

/// Waits until process `id` handles SIGINT by itself, and so each signal that ends a command: it is
/// the last of them (`io::signals`).
pub(crate) fn await_handler(id: u32) {
    // SigCgt is a mask in hexadecimal digits, signal 1 its lowest bit. A shell that is about to become
    // the program catches SIGINT as well, but not SIGXFSZ, which the program takes first.
    let bit = |signal: Signal| 1_u64 << (signal.as_raw() - 1);
    let needed = bit(Signal::INT) | bit(Signal::XFSZ);
    let handles = |status: &str| {
        let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:"))?.trim();
        Some(u64::from_str_radix(mask, 16).unwrap() & needed == needed)
    };
    await_that("it handles SIGINT", || {
        handles(&fs::read_to_string(format!("/proc/{id}/status")).unwrap()) == Some(true)
    });
}

/// Waits until `holds`, 10 seconds at most.
pub(crate) fn await_that(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(10), "waited for: {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Kills a program that runs too long: its test fails and shows where it hung, instead of taking all
/// others' time.
fn watch(id: u32, line: &str, ended: &mpsc::Receiver<()>) {
    if ended.recv_timeout(LIMIT) != Err(RecvTimeoutError::Timeout) {
        return;
    }
    let tasks = fs::read_dir(format!("/proc/{id}/task")).into_iter().flatten().flatten();
    let of = |task: &Path, file| fs::read_to_string(task.join(file)).unwrap_or_default();
    let waits: Vec<_> = tasks
        .map(|task| task.path())
        .map(|task| ["comm", "wchan", "syscall"].map(|file| of(&task, file).trim().to_owned()))
        .collect();
    let _ = writeln!(io::stderr(), "killed after {LIMIT:?}: {line}\n{waits:#?}");
    send(id, Signal::KILL);
}

fn read(mut from: impl Read) -> Vec<u8> {
    let mut bytes = Vec::new();
    from.read_to_end(&mut bytes).unwrap();
    bytes
}
