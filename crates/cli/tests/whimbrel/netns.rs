//! Runs `whimbrel` and the kernel's own tools side by side in a network namespace that goes with
//! the test, whatever becomes of it.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// A network namespace and a folder, both removed at the end.
pub(crate) struct Net {
    name: String,
    folder: PathBuf,
}

impl Net {
    /// A fresh one; `None`, after saying so, where the system does not allow it. With
    /// `WHIMBREL_REQUIRE_NET=1` that is a failure.
    pub(crate) fn new() -> Option<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        if let Err(obstacle) = obstacle() {
            assert!(std::env::var_os("WHIMBREL_REQUIRE_NET").is_none(), "{obstacle}");
            eprintln!("SKIPPED: {obstacle}");
            return None;
        }
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("whim-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(&name);
        fs::create_dir_all(&folder).unwrap();
        let net = Self { name, folder };
        succeed(Command::new("ip").args(["netns", "add", &net.name]));
        succeed(Command::new("ip").args(["-n", &net.name, "link", "set", "lo", "up"]));
        Some(net)
    }

    /// The same with a veth pair: the kernel has 10.9.0.1 and fd09::1 on the one end, `vkernel`;
    /// nobody has anything on the other, `vstack`.
    pub(crate) fn with_veth() -> Option<Self> {
        let net = Self::new()?;
        net.run("ip link add vkernel type veth peer name vstack");
        net.run("ip address add 10.9.0.1/24 dev vkernel");
        net.run("ip address add fd09::1/64 dev vkernel nodad");
        net.run("ip link set vkernel up");
        net.run("ip link set vstack up");
        Some(net)
    }

    /// One of its interfaces goes to `other`.
    pub(crate) fn give(&self, interface: &str, other: &Self) {
        self.run(&format!("ip link set {interface} netns {}", other.name));
    }

    /// A folder of the test's own.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// `program`, to be run in the namespace.
    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name]).arg(program);
        command
    }

    /// What a line of words prints, run in the namespace; it must succeed.
    pub(crate) fn run(&self, line: &str) -> String {
        let mut words = line.split_whitespace();
        let mut command = self.command(words.next().unwrap());
        succeed(command.args(words))
    }

    /// `whimbrel serve`, ready to be talked to.
    pub(crate) fn serve(&self, arguments: &[&str]) -> Serve {
        self.serving(&[&["serve"], arguments].concat())
    }

    /// `whimbrel` with these words, which make it a server, ready to be talked to.
    pub(crate) fn serving(&self, words: &[&str]) -> Serve {
        let mut command = self.command(WHIMBREL);
        command.args(words).stdout(Stdio::piped()).stderr(Stdio::piped());
        // `ip netns exec` becomes the program: the child is `whimbrel` itself.
        let mut child = command.spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut text = String::new();
        while !text.contains("try  ") {
            if output.read_line(&mut text).unwrap() == 0 {
                let mut error = String::new();
                child.stderr.take().unwrap().read_to_string(&mut error).unwrap();
                panic!("serve ended: {:?}\n{text}{error}", child.wait());
            }
        }
        let reader = thread::spawn(move || {
            output.read_to_string(&mut text).unwrap();
            text
        });
        Serve { child, reader: Some(reader) }
    }
}

/// Whether `program` is there. With `WHIMBREL_REQUIRE_NET=1` it must be.
pub(crate) fn has(program: &str) -> bool {
    let found = Command::new(program).arg("-v").output().is_ok();
    if !found {
        assert!(std::env::var_os("WHIMBREL_REQUIRE_NET").is_none(), "no {program}: install it");
        eprintln!("SKIPPED: no {program}");
    }
    found
}

impl Drop for Net {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "del", &self.name]).status();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Waits until process `id` handles SIGINT by itself, then sends it.
pub(crate) fn interrupt(id: u32) {
    await_handler(id);
    succeed(Command::new("kill").args(["-INT", &id.to_string()]));
}

/// Waits until process `id` handles SIGINT by itself.
pub(crate) fn await_handler(id: u32) {
    // SigCgt is a mask in hexadecimal digits, signal 1 its lowest bit.
    let handles = |status: &str| {
        let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:"))?.trim();
        Some(u64::from_str_radix(mask, 16).unwrap() & 0b10 != 0)
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

/// A `whimbrel serve` that runs; killed at the end.
pub(crate) struct Serve {
    child: Child,
    reader: Option<JoinHandle<String>>,
}

impl Serve {
    /// The processor time it took so far.
    pub(crate) fn cpu_time(&self) -> Duration {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        // After the name in parentheses, which may hold anything: utime and stime are fields 14
        // and 15 of all, in ticks of 10 ms.
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        let ticks: u64 = fields[11..=12].iter().map(|field| field.parse::<u64>().unwrap()).sum();
        Duration::from_millis(ticks * 10)
    }

    /// Ends it by SIGTERM, checks that it released everything, and returns what it printed.
    pub(crate) fn stop(self) -> String {
        let text = self.end();
        assert!(text.contains("left over: none ("), "{text}");
        text
    }

    /// Ends it by SIGTERM, and returns what it printed.
    pub(crate) fn end(mut self) -> String {
        succeed(Command::new("kill").args(["-TERM", &self.child.id().to_string()]));
        let status = wait(&mut self.child);
        let text = self.reader.take().unwrap().join().unwrap();
        let mut errors = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
        assert!(status.success(), "{status}\n{text}{errors}");
        assert_eq!(errors, "", "{text}");
        text
    }
}

impl Drop for Serve {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A copy of the program that everybody may run, for tests that give up their rights.
pub(crate) fn public_copy(folder: &Path) -> PathBuf {
    let copy = folder.join("whimbrel");
    fs::copy(WHIMBREL, &copy).unwrap();
    for path in [folder, &copy] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    copy
}

/// What `command` prints; it must succeed.
pub(crate) fn succeed(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{text}{errors}", output.status);
    text
}

/// What `command` says when it fails, and its exit code.
pub(crate) fn fail(command: &mut Command) -> (i32, String) {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let errors = String::from_utf8_lossy(&stderr).into_owned();
    assert!(!status.success(), "{command:?} succeeded: {}", String::from_utf8_lossy(&stdout));
    (status.code().unwrap_or_else(|| panic!("{command:?}: {status}\n{errors}")), errors)
}

fn wait(child: &mut Child) -> ExitStatus {
    let mut status = None;
    await_that("SIGTERM ends it", || {
        status = child.try_wait().unwrap();
        status.is_some()
    });
    status.unwrap()
}

fn obstacle() -> Result<(), String> {
    let id = Command::new("id").arg("-u").output().map_err(|error| format!("id: {error}"))?;
    if id.stdout != b"0\n" {
        return Err("not root: network namespaces and TUN need it; run the tests as root".into());
    }
    if !Path::new("/dev/net/tun").exists() {
        return Err("no /dev/net/tun: load the driver (modprobe tun) or pass the device in".into());
    }
    for (tool, version) in [("ip", "-V"), ("curl", "-V"), ("ping", "-V")] {
        Command::new(tool)
            .arg(version)
            .output()
            .map_err(|error| format!("{tool}: {error}; install iproute2, curl and iputils-ping"))?;
    }
    Ok(())
}

const WHIMBREL: &str = env!("CARGO_BIN_EXE_whimbrel");
