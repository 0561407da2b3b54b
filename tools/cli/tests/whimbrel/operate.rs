//! Commands that look into a running one: ss, nstat, netstat, sysctl, and metrics.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::json;
use whimbrel_io::control::connect;

use crate::needs;
use crate::netns::public_copy;
use crate::running::{Running, Signal, await_that, fail, unbroken};
use crate::schema::checked;
use crate::scratch::scratch;
use crate::signals::free_address;

/// A run with its own folder of control sockets.
pub(crate) struct World {
    pub(crate) folder: PathBuf,
    runs: Vec<Running>,
}

impl World {
    pub(crate) fn new(name: &str) -> Self {
        let folder = scratch(name);
        fs::create_dir_all(&folder).unwrap();
        Self { folder, runs: Vec::new() }
    }

    fn command(&self, words: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_whimbrel"));
        command.args(words.split(' ').filter(|word| !word.is_empty()));
        // Runs of other tests are not found there.
        command.env("XDG_RUNTIME_DIR", &self.folder).env("TMPDIR", &self.folder);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Starts a run, and waits for its control socket.
    pub(crate) fn start(&mut self, words: &str) -> u32 {
        let run = Running::start(&mut self.command(words));
        let pid = run.id();
        self.runs.push(run);
        let socket = self.folder.join(format!("whimbrel/{pid}.sock"));
        await_that("a control socket or connections", || socket.exists());
        pid
    }

    /// The process of the first run.
    pub(crate) fn pid(&self) -> u32 {
        self.runs[0].id()
    }

    /// The output of a command that succeeds.
    pub(crate) fn ask(&self, words: &str) -> String {
        let output = self.command(words).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{words}: {errors}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// The exit code and the error of a command that fails.
    fn refused(&self, words: &str) -> (Option<i32>, String) {
        let output = self.command(words).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    }

    pub(crate) fn await_connections(&self, words: &str, count: usize) {
        await_that("a control socket or connections", || self.ask(words).lines().count() == count);
    }
}

#[test]
fn running_load_is_listed_and_its_connections_close() {
    let mut world = World::new("operate-ss");
    world.start("load -z 1h -c 12 --no-tui");
    world.await_connections("ss --host server -Htan state established", 12);
    let header = "State  Recv-Q Send-Q Local Address:Port Peer Address:Port";
    assert!(world.ask("ss load --host server -ltn").starts_with(header));
    assert_eq!(
        world.ask("ss --host client -Htan dst 10.0.0.2 and dport = :80").lines().count(),
        12
    );
    assert_eq!(world.ask("ss --host client -Htan dst 10.0.0.3").lines().count(), 0);
    let info = world.ask("ss --host client -tipnO state connected dst 10.0.0.2");
    let line = info.lines().nth(1).unwrap();
    for field in
        ["users:((\"load\",pid=", " ts sack cubic wscale:", " rto:", " cwnd:10 ", " minrtt:"]
    {
        assert!(line.contains(field), "{field}: {line}");
    }
    let why = world.ask("ss --host server --why -tl");
    assert!(why.contains("waits: for connections"), "{why}");
    assert!(world.ask("ss --host client -tO --deadlines --why").contains("waits: for "));
    let document = world.ask("ss --host client -t --json");
    let document = checked(&document);
    assert_eq!(document["sockets"].as_array().unwrap().len(), 12);
    let port = &document["sockets"][0]["local"]["port"];
    let killed = world.ask(&format!("ss --host client -KHtn sport = :{port}"));
    assert_eq!(killed.lines().count(), 1);
    assert_eq!(world.ask(&format!("ss --host client -KHtn sport = :{port}")), "");
    let (code, error) = world.refused("ss --host client -K");
    assert!(code == Some(2) && error.contains("add a filter"), "{error}");
}

#[test]
fn counters_of_a_running_load_have_each_systems_form() {
    let mut world = World::new("operate-nstat");
    world.start("load -z 1h -c 5 --no-tui");
    world.await_connections("ss --host server -Htan state established", 5);
    let text = world.ask("nstat --host client TcpActiveOpens TcpCurrEstab");
    let line = |name: &str| format!("{name:<32}{:<16}{:6.1}", 5, 0.0);
    assert_eq!(
        text.lines().collect::<Vec<_>>(),
        ["#kernel".to_owned(), line("TcpActiveOpens"), line("TcpCurrEstab"),]
    );
    assert!(!world.ask("nstat --host client").contains("TcpExtListenOverflows"));
    assert!(world.ask("nstat --host client -z").contains("TcpExtListenOverflows"));
    checked(&world.ask("nstat --host client -jz"));
    let document = checked(&world.ask("nstat --host client -j"));
    assert_eq!(document["kernel"]["TcpActiveOpens"], 5);
    let (code, error) = world.refused("nstat --host client TcpNone*");
    assert!(code == Some(2) && error.contains("no counter is named"), "{error}");
    assert!(world.ask("netstat -s --host client").contains("    5 active connection openings\n"));
    let freebsd = world.ask("netstat -s --host client --style freebsd");
    assert!(freebsd.contains("\t5 connection requests\n"), "{freebsd}");
    let solaris = world.ask("netstat -s --host client --style solaris");
    assert!(solaris.contains("\ttcpActiveOpens      =     5\n"), "{solaris}");
    assert!(solaris.contains("other counters have no equal there"));
}

#[test]
fn tunable_of_a_running_load_changes_with_its_origin() {
    let mut world = World::new("operate-sysctl");
    let pid = world.start("load -z 1h -c 2 --no-tui -S net.ipv4.tcp_retries2=9");
    let key = "net.ipv4.tcp_retries2";
    let read = |words: &str| world.ask(words).split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(read(&format!("sysctl {pid} --host client {key}")), format!("{key} = 9 # --set"));
    assert_eq!(
        read(&format!("sysctl {pid} --host client {key}=7")),
        format!("{key} = 7 # control socket")
    );
    assert_eq!(read(&format!("sysctl --host server {key}")), format!("{key} = 9 # --set"));
    let (code, error) = world.refused("sysctl --host client isn=host-wide");
    assert!(code == Some(1) && error.contains("isn cannot be changed"), "{error}");
    let (code, error) = world.refused(&format!("sysctl {pid} {key}"));
    assert!(code == Some(1) && error.contains("client or server"), "{error}");
    let document = world.ask(&format!("sysctl {pid} --host client {key} --json"));
    assert_eq!(checked(&document)["tunables"][0]["value"], "7");
    // Names of tunables have this command's within them.
    let wire = world.folder.join("wire");
    world.start(&format!("serve -w unix:{},addr=10.9.0.2/24", wire.display()));
    let read = |words: &str| world.ask(words).split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(read(&format!("sysctl -w serve {key}=5")), format!("{key} = 5 # control socket"));
    assert_eq!(read(&format!("sysctl serve {key}")), format!("{key} = 5 # control socket"));
    assert!(world.ask("sysctl serve").lines().count() > 50);
    let (code, error) = world.refused(&format!("sysctl serve -w {key}"));
    assert!(code == Some(2) && error.contains("--write: give KEY=VALUE"), "{error}");
}

#[test]
fn process_is_found_by_number_name_and_path() {
    let mut world = World::new("operate-names");
    let first = world.start("load -z 1h -c 1 --no-tui");
    let second = world.start("bulk send -t 1h");
    let (code, error) = world.refused("ss --host client");
    assert!(code == Some(1) && error.contains("several processes run"), "{error}");
    let path = world.folder.join(format!("whimbrel/{second}.sock"));
    for name in [first.to_string(), "load".into(), "bulk".into(), path.display().to_string()] {
        assert!(world.ask(&format!("ss {name} --host server -Htl")).starts_with("LISTEN"));
    }
    let (code, error) = world.refused("ss nosuch");
    assert!(code == Some(1) && error.contains("nosuch: no process"), "{error}");
    for run in &world.runs {
        run.signal(Signal::KILL);
    }
    world.runs.clear();
    // What they left is no process.
    assert!(path.exists());
    let (_, error) = world.refused(&format!("ss {first}"));
    assert!(error.contains("no process with a control socket"), "{error}");
    let (code, error) = world.refused(&format!("ss {}", path.display()));
    assert!(code == Some(1) && error.contains("its process has ended"), "{error}");
    let file = world.folder.join("file");
    fs::write(&file, "").unwrap();
    let (code, error) = world.refused(&format!("ss {}", file.display()));
    assert!(code == Some(1) && error.contains("it is no socket"), "{error}");
}

#[test]
fn process_is_found_in_each_folder_that_can_be_read() {
    let world = World::new("operate-folders");
    fs::write(world.folder.join("whimbrel"), "").unwrap();
    let run = Running::start(&mut world.command("load -z 1h -c 1 --no-tui"));
    let own = fs::metadata("/proc/self").unwrap().uid();
    let socket = world.folder.join(format!("whimbrel-{own}/{}.sock", run.id()));
    await_that("a control socket", || socket.exists());
    assert!(world.ask(&format!("ss {} --host server -Htl", run.id())).starts_with("LISTEN"));
    let (code, error) = world.refused("ss 4194305");
    assert!(code == Some(1) && error.contains("whimbrel: Not a directory"), "{error}");
    if own != 0 {
        return needs::skip("the folder of services needs root");
    }
    // As systemd and sudo start it.
    fs::remove_file(world.folder.join("whimbrel")).unwrap();
    let mut service = world.command("load -z 1h -c 1 --no-tui");
    let service = Running::start(service.env_remove("XDG_RUNTIME_DIR"));
    let socket = PathBuf::from(format!("/run/whimbrel/{}.sock", service.id()));
    await_that("a control socket", || socket.exists());
    assert!(world.ask(&format!("ss {} --host server -Htl", service.id())).starts_with("LISTEN"));
    service.signal(Signal::INT);
    service.output();
}

/// The process is killed, or gives its client up, within a listing.
#[test]
fn listing_that_breaks_off_is_an_error_in_one_line() {
    let world = World::new("operate-broken");
    let path = world.folder.join("own.sock");
    let greeting = json!({ "schema": "whimbrel.control/1", "pid": 7, "command": "load" });
    let end = json!({ "addr": "10.0.0.1", "port": 80 });
    let socket = json!({ "transport": "tcp", "state": "ESTABLISHED", "local": end, "remote": end });
    let half = json!({ "id": 1, "socket": socket }).to_string();
    let slow = json!({ "id": null, "error": { "code": "slow", "message": "read faster" } });
    let cut = &half[..half.len() / 2];
    for (rest, told) in [
        (String::new(), "process 7: it has ended"),
        (format!("{half}\n"), "process 7: it has ended"),
        (format!("{half}\n{cut}"), "process 7: it has ended"),
        (format!("{half}\n\n{slow}\n"), "read faster"),
        (format!("{half}\n{cut}\n{slow}\n"), "read faster"),
        (format!("{half}\n{cut}\n"), "process 7: it has ended"),
    ] {
        let listener = UnixListener::bind(&path).unwrap();
        let words = format!("ss {} -tan", path.display());
        let client = Running::start(&mut world.command(&words));
        let (mut stream, _) = listener.accept().unwrap();
        writeln!(stream, "{greeting}").unwrap();
        if !rest.is_empty() {
            BufReader::new(&stream).read_line(&mut String::new()).unwrap();
        }
        // Without a rest it ends with the request unread.
        stream.write_all(rest.as_bytes()).unwrap();
        drop(stream);
        let Output { status, stdout, stderr } = client.output();
        let error = String::from_utf8_lossy(&stderr);
        assert!(status.code() == Some(1) && stdout.is_empty(), "{rest}: {status} {stdout:?}");
        assert!(error.contains(told) && error.lines().count() == 1, "{rest}: {error}");
        fs::remove_file(&path).unwrap();
    }
}

#[test]
fn watch_ends_with_its_reader_and_divides_by_true_time() {
    let mut world = World::new("operate-watch");
    let pid = world.start("load -z 1h -c 2 -K --no-tui");
    let words = format!("nstat {pid} --host client --watch 10ms TcpActiveOpens");
    let mut watch = Running::start(&mut world.command(&words));
    let mut lines = BufReader::new(watch.take_stdout()).lines().map(Result::unwrap);
    let mut next = move || {
        let line = lines.find(|line| !line.starts_with('#')).unwrap();
        let mut words = line.split_whitespace().skip(1).map(|word| word.parse::<f64>().unwrap());
        [words.next().unwrap(), words.next().unwrap()]
    };
    next();
    watch.signal(Signal::STOP);
    thread::sleep(Duration::from_secs(1));
    watch.signal(Signal::CONT);
    let has_waited = |[growth, rate]: [f64; 2]| growth > 0.0 && rate < growth * 2.0;
    await_that("a line over the second of the stop", || has_waited(next()));
    drop(next);
    let (status, error) = (watch.wait(), io::read_to_string(watch.take_stderr()).unwrap());
    assert!(status.success() && error.is_empty(), "{status} {error}");
}

#[test]
fn control_socket_can_be_off_or_elsewhere() {
    let world = World::new("operate-places");
    assert!(world.ask("load -n 5 --control off").contains("100.00%"));
    assert!(!world.folder.join("whimbrel").exists());
    let path = world.folder.join("own.sock");
    let mut run = Running::start(
        &mut world.command(&format!("load -z 1h -c 1 --no-tui --control {}", path.display())),
    );
    await_that("a control socket or connections", || path.exists());
    assert!(
        world.ask(&format!("ss {} --host server -Htl", path.display())).contains("10.0.0.2:80")
    );
    run.signal(Signal::INT);
    run.wait();
    assert!(!path.exists());
    let (code, error) = world.refused("load -n 1 --control /nonexistent/a.sock");
    assert!(code == Some(1) && error.contains("--control /nonexistent: "), "{error}");
    let (code, error) = world.refused("serve -w kernel: -l 127.0.0.1:0 --control a.sock");
    assert!(code == Some(2) && error.contains("--control: "), "{error}");
    // Where the default cannot be, there is one warning.
    fs::write(world.folder.join("whimbrel"), "").unwrap();
    let output = world.command("load -n 5").env("TMPDIR", "/nonexistent").output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{errors}");
    assert_eq!(errors.matches("there is no control socket").count(), 1, "{errors}");
}

#[test]
fn metrics_of_a_running_load_equal_nstat() {
    let mut world = World::new("operate-metrics");
    let at = free_address();
    world.start(&format!("load -z 1h -c 4 --no-tui --metrics {}", at.port()));
    world.await_connections("ss --host server -Htan state established", 4);
    let mut stream = TcpStream::connect(at).unwrap();
    stream
        .write_all(b"GET /metrics HTTP/1.1\r\nAccept: application/openmetrics-text\r\n\r\n")
        .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    for line in [
        "whimbrel_netstat_Tcp_ActiveOpens_total{host=\"client\"} 4\n",
        "whimbrel_netstat_Tcp_PassiveOpens_total{host=\"server\"} 4\n",
        "whimbrel_sockets{host=\"client\",state=\"ESTABLISHED\"} 4\n",
        "# EOF\n",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    let (code, error) = world.refused("load -n 1 --metrics nonsense");
    assert!(code == Some(2) && error.contains("use PORT, or ADDR:PORT"), "{error}");
}

#[test]
fn frames_of_a_running_load_are_captured_with_comments() {
    let mut world = World::new("operate-pcap");
    let pid = world.start("load -z 1h -c 5 --no-tui");
    let file = world.folder.join("some.pcapng");
    let capture = |words: &str| {
        let output = world.command(words).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{words}: {told}");
        (fs::read(&file).unwrap_or_default(), told)
    };
    let to = format!("pcap --pid {pid} --host server -o {}", file.display());
    let (frames, told) = capture(&format!("{to} -c 200 -a duration:60"));
    assert!(told.starts_with("200 frames captured"), "{told}");
    assert_eq!(blocks(&frames), 200);
    assert!(frames.windows(7).any(|it| it == b"state: "), "no comment");
    let (frames, told) = capture(&format!("{to} -a duration:100ms tcp port 81"));
    assert!(told.starts_with("0 frames captured") && blocks(&frames) == 0, "{told}");
    // Two capture at once, and one of them begins another file.
    let ring = world.folder.join("ring.pcapng");
    let other =
        format!("pcap --pid load --host client -c 300 -b filesize:4k -o {}", ring.display());
    let mut other = Running::start(&mut world.command(&other));
    capture(&format!("{to} -c 100"));
    other.wait();
    assert!(blocks(&fs::read(world.folder.join("ring_00002.pcapng")).unwrap()) > 0);
    let output = world.command("pcap --pid load --host server -c 3 -s 60").output().unwrap();
    assert_eq!(blocks(&output.stdout), 3);
    for (words, code, why) in [
        ("pcap --pid load --host server -o x.pcapng port", 2, "FILTER"),
        ("pcap --pid load -o x.pcapng", 1, "client or server"),
        ("pcap --pid nosuch -o x.pcapng", 1, "nosuch: no process"),
        ("pcap --pid load --host server -S isn=host-wide -o x.pcapng", 2, "cannot be used with"),
        ("pcap --host client -w unix:a,addr=10.0.0.1/24 -o x.pcapng", 2, "--pid"),
    ] {
        let (found, error) = world.refused(words);
        assert!(found == Some(code) && error.contains(why), "{words}: {found:?} {error}");
    }
}

#[test]
fn stopped_processes_are_named_after_one_time_limit() {
    let mut world = World::new("operate-stopped");
    let pids = [(); 8].map(|()| world.start("load -z 1h -c 2 -q 5 --no-tui"));
    let words = format!("ss {} --host server -Htan state established", pids[0]);
    world.await_connections(&words, 2);
    world.runs.iter().for_each(|run| run.signal(Signal::STOP));
    // The queue of one is full: not even connect(2) returns.
    let socket = world.folder.join(format!("whimbrel/{}.sock", pids[1]));
    let limit = Duration::from_millis(50);
    assert!((0..100_000).any(|_| connect(&socket, limit).is_err()));
    let began = Instant::now();
    let (code, error) = world.refused("ss");
    let took = began.elapsed();
    assert_eq!(code, Some(1), "{error}");
    for pid in pids {
        assert!(error.contains(&format!("process {pid}: it does not answer")), "{error}");
    }
    assert!(error.contains("kill -CONT"), "{error}");
    // One after the other would take 40 s.
    assert!(took < Duration::from_secs(30), "{took:?}");
    assert!(world.refused(&format!("nstat {}", pids[1])).1.contains("it does not answer"));
    world.runs.iter().for_each(|run| run.signal(Signal::CONT));
    world.await_connections(&words, 2);
}

#[test]
fn refused_client_of_ss_is_told_why() {
    let mut world = World::new("operate-refused");
    let pid = world.start("load -z 1h -c 1 --no-tui");
    let socket = world.folder.join(format!("whimbrel/{pid}.sock"));
    let mut clients = Vec::new();
    // Its file is there a moment before it listens.
    await_that("8 clients", || {
        clients.extend(connect(&socket, Duration::from_secs(5)));
        clients.len() == 8
    });
    let (code, error) = world.refused(&format!("ss {pid}"));
    assert_eq!(code, Some(1), "{error}");
    assert!(unbroken(&error).contains("8 clients are served already: end one of them"), "{error}");
    drop(clients);
    world.await_connections(&format!("ss {pid} --host client -Htan"), 1);
    if !needs::found(&["setpriv"]) {
        return;
    }
    if fs::metadata("/proc/self").unwrap().uid() != 0 {
        return needs::skip("a second user needs root");
    }
    let public = scratch("operate-refused-public");
    fs::create_dir_all(&public).unwrap();
    let copy = public_copy(&public);
    let mut command = needs::command("setpriv --reuid=65534 --regid=65534 --clear-groups");
    command.arg(copy).arg("ss").arg(&socket);
    let (code, error) = fail(&mut command);
    assert!(code == 1 && error.contains("only its user and root may use it"), "{error}");
    for (path, mode) in
        [(&world.folder, 0o755), (&world.folder.join("whimbrel"), 0o755), (&socket, 0o666)]
    {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }
    let (code, error) = fail(&mut command);
    assert!(code == 1 && error.contains("you are user 65534"), "{error}");
}

#[test]
fn flood_of_scrapers_leaves_a_descriptor_for_ss() {
    let mut world = World::new("operate-flood");
    let at = free_address();
    let pid = world.start(&format!("load -z 1h -c 1 -q 50 --no-tui --metrics {at}"));
    let count = |what: &str| fs::read_dir(format!("/proc/{pid}/{what}")).unwrap().count();
    let (limit, threads) = (count("fd") as u64 + 5, count("task"));
    let process = Pid::from_raw(pid.cast_signed());
    let limits = Rlimit { current: Some(limit), maximum: Some(limit) };
    prlimit(process, Resource::Nofile, limits).unwrap();
    let silent: Vec<_> = (0..500).map(|_| TcpStream::connect(at)).collect();
    await_that("no descriptor is left", || count("fd") as u64 >= limit);
    for _ in 0..3 {
        assert_eq!(world.ask(&format!("ss {pid} --host client -Htan")).lines().count(), 1);
        assert!(count("task") <= threads + 64 + 2, "{} threads", count("task"));
    }
    drop(silent);
    await_that("a scrape is answered", || scrape(at).starts_with("HTTP/1.1 200 "));
}

/// The answer to a scrape, as far as it came.
fn scrape(at: SocketAddr) -> String {
    let mut answer = String::new();
    let mut stream = TcpStream::connect(at).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let asked = stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n");
    let _as_far_as_it_came = asked.and_then(|()| stream.read_to_string(&mut answer));
    answer
}

#[test]
fn capture_ends_with_the_process_and_says_so() {
    let mut world = World::new("operate-pcap-end");
    let pid = world.start("load -z 1h -c 2 --no-tui");
    let file = world.folder.join("some.pcapng");
    let words = format!("pcap --pid {pid} --host client -o {}", file.display());
    let capture = Running::start(&mut world.command(&words));
    let is_written = || fs::metadata(&file).is_ok_and(|file| file.len() > 4_096);
    await_that("frames in the file", is_written);
    world.runs[0].signal(Signal::KILL);
    let error = String::from_utf8_lossy(&capture.output().stderr).into_owned();
    assert!(error.contains("has ended, and the capture"), "{error}");
    assert!(blocks(&fs::read(&file).unwrap()) > 0);
}

/// Frames in a capture, all of whose blocks are whole.
pub(crate) fn blocks(mut pcapng: &[u8]) -> usize {
    let mut frames = 0;
    while let Some(head) = pcapng.first_chunk::<8>() {
        let [kind, len] =
            [&head[..4], &head[4..]].map(|it| u32::from_le_bytes(it.try_into().unwrap()));
        frames += usize::from(kind == 6);
        pcapng = pcapng.get(len as usize..).expect("a whole block");
    }
    assert!(pcapng.is_empty());
    frames
}
