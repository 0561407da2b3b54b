//! `serve --access-log`, and what clients that have a file already are answered.

use std::fs;
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::needs;
use crate::running::{Running, Signal, await_that, fail, succeed};
use crate::scratch::scratch;
use crate::signals::free_address;

fn serve(words: &[&str]) -> (Running, String) {
    let at = free_address();
    let mut command = Command::new(env!("CARGO_BIN_EXE_whimbrel"));
    command.args(["serve", "-w", "kernel:", "-l", &at.to_string()]).args(words);
    let serve = Running::start(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
    await_that("it serves", || TcpStream::connect(at).is_ok());
    (serve, at.to_string())
}

fn curl(words: &str) -> String {
    succeed(Command::new("curl").args(["-sS", "--max-time", "20"]).args(words.split(' ')))
}

/// Ends it; returns its standard output and standard error.
fn end(serve: Running) -> (String, String) {
    serve.signal(Signal::TERM);
    let Output { status, stdout, stderr } = serve.output();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let (stdout, stderr) = (text(stdout), text(stderr));
    assert!(status.success(), "{status} {stdout} {stderr}");
    (stdout, stderr)
}

/// Of a line of a log: peer, request, status and bytes, user agent.
fn fields(line: &str) -> [String; 4] {
    let quoted: Vec<_> = line.split('"').collect();
    let [peer, request, result, _, _, agent, _] = quoted[..] else { panic!("{line}") };
    let words: Vec<_> = peer.split(' ').collect();
    assert_eq!(&words[1..3], ["-", "-"], "{line}");
    assert!(words[3].starts_with('[') && words[4] == "+0000]", "{line}");
    [words[0], request, result.trim(), agent].map(str::to_owned)
}

#[test]
fn each_request_is_a_combined_log_line() {
    if !needs::found(&["curl"]) {
        return;
    }
    let root = scratch("access-root");
    fs::create_dir_all(&root).unwrap();
    fs::write(root.join("a.txt"), "0123456789").unwrap();
    let log = scratch("access.log");
    fs::write(&log, "a line that was there\n").unwrap();
    let files = root.to_str().unwrap().to_owned();
    let (serve, at) =
        serve(&["--access-log", log.to_str().unwrap(), "--file-root", &files, "--h2c"]);
    curl(&format!("-o /dev/null -A one http://{at}/a.txt"));
    curl(&format!("-o /dev/null -A two http://{at}/nothing?q=1"));
    curl(&format!("-o /dev/null -A three -I http://{at}/a.txt"));
    curl(&format!("-o /dev/null -A four --http2-prior-knowledge http://{at}/a.txt"));
    // Not a request at all.
    let mut stream = TcpStream::connect(&at).unwrap();
    std::io::Write::write_all(&mut stream, b"NONSENSE\r\n\r\n").unwrap();
    await_that("five lines", || fs::read_to_string(&log).unwrap().lines().count() == 6);
    // Otherwise the server would wait for it.
    drop(stream);
    let (text, _) = end(serve);
    assert!(text.contains("log        5 lines, 0 lost"), "{text}");
    let written = fs::read_to_string(&log).unwrap();
    let lines: Vec<_> = written.lines().skip(1).map(fields).collect();
    let expected = [
        ["127.0.0.1", "GET /a.txt HTTP/1.1", "200 10", "one"],
        ["127.0.0.1", "GET /nothing?q=1 HTTP/1.1", "404 38", "two"],
        ["127.0.0.1", "HEAD /a.txt HTTP/1.1", "200 -", "three"],
        ["127.0.0.1", "GET /a.txt HTTP/2.0", "200 10", "four"],
    ];
    assert_eq!(lines[..4], expected.map(|line| line.map(str::to_owned)));
    assert!(lines[4][1] == "NONSENSE" && lines[4][2].starts_with("400 "), "{:?}", lines[4]);
}

#[test]
fn log_on_stdout_is_alone_there() {
    if !needs::found(&["curl"]) {
        return;
    }
    let (serve, at) = serve(&["--access-log", "-"]);
    curl(&format!("-o /dev/null http://{at}/[1-3]"));
    let (text, told) = end(serve);
    assert_eq!(text.lines().map(fields).filter(|line| line[2] == "200 128").count(), 3, "{text}");
    assert!(told.contains("listening") && told.contains("log        3 lines, 0 lost"), "{told}");
    let mut both = Command::new(env!("CARGO_BIN_EXE_whimbrel"));
    let (code, error) = fail(both.args("serve -w kernel: --json --access-log -".split(' ')));
    assert!(
        code == 2 && error.contains("--access-log: -: the document uses the standard output"),
        "{error}"
    );
}

#[test]
fn unwritable_log_is_reported_once_and_lines_counted() {
    if !needs::found(&["curl"]) {
        return;
    }
    let (serve, at) = serve(&["--access-log", "/dev/full"]);
    for _ in 0..3 {
        curl(&format!("-o /dev/null http://{at}/"));
    }
    let (text, told) = end(serve);
    assert!(text.contains("3 requests") && text.contains("log        0 lines, 3 lost"), "{text}");
    assert_eq!(told.matches("--access-log /dev/full: No space left").count(), 1, "{told}");
    let mut nowhere = Command::new(env!("CARGO_BIN_EXE_whimbrel"));
    let (code, error) = fail(nowhere.args("serve -w kernel: --access-log /nowhere/x".split(' ')));
    assert!(code == 1 && error.contains("--access-log /nowhere/x: No such file"), "{error}");
}

/// A server's answer: the status, and the length of the body.
fn asked(at: &str, words: &str) -> String {
    curl(&format!("-o /dev/null -w %{{http_code}},%{{size_download}} {words} http://{at}/a.txt"))
}

#[test]
fn conditional_curl_gets_nothing_twice() {
    if !needs::found(&["curl"]) {
        return;
    }
    let root = scratch("conditional-root");
    fs::create_dir_all(&root).unwrap();
    let file = root.join("a.txt");
    fs::write(&file, "0123456789").unwrap();
    let (tag, copy) = (scratch("a.etag"), scratch("a.copy"));
    for h2c in [&[][..], &["--h2c"]] {
        let (serve, at) = serve(&[&["--file-root", root.to_str().unwrap()], h2c].concat());
        let protocol = if h2c.is_empty() { "--http1.1" } else { "--http2-prior-knowledge" };
        let asked = |words: &str| asked(&at, &format!("{protocol} {words}"));
        let path = |path: &Path| path.display().to_string();
        assert_eq!(asked(&format!("--etag-save {}", path(&tag))), "200,10");
        assert!(fs::read_to_string(&tag).unwrap().contains('"'));
        assert_eq!(asked(&format!("--etag-compare {}", path(&tag))), "304,0");
        assert_eq!(asked(&format!("-I --etag-compare {}", path(&tag))), "304,0");
        curl(&format!("{protocol} -R -o {} http://{at}/a.txt", path(&copy)));
        assert_eq!(asked(&format!("-z {}", path(&copy))), "304,0");
        assert!(asked("-z -19990101").starts_with("412,"), "not unmodified since then");
        // Another file of the same length and date.
        let date = fs::metadata(&file).unwrap().modified().unwrap();
        fs::write(&file, "9876543210").unwrap();
        fs::File::options().append(true).open(&file).unwrap().set_modified(date).unwrap();
        assert_eq!(asked(&format!("--etag-compare {}", path(&tag))), "200,10");
        end(serve);
    }
}
