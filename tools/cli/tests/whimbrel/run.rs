//! `whimbrel run` as an ordinary user: programs of others, against servers in another network namespace,
//! with `/dev/net/tun` open to all, to root alone, and hidden.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;

use serde_json::Value;
use whimbrel_io::process::Namespace;

use crate::netns::{Net, Serve};
use crate::running::{Running, Signal, await_that, output, succeed};
use crate::schema::checked;

mod datagrams;
pub(crate) mod programs;
pub(crate) mod wire;
mod wire_ipv6;

/// Access of a user to `/dev/net/tun`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Node {
    Open,
    Closed,
    Hidden,
}

const NODES: [Node; 3] = [Node::Open, Node::Closed, Node::Hidden];

/// The machine that programs run on, and the network that it is in.
struct Machines {
    near: Net,
    far: Net,
}

impl Machines {
    /// Two namespaces: the machine has 203.0.113.1, the far side 203.0.113.9.
    fn new(programs: &[&'static str]) -> Option<Self> {
        let near = Net::with(&[&["unshare", "setpriv", "curl"], programs].concat())?;
        let far = Net::with(&[&["curl"], programs].concat())?;
        near.run("ip link add near type veth peer name far");
        near.give("far", &far);
        for (net, name, address) in [(&near, "near", "203.0.113.1"), (&far, "far", "203.0.113.9")] {
            net.run(&format!("ip address add {address}/24 dev {name}"));
            net.run(&format!("ip link set {name} up"));
        }
        let folder = near.folder();
        // Wherever the repository is, this user may enter there.
        fs::copy(env!("CARGO_BIN_EXE_whimbrel"), folder.join("whimbrel")).unwrap();
        fs::write(folder.join("resolv.conf"), "nameserver 203.0.113.9\n").unwrap();
        fs::set_permissions(folder, fs::Permissions::from_mode(0o777)).unwrap();
        Some(Self { near, far })
    }

    /// `whimbrel run` with these words, by a user without any right.
    fn run(&self, node: Node, words: &[&str]) -> Command {
        let user = "setpriv --reuid=65534 --regid=65534 --clear-groups";
        self.run_as(user, node, words)
    }

    /// `whimbrel run` with these words, by the user that this program makes of root.
    fn run_as(&self, user: &str, node: Node, words: &[&str]) -> Command {
        let folder = self.near.folder().display();
        let script = match node {
            Node::Hidden => "mount -t tmpfs none /dev/net".to_owned(),
            Node::Open | Node::Closed => {
                let mode = if node == Node::Open { 666 } else { 600 };
                format!(
                    "rm -f {folder}/tun; mknod {folder}/tun c 10 200; chmod {mode} {folder}/tun; \
                     mount --bind {folder}/tun /dev/net/tun"
                )
            }
        };
        let script = format!(
            "{script}; mount --bind {folder}/resolv.conf /etc/resolv.conf; cd {folder}; exec {user} \
             {folder}/whimbrel run \"$@\""
        );
        let mut command = self.near.command("unshare");
        command.args(["-m", "sh", "-c", &script, "sh"]).args(words);
        command.stdin(Stdio::null()).env("HOME", "/tmp");
        command
    }

    /// Its exit code and its output.
    fn ran(&self, node: Node, words: &[&str]) -> (Option<i32>, String) {
        let Output { status, stdout, stderr } = output(&mut self.run(node, words));
        let text = [stdout, stderr].concat();
        (status.code(), String::from_utf8_lossy(&text).into_owned())
    }

    /// Has `load` run curl and a static program, by each of these nodes: they load a file of so many bytes, and what
    /// they got is compared.
    fn load_by_each(&self, len: usize, nodes: &[Node], load: impl Fn(Node, &[&str])) {
        let web = self.web(len);
        let (whole, got) = (self.far.folder().join("root/file"), self.near.folder().join("got"));
        for node in nodes {
            for program in
                [&["curl", "-sS", "-o", "got"][..], &["busybox", "wget", "-q", "-O", "got"]]
            {
                load(*node, &[program, &["http://203.0.113.9/file"]].concat());
                succeed(self.near.command("cmp").args([&whole, &got]));
                fs::remove_file(&got).unwrap();
            }
        }
        web.end();
    }

    /// Gives the machine fd03::1, and the far side fd03::9.
    fn add_ipv6(&self) {
        self.near.run("ip address add fd03::1/64 dev near nodad");
        self.far.run("ip address add fd03::9/64 dev far nodad");
    }

    /// The summary of a run with `--json -o summary`.
    fn summary(&self) -> Value {
        checked(&fs::read_to_string(self.near.folder().join("summary")).unwrap())
    }

    /// A web server on the far side, with a file of this many bytes.
    fn web(&self, len: usize) -> Serve {
        let root = self.far.folder().join("root");
        fs::create_dir_all(&root).unwrap();
        let bytes: Vec<u8> = (0..len).map(|at| (at % 251 + at / 65_536) as u8).collect();
        fs::write(root.join("file"), bytes).unwrap();
        let root = root.display().to_string();
        self.far.serve(&["-w", "kernel:", "-l", "203.0.113.9:80", "--file-root", &root])
    }

    /// A name server on the far side, until the process ends.
    fn name_server(&self) {
        let (datagrams, streams) = Machines::on(&self.far, || {
            (
                UdpSocket::bind("203.0.113.9:53").unwrap(),
                TcpListener::bind("203.0.113.9:53").unwrap(),
            )
        });
        thread::spawn(move || {
            let mut query = [0; 512];
            while let Ok((len, from)) = datagrams.recv_from(&mut query) {
                let query = &query[..len];
                let is_long = query.windows(4).any(|word| word == b"long");
                let _ = datagrams.send_to(&answer(query, is_long), from);
            }
        });
        thread::spawn(move || {
            for stream in streams.incoming() {
                let (mut stream, mut len) = (stream.unwrap(), [0; 2]);
                while stream.read_exact(&mut len).is_ok() {
                    let mut query = vec![0; u16::from_be_bytes(len).into()];
                    stream.read_exact(&mut query).unwrap();
                    let answer = answer(&query, false);
                    stream.write_all(&(answer.len() as u16).to_be_bytes()).unwrap();
                    stream.write_all(&answer).unwrap();
                }
            }
        });
    }

    /// Something bound on a machine by its own sockets.
    fn on<T>(net: &Net, bind: impl FnOnce() -> T) -> T {
        let path = format!("/run/netns/{}", net.name());
        Namespace::open(Path::new(&path)).unwrap().within(bind).unwrap()
    }
}

#[test]
fn refusals_reach_the_program_at_once() {
    let Some(machines) = Machines::new(&[]) else { return };
    // Here curl would find its own host's port, if it were not denied.
    let own = Machines::on(&machines.near, || TcpListener::bind("127.0.0.1:8080")).unwrap();
    for (to, options, reason) in [
        ("http://203.0.113.9:81/", &[][..], "connection_refused"),
        ("http://192.0.2.1/", &[], "network_unreachable"),
        ("http://10.0.2.2:8080/", &[], "denied"),
        ("http://169.254.1.1/", &[], "denied"),
        ("http://10.0.2.77/", &[], "no_such_host_inside"),
        ("http://10.0.2.3:81/", &["--host-loopback"], "no_such_port_of_the_name_server"),
    ] {
        let curl = ["--json", "-o", "summary", "--", "curl", "-sS", "-m", "20", to];
        let (code, text) = machines.ran(Node::Open, &[options, &curl].concat());
        assert_eq!(code, Some(7), "{to}: {text}");
        let summary = machines.summary();
        assert_eq!(summary["refused"][reason], 1, "{to}: {summary}");
        assert_eq!(summary["exit_code"], 7);
    }
    let server = thread::spawn(move || {
        let (mut client, _) = own.accept().unwrap();
        let _ = client.read(&mut [0; 1000]).unwrap();
        client.write_all(b"HTTP/1.0 200 OK\r\n\r\nof the host").unwrap();
    });
    let words = ["--quiet", "--host-loopback", "--", "curl", "-sS", "http://10.0.2.2:8080/"];
    assert_eq!(machines.ran(Node::Open, &words), (Some(0), "of the host".into()));
    server.join().unwrap();
}

#[test]
fn exit_code_is_the_programs() {
    let Some(machines) = Machines::new(&[]) else { return };
    for (script, code) in [("exit 0", 0), ("exit 7", 7), ("kill -TERM $$", 143)] {
        let ran = machines.ran(Node::Closed, &["--quiet", "--", "sh", "-c", script]);
        assert_eq!(ran, (Some(code), String::new()), "{script}");
    }
    let (code, text) = machines.ran(Node::Closed, &["--quiet", "--", "/nowhere/program"]);
    assert_eq!(code, Some(127), "{text}");
    assert!(text.contains("cannot run /nowhere/program"), "{text}");
    let words = ["-o", "/nowhere/summary", "--", "touch", "ran"];
    let (code, text) = machines.ran(Node::Closed, &words);
    assert!(code == Some(1) && text.contains("--output /nowhere/summary: "), "{text}");
    assert!(!machines.near.folder().join("ran").exists(), "it is not run in vain");
    let words = ["--inside-cc", "no-such", "--", "true"];
    let (code, text) = machines.ran(Node::Closed, &words);
    assert_eq!(code, Some(2), "{text}");
    assert!(
        text.contains("--inside-cc \"no-such\"") && text.contains("allows users reno"),
        "{text}"
    );
    let shown = "cat /proc/sys/net/ipv4/tcp_congestion_control; id -u; \
                 grep -cE '(CapPrm.*0000000|NoNewPrivs.*1)$' /proc/self/status";
    let words = ["--quiet", "--inside-cc", "reno", "--", "sh", "-c", shown];
    assert_eq!(machines.ran(Node::Open, &words), (Some(0), "reno\n65534\n2\n".into()));
}

#[test]
fn names_are_found_by_datagrams_and_by_tcp_after_truncation() {
    let Some(machines) = Machines::new(&["getent"]) else { return };
    machines.name_server();
    for node in NODES {
        for name in ["short.example", "long.example"] {
            let words = ["--quiet", "--", "getent", "ahostsv4", name];
            let (code, text) = machines.ran(node, &words);
            assert!(code == Some(0) && text.starts_with("203.0.113.9 "), "{node:?} {name}: {text}");
        }
    }
}

/// The answer to a query: 203.0.113.9, or that it is too long for a datagram (RFC 1035 4.1.1).
fn answer(query: &[u8], is_truncated: bool) -> Vec<u8> {
    let name = query[12..].iter().position(|len| *len == 0).unwrap();
    let question = &query[12..12 + name + 5];
    let has_answer = !is_truncated && question[name + 1..] == [0, 1, 0, 1];
    let mut answer = query[..2].to_vec();
    answer.extend([if is_truncated { 0x83 } else { 0x81 }, 0x80, 0, 1, 0, has_answer.into()]);
    answer.extend([0; 4]);
    answer.extend(question);
    if has_answer {
        answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 203, 0, 113, 9]);
    }
    answer
}

#[test]
fn nothing_is_left_after_any_end() {
    let Some(machines) = Machines::new(&[]) else { return };
    // A number of seconds that no other process has.
    let mark = format!("{}.5", 400_000 + std::process::id());
    let script = format!("sleep {mark} & setsid sleep {mark} & exec sleep {mark}");
    let sleepers = || -> Vec<u32> {
        let all = fs::read_dir("/proc").unwrap().flatten();
        let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let is_it = |pid: &u32| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.starts_with(b"sleep\0") && line.windows(mark.len()).any(|it| it == mark.as_bytes())
        };
        pids.filter(is_it).collect()
    };
    // A script that begins the tests in the background has them ignore this signal, and what they start.
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap().trim();
    let ignores_int = u64::from_str_radix(ignored, 16).unwrap() & 1 << 1 != 0;
    for (of_run, signal, code) in [
        (true, Signal::KILL, None),
        (true, Signal::TERM, Some(143)),
        (true, Signal::INT, Some(130)),
        (false, Signal::KILL, Some(137)),
    ] {
        if signal == Signal::INT && ignores_int {
            eprintln!("SIGINT was ignored before the tests began: it is not tried");
            continue;
        }
        let words = ["--quiet", "--", "sh", "-c", &script];
        // `ip`, `unshare`, `sh` and `setpriv` become the program: the child is `whimbrel` itself.
        let mut run = Running::start(&mut machines.run(Node::Open, &words));
        await_that("three processes sleep", || sleepers().len() == 3);
        match of_run {
            true => run.signal(signal),
            // The program is the one that the others are children of: the oldest.
            false => crate::running::send(sleepers().into_iter().min().unwrap(), signal),
        }
        assert_eq!(run.wait().code(), code, "{of_run} {signal:?}");
        await_that("none is left", || sleepers().is_empty());
    }
}

/// The terminal sends Ctrl-C to the program, too: it comes once.
#[test]
fn ctrl_c_of_a_terminal_reaches_the_program_once() {
    let Some(machines) = Machines::new(&["python3"]) else { return };
    let terminal = "import os, pty, signal, sys\n\
        child, keys = pty.fork()\n\
        if child == 0:\n\
        \x20   signal.signal(signal.SIGINT, signal.SIG_DFL)\n\
        \x20   os.execvp(sys.argv[1], sys.argv[1:])\n\
        shown = b''\n\
        while b'ready' not in shown: shown += os.read(keys, 1000)\n\
        os.write(keys, b'\\x03')\n\
        try:\n\
        \x20   while True: shown += os.read(keys, 1000)\n\
        except OSError: pass\n\
        print(shown.count(b'came'), os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n";
    // The last line holds the program up for long enough that a second signal would be counted.
    let program = "trap 'echo came; come=1' INT; echo ready; until [ $come ]; do sleep 0.01; done; \
                   sleep 0.2; exit 5";
    let mut command = machines.near.command("python3");
    command.args(["-c", terminal, "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]);
    command.arg(machines.near.folder().join("whimbrel"));
    command.args(["run", "--quiet", "--", "sh", "-c", program]).env("HOME", "/tmp");
    assert_eq!(succeed(&mut command), "1 5\n");
}

#[test]
fn data_is_delivered_after_the_programs_end() {
    let Some(machines) = Machines::new(&[]) else { return };
    let sink = Machines::on(&machines.far, || TcpListener::bind("203.0.113.9:9")).unwrap();
    let received = thread::spawn(move || {
        let count = || {
            let mut text = Vec::new();
            let whole = sink.accept().unwrap().0.read_to_end(&mut text);
            whole.map(|_| text.len())
        };
        (count(), count())
    });
    // The program has written all long before the path has carried it.
    let script = "echo $(head -c 30000 /dev/zero | tr '\\0' x) >/dev/tcp/203.0.113.9/9";
    let run = |options: &[&str]| {
        let words = ["--json", "-o", "summary", "--link", "rate=200k", "--", "bash", "-c", script];
        let (code, text) = machines.ran(Node::Open, &[options, &words].concat());
        assert_eq!(code, Some(0), "{text}");
        machines.summary()
    };
    let whole = run(&[]);
    assert_eq!((&whole["flows"]["finished"], &whole["flows"]["cut"]), (&1.into(), &0.into()));
    assert!(whole["link"]["out"]["delivered"].as_u64().unwrap() > 20, "{whole}");
    let cut = run(&["--linger", "100ms"]);
    assert_eq!((&cut["flows"]["finished"], &cut["flows"]["cut"]), (&0.into(), &1.into()));
    let (first, second) = received.join().unwrap();
    assert_eq!(first.unwrap(), 30_001);
    assert!(second.is_err() || second.is_ok_and(|len| len < 30_001), "a reset ends the second");
}

#[test]
fn published_ports_show_the_clients_address() {
    let Some(machines) = Machines::new(&["python3"]) else { return };
    let script = "import socket\n\
        s = socket.create_server(('0.0.0.0', 80))\n\
        u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.bind(('0.0.0.0', 80))\n\
        open('up', 'w').close()\n\
        for i in range(2):\n\
        \x20   c, a = s.accept(); c.sendall(a[0].encode()); c.close()\n\
        for i in range(2):\n\
        \x20   d, a = u.recvfrom(9); u.sendto(a[0].encode(), a)\n";
    let words = [
        "--quiet",
        "-p",
        "0.0.0.0:8080:80",
        "-p",
        "0.0.0.0:8081:81",
        "-p",
        "0.0.0.0:8080:80/udp",
        "--",
        "python3",
        "-c",
        script,
    ];
    let mut run = Running::start(&mut machines.run(Node::Open, &words));
    let is_up = machines.near.folder().join("up");
    await_that("the program listens", || is_up.exists());
    for (net, address, seen) in
        [(&machines.far, "203.0.113.1", "203.0.113.9"), (&machines.near, "127.0.0.1", "10.0.2.2")]
    {
        let (mut text, refused) = Machines::on(net, || {
            let mut text = String::new();
            let mut stream = std::net::TcpStream::connect((address, 8080)).unwrap();
            stream.read_to_string(&mut text).unwrap();
            let mut closed = std::net::TcpStream::connect((address, 8081)).unwrap();
            (text, closed.read(&mut [0; 9]).unwrap_err().kind())
        });
        assert_eq!((&*text, refused), (seen, std::io::ErrorKind::ConnectionReset), "{address}");
        text.clear();
    }
    for (net, address, seen) in
        [(&machines.far, "203.0.113.1", "203.0.113.9"), (&machines.near, "127.0.0.1", "10.0.2.2")]
    {
        let socket = Machines::on(net, || UdpSocket::bind("0.0.0.0:0")).unwrap();
        socket.connect((address, 8080)).unwrap();
        socket.send(b"who").unwrap();
        let mut text = [0; 99];
        let len = socket.recv(&mut text).unwrap();
        assert_eq!(String::from_utf8_lossy(&text[..len]), seen, "{address}");
    }
    assert!(run.wait().success());
}

#[test]
fn five_hundred_clients_at_once_repeat_no_syn() {
    let Some(machines) = Machines::new(&["python3", "nstat"]) else { return };
    let listener = Machines::on(&machines.far, || TcpListener::bind("203.0.113.9:80")).unwrap();
    // std's backlog of 128 is too small for all at once.
    rustix::net::listen(&listener, 1024).unwrap();
    let _accepts = thread::spawn(move || {
        let mut all = Vec::new();
        all.extend(listener.incoming().flatten());
    });
    let script = "import socket, select\n\
        all = []\n\
        for i in range(500):\n\
        \x20   s = socket.socket(); s.setblocking(False); s.connect_ex(('203.0.113.9', 80)); all.append(s)\n\
        for s in all:\n\
        \x20   select.select([], [s], []); assert s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0\n";
    let shell = "python3 -c \"$1\" && nstat -asz TcpExtTCPSynRetrans";
    let words = ["--quiet", "--", "sh", "-c", shell, "sh", script];
    let (code, text) = machines.ran(Node::Open, &words);
    let repeated = text.lines().last().and_then(|line| line.split_whitespace().nth(1));
    assert_eq!((code, repeated), (Some(0), Some("0")), "{text}");
}
