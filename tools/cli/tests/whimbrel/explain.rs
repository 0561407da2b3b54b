//! `whimbrel explain`, on captures of this program's own runs.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::Value;

use crate::running::{Running, Signal, await_handler, await_that, fail, succeed, succeed_with};
use crate::schema::checked;
use crate::scratch::scratch;

pub(crate) fn whimbrel(words: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_whimbrel"));
    command.args(words.split_whitespace());
    command
}

/// A capture of this command.
fn captured(words: &str, name: &str) -> std::path::PathBuf {
    let file = scratch(name);
    succeed(&mut whimbrel(&format!("{words} --clock virtual --seed 1 --pcap {}", file.display())));
    file
}

/// The first capture of the document.
pub(crate) fn explained(words: &str, file: &Path) -> Value {
    let text = succeed(&mut whimbrel(&format!("explain --json {words} {}", file.display())));
    let document: Value = checked(&text);
    assert_eq!(document["schema"], "whimbrel.explain/1");
    document["captures"][0].clone()
}

/// The first `load` of README's transcripts, for a minute.
#[test]
fn load_without_free_ports_is_explained_as_exhausted() {
    let words = "load -z 60s -c 20 -K --close client --local-ports 50000-53999 -S tcp_tw_reuse=0 \
                 -w mem:delay=1ms --quiet";
    let file = captured(words, "explain-ports.pcapng");
    assert_eq!(explained("", &file)["findings"][0]["id"], "PORT_EXHAUSTED");
    fs::remove_file(file).unwrap();
}

#[test]
fn small_window_is_explained_also_from_a_pipe() {
    let words = "bulk send --profile freebsd-2.2.5 -w mem:rate=100M,delay=35ms,mtu=4352 -t 5";
    let file = captured(words, "explain-window.pcapng");
    let capture = explained("", &file);
    let first = &capture["findings"][0];
    assert_eq!((&first["id"], &first["look_at"]), (&"RWND_LIMITED".into(), &"server".into()));
    let time = capture["flows"][0]["directions"][0]["time"].as_object().unwrap();
    let all: u64 = time.values().map(|it| it.as_u64().unwrap()).sum();
    let window = time["receive_window"].as_u64().unwrap();
    assert!(window * 10 > all * 8, "{time:?}");
    let page = succeed_with(&mut whimbrel("explain -"), fs::File::open(&file).unwrap());
    assert!(page.contains("RWND_LIMITED") && page.contains("net.ipv4.tcp_rmem"), "{page}");
    // Of the sender far away nothing is claimed.
    let known = |side: usize| capture["flows"][0]["directions"][side]["time_known"].clone();
    assert_eq!([known(0), known(1)], [true, false]);
    fs::remove_file(file).unwrap();
}

/// A file of a test, which ends with it.
fn file_of(name: &str, text: &str) -> std::path::PathBuf {
    let file = scratch(name);
    fs::write(&file, text).unwrap();
    file
}

#[test]
fn counters_and_sockets_of_the_host_settle_findings() {
    let words = "load -z 60s -c 20 -K --close client --local-ports 50000-53999 -S tcp_tw_reuse=0 \
                 -w mem:delay=1ms --quiet";
    let file = captured(words, "explain-settled.pcapng");
    let first = |words: &str| explained(words, &file)["findings"][0].clone();
    let before = first("");
    assert_eq!(
        (&before["confidence"], &before["evidence"]),
        (&"medium".into(), &Value::Array(vec![]))
    );
    let server = before["server"].as_str().unwrap();
    let client = before["client"].as_str().unwrap();
    let nstat =
        file_of("explain-nstat", "{\"kernel\":{\"TcpActiveOpens\":4000,\"TcpExtTW\":3999}}\n");
    let plain = file_of("explain-nstat-plain", "#kernel\nTcpExtTW                 3999     0.0\n");
    for file in [&nstat, &plain] {
        let sure = first(&format!("--nstat {}", file.display()));
        assert_eq!((&sure["id"], &sure["confidence"]), (&"PORT_EXHAUSTED".into(), &"high".into()));
        assert_eq!(sure["evidence"][0], "TcpExtTW is 3999");
    }
    let ss = format!(
        "State     Recv-Q Send-Q Local Address:Port Peer Address:Port Process\n\
         TIME-WAIT 0      0      {client}:50000 {server} timer:(timewait,30sec,0) ino:0 sk:1\n"
    );
    let ss = file_of("explain-ss", &ss);
    let sure = first(&format!("--ss {}", ss.display()));
    assert_eq!(
        (&sure["confidence"], &sure["evidence"][0]),
        (&"high".into(), &"ports in TIME-WAIT: 1".into())
    );
    for (option, wrong, expected) in [
        ("--nstat", "State Recv-Q\n", "give that of `nstat -azj`"),
        ("--nstat", "{\"kernel\":", "give it whole"),
        ("--nstat", "", "this is no output of nstat"),
        ("--ss", "{\"kernel\":{}}", "this is no output of ss"),
        ("--ss", "", "this is no output of ss"),
    ] {
        let other = file_of("explain-other", wrong);
        let line = format!("explain {option} {} {}", other.display(), file.display());
        let (code, error) = fail(&mut whimbrel(&line));
        assert!(
            code == 1 && error.contains(option) && error.contains(expected),
            "{wrong:?}: {error}"
        );
        fs::remove_file(other).unwrap();
    }
    let (_, error) = fail(&mut whimbrel(&format!("explain --nstat /nowhere {}", file.display())));
    assert!(error.contains("/nowhere: the file cannot be read"), "{error}");
    [file, nstat, plain, ss].into_iter().for_each(|file| fs::remove_file(file).unwrap());
}

#[test]
fn gzip_cut_files_and_others_are_told_apart() {
    let file = captured("load -n 20 -K -w mem:delay=1ms --quiet", "explain-cut.pcapng");
    let whole = explained("", &file);
    assert_eq!((whole["whole"].as_bool(), whole["connections"].as_u64()), (Some(true), Some(20)));
    // Compressed.
    succeed(Command::new("gzip").arg("-kf").arg(&file));
    let gz = file.with_extension("pcapng.gz");
    assert_eq!(explained("", &gz)["frames"], whole["frames"]);
    // Cut in the middle of a block: explained up to there.
    let bytes = fs::read(&file).unwrap();
    fs::write(&file, &bytes[..bytes.len() - 7]).unwrap();
    assert_eq!(explained("", &file)["whole"], false);
    // Of another kind.
    fs::write(&file, b"\x28\xb5\x2f\xfd....").unwrap();
    let (_, error) = fail(&mut whimbrel(&format!("explain {}", file.display())));
    assert!(error.contains("zstd -dc"), "{error}");
    fs::write(&file, b"GIF89a").unwrap();
    let (_, error) = fail(&mut whimbrel(&format!("explain {}", file.display())));
    assert!(error.contains("is it a capture"), "{error}");
    fs::remove_file(file).unwrap();
    fs::remove_file(gz).unwrap();
}

/// A FIFO without a writer, and one whose writer pauses.
#[test]
fn first_interrupt_ends_the_wait_for_a_fifo() {
    let file = captured("load -n 20 -K -w mem:delay=1ms --quiet", "explain-fifo.pcapng");
    let bytes = fs::read(&file).unwrap();
    let fifo = scratch("explain-fifo");
    mknodat(CWD, &fifo, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    for is_written in [false, true] {
        let mut command = whimbrel(&format!("explain --json {}", fifo.display()));
        let explain = Running::start(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
        let writer = is_written.then(|| {
            let mut writer = fs::File::options().write(true).open(&fifo).unwrap();
            std::io::Write::write_all(&mut writer, &bytes[..bytes.len() - 7]).unwrap();
            writer
        });
        await_handler(explain.id());
        if is_written {
            await_that("the pipe is empty", || {
                rustix::io::ioctl_fionread(writer.as_ref().unwrap()).unwrap() == 0
            });
        }
        explain.signal(Signal::INT);
        let ended = explain.output();
        assert!(ended.status.success(), "{ended:?}");
        let document: Value = serde_json::from_slice(&ended.stdout).unwrap();
        let capture = &document["captures"][0];
        assert_eq!(capture["whole"], false);
        assert_eq!(capture["connections"], if is_written { 20 } else { 0 });
        let told = String::from_utf8_lossy(&ended.stderr);
        assert!(told.contains("stopped by a signal"), "{told}");
    }
    [file, fifo].into_iter().for_each(|file| fs::remove_file(file).unwrap());
}

/// A pcapng block of this kind.
fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let len = (body.len() as u32 + 12).to_le_bytes();
    [&kind.to_le_bytes()[..], &len, body, &len].concat()
}

#[test]
fn frames_of_an_unknown_link_type_are_counted() {
    let file = captured("load -n 20 -K -w mem:delay=1ms --quiet", "explain-link.pcapng");
    let bytes = fs::read(&file).unwrap();
    // A second interface, of link type 147, and a frame of it, behind all others and in front of them.
    let packet = |interface: u8| {
        let mut body = vec![0; 24];
        (body[0], body[12], body[16]) = (interface, 4, 4);
        block(6, &body)
    };
    let interface = block(1, &[147, 0, 0, 0, 0, 0, 0, 0]);
    let head = bytes[4] as usize;
    let alone = [&bytes[..head], &interface, &packet(0), &packet(0)].concat();
    fs::write(&file, [&bytes[..], &interface, &packet(1)].concat()).unwrap();
    let capture = explained("", &file);
    assert_eq!((&capture["unknown_link"], &capture["connections"]), (&1.into(), &20.into()));
    let page = succeed(&mut whimbrel(&format!("explain {}", file.display())));
    assert!(page.contains("1 frame of unknown link types (147 first) skipped"), "{page}");
    fs::write(&file, alone).unwrap();
    let (code, error) = fail(&mut whimbrel(&format!("explain {}", file.display())));
    assert!(code == 1 && error.contains("frames of link type 147"), "{error}");
    fs::remove_file(file).unwrap();
}

/// Unprintable letters are escaped on the page alone; a document has its own escapes.
#[test]
fn document_has_the_unescaped_name_of_the_file() {
    let file = captured("load -n 2 -K -w mem:delay=1ms --quiet", "explain-name.pcapng");
    let other = file.with_file_name(format!("{} \u{1b}[1m\"\\\u{e9}", std::process::id()));
    fs::rename(&file, &other).unwrap();
    let mut command = whimbrel("explain --json");
    let document: Value = checked(&succeed(command.arg(&other)));
    assert_eq!(document["captures"][0]["file"], other.to_str().unwrap());
    let page = succeed(whimbrel("explain").arg(&other));
    assert!(!page.contains('\u{1b}') && page.contains("[1m"), "{page:?}");
    fs::remove_file(other).unwrap();
}
