//! Tests that take the kernel's tools a while: a GiB each way, and hundreds of connections at a time.

mod chapters;
mod explained;
mod hostile;
mod million;
mod relays;

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::needs::IPV6;
use crate::netns::Net;
use crate::running::{Running, await_that, succeed, succeed_with, unbroken};
use crate::scratch::{clear_up, guard_namespace, scratch};

const MIB: usize = 1 << 20;

#[test]
#[cfg_attr(debug_assertions, ignore = "4 GiB take minutes in a debug build: give --release")]
fn curl_moves_a_gib_both_ways_over_both_families() {
    let Some(net) = Net::with(&[IPV6, "curl", "sha256sum"]) else { return };
    let root = net.folder().join("root");
    fs::create_dir(&root).unwrap();
    let file = root.join("gibibyte");
    write_gibibyte(&file);
    let sum = sha256(&file);
    let serve = net.serve(&["--file-root", root.to_str().unwrap(), "--upload"]);
    for host in ["10.9.0.2", "[fd09::2]"] {
        assert_eq!(sha256_of_download(&net, &format!("http://{host}/gibibyte")), sum, "{host}");
        let up = root.join("up");
        let line = format!("-T {} http://{host}/up", file.display());
        net.run(&format!("curl -sS -g --fail --max-time 120 {line}"));
        assert_eq!(sha256(&up), sum, "{host}");
        fs::remove_file(up).unwrap();
    }
    let text = serve.stop();
    assert!(unbroken(&text).contains("4 requests (0 refused); 0 connections failed"), "{text}");
}

/// 1,024 different MiB.
fn write_gibibyte(path: &Path) {
    let mut block: Vec<u8> = (0..MIB as u32).map(|at| (at.wrapping_mul(at) >> 7) as u8).collect();
    let mut file = BufWriter::new(File::create(path).unwrap());
    for number in 0..1024_u32 {
        block[..4].copy_from_slice(&number.to_be_bytes());
        file.write_all(&block).unwrap();
    }
    file.flush().unwrap();
}

fn sha256(path: &Path) -> String {
    digest(&succeed(Command::new("sha256sum").arg(path)))
}

/// Hashed during the download, without a file.
fn sha256_of_download(net: &Net, url: &str) -> String {
    let mut curl = net.command("curl");
    curl.args(["-sS", "-g", "--fail", "--max-time", "120", url]).stdout(Stdio::piped());
    let mut curl = Running::start(&mut curl);
    let text = succeed_with(&mut Command::new("sha256sum"), curl.take_stdout());
    assert!(curl.wait().success());
    digest(&text)
}

fn digest(text: &str) -> String {
    text.split_whitespace().next().unwrap().to_owned()
}

#[test]
fn wrk_with_30_and_500_connections_meets_no_error() {
    let Some(net) = Net::with(&["wrk"]) else { return };
    let serve = net.serve(&[]);
    for connections in ["-c30", "-c500"] {
        for fields in [&[][..], &["-H", "Connection: close"]] {
            let mut wrk = net.command("wrk");
            wrk.args(["-t1", "-d3s", connections]).args(fields).arg("http://10.9.0.2/");
            let text = succeed(&mut wrk);
            // It prints these two lines only on errors.
            let failed = text.contains("Socket errors") || text.contains("Non-2xx");
            assert!(!failed, "{connections} {fields:?}: {text}");
            assert!(requests(&text) > 100, "{connections} {fields:?}: {text}");
        }
    }
    let text = serve.stop();
    assert!(unbroken(&text).contains("(0 refused)"), "{text}");
}

/// Over TUN and packet:, ports coming round while their last connections are in TIME-WAIT.
#[test]
fn kernel_short_connections_have_no_errors_or_syn_repeats() {
    if Net::with(&["awk", "bash", "curl", "sysctl", "wrk"]).is_none() {
        return;
    }
    let text = script("churn", "churn-vs-kernel");
    for wire in ["| tun |", "| packet |"] {
        assert!(text.lines().any(|line| line.starts_with(wire)), "{text}");
    }
}

/// Output of the short form of a script, whose namespaces are called after `name`. They end with this
/// process if the script could not remove them.
fn script(name: &str, script: &str) -> String {
    let mut command = Command::new(format!("scripts/long/{script}"));
    command.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    command.args(["--short", env!("CARGO_BIN_EXE_whimbrel")]).stdin(Stdio::null());
    let folder = scratch(name);
    fs::create_dir(&folder).unwrap();
    command.env("TMPDIR", folder).stdout(Stdio::piped()).stderr(Stdio::piped());
    let running = Running::start(&mut command);
    for side in ["c", "s"] {
        guard_namespace(&format!("whim-{name}-{side}-{}", running.id()));
    }
    let Output { status, stdout, stderr } = running.output();
    let text = String::from_utf8_lossy(&stdout).into_owned();
    assert!(status.success(), "{script}: {status}\n{text}{}", String::from_utf8_lossy(&stderr));
    text
}

/// The guard of a killed script also removes a namespace that a child of it makes afterwards.
#[test]
fn guard_removes_namespace_made_after_its_owner_ended() {
    if Net::new().is_none() {
        return;
    }
    let name = format!("whim-late-{}", std::process::id());
    let (file, folder) = (Path::new("/run/netns").join(&name), scratch("late"));
    fs::create_dir(&folder).unwrap();
    let mut guard = Running::start(&mut clear_up(&folder));
    guard.take_stdin().write_all(format!("{name}\n").as_bytes()).unwrap();
    await_that("it has looked once", || !folder.exists());
    succeed(Command::new("ip").args(["netns", "add", &name]));
    assert!(guard.wait().code().is_some());
    assert!(!file.exists());
}

/// 20,000 SYNs a second from unassigned addresses, and 200 clients a second at the same time.
#[test]
fn syn_flood_over_packet_blocks_no_client() {
    if Net::with(&["awk", "bash", "curl"]).is_none() {
        return;
    }
    let program = Path::new(env!("CARGO_BIN_EXE_whimbrel"));
    if !program.with_file_name("examples").join("syn_flood").exists() {
        // A run of only this test does not build the examples.
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--quiet", "--example", "syn_flood"]);
        succeed(build.args((!cfg!(debug_assertions)).then_some("--release")));
    }
    let text = script("flood", "syn-flood");
    let row = text.lines().find(|line| line.starts_with("| 20000 |")).unwrap_or_else(|| {
        panic!("{text}");
    });
    let figures: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
    let [_, _, arrived, _, taken, served, failed, ..] = figures[..] else { panic!("{text}") };
    let number = |figure: &str| figure.parse::<u64>().unwrap();
    assert!(number(arrived) > 1_000 && number(taken) > 1_000, "{text}");
    assert!(number(served) > 0 && failed == "0", "{text}");
}

/// Of `  83412 requests in 3.00s, 18.06MB read`.
fn requests(text: &str) -> u64 {
    let line = text.lines().find(|line| line.contains(" requests in ")).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}
