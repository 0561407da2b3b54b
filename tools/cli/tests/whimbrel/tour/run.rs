//! Runs a wrong use, and checks the properties of all wrong uses.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::{Pid, kill_process_group, test_kill_process_group};

use crate::netns::{Net, public_copy};
use crate::running::{Running, Signal, await_handler, succeed};
use crate::scratch::scratch;

use super::case::{Case, End, Ready, Stdout};

/// Place of cases.
pub(super) enum Station {
    /// With the test's own rights.
    Anywhere,
    /// As a user without rights, who may run this copy of the program.
    Ordinary(PathBuf),
    /// By root in this namespace.
    Net(Net),
}

/// The result of a case.
struct Ended {
    status: Option<ExitStatus>,
    stdout: String,
    stderr: String,
}

impl Station {
    /// For a user without rights.
    pub(super) fn ordinary() -> Self {
        let folder = fresh("ordinary");
        Self::Ordinary(public_copy(&folder))
    }

    /// Runs `case`; returns its faults.
    pub(super) fn run(&self, case: &Case) -> Result<(), String> {
        let (folder, before) = (fresh("case"), self.devices());
        let peer = case.peer.map(|peer| peer.begin());
        let at = peer.as_ref().map_or_else(String::new, |peer| peer.at().to_string());
        let (ended, mut wrong) = self.carry_out(case, &case.words(&at), &folder);
        wrong.extend(complaints(case, &ended));
        let left = left_in(&folder);
        if left != case.leaves {
            wrong.push(format!("it leaves {left:?} in its folder, not {:?}", case.leaves));
        }
        let after = self.devices();
        if after != before {
            wrong.push(format!("there were the devices {before}\nthere are {after}"));
        }
        fs::remove_dir_all(&folder).unwrap();
        match wrong.is_empty() {
            true => Ok(()),
            false => Err(account(case, &ended, &wrong)),
        }
    }

    /// Runs it until it ends, and returns its remaining processes.
    fn carry_out(&self, case: &Case, words: &[String], folder: &Path) -> (Ended, Vec<String>) {
        let mut command = self.command(&case.frame.replace('@', "\"$@\""), words);
        command.current_dir(folder).process_group(0);
        // The environment of a terminal, without other settings.
        command.env("COLUMNS", "100").env("TMPDIR", folder).env("XDG_RUNTIME_DIR", folder);
        command.env("RUST_BACKTRACE", "1").stdin(Stdio::null()).stderr(Stdio::piped());
        command.stdout(match case.stdout {
            Stdout::Read => Stdio::piped(),
            Stdout::Full => OpenOptions::new().write(true).open("/dev/full").unwrap().into(),
            Stdout::Closed => io::pipe().unwrap().1.into(),
        });
        let mut child = Running::start(&mut command);
        let group = Pid::from_raw(child.id().cast_signed()).unwrap();
        let stdout = (case.stdout == Stdout::Read).then(|| child.take_stdout());
        let (begun, errors) = (read(stdout), read(Some(child.take_stderr())));
        if let Some((ready, signal)) = case.signal {
            await_handler(child.id());
            if ready == Ready::Telling {
                let _ = begun.first.recv_timeout(LIMIT);
            }
            child.signal(signal);
            if case.end == End::GoesOn {
                // A stopped process ends only after it continues.
                child.signal(Signal::CONT);
                child.signal(Signal::TERM);
            }
        }
        let status = wait(&mut child);
        let mut wrong = Vec::new();
        if test_kill_process_group(group).is_ok() {
            if status.is_some() {
                wrong.push("it leaves a process".to_owned());
            }
            let _ = kill_process_group(group, Signal::KILL);
        }
        drop(child);
        (Ended { status, stdout: begun.all(), stderr: errors.all() }, wrong)
    }

    /// The program within a shell that does `script`.
    fn command(&self, script: &str, words: &[String]) -> Command {
        let mut command = match self {
            Self::Anywhere => Command::new("sh"),
            Self::Ordinary(_) => {
                let mut command = Command::new("setpriv");
                command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "sh"]);
                command
            }
            Self::Net(net) => net.command("sh"),
        };
        let program = match self {
            Self::Ordinary(copy) => copy.as_os_str(),
            _ => OsStr::new(env!("CARGO_BIN_EXE_whimbrel")),
        };
        command.args(["-c", script, "sh"]).arg(program).args(words);
        command
    }

    /// The devices of the namespace, by name.
    fn devices(&self) -> String {
        let Self::Net(net) = self else { return String::new() };
        let text = succeed(net.command("cat").arg("/proc/net/dev"));
        let names = text.lines().filter_map(|line| Some(line.split_once(':')?.0.trim()));
        names.collect::<Vec<_>>().join(" ")
    }
}

/// Reads a stream until its end.
struct Reading {
    /// Something is there.
    first: mpsc::Receiver<()>,
    thread: JoinHandle<String>,
}

fn read(from: Option<impl Read + Send + 'static>) -> Reading {
    let (sender, first) = mpsc::channel();
    let thread = thread::spawn(move || {
        let mut text = Vec::new();
        if let Some(from) = from {
            let mut from = BufReader::new(from);
            let _ = from.read_until(b'\n', &mut text);
            let _ = sender.send(());
            let _ = from.read_to_end(&mut text);
        }
        String::from_utf8_lossy(&text).into_owned()
    });
    Reading { first, thread }
}

impl Reading {
    fn all(self) -> String {
        self.thread.join().unwrap()
    }
}

/// Waits for its end, for so long as no case may take.
fn wait(child: &mut Running) -> Option<ExitStatus> {
    let began = Instant::now();
    while began.elapsed() < LIMIT {
        if let Some(status) = child.end() {
            return Some(status);
        }
        thread::sleep(Duration::from_millis(2));
    }
    None
}

/// Faults that no case may have.
fn complaints(case: &Case, ended: &Ended) -> Vec<String> {
    let Ended { status, stdout, stderr } = ended;
    let mut wrong = Vec::new();
    let Some(status) = status else { return vec![format!("it does not end within {LIMIT:?}")] };
    let ends = match (case.end, case.signal) {
        (End::BySignal, Some((_, signal))) => status.signal() == Some(signal.as_raw()),
        (End::Code(code), _) => status.code() == Some(code),
        _ => status.code() == Some(0),
    };
    if !ends {
        wrong.push(format!("it ends with {status}, not {:?}", case.end));
    }
    for word in ["panicked", "backtrace", "RUST_BACKTRACE", "unwrap()", "core dumped"] {
        if stderr.contains(word) || stdout.contains(word) {
            wrong.push(format!("it tells of its inside: {word:?}"));
        }
    }
    let errors = stderr.lines().filter(|line| line.starts_with("error:")).count();
    let expected = usize::from(!case.says.is_empty());
    if errors != expected || (expected == 1 && !stderr.starts_with("error: ")) {
        wrong.push(format!("its messages are {errors} on the standard error, not {expected}"));
    }
    if stderr.lines().count() > LINES || stderr.lines().any(|line| line.len() > LONGEST) {
        wrong.push("its message is long".to_owned());
    }
    if stdout.contains("error:") || (case.end == End::Code(2) && !stdout.is_empty()) {
        wrong.push("it prints errors, or a result with an error".to_owned());
    }
    for says in case.says.iter().filter(|says| !stderr.contains(*says)) {
        wrong.push(format!("it does not say {says:?}"));
    }
    wrong
}

fn account(case: &Case, ended: &Ended, wrong: &[String]) -> String {
    let mut text = format!("whimbrel {}", case.line);
    for (what, shown) in [
        ("frame", case.frame.to_owned()),
        ("peer", format!("{:?}", case.peer)),
        ("signal", format!("{:?}", case.signal)),
        ("stderr", ended.stderr.trim_end().to_owned()),
        ("stdout", ended.stdout.chars().take(500).collect()),
    ] {
        let _ = write!(text, "\n  {what}: {shown}");
    }
    wrong.iter().for_each(|wrong| text += &format!("\n  WRONG: {wrong}"));
    text
}

/// A new folder that all users may write in.
fn fresh(name: &str) -> PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let folder = scratch(&format!("tour-{name}-{number}"));
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, Permissions::from_mode(0o777)).unwrap();
    folder
}

/// The names in it, in order.
fn left_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    let mut names: Vec<_> = names.collect();
    names.sort();
    names
}

/// No case may take longer, on a machine that is busy with other things either.
const LIMIT: Duration = Duration::from_secs(60);
/// The most lines of a message, of which clap's usage takes some.
const LINES: usize = 14;
/// The most bytes of a line.
const LONGEST: usize = 400;
