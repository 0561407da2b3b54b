//! `--pcap`, `whimbrel pcap` and the wire `pcap:`: captures can be read by another parser, by tshark if
//! installed, and by ourselves.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use pcap_parser::pcapng::{Block, OptionCode, parse_block_le};

use crate::needs;
use crate::netns::Net;
use crate::running::{Running, Signal, await_that, fail, interrupt, output, succeed, unbroken};
use crate::scratch::scratch;
use crate::signals::await_serving;

/// The comments of the packets, those without one included.
pub(crate) fn comments(path: &Path) -> Vec<String> {
    let file = fs::read(path).unwrap();
    let (mut rest, mut comments) = (file.as_slice(), Vec::new());
    while !rest.is_empty() {
        let (after, block) = parse_block_le(rest).unwrap();
        rest = after;
        let Block::EnhancedPacket(packet) = block else { continue };
        let comment = packet.options.iter().find(|option| option.code == OptionCode(1));
        let text = comment.map_or(&[][..], |option| &option.value[..option.len.into()]);
        comments.push(String::from_utf8(text.to_vec()).unwrap());
    }
    comments
}

/// The states in a capture, in their order.
fn states(path: &Path) -> Vec<String> {
    let states = comments(path).into_iter().filter(|comment| comment.starts_with("state: "));
    states.map(|comment| comment["state: ".len()..].to_owned()).collect()
}

/// The packets as tshark reads them; `None` where it is not installed, and the rest of the test is
/// skipped.
pub(crate) fn tshark(path: &Path, fields: &[&str]) -> Option<Vec<String>> {
    if !needs::found(&["tshark"]) {
        return None;
    }
    let mut tshark = Command::new("tshark");
    tshark.args(["-n", "-r"]).arg(path).args(["-T", "fields", "-E", "separator=|"]);
    fields.iter().for_each(|field| {
        tshark.args(["-e", field]);
    });
    Some(succeed(&mut tshark).lines().map(str::to_owned).collect())
}

#[test]
fn memory_load_capture_has_connection_states() {
    let folder = scratch("pcap");
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join("load.pcapng");
    let mut load = Command::new(env!("CARGO_BIN_EXE_whimbrel"));
    load.args(["load", "-n", "1", "-c", "1", "-K", "--close", "client", "--quiet"]);
    succeed(load.args(["--clock", "virtual", "--pcap"]).arg(&path));
    let (states, read) = (states(&path), tshark(&path, &["tcp.flags.str", "frame.comment"]));
    fs::remove_dir_all(&folder).unwrap();
    assert_eq!(states[..2], ["SYN-SENT", "SYN-SENT -> ESTABLISHED"]);
    assert!(states[2].starts_with("ESTABLISHED -> FIN-WAIT-1"), "{states:?}");
    if let Some(lines) = read {
        assert!(lines[0].contains('S') && lines[0].ends_with("|state: SYN-SENT"), "{lines:?}");
    }
}

#[test]
fn a_server_over_tun_is_captured_with_its_drops_and_cut_frames() {
    let Some(net) = Net::with(&["curl"]) else { return };
    let path = net.folder().join("serve.pcapng");
    let serve = net.serve(&["--body", "100k", "--pcap", &format!("{},snap=96", path.display())]);
    net.run("curl -sS --fail --max-time 20 -o /dev/null http://10.9.0.2/");
    // The port has no listener: a reset answers, and the SYN counts as dropped.
    fail(net.command("curl").args(["-sS", "--max-time", "5", "http://10.9.0.2:81/"]));
    serve.stop();
    let comments = comments(&path);
    for part in ["state: SYN-RECEIVED", "SYN-RECEIVED -> ESTABLISHED", "drop: NO_SOCKET"] {
        assert!(comments.iter().any(|comment| comment.contains(part)), "{part}: {comments:?}");
    }
    if let Some(lines) = tshark(&path, &["frame.len", "frame.cap_len", "tcp.dstport"]) {
        assert_eq!(lines.len(), comments.len());
        assert!(lines.iter().any(|line| line.ends_with("|81")), "{lines:?}");
        let cut = |line: &String| line.split('|').nth(1).is_some_and(|bytes| bytes == "96");
        assert!(lines.iter().any(cut), "{lines:?}");
    }
}

/// A folder with the capture of a load in memory: the server is 10.0.0.2, port 80.
fn captured_load(name: &str) -> (Folder, String) {
    let folder = Folder::new(name);
    let path = folder.0.join("load.pcapng").display().to_string();
    let mut load = Command::new(env!("CARGO_BIN_EXE_whimbrel"));
    load.args(["load", "-n", "3", "-c", "1", "-K", "--quiet", "--clock", "virtual"]);
    succeed(load.args(["--pcap", &path]));
    (folder, path)
}

/// A folder that goes with its test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = scratch(&format!("capture-{name}"));
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn whimbrel(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_whimbrel"));
    command.args(words);
    command
}

#[test]
fn replayed_capture_reports_refused_packets() {
    let (_folder, path) = captured_load("replay");
    // The client's capture: its incoming packets were the server's, and are not for the given address.
    let serve = |addr: &str, more: &[&str]| {
        let wire = format!("pcap:{path},addr={addr}/24,speed=max");
        succeed(whimbrel(&["serve", "-w", &wire]).args(more))
    };
    let text = serve("10.0.0.77", &[]);
    assert!(text.contains("outward ones left out"), "{text}");
    let replayed = text.lines().find(|line| line.starts_with("replayed")).unwrap();
    assert!(replayed.contains("OTHERHOST") && !text.contains("try  "), "{text}");
    // To the client's own address they are answers without a request.
    let text = serve("10.0.0.1", &[]);
    assert!(text.lines().any(|line| line.contains("frames; dropped: ")), "{text}");
    assert!(text.contains("NO_SOCKET") && !text.contains("OTHERHOST"), "{text}");
}

#[test]
fn the_old_format_and_ethernet_are_replayed_too() {
    let folder = Folder::new("old");
    let path = folder.0.join("old.pcap");
    let mut frame = vec![2, 0, 0, 0, 0, 7, 2, 0, 0, 0, 0, 8, 8, 0];
    frame.extend([0x45, 0, 0, 20, 0, 0, 0, 0, 64, 253, 0x65, 0xd9, 10, 9, 0, 1, 10, 9, 0, 2]);
    let mut file = 0xa1b2_c3d4_u32.to_be_bytes().to_vec();
    file.extend([0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 1]);
    file.extend([0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 34, 0, 0, 0, 34]);
    file.extend(frame);
    fs::write(&path, &file).unwrap();
    let wire = format!("pcap:{},addr=10.9.0.2/24", path.display());
    let text = succeed(&mut whimbrel(&["serve", "-w", &wire]));
    assert!(unbroken(&text).contains("(mac 02:00:00:00:00:07; 1 frames)"), "{text}");
    assert!(text.contains("1 frames; dropped: 1 IP_"), "{text}");
    file.pop();
    fs::write(&path, &file).unwrap();
    let (code, error) = fail(&mut whimbrel(&["serve", "-w", &wire]));
    assert_eq!(code, 1, "{error}");
    assert!(error.contains("block 2, at byte 24: the file ends 1 bytes before"), "{error}");
}

#[test]
fn replayed_capture_is_filtered_cut_and_counted() {
    let (folder, path) = captured_load("again");
    let wire = format!("pcap:{path},addr=10.0.0.1/24,speed=max");
    let out = folder.0.join("again.pcapng");
    let pcap = |words: &[&str]| {
        let mut command = whimbrel(&["pcap", "-w", &wire, "-o", out.to_str().unwrap()]);
        succeed(command.args(words).stderr(Stdio::null()));
        comments(&out)
    };
    let all = pcap(&[]);
    assert!(all.iter().any(|comment| comment.contains("drop: NO_SOCKET")), "{all:?}");
    assert_eq!(pcap(&["-c", "2", "-s", "40"]).len(), 2);
    let synchronized = pcap(&["tcp[tcpflags]", "&", "tcp-syn", "!=", "0", "and src port 80"]);
    assert_eq!(synchronized.len(), 3);
    if let Some(lines) = tshark(&out, &["tcp.flags.str", "tcp.srcport", "frame.comment"]) {
        assert_eq!(lines.len(), 3);
        let whole =
            |line: &String| line.contains('S') && line.contains("|80|") && line.contains("drop: ");
        assert!(lines.iter().all(whole), "{lines:?}");
    }
}

/// True if the stack answers.
fn ping(net: &Net) -> bool {
    output(net.command("ping").args(["-c", "1", "-W", "1", "10.9.0.2"])).status.success()
}

#[test]
fn pcap_on_own_wire_ends_after_its_duration() {
    let Some(net) = Net::with(&["ping"]) else { return };
    let mut command = net.command(env!("CARGO_BIN_EXE_whimbrel"));
    command.args(["pcap", "-w", "tun:whim0,addr=10.9.0.2/24,host=10.9.0.1", "-c", "4", "icmp"]);
    let mut child = Running::start(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
    await_that("it answers", || ping(&net) || child.end().is_some());
    await_that("it has its four frames", || {
        ping(&net);
        child.end().is_some()
    });
    let output = child.output();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.contains("4 frames captured"), "{errors}");
    let path = net.folder().join("piped.pcapng");
    fs::write(&path, &output.stdout).unwrap();
    assert_eq!(comments(&path).len(), 4);

    let out = net.folder().join("timed.pcapng");
    let line = "pcap -w tun:whim0,addr=10.9.0.2/24 -a duration:200ms -b filesize:1M,files:2 -o";
    net.run(&format!("{} {line} {}", env!("CARGO_BIN_EXE_whimbrel"), out.display()));
    assert!(net.folder().join("timed_00001.pcapng").exists());
}

#[test]
fn pcap_captures_from_all_queues() {
    let Some(net) = Net::with(&["ping", "curl"]) else { return };
    let out = net.folder().join("queues.pcapng");
    let mut command = net.command(env!("CARGO_BIN_EXE_whimbrel"));
    let wire = "tun:whim0,addr=10.9.0.2/24,host=10.9.0.1,queues=2";
    command.args(["pcap", "-w", wire, "-o", out.to_str().unwrap(), "tcp port 81"]);
    let mut child = Running::start(command.stderr(Stdio::piped()));
    await_that("it answers", || ping(&net) || child.end().is_some());
    // From as many ports: the kernel gives them to both queues, and each queue refuses its own.
    fail(net.command("curl").args(["-sS", "--max-time", "20", "http://10.9.0.2:81/[1-20]"]));
    interrupt(child.id());
    let output = child.output();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    assert!(errors.contains("40 frames captured; dropped: 20 NO_SOCKET"), "{errors}");
    let dropped = comments(&out).iter().filter(|comment| comment.contains("NO_SOCKET")).count();
    assert_eq!(dropped, 20);
    if let Some(lines) = tshark(&out, &["tcp.flags.str"]) {
        assert_eq!(lines.iter().filter(|flags| flags.contains('R')).count(), 20, "{lines:?}");
    }
}

#[test]
fn each_script_has_a_capture_with_states_and_drops() {
    let folder = Folder::new("scripts");
    let scripts = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/scripts");
    let mut run = whimbrel(&["script", "run", "rfc9293", "--quiet", "--pcap-dir"]);
    succeed(run.arg(&folder.0).current_dir(scripts));
    let files: Vec<_> = walk(&folder.0.join("rfc9293"));
    let asked = walk(&Path::new(scripts).join("rfc9293"));
    assert_eq!(files.len(), asked.len());
    let comments: Vec<_> = files.iter().flat_map(|file| comments(file)).collect();
    for part in ["state: SYN-RECEIVED -> ESTABLISHED", "drop: "] {
        assert!(comments.iter().any(|comment| comment.contains(part)), "{part}");
    }
    if let Some(lines) = tshark(&files[0], &["ip.proto"]) {
        assert!(!lines.is_empty());
    }
    let kernel = ["script", "run", "--against", "kernel", "--pcap-dir", "x", "y"];
    let (code, error) = fail(&mut whimbrel(&kernel));
    assert!(code == 2 && error.contains("tcpdump"), "{error}");
}

/// All files below a folder.
fn walk(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}

/// A run whose capture cannot be written reports it once, continues, prints its result, and exits with
/// 1.
fn breaks_off(command: &mut Command, reason: &str, result: &str) {
    let output = output(command);
    let (text, error) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{command:?}: {error}");
    assert_eq!(error.matches("the capture is incomplete").count(), 1, "{command:?}: {error}");
    assert!(error.contains(reason), "{command:?}: {error}");
    assert!(text.contains(result), "{command:?}: {text} {error}");
}

#[test]
fn full_disk_ends_capture_but_not_run() {
    let full =
        "--pcap: the capture is incomplete: No space left on device (os error 28); is the disk";
    let reason = &full.replace("--pcap", "--pcap /dev/full");
    for (words, result) in [
        // Whole at once, and broken by the last flush.
        ("load -n 300 -c 2 -K", "Requests:      300"),
        ("load -n 1 -c 1", "Success rate:  100.00%"),
        ("load -n 20000 -c 2 --shards 2", "Requests:      20,000"),
        ("load -n 300 --json", "\"schema\": \"whimbrel.load/1\""),
        ("crr -n 300", "TCP_CRR"),
        ("bulk send -n 4M", "sender"),
    ] {
        let mut command = whimbrel(&words.split(' ').collect::<Vec<_>>());
        breaks_off(command.args(["--pcap", "/dev/full"]), reason, result);
    }
    // The verdict of --fail-if comes first.
    let (code, error) =
        fail(&mut whimbrel(&["load", "-n", "9", "--pcap", "/dev/full", "--fail-if", "rps>0"]));
    assert!(code == 3 && error.contains("the capture is incomplete"), "{error}");
}

#[test]
fn server_continues_without_its_capture() {
    let Some(net) = Net::with(&["curl"]) else { return };
    let mut command = net.command(env!("CARGO_BIN_EXE_whimbrel"));
    command.args("serve -w tun:whim0,addr=10.9.0.2/24,host=10.9.0.1".split(' '));
    command.args(["--pcap", "/dev/full"]);
    let mut serve = Running::start(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
    let mut said = await_serving(&mut serve);
    // More than the buffer before a write.
    net.run("curl -sS --fail --max-time 20 -o /dev/null http://10.9.0.2/[1-1000]");
    serve.signal(Signal::TERM);
    let mut text = String::new();
    said.read_to_string(&mut text).unwrap();
    let mut error = String::new();
    serve.take_stderr().read_to_string(&mut error).unwrap();
    assert_eq!(serve.wait().code(), Some(1), "{error}");
    assert!(unbroken(&text).contains("1 connection, 1000 requests (0 refused)"), "{text}");
    assert_eq!(
        error.matches("is the disk full?; the run continues without it").count(),
        1,
        "{error}"
    );
}

#[test]
fn vanished_folder_ends_capture_at_next_file() {
    let folder = scratch("pcap-vanished");
    fs::create_dir_all(&folder).unwrap();
    let capture = format!("{},rotate=20k", folder.join("a.pcapng").display());
    let mut load =
        whimbrel(&["load", "-z", "1h", "-c", "1", "-q", "200", "-K", "--pcap", &capture]);
    let load = Running::start(load.stdout(Stdio::piped()).stderr(Stdio::piped()));
    await_that("it captures", || folder.join("a_00002.pcapng").exists());
    fs::remove_dir_all(&folder).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(500));
    interrupt(load.id());
    let output = load.output();
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains(".pcapng: No such file or directory"), "{error}");
    assert_eq!(error.matches("the capture is incomplete").count(), 1, "{error}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("Success rate:  100.00%"));
}

#[test]
fn closed_pipe_ends_pcap_with_one_message() {
    let (folder, load) = captured_load("pcap-reader");
    let wire = format!("pcap:{load},addr=10.0.0.2/24");
    let mut capture = whimbrel(&["pcap", "-w", &wire]);
    let mut running = Running::start(capture.stdout(Stdio::piped()).stderr(Stdio::piped()));
    drop(running.take_stdout());
    let mut error = String::new();
    running.take_stderr().read_to_string(&mut error).unwrap();
    assert_eq!(running.wait().code(), Some(1), "{error}");
    assert_eq!(
        error.matches("--output -: the capture is incomplete: Broken pipe").count(),
        1,
        "{error}"
    );
    assert!(error.contains("not all frames captured"), "{error}");
    drop(folder);
}

#[test]
fn scripts_continue_without_their_captures() {
    let file = scratch("pcap-no-folder");
    fs::write(&file, "").unwrap();
    let scripts = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/scripts/rfc9293/established");
    let mut run = whimbrel(&["script", "run", scripts, "--quiet", "--pcap-dir"]);
    let output = output(run.arg(&file));
    let (text, error) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert_eq!(error.matches("--pcap-dir: cannot write").count(), 1, "{error}");
    assert!(text.contains(" passed, "), "{text}");
}
