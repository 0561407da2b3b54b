//! `whimbrel script run`: against the stack in virtual time, and against the kernel.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::needs;
use crate::netns::public_copy;
use crate::running::{Running, fail, interrupt, output};
use crate::schema::checked;
use crate::scratch::scratch;

const OPEN: &str = include_str!("../../../../tests/scripts/passive_open.pkt");

/// A folder with scripts, removed at the end.
struct Scripts(PathBuf);

impl Scripts {
    fn new(scripts: &[(&str, &str)]) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = scratch(&format!("scripts-{number}"));
        for (name, text) in scripts {
            let path = folder.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        Self(folder)
    }

    fn path(&self) -> &Path {
        &self.0
    }

    /// `whimbrel script run` with these words, in the folder.
    fn run(&self, words: &str) -> (i32, String) {
        let Output { status, stdout, stderr } = output(&mut command(&self.0, words));
        let text = String::from_utf8(stdout).unwrap() + &String::from_utf8(stderr).unwrap();
        (status.code().unwrap(), text)
    }
}

impl Drop for Scripts {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn command(folder: &Path, words: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_whimbrel"));
    command.current_dir(folder).args(["script", "run"]).args(words.split_whitespace());
    command
}

/// True if scripts can run against the kernel here; prints a note if not. With `WHIMBREL_REQUIRE_NET=1`
/// that is a failure.
pub(crate) fn kernel_is_there() -> bool {
    let scripts = Scripts::new(&[("open.pkt", OPEN)]);
    let (code, text) = scripts.run("--against kernel open.pkt");
    if code == 4 {
        needs::skip(text.trim_end());
    }
    code != 4
}

#[test]
fn script_passes_or_shows_the_received_packet() {
    let wrong = OPEN.replace("> P. 1:501(500) ack 1", "> P. 1:501(500) ack 2");
    let scripts = Scripts::new(&[("good.pkt", OPEN), ("wrong.pkt", &wrong)]);
    let (code, text) = scripts.run("good.pkt");
    assert_eq!(code, 0, "{text}");
    assert!(text.starts_with("good.pkt: ok\n1 passed, 0 by semantic rules, 0 failed"), "{text}");
    let (code, text) = scripts.run("good.pkt wrong.pkt");
    assert_eq!(code, 3, "{text}");
    let failure = text.lines().nth(1).unwrap();
    assert!(failure.starts_with("wrong.pkt: FAILED line 11: expected "), "{text}");
    assert!(failure.ends_with("acknowledgment number 2, came 1"), "{text}");
    // The packets before it, the one that differs included.
    let packets: Vec<_> = text.lines().filter(|line| line.starts_with("    0.")).collect();
    assert_eq!(packets.len(), 4, "{text}");
    assert!(packets[0].contains("< S 0:0(0)") && packets[3].contains("1:501(500)"), "{text}");
    assert!(text.contains("1 passed, 0 by semantic rules, 1 failed, 0 skipped"), "{text}");
    let (_, text) = scripts.run("--quiet good.pkt wrong.pkt");
    assert!(text.starts_with("wrong.pkt: FAILED") && !text.contains("good.pkt"), "{text}");
}

#[test]
fn a_failure_shows_the_last_ten_packets() {
    let mut script = OPEN.lines().take(9).collect::<Vec<_>>().join("\n");
    for number in 0..12 {
        let (from, to) = (1 + number * 10, 11 + number * 10);
        script.push_str(&format!(
            "\n+0 write(4, ..., 10) = 10\n+0 > P. {from}:{to}(10) ack 1\n+0 < . 1:1(0) ack {to} win 32792"
        ));
    }
    script.push_str("\n+0 write(4, ..., 10) = 10\n+0 > F. 121:121(0) ack 1\n");
    let scripts = Scripts::new(&[("long.pkt", &script)]);
    let (code, text) = scripts.run("long.pkt");
    assert_eq!(code, 3, "{text}");
    assert_eq!(text.lines().filter(|line| line.starts_with("    ")).count(), 10, "{text}");
}

#[test]
fn unsupported_script_is_skipped_and_not_executed() {
    let mark = "touch ran";
    let shell = format!("`{mark}`\n{OPEN}`{mark}`\n");
    let option = format!("--no_such_option=1\n{OPEN}");
    let scripts = Scripts::new(&[("shell.pkt", &shell), ("option.pkt", &option)]);
    let (code, text) = scripts.run(".");
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("option.pkt: skipped: line 1: option --no_such_option"), "{text}");
    assert!(text.contains("shell.pkt: skipped: ") && text.contains(mark), "{text}");
    assert!(text.contains("0 passed, 0 by semantic rules, 0 failed, 2 skipped"), "{text}");
    assert!(!scripts.path().join("ran").exists());
}

#[test]
fn a_script_that_cannot_be_read_fails_at_its_line() {
    let scripts = Scripts::new(&[("typo.pkt", "0 socket(\n+0 > ?\n")]);
    let (code, text) = scripts.run("typo.pkt");
    assert_eq!(code, 3, "{text}");
    let said = "typo.pkt: FAILED line 2: expected an argument at column 1, came \"+0\"";
    assert!(text.contains(said), "{text}");
}

#[test]
fn folders_are_walked_in_order_and_many_scripts_take_seconds() {
    let names: Vec<_> =
        (0..1000).map(|number| format!("{:02}/{number:03}.pkt", number / 50)).collect();
    let files: Vec<_> = names.iter().map(|name| (name.as_str(), OPEN)).collect();
    let scripts = Scripts::new(&files);
    fs::write(scripts.path().join("notes.txt"), "not a script").unwrap();
    let begun = Instant::now();
    let (code, text) = scripts.run(".");
    let took = begun.elapsed();
    assert_eq!(code, 0, "{text}");
    let came: Vec<_> = text.lines().filter_map(|line| line.strip_suffix(": ok")).collect();
    let wanted: Vec<_> = names.iter().map(|name| format!("./{name}")).collect();
    assert_eq!(came, wanted);
    assert!(text.contains("1000 passed"), "{text}");
    // 100 s on the scripts' clocks. Unoptimised, on a busy machine.
    assert!(took < Duration::from_secs(60), "{took:?}");
}

#[test]
fn words_are_defined_and_branches_chosen() {
    let script = OPEN.replace("write(4, ..., 500) = 500", "write(4, ..., SIZE) = SIZE");
    let branch = format!("#ifdef FreeBSD\n0 no_such_call() = 0\n#else\n{OPEN}#endif\n");
    let scripts = Scripts::new(&[("word.pkt", &script), ("branch.pkt", &branch)]);
    assert_eq!(scripts.run("-D SIZE=500 word.pkt").0, 0);
    assert_eq!(scripts.run("-D SIZE=499 word.pkt").0, 3);
    assert_eq!(scripts.run("branch.pkt").0, 0);
    let (_, text) = scripts.run("--dialect freebsd branch.pkt");
    assert!(text.contains("branch.pkt: skipped: ") || text.contains("FAILED"), "{text}");
    // By its meaning, a script holds if one of its branches does.
    assert_eq!(scripts.run("--semantic --dialect freebsd branch.pkt").0, 0);
}

#[test]
fn dialect_follows_file_and_profile_the_stack() {
    // FreeBSD's options are in another order; its scripts run over IPv6 at an MTU of 1,500.
    let script = |sysctl: &str, mss: u16, options: &str| {
        format!(
            "--ip_version=ipv6
0 `sysctl -q {sysctl}`
+0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 fcntl(3, F_SETFL, O_RDWR|O_NONBLOCK) = 0
#ifdef FreeBSD
+0 connect(3, ..., ...) = -1 EINPROGRESS
#else
+0 connect(3, ..., ...) = -1 EINPROGRESS (Operation now in progress)
#endif
+0 > S 0:0(0) <mss {mss},{options}>
"
        )
    };
    let ours = "sackOK,TS val 0 ecr 0,nop,wscale 6";
    let linux = script("net.ipv4.tcp_sack=1", 1460, "sackOK,TS val 0 ecr 0,nop,wscale 8");
    let freebsd = script("net.inet.tcp.sack.enable=1", 1440, "nop,wscale 6,sackOK,TS val 0 ecr 0");
    let untold = script("buffers.recv=65536", 1440, ours).replace("wscale 6", "wscale 1");
    let scripts = Scripts::new(&[("l.pkt", &linux), ("f.pkt", &freebsd), ("u.pkt", &untold)]);
    let told = |words: &str| {
        let (_, text) = scripts.run(&format!("--json {words}"));
        let document: Value = checked(&text);
        let file = &document["files"][0];
        let tell = |key: &str| file[key].as_str().unwrap().to_owned();
        (tell("verdict"), tell("dialect"))
    };
    let is = |verdict: &str, dialect: &str| (verdict.to_owned(), dialect.to_owned());
    for profile in ["--profile", "--persona"] {
        assert_eq!(told(&format!("{profile} linux l.pkt")), is("passed", "linux"));
        assert_eq!(told(&format!("{profile} freebsd f.pkt")), is("passed", "freebsd"));
    }
    // Another profile has another scale or order, and the file has the same MTU.
    assert_eq!(told("--semantic --profile freebsd l.pkt"), is("passed", "linux"));
    assert_eq!(told("--semantic --profile linux f.pkt"), is("passed", "freebsd"));
    assert_eq!(told("--semantic u.pkt"), is("passed", "whimbrel"));
    assert_eq!(told("--semantic --dialect linux f.pkt"), is("failed", "linux"));
    assert_eq!(told("--semantic --dialect freebsd l.pkt"), is("failed", "freebsd"));
}

#[test]
fn script_document_has_everything_in_the_text() {
    let wrong = OPEN.replace("ack 1 <mss 1460>", "ack 1 <mss 1461>");
    let skipped = format!("--no_such_option\n{OPEN}");
    let scripts = Scripts::new(&[("a.pkt", OPEN), ("b \"q\".pkt", &wrong), ("c.pkt", &skipped)]);
    let (code, text) = scripts.run("--json -j 2 .");
    assert_eq!(code, 3, "{text}");
    let document: Value = checked(&text);
    assert_eq!(document["schema"], "whimbrel.script/1");
    assert_eq!(document["config"]["against"], "shard");
    let summary = &document["summary"];
    let counts = ["passed", "by_rules", "failed", "skipped"].map(|name| summary[name].as_u64());
    assert_eq!(counts, [1, 0, 1, 1].map(Some), "{text}");
    let verdicts = document["files"].as_array().unwrap().iter().map(|file| &file["verdict"]);
    assert!(verdicts.eq(["passed", "failed", "skipped"]), "{text}");
    let failed = &document["files"][1];
    assert_eq!((&failed["path"], &failed["line"]), (&"./b \"q\".pkt".into(), &7.into()), "{text}");
    assert!(failed["expected"].is_string() && failed["came"].is_string(), "{text}");
    assert_eq!(failed["packets"].as_array().unwrap().len(), 2, "{text}");
    assert!(failed["seconds"].is_number(), "{text}");
    assert_eq!(document["files"][0]["line"], Value::Null);
    assert!(document["files"][2]["reasons"][0].as_str().unwrap().contains("no_such_option"));
}

#[test]
fn unrunnable_script_is_one_line_with_remedy() {
    let scripts = Scripts::new(&[("empty/notes.txt", "no script")]);
    let says = |words: &str, code: i32, parts: &[&str]| {
        let (came, text) = fail(&mut command(scripts.path(), words));
        assert_eq!(came, code, "{text}");
        for part in parts {
            assert!(text.contains(part), "{part:?} is not in: {text}");
        }
        text
    };
    let missing = says("nowhere.pkt", 1, &["nowhere.pkt", "No such file", "use a script"]);
    assert_eq!(missing.lines().count(), 1);
    says("empty", 1, &["empty", ".pkt", "another folder"]);
    says("", 2, &["FILE|DIR"]);
    says("-D =1 empty", 2, &["-D", "NAME=VALUE"]);
    says("--strict --semantic empty", 2, &["--semantic"]);
    says("--profile plan9 empty", 2, &["freebsd"]);
    says("--dialect plan9 empty", 2, &["linux, freebsd, whimbrel"]);
    says("-j 0 empty", 2, &["--jobs"]);
}

#[test]
fn the_kernel_and_the_stack_pass_the_same_script() {
    if !kernel_is_there() || !needs::found(&[needs::IPV6]) {
        return;
    }
    let v6 = format!("--ip_version=ipv6\n{OPEN}");
    let blocking = OPEN.replace("+0   close(4) = 0\n", "").replace(
        "+.05 < . 1:1(0) ack 1 win 32792\n+0   accept(3, ..., ...) = 4\n",
        "+0...0.05 accept(3, ..., ...) = 4\n+.05 < . 1:1(0) ack 1 win 32792\n",
    );
    let wrong = OPEN.replace("<mss 1460>", "<mss 1400>");
    let scripts =
        Scripts::new(&[("4.pkt", OPEN), ("6.pkt", &v6), ("b.pkt", &blocking), ("w.pkt", &wrong)]);
    for against in ["shard", "kernel"] {
        let (code, text) = scripts.run(&format!("--against {against} 4.pkt 6.pkt b.pkt"));
        assert_eq!(code, 0, "{against}: {text}");
        assert!(text.contains("3 passed"), "{against}: {text}");
        let (code, text) = scripts.run(&format!("--against {against} w.pkt"));
        assert_eq!(code, 3, "{against}: {text}");
        assert!(text.contains("mss 1400") && text.contains("mss 1460"), "{against}: {text}");
    }
}

#[test]
fn settings_of_other_systems_are_skipped_for_the_kernel() {
    if !kernel_is_there() {
        return;
    }
    let late = OPEN.replace(
        "+0   close(4) = 0\n",
        "+0 `sysctl -w net.inet.tcp.hostcache.purgenow=1`\n+0   close(4) = 0\n",
    );
    assert_ne!(late, OPEN);
    let freebsd = format!("`sysctl -w net.inet.tcp.insecure_rst=1`\n{late}");
    let unknown = format!("`sysctl -w net.ipv4.no_such_variable=1`\n{OPEN}");
    let scripts = Scripts::new(&[("freebsd.pkt", &freebsd), ("unknown.pkt", &unknown)]);
    let (code, text) = scripts.run("--against kernel freebsd.pkt unknown.pkt");
    assert_eq!(code, 0, "{text}");
    let says = |what: &str| assert!(text.contains(what), "{what:?} is not in: {text}");
    says(
        "freebsd.pkt: ok\n    warning: line 1: net.inet.tcp.insecure_rst=1 is passed over: only FreeBSD",
    );
    says("purging the host cache is passed over: only FreeBSD has it");
    says("unknown.pkt: skipped: ");
}

#[test]
fn many_scripts_run_against_the_kernel_at_once() {
    if !kernel_is_there() {
        return;
    }
    let names: Vec<_> = (0..40).map(|number| format!("{number:02}.pkt")).collect();
    // This number keeps a small machine busy: their times matter less here.
    let patient = format!("--tolerance_usecs=75000\n{OPEN}");
    let files: Vec<_> = names.iter().map(|name| (name.as_str(), &*patient)).collect();
    let scripts = Scripts::new(&files);
    let (code, text) = scripts.run("--against kernel .");
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("40 passed"), "{text}");
    // The kernel keeps none of their devices.
    assert!(!Path::new("/sys/class/net/tun0").exists());
}

#[test]
fn scripts_against_kernel_need_rights() {
    if !kernel_is_there() || !needs::found(&["setpriv"]) {
        return;
    }
    let scripts = Scripts::new(&[("a.pkt", OPEN)]);
    let copy = public_copy(scripts.path());
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(copy);
    command.args(["script", "run", "--against", "kernel"]).arg(scripts.path().join("a.pkt"));
    let (code, text) = fail(&mut command);
    assert_eq!(code, 4, "{text}");
    assert!(text.contains("no privilege") && text.contains("Run as root"), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
}

#[test]
fn unrun_scripts_are_no_success() {
    let scripts = Scripts::new(&[("open.pkt", OPEN)]);
    let mut command = command(scripts.path(), &format!("--jobs 1 {}", "open.pkt ".repeat(10_000)));
    let child = Running::start(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
    interrupt(child.id());
    let output = child.output();
    let [text, error] = [output.stdout, output.stderr].map(|it| String::from_utf8(it).unwrap());
    assert_eq!(output.status.code(), Some(1), "{text}{error}");
    assert!(error.contains("interrupted: ") && error.contains(" of 10,000 scripts"), "{error}");
    assert!(text.lines().last().unwrap().contains(" passed, "), "{text}");
}
