//! `serve` as a service: the drain after SIGTERM, messages to the service manager, sockets of socket units.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsRawFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as SocketName, UnixDatagram};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::namespace::{INSIDE, in_a_namespace};
use crate::needs::{self, TUN};
use crate::running::{Running, Signal, await_that, output, succeed};
use crate::scratch::scratch;
use crate::signals::{await_serving, free_address};

fn whimbrel(words: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_whimbrel"));
    command.args(words.split(' ')).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.env_remove("NOTIFY_SOCKET").env_remove(INSIDE);
    command
}

/// A connection that is kept alive.
pub(crate) struct Client(TcpStream);

impl Client {
    pub(crate) fn new(at: SocketAddr) -> Self {
        let stream = TcpStream::connect(at).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        Self(stream)
    }

    /// The head of the response to a request.
    pub(crate) fn ask(&mut self) -> String {
        self.0.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        let (mut head, mut byte) = (Vec::new(), [0]);
        while !head.ends_with(b"\r\n\r\n") {
            self.0.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        self.0.read_exact(&mut [0; 128]).unwrap();
        String::from_utf8(head).unwrap()
    }

    /// Bytes up to the end of the connection.
    fn rest(&mut self) -> usize {
        let mut rest = Vec::new();
        self.0.read_to_end(&mut rest).unwrap()
    }
}

/// The next message of a service, at most 60 s later. Where the test was stopped meanwhile, the call begins anew.
fn receive(socket: &UnixDatagram) -> String {
    let mut bytes = [0; 4_096];
    loop {
        match socket.recv(&mut bytes) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            count => return String::from_utf8(bytes[..count.unwrap()].to_vec()).unwrap(),
        }
    }
}

/// Ends a server with keep-alive connections: each gets its response, and an end.
fn drains(at: SocketAddr, mut serve: Running) {
    let _output = await_serving(&mut serve);
    let [mut busy, mut quiet] = [Client::new(at), Client::new(at)];
    assert!(!busy.ask().contains("Connection: close"));
    serve.signal(Signal::TERM);
    await_that("no listener", || TcpStream::connect(at).is_err());
    let head = busy.ask();
    assert!(head.starts_with("HTTP/1.1 200") && head.contains("Connection: close"), "{head}");
    assert_eq!((busy.rest(), quiet.rest()), (0, 0));
    assert!(serve.wait().success());
}

#[test]
fn sigterm_ends_connections_with_their_next_response() {
    let at = free_address();
    drains(at, Running::start(&mut whimbrel(&format!("serve -w kernel: -l {at}"))));
}

#[test]
fn sigterm_drains_each_shard() {
    in_a_namespace("service::sigterm_drains_each_shard", &[TUN, "ip"], || {
        let wire = "tun:whim0,addr=10.9.0.2/24,host=10.9.0.1,queues=2";
        let line = format!("serve --shards 2 --control off -w {wire}");
        drains("10.9.0.2:80".parse().unwrap(), Running::start(&mut whimbrel(&line)));
    });
}

#[test]
fn drain_ends_after_its_time_and_at_a_second_signal() {
    for (drain, signals) in [("300ms", 1), ("1h", 2), ("0", 1)] {
        let at = free_address();
        let line = format!("serve -w kernel: -l {at} --drain {drain} --echo");
        let mut serve = Running::start(&mut whimbrel(&line));
        let _output = await_serving(&mut serve);
        let mut client = Client::new(at);
        client.0.write_all(b"x").unwrap();
        client.0.read_exact(&mut [0]).unwrap();
        serve.signal(Signal::TERM);
        if signals == 2 {
            await_that("no listener", || TcpStream::connect(at).is_err());
            // A second signal is one after 200 ms.
            let begun = Instant::now();
            await_that("the end", || {
                if begun.elapsed() > Duration::from_millis(250) {
                    serve.signal(Signal::TERM);
                }
                serve.end().is_some()
            });
            assert!(!serve.wait().success(), "it ended at once, without a summary");
            continue;
        }
        assert!(serve.wait().success(), "{drain}");
        // It was reset.
        assert!(client.0.read(&mut [0]).is_err(), "{drain}");
    }
}

#[test]
fn http2_connections_get_goaway() {
    if !needs::found(&["curl"]) {
        return;
    }
    let at = free_address();
    let serve = format!("serve -w kernel: -l {at} --h2c --body 3M");
    let mut serve = Running::start(&mut whimbrel(&serve));
    let _output = await_serving(&mut serve);
    let mut curl = needs::command("curl --http2-prior-knowledge -sSv --limit-rate 1M -o /dev/null");
    curl.arg(format!("http://{at}/")).stderr(Stdio::piped());
    let mut curl = Running::start(&mut curl);
    let mut errors = curl.take_stderr();
    let mut text = String::new();
    let mut some = [0; 4_096];
    while !text.contains("HTTP/2 200") {
        let count = errors.read(&mut some).unwrap();
        assert!(count > 0, "{text}");
        text += &String::from_utf8_lossy(&some[..count]);
    }
    serve.signal(Signal::TERM);
    errors.read_to_string(&mut text).unwrap();
    assert!(curl.wait().success(), "{text}");
    assert!(serve.wait().success());
}

/// The service manager's end of NOTIFY_SOCKET.
struct Manager {
    folder: PathBuf,
    socket: UnixDatagram,
    seen: Vec<String>,
}

impl Manager {
    fn new(folder: &Path) -> Self {
        // A path may be longer than a socket's address.
        let at = fs::File::open(folder).unwrap();
        let path = format!("/proc/self/fd/{}/notify", at.as_raw_fd());
        let socket = UnixDatagram::bind(path).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        Self { folder: folder.to_owned(), socket, seen: Vec::new() }
    }

    fn start(&self, words: &str, watchdog: Option<Duration>) -> Running {
        // WATCHDOG_PID is the process's own number.
        let mut command = Command::new("sh");
        command.arg("-c").env_remove(INSIDE);
        command.args(["export WATCHDOG_PID=$$; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_whimbrel")]);
        command.args(words.split(' ')).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.current_dir(&self.folder).env("NOTIFY_SOCKET", "notify");
        if let Some(watchdog) = watchdog {
            command.env("WATCHDOG_USEC", watchdog.as_micros().to_string());
        }
        Running::start(&mut command)
    }

    fn next(&mut self) -> String {
        let text = receive(&self.socket);
        self.seen.push(text.clone());
        text
    }

    /// Waits for a message with this line.
    fn await_line(&mut self, line: &str) -> String {
        loop {
            let message = self.next();
            if message.lines().any(|it| it.starts_with(line)) {
                return message;
            }
        }
    }
}

#[test]
fn service_manager_learns_of_start_reload_and_end() {
    let folder = scratch("service-notify");
    fs::create_dir_all(&folder).unwrap();
    let (mut manager, at, log) = (Manager::new(&folder), free_address(), folder.join("access.log"));
    let line = format!("serve -w kernel: -l {at} --access-log access.log");
    let mut serve = manager.start(&line, Some(Duration::from_millis(100)));
    assert_eq!(manager.next(), "READY=1\nSTATUS=serving\n");
    let mut client = Client::new(at);
    client.ask();
    manager.await_line("STATUS=serving: 1 connection open, 1 request");
    assert!(manager.seen.last().unwrap().starts_with("WATCHDOG=1\n"), "{:?}", manager.seen);
    let lines = |path: &Path| fs::read_to_string(path).unwrap_or_default().lines().count();
    await_that("a line of the log", || lines(&log) == 1);
    let old = folder.join("access.log.1");
    fs::rename(&log, &old).unwrap();
    serve.signal(Signal::HUP);
    let reloading = manager.await_line("RELOADING=1");
    assert!(reloading.contains("MONOTONIC_USEC="), "{reloading}");
    assert_eq!(manager.await_line("READY=1"), "READY=1\nSTATUS=serving\n");
    await_that("the new log", || log.exists());
    client.ask();
    await_that("a line of the new log", || lines(&log) == 1);
    assert_eq!(lines(&old), 1);
    serve.signal(Signal::TERM);
    assert_eq!(manager.await_line("STOPPING=1"), "STOPPING=1\nSTATUS=draining\n");
    assert_eq!(client.rest(), 0);
    assert!(serve.wait().success());
}

#[test]
fn abstract_socket_of_a_service_manager_gets_messages() {
    let name = format!("whimbrel-notify-{}", std::process::id());
    let socket = UnixDatagram::bind_addr(&SocketName::from_abstract_name(&name).unwrap()).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut command = whimbrel(&format!("serve -w kernel: -l {}", free_address()));
    let mut serve = Running::start(command.env("NOTIFY_SOCKET", format!("@{name}")));
    assert_eq!(receive(&socket), "READY=1\nSTATUS=serving\n");
    serve.signal(Signal::TERM);
    assert!(receive(&socket).starts_with("STOPPING=1\n"));
    assert!(serve.wait().success());
    let mut command = whimbrel(&format!("serve -w kernel: -l {}", free_address()));
    let mut serve = Running::start(command.env("NOTIFY_SOCKET", "vsock:2:1"));
    await_serving(&mut serve);
    serve.signal(Signal::TERM);
    let told = String::from_utf8(serve.output().stderr).unwrap();
    assert!(told.contains("use a path, or @ and a name"), "{told}");
}

#[test]
fn hung_shard_gets_no_sign_of_life() {
    in_a_namespace("service::hung_shard_gets_no_sign_of_life", &[TUN, "ip", "python3"], || {
        let folder = scratch("service-hung");
        fs::create_dir_all(&folder).unwrap();
        let mut manager = Manager::new(&folder);
        let wire = "tun:whim0,addr=10.9.0.2/24,host=10.9.0.1,queues=2";
        let line = format!("serve --shards 2 --control off -w {wire}");
        let serve = manager.start(&line, Some(Duration::from_millis(100)));
        manager.await_line("READY=1");
        manager.await_line("WATCHDOG=1");
        let tasks = fs::read_dir(format!("/proc/{}/task", serve.id())).unwrap();
        let name = |task: &Path| fs::read_to_string(task.join("comm")).unwrap_or_default();
        let mut tasks = tasks.map(|task| task.unwrap().path());
        let task = tasks.find(|task| name(task).trim() == "whimbrel-1").expect("a shard's thread");
        let task = task.file_name().unwrap().to_str().unwrap().to_owned();
        let mut tracer = Running::start(
            Command::new("python3").args(["-c", STOP_THREAD, &task]).stdin(Stdio::piped()),
        );
        manager.await_line("STATUS=1 shard did not answer in time");
        // None comes any more, until the shard goes on.
        for _ in 0..3 {
            let message = manager.next();
            assert!(!message.contains("WATCHDOG=1"), "{:?}", manager.seen);
        }
        drop(tracer.take_stdin());
        manager.await_line("WATCHDOG=1");
        serve.signal(Signal::KILL);
    });
}

/// Stops one thread of a process until the standard input ends: PTRACE_ATTACH and PTRACE_DETACH of ptrace(2).
const STOP_THREAD: &str = "
import ctypes, os, sys
ptrace = ctypes.CDLL(None, use_errno=True).ptrace
ptrace.argtypes = [ctypes.c_long] * 4
thread = int(sys.argv[1])
if ptrace(16, thread, 0, 0) != 0: sys.exit(os.strerror(ctypes.get_errno()))
os.waitpid(thread, 0x40000000)
sys.stdin.read()
ptrace(17, thread, 0, 0)
";

#[test]
fn socket_of_a_socket_unit_is_served() {
    if !needs::found(&["systemd-socket-activate"]) {
        return;
    }
    let at = free_address();
    let mut unit = needs::command("systemd-socket-activate");
    unit.args(["-l", &at.to_string(), env!("CARGO_BIN_EXE_whimbrel")]);
    unit.args(["serve", "-w", "kernel:", "--drain", "0"]);
    let mut unit = Running::start(unit.stdout(Stdio::piped()).stderr(Stdio::piped()));
    await_that("a listener", || TcpStream::connect(at).is_ok());
    assert!(Client::new(at).ask().starts_with("HTTP/1.1 200"));
    unit.signal(Signal::TERM);
    assert!(unit.wait().success());
}

#[test]
fn unit_has_no_fault_and_little_exposure() {
    if !needs::found(&["systemd-analyze"]) {
        return;
    }
    let folder = scratch("service-unit");
    fs::create_dir_all(&folder).unwrap();
    let unit = include_str!("../../../../docs/whimbrel.service");
    let path = folder.join("whimbrel.service");
    let unit = unit.replace("/usr/local/bin/whimbrel", env!("CARGO_BIN_EXE_whimbrel"));
    fs::write(&path, &unit).unwrap();
    let verified = output(needs::command("systemd-analyze verify").arg(&path));
    // It loads the machine's other units, too, and tells of their faults.
    let told = String::from_utf8_lossy(&verified.stderr);
    let of_ours = told.lines().any(|line| line.contains("whimbrel"));
    assert!(verified.status.success() && !of_ours, "{verified:?}");
    let security = "systemd-analyze security --offline=true --threshold=30 --no-pager";
    succeed(needs::command(security).arg(&path));
    // Its command line is one of this program.
    let exec = unit.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap();
    let words = exec.split(' ').skip(1).chain(["--print-config"]);
    succeed(Command::new(env!("CARGO_BIN_EXE_whimbrel")).args(words));
}
