//! `whimbrel forward` before real servers: nginx, redis, and sockets of the test's own.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;

use serde_json::Value;

use crate::netns::Net;
use crate::running::{Running, Signal, await_that, send, succeed, unbroken};
use crate::schema::checked;
use crate::stalls;

const WIRE: &str = "tun:whim0,addr=10.9.0.2/24,host=10.9.0.1";
/// As long as a release takes; a debug build is for errors alone.
const SECONDS: &str = if cfg!(debug_assertions) { "-d2s" } else { "-d10s" };

/// A `whimbrel forward` that runs; killed at the end.
struct Forward {
    child: Running,
    output: PathBuf,
    errors: PathBuf,
}

impl Forward {
    /// Forwards a port to `to`, ready to be talked to.
    fn start(net: &Net, port: &str, to: &str, options: &[&str]) -> Self {
        let [output, errors] = ["output", "errors"].map(|name| net.folder().join(name));
        let mut command = net.command(env!("CARGO_BIN_EXE_whimbrel"));
        command.args(["forward", "-w", WIRE, "-l", port, "--to", to]).args(options);
        command.stdout(File::create(&output).unwrap()).stderr(File::create(&errors).unwrap());
        // `ip netns exec` becomes the program: the child is `whimbrel` itself.
        let forward = Self { child: Running::start(&mut command), output, errors };
        await_that("it forwards", || forward.printed().contains("try  "));
        forward
    }

    /// Its output so far; of a document, what it says on the standard error.
    fn printed(&self) -> String {
        fs::read_to_string(&self.output).unwrap() + &fs::read_to_string(&self.errors).unwrap()
    }

    /// Its answer to SIGUSR1.
    fn status(&self) -> String {
        let before = fs::read_to_string(&self.errors).unwrap().len();
        self.child.signal(Signal::USR1);
        let mut answer = String::new();
        await_that("it answers", || {
            answer = fs::read_to_string(&self.errors).unwrap().split_off(before);
            answer.contains("memory  ")
        });
        unbroken(&answer)
    }

    /// Ends it by SIGTERM. Returns its output, in one line.
    fn end(mut self) -> String {
        self.child.signal(Signal::TERM);
        let status = self.child.wait();
        assert!(status.success(), "{status}: {}", self.printed());
        unbroken(&fs::read_to_string(&self.output).unwrap())
    }
}

/// An nginx in a namespace, at a Unix socket and at port 8080, both with the PROXY protocol: one process,
/// so that none is left if it is killed.
fn nginx(net: &Net, backlog: u32) -> Running {
    nginx_with(net, backlog, "master_process off;")
}

/// As [`nginx`], with a directive on processes.
fn nginx_with(net: &Net, backlog: u32, processes: &str) -> Running {
    let folder = net.folder();
    fs::create_dir_all(folder.join("root")).unwrap();
    fs::write(folder.join("root/page"), vec![b'x'; 612]).unwrap();
    let path = folder.display();
    let config = format!(
        "user root; {processes} pid {path}/pid; error_log {path}/error; daemon off;\n\
         worker_rlimit_nofile 8192; events {{ worker_connections 4096; }}\n\
         http {{ log_format a '$proxy_protocol_addr $remote_addr $request';\n\
         access_log {path}/access a; keepalive_requests 1000000; root {path}/root;\n\
         client_body_temp_path {path}/a; proxy_temp_path {path}/b;\n\
         fastcgi_temp_path {path}/c; uwsgi_temp_path {path}/d; scgi_temp_path {path}/e;\n\
         server {{ listen unix:{path}/nginx proxy_protocol backlog={backlog};\n\
         listen 0.0.0.0:8080 proxy_protocol;\n\
         location = /status {{ stub_status; access_log off; }} }} }}\n"
    );
    fs::write(folder.join("nginx.conf"), config).unwrap();
    let mut command = net.command("nginx");
    command.arg("-c").arg(folder.join("nginx.conf"));
    let nginx = Running::start(command.stderr(Stdio::null()));
    await_that("nginx listens", || folder.join("pid").exists());
    nginx
}

fn unix(net: &Net, name: &str) -> String {
    format!("unix:{}/{name}", net.folder().display())
}

#[test]
fn nginx_behind_forward_serves_wrk_without_error() {
    let Some(net) = Net::with(&["nginx", "wrk"]) else { return };
    let _nginx = nginx(&net, 64);
    for (to, version, shards) in
        [(unix(&net, "nginx"), "v2", "1"), ("127.0.0.1:8080".to_owned(), "v1", "2")]
    {
        let options = ["--proxy-protocol", version, "--shards", shards];
        let forward = Forward::start(&net, "80", &to, &options);
        for connections in ["-c30", "-c500"] {
            for fields in [&[][..], &["-H", "Connection: close"]] {
                let mut wrk = net.command("wrk");
                wrk.args(["-t1", SECONDS, connections]).args(fields);
                let text = succeed(wrk.arg("http://10.9.0.2/page"));
                // It prints these lines only on errors.
                let failed = text.contains("Socket errors") || text.contains("Non-2xx");
                assert!(!failed, "{to} {connections} {fields:?}: {text}");
            }
        }
        let text = forward.end();
        assert!(text.contains("refused none"), "{to}: {text}");
        assert!(!text.contains("reset by the server"), "{to}: {text}");
    }
    let log = fs::read_to_string(net.folder().join("access")).unwrap();
    for line in ["10.9.0.1 unix: GET /page HTTP/1.1", "10.9.0.1 127.0.0.1 GET /page HTTP/1.1"] {
        assert!(log.lines().any(|logged| logged == line), "{line}");
    }
    assert!(log.lines().all(|line| line.starts_with("10.9.0.1 ")), "the client's address");
}

/// A server that is started anew closes the connections that are idle just then, as it does without
/// `forward`. With a connection for each request none is idle.
#[test]
fn server_that_reloads_fails_no_more_clients_than_directly() {
    let Some(net) = Net::with(&["nginx", "wrk", "curl"]) else { return };
    let nginx = nginx_with(&net, 511, "worker_processes 1;");
    let forward = Forward::start(&net, "80", &unix(&net, "nginx"), &["--proxy-protocol", "v2"]);
    let served = || fs::metadata(net.folder().join("access")).map_or(0, |log| log.len());
    let workers = || {
        let path = format!("/proc/{0}/task/{0}/children", nginx.id());
        fs::read_to_string(path).unwrap()
    };
    let failed = |fields: &[&str]| -> u64 {
        let mut wrk = net.command("wrk");
        wrk.args(["-t1", SECONDS, "-c30"]).args(fields).arg("http://10.9.0.2/page");
        let wrk = Running::start(wrk.stdout(Stdio::piped()));
        for _ in 0..3 {
            let before = (served(), workers());
            await_that("clients are served", || served() > before.0);
            send(nginx.id(), Signal::HUP);
            // The old one may still serve, too.
            let is_new = |id: &str| !before.1.split_whitespace().any(|old| old == id);
            await_that("a new worker", || workers().split_whitespace().any(is_new));
        }
        let output = wrk.output();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && !text.contains("Non-2xx"), "{text}");
        let Some((_, counts)) = text.split_once("Socket errors: ") else { return 0 };
        let counts: Vec<_> = counts.lines().next().unwrap().split([' ', ',']).collect();
        let of = |what| counts[counts.iter().position(|it| *it == what).unwrap() + 1];
        assert_eq!([of("connect"), of("write"), of("timeout")], ["0"; 3], "{text}");
        of("read").parse().unwrap()
    };
    assert_eq!(failed(&["-H", "Connection: close"]), 0);
    // One for each connection and start; wrk alone with nginx counted 77 to 90, here 44 to 86.
    let failed = failed(&[]);
    assert!(failed <= 3 * 30, "{failed}");
    forward.end();
}

#[test]
fn redis_behind_forward_serves_benchmark_without_error() {
    let Some(net) = Net::with(&["redis-server", "redis-benchmark"]) else { return };
    let folder = net.folder();
    let mut redis = net.command("redis-server");
    redis.args(["--port", "0", "--save", "", "--appendonly", "no", "--unixsocket"]);
    redis.arg(folder.join("redis")).arg("--dir").arg(folder).stdout(Stdio::null());
    let _redis = Running::start(&mut redis);
    await_that("redis listens", || folder.join("redis").exists());
    let forward = Forward::start(&net, "6379", &unix(&net, "redis"), &[]);
    for options in
        ["-c 50 -n 20000", "-c 500 -n 20000", "-c 20 -n 2000 -k 0", "-c 9 -n 20000 -P 16"]
    {
        let text = net.run(&format!("redis-benchmark -h 10.9.0.2 -t set,get {options} -q"));
        assert!(!text.to_lowercase().contains("error"), "{options}: {text}");
        assert!(text.contains("GET: "), "{options}: {text}");
    }
    let text = forward.end();
    assert!(text.contains("refused none"), "{text}");
    assert!(text.contains("left over: none"), "{text}");
}

/// A server that is busy takes connections later; if it stays busy for 5 s, or does not listen, its
/// clients are reset.
#[test]
fn full_backlog_is_tried_again_for_5_s() {
    let Some(net) = Net::with(&["nginx", "curl"]) else { return };
    let nginx = nginx(&net, 2);
    let forward = Forward::start(&net, "80", &unix(&net, "nginx"), &["--proxy-protocol", "v1"]);
    let start = || {
        let mut curl = net.command("curl");
        curl.args(["-s", "-o", "/dev/null", "--max-time", "100", "http://10.9.0.2/page"]);
        Running::start(&mut curl)
    };
    let codes = |clients: Vec<Running>| -> Vec<_> {
        clients.into_iter().map(|mut curl| curl.wait().code().unwrap()).collect()
    };
    send(nginx.id(), Signal::STOP);
    let clients = (0..12).map(|_| start()).collect();
    // Three fit into a backlog of two.
    await_that("nine wait", || forward.status().contains("waited 9 now"));
    send(nginx.id(), Signal::CONT);
    assert_eq!(codes(clients), [0; 12]);
    assert!(!forward.status().contains(" 0 repeated"));

    send(nginx.id(), Signal::STOP);
    let clients = (0..12).map(|_| start()).collect();
    await_that("nine are reset", || forward.status().contains("refused 9 backlog full"));
    send(nginx.id(), Signal::CONT);
    let served = codes(clients).into_iter().filter(|code| *code == 0).count();
    assert_eq!(served, 3);
    drop(nginx);
    // It had sent its request, or not yet.
    assert!(matches!(start().wait().code(), Some(7 | 52 | 55 | 56)), "the client is reset");
    let text = forward.end();
    assert!(text.contains("refused 9 backlog full, 1 connection refused"), "{text}");
}

#[test]
fn sigterm_during_transfer_ends_after_last_byte() {
    expect_all_after_sigterm(64);
}

/// So many MiB in each direction go on after SIGTERM, and new clients are refused.
pub(crate) fn expect_all_after_sigterm(blocks: u64) {
    let Some(net) = Net::with(&["bash", "cat"]) else { return };
    let listener = UnixListener::bind(net.folder().join("server")).unwrap();
    let mut forward = Forward::start(&net, "7", &unix(&net, "server"), &["--json"]);
    let bash = |script: &str| {
        let mut bash = net.command("bash");
        bash.args(["-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        Running::start(&mut bash)
    };
    let mut download = bash("cat </dev/tcp/10.9.0.2/7");
    let (mut down, _) = listener.accept().unwrap();
    let mut upload = bash("cat >/dev/tcp/10.9.0.2/7");
    let (mut up, _) = listener.accept().unwrap();
    drop(listener);
    let (mut to, mut from) = (upload.take_stdin(), download.take_stdout());
    let sending = thread::spawn(move || {
        (0..blocks).for_each(|block| down.write_all(&block_of(block)).unwrap());
    });
    let readers = [
        thread::spawn(move || expect_blocks(&mut up, blocks)),
        thread::spawn(move || expect_blocks(&mut from, blocks)),
    ];
    for block in 0..blocks {
        to.write_all(&block_of(block)).unwrap();
        if block == blocks / 4 {
            forward.child.signal(Signal::TERM);
            await_that("it listens no more", || {
                !bash("exec 3<>/dev/tcp/10.9.0.2/7").wait().success()
            });
        }
    }
    drop(to);
    sending.join().unwrap();
    readers.into_iter().for_each(|reader| reader.join().unwrap());
    assert!(upload.wait().success() && download.wait().success());
    assert!(forward.child.wait().success(), "{}", forward.printed());
    let document: Value = checked(&fs::read_to_string(&forward.output).unwrap());
    let whole = blocks * BLOCK as u64;
    assert_eq!(document["bytes"]["to_server"], whole);
    assert_eq!(document["bytes"]["to_clients"], whole);
    assert_eq!(document["flows"]["finished"], 2);
}

#[test]
fn vanished_client_is_noticed_though_nobody_sends() {
    let Some(net) = Net::with(&["bash", "ip"]) else { return };
    let listener = UnixListener::bind(net.folder().join("server")).unwrap();
    let mut options = Vec::new();
    for (name, value) in [("time", 1), ("intvl", 1), ("probes", 2)] {
        options.extend(["-S".to_owned(), format!("net.ipv4.tcp_keepalive_{name}={value}")]);
    }
    let options: Vec<_> = options.iter().map(String::as_str).collect();
    let forward = Forward::start(&net, "7", &unix(&net, "server"), &options);
    let mut client = net.command("bash");
    let client = client.args(["-c", "exec 3<>/dev/tcp/10.9.0.2/7; cat <&3"]).stderr(Stdio::null());
    let _client = Running::start(client);
    let (mut server, _) = listener.accept().unwrap();
    // Its packets have no way any more: probes go unanswered, and it learns of nothing.
    succeed(net.command("ip").args(["addr", "del", "10.9.0.1/24", "dev", "whim0"]));
    // A UNIX socket has no reset: it ends.
    assert_eq!(server.read(&mut [0]).expect("an end"), 0);
    assert!(forward.end().contains("1 reset by clients"));
}

const BLOCK: usize = 1 << 20;

/// A block that differs from all others.
fn block_of(number: u64) -> Vec<u8> {
    let byte = |at: usize| (number as usize * 31 + at * at / 7) as u8;
    let mut block: Vec<u8> = (0..4_096).map(byte).cycle().take(BLOCK).collect();
    block[..8].copy_from_slice(&number.to_be_bytes());
    block
}

/// All blocks, in order, and then the end.
fn expect_blocks(from: &mut impl Read, blocks: u64) {
    let mut block = vec![0; BLOCK];
    for number in 0..blocks {
        from.read_exact(&mut block).unwrap();
        assert!(block == block_of(number), "block {number} differs");
    }
    assert_eq!(from.read(&mut block).unwrap(), 0, "the end");
}

/// Half-open connections are the stack's: of a flood of SYNs the server sees nothing.
#[test]
fn syn_flood_reaches_no_server() {
    let Some(net) = Net::with_veth(&["nginx", "curl"]) else { return };
    let flood = std::path::Path::new(env!("CARGO_BIN_EXE_whimbrel"));
    let flood = flood.with_file_name("examples").join("syn_flood");
    if !flood.exists() {
        // A run of only this test does not build the examples.
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--quiet", "--example", "syn_flood"]);
        succeed(build.args((!cfg!(debug_assertions)).then_some("--release")));
    }
    let _nginx = nginx(&net, 64);
    let to = unix(&net, "nginx");
    let mut command = net.command(env!("CARGO_BIN_EXE_whimbrel"));
    let wire = "packet:vstack,addr=10.9.0.2/24,mac=02:77:68:69:6d:02";
    command.args([
        "forward",
        "-w",
        wire,
        "-l",
        "80",
        "--to",
        &to,
        "--proxy-protocol",
        "v2",
        "--json",
    ]);
    let mut forward = Running::start(command.stdout(Stdio::piped()).stderr(Stdio::null()));
    let get = |page: &str| {
        let mut curl = net.command("curl");
        curl.args(["-sS", "--retry-connrefused", "--retry", "9", "--max-time", "60"]);
        succeed(curl.arg(format!("http://10.9.0.2/{page}")))
    };
    assert_eq!(get("page").len(), 612);
    let accepted = |status: &str| -> u64 {
        status.lines().nth(2).unwrap().split_whitespace().next().unwrap().parse().unwrap()
    };
    let before = accepted(&get("status"));
    let mut command = net.command(&flood);
    command.args(["vkernel", "02:77:68:69:6d:02", "10.9.0.2", "10000", "2"]);
    let sent = succeed(&mut command);
    let sent: u64 = sent.split_whitespace().next().unwrap().parse().unwrap();
    assert!(sent >= 1_000, "{sent}");
    assert_eq!(get("page").len(), 612, "clients are served");
    // The page, and this look.
    assert_eq!(accepted(&get("status")), before + 2);
    forward.signal(Signal::TERM);
    let mut text = String::new();
    forward.take_stdout().read_to_string(&mut text).unwrap();
    let document: Value = checked(&text);
    assert_eq!(document["flows"]["forwarded"], 4);
    assert!(document["cookies_sent"].as_u64().unwrap() > 0, "{document:#}");
}

#[test]
fn unread_flows_cost_nothing_and_lose_nothing() {
    let Some(net) = Net::with(&stalls::PROGRAMS) else { return };
    let path = net.folder();
    let folder = path.to_str().unwrap();
    let far = stalls::far(&net, "127.0.0.1", folder);
    let forward = Forward::start(&net, "9", "127.0.0.1:9", &[]);
    let [program, words @ ..] = stalls::side("near", "10.9.0.2", folder);
    let near = Running::start(net.command(program).args(words).stdin(Stdio::null()));
    stalls::watch(&forward.child, far, &net, path);
    assert!(near.output().status.success());
    let text = forward.end();
    let is_said = text.contains("17: 9 finished, 4 reset by clients, 4 reset by the server");
    assert!(is_said, "{text}");
}
