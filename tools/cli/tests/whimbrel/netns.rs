//! Runs `whimbrel` and the kernel's own tools in a network namespace that ends with the test in any
//! case.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::process::{Pid, kill_process};

use crate::needs;
use crate::running::{Running, Signal, await_that, succeed};
use crate::scratch::{guard_namespace, scratch};

/// A network namespace and a folder. Both go at the end, and with them all that runs there.
pub(crate) struct Net {
    name: String,
    folder: PathBuf,
    /// Programs that the test needs.
    programs: Vec<&'static str>,
}

impl Net {
    /// A fresh namespace. `None`, with a note, if the system does not allow it or lacks a need of the
    /// test ([`needs::found`]): the programs to run there, of which `ip` is always one and the shell
    /// none. With `WHIMBREL_REQUIRE_NET=1` that is a failure.
    pub(crate) fn with(programs: &[&'static str]) -> Option<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        if let Err(obstacle) = obstacle() {
            needs::skip(obstacle);
            return None;
        }
        let programs = [&["ip"], programs].concat();
        if !needs::found(&programs) {
            return None;
        }
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("whim-{}-{number}", std::process::id());
        let folder = scratch(&name);
        fs::create_dir(&folder).unwrap();
        guard_namespace(&name);
        let net = Self { name, folder, programs };
        succeed(Command::new("ip").args(["netns", "add", &net.name]));
        if needs::is_without_ipv6() {
            net.set("net.ipv6.conf.all.disable_ipv6", "1");
        }
        succeed(Command::new("ip").args(["-n", &net.name, "link", "set", "lo", "up"]));
        Some(net)
    }

    /// [`Net::with`] no other programs.
    pub(crate) fn new() -> Option<Self> {
        Self::with(&[])
    }

    /// Returns a namespace with a veth pair: the kernel has 10.9.0.1 and, if there is IPv6, fd09::1 on
    /// one end, `vkernel`; the other, `vstack`, has no addresses.
    pub(crate) fn with_veth(programs: &[&'static str]) -> Option<Self> {
        let net = Self::with(programs)?;
        net.run("ip link add vkernel type veth peer name vstack");
        net.run("ip address add 10.9.0.1/24 dev vkernel");
        if needs::is_there(needs::IPV6) {
            net.run("ip address add fd09::1/64 dev vkernel nodad");
        }
        net.run("ip link set vkernel up");
        net.run("ip link set vstack up");
        Some(net)
    }

    /// One of its interfaces goes to `other`.
    pub(crate) fn give(&self, interface: &str, other: &Self) {
        self.run(&format!("ip link set {interface} netns {}", other.name));
    }

    /// By which `ip netns` knows it.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// A folder of the test's own.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// `program`, to run in the namespace: a file, or one that the test named as a need.
    pub(crate) fn command(&self, program: impl AsRef<Path>) -> Command {
        let program = program.as_ref();
        let is_said = self.programs.iter().any(|said| program == Path::new(said));
        let is_everywhere = EVERYWHERE.iter().any(|there| program == Path::new(there));
        let allowed = program.is_absolute() || is_everywhere || is_said;
        assert!(allowed, "the test needs {program:?}: say so, `Net::with(&[{program:?}])`");
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name]).arg(program);
        command
    }

    /// Output of a line of words, run in the namespace; it must succeed.
    pub(crate) fn run(&self, line: &str) -> String {
        let mut words = line.split_whitespace();
        let mut command = self.command(words.next().unwrap());
        succeed(command.args(words))
    }

    /// Sets a variable of its kernel's, in the words of sysctl(8).
    pub(crate) fn set(&self, variable: &str, value: &str) {
        let file = format!("/proc/sys/{}", variable.replace('.', "/"));
        succeed(self.command("sh").args(["-c", "echo \"$1\" > \"$2\"", "sh", value, &file]));
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
        let mut child = Running::start(&mut command);
        let mut output = BufReader::new(child.take_stdout());
        let mut text = String::new();
        while !text.contains("try  ") {
            if output.read_line(&mut text).unwrap() == 0 {
                let mut error = String::new();
                child.take_stderr().read_to_string(&mut error).unwrap();
                panic!("serve ended: {:?}\n{text}{error}", child.wait());
            }
        }
        let printed = Arc::new(Mutex::new(text));
        let so_far = Arc::clone(&printed);
        let reader = thread::spawn(move || {
            let mut line = String::new();
            while output.read_line(&mut line).unwrap() > 0 {
                so_far.lock().unwrap().push_str(&line);
                line.clear();
            }
        });
        Serve { child, printed, reader: Some(reader) }
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        // Programs that the test left running, and their children.
        let inside = Command::new("ip").args(["netns", "pids", &self.name]).output();
        let inside = inside.map(|it| String::from_utf8_lossy(&it.stdout).into_owned());
        for id in inside.unwrap_or_default().lines().filter_map(|id| id.parse().ok()) {
            end(id);
        }
        let _ = Command::new("ip").args(["netns", "del", &self.name]).status();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// A `whimbrel serve` that runs; killed at the end.
pub(crate) struct Serve {
    child: Running,
    printed: Arc<Mutex<String>>,
    /// Appends each line that it prints.
    reader: Option<JoinHandle<()>>,
}

impl Serve {
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// The processor time it took so far.
    pub(crate) fn cpu_time(&self) -> Duration {
        self.child.cpu_time()
    }

    /// Its output so far.
    pub(crate) fn printed(&self) -> String {
        self.printed.lock().unwrap().clone()
    }

    /// Ends it by SIGINT, checks that it released everything, and returns what it printed.
    pub(crate) fn stop(self) -> String {
        let text = self.end();
        assert!(text.contains("left over: none ("), "{text}");
        text
    }

    /// Ends it by SIGINT, and returns its output; it may have reported no error.
    pub(crate) fn end(self) -> String {
        let (text, errors) = self.end_complaining();
        assert_eq!(errors, "", "{text}");
        text
    }

    /// Ends it by SIGINT, and returns its standard output and its errors.
    pub(crate) fn end_complaining(mut self) -> (String, String) {
        self.child.signal(Signal::INT);
        await_that("SIGINT ends it", || self.child.end().is_some());
        let status = self.child.wait();
        self.reader.take().unwrap().join().unwrap();
        let text = self.printed();
        let mut errors = String::new();
        self.child.take_stderr().read_to_string(&mut errors).unwrap();
        assert!(status.success(), "{status}\n{text}{errors}");
        (text, errors)
    }
}

/// A copy of the program that everybody may run, for tests that give up their rights.
pub(crate) fn public_copy(folder: &Path) -> PathBuf {
    let copy = folder.join("whimbrel");
    // A separate program copies: other tests' children would hold a file that we write open until they
    // run, and the system starts no program that is being written.
    succeed(Command::new("cp").args([Path::new(WHIMBREL), &copy]));
    for path in [folder, &copy] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    copy
}

/// The copy of the program, run in `net` by a user without rights, where the driver's node is of this
/// mode: not as udev or a container has made it on this machine. The test needs [`FOR_UNPRIVILEGED`].
pub(crate) fn unprivileged(net: &Net, copy: &Path, mode: &str) -> Command {
    let mut command = net.command("sh");
    command.args(["-c", BECOME_NOBODY, "sh", mode]).arg(copy);
    command
}

/// The programs that [`unprivileged`] runs.
pub(crate) const FOR_UNPRIVILEGED: [&str; 3] = ["mknod", "mount", "setpriv"];
/// `ip netns exec` has made a namespace of mounts already.
const BECOME_NOBODY: &str = r#"
mount -t tmpfs none /dev/net && mknod -m "$1" /dev/net/tun c 10 200 && shift &&
exec setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
"#;

fn obstacle() -> Result<(), &'static str> {
    if !rustix::process::geteuid().is_root() {
        return Err("not root");
    }
    if !needs::is_there(needs::TUN) {
        return Err("no /dev/net/tun: load the driver (modprobe tun) or pass the device in");
    }
    Ok(())
}

/// Kills the process of this number, if it still runs.
fn end(id: i32) {
    if let Some(pid) = Pid::from_raw(id) {
        let _ = kill_process(pid, Signal::KILL);
    }
}

/// Programs that all systems have.
const EVERYWHERE: [&str; 2] = ["sh", "cat"];
pub(crate) const WHIMBREL: &str = env!("CARGO_BIN_EXE_whimbrel");
