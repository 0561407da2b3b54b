//! Text from peers, files and documents on a terminal: none of it has an effect there, or looks like a
//! line of the program's.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::thread;

use serde_json::{Value, json};

use crate::pty::Terminal;
use crate::running::{Signal, await_that};
use crate::scratch::scratch;
use crate::signals::free_address;

/// A title, a bell, a separate line twice, reversed letters, a control character of C1, an invisible
/// blank, and DEL.
const HOSTILE: &str = "in\x1b]0;title\x07\nforged: 1\rforged: 2\u{202e}\u{9b}2J\u{200b}\x7fout";

/// A folder for the files of one test.
fn folder(name: &str) -> PathBuf {
    let folder = scratch(name);
    fs::create_dir(&folder).unwrap();
    folder
}

/// The program with these words and arguments on a terminal, until it ended and showed this.
fn on_terminal(folder: &Path, words: &str, arguments: &[&OsStr], shown: &str) -> String {
    let mut terminal =
        Terminal::run_with(words, folder, (40, 100), |command| command.args(arguments));
    terminal.end();
    await_that(&format!("{words} shows {shown}"), || terminal.bytes().contains(shown));
    printed(&terminal)
}

/// Its output, in which none of [`HOSTILE`] has an effect.
fn printed(terminal: &Terminal) -> String {
    let text = terminal.bytes();
    let bad = ["\x1b]", "\x07", "\u{202e}", "\u{9b}", "\u{200b}", "\x7f", "\u{fffd}"];
    let lines = text.split("\r\n");
    let is_forged = |line: &str| line.contains('\r') || line.starts_with("forged");
    let forged = lines.filter(|line| !line.starts_with('\x1b')).any(is_forged);
    assert!(!forged && !bad.iter().any(|it| text.contains(it)), "{text:?}");
    text
}

fn grid(lines: &[(&str, f64)]) -> Value {
    let line = |(name, value): &(&str, f64)| json!({ "name": name, "what": format!("{name}{value}"), "unit": HOSTILE, "value": value });
    json!({ "schema": "whimbrel.grid/1", "lines": lines.iter().map(line).collect::<Vec<_>>() })
}

fn write(folder: &Path, name: &OsStr, bytes: impl AsRef<[u8]>) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, bytes).unwrap();
    path
}

#[test]
fn text_in_documents_has_no_terminal_effect() {
    let folder = folder("foreign-documents");
    let file = |name: &str, value: &Value| write(&folder, name.as_ref(), value.to_string());
    let figures = json!({ HOSTILE: { "value": 1.0, "unit": HOSTILE } });
    let row = |profile: &str, value: f64| {
        json!({
            "profile": profile, "settings": { HOSTILE: HOSTILE }, "figures": figures,
            "rules": { HOSTILE: { "value": value } }, "values": { HOSTILE: HOSTILE },
        })
    };
    let lab = |rows: &[Value]| json!({ "schema": "whimbrel.lab/1", "cases": [{ "name": HOSTILE, "rows": rows }] });
    let load = |kernel: &str| json!({ "schema": "whimbrel.load/1", "env": { "kernel": kernel }, "config": { HOSTILE: kernel } });
    let pairs = [
        ["ga", "gb"].map(|name| file(name, &grid(&[(HOSTILE, name.len() as f64), ("x", 1.0)]))),
        [file("alone", &grid(&[(HOSTILE, 1.0)])), file("none", &grid(&[]))],
        [file("la", &lab(&[row("a", 1.0)])), file("lb", &lab(&[row("a", 2.0)]))],
        [file("wa", &load("plain")), file("wb", &load(HOSTILE))],
        [file("sa", &json!({ "schema": HOSTILE })), file("sb", &json!({ "schema": HOSTILE }))],
        [write(&folder, HOSTILE.as_ref(), "{}"), folder.join(format!("nowhere{HOSTILE}"))],
    ];
    let shown = r"\u001b]0;title\u0007\nforged: 1";
    for [a, b] in &pairs {
        for words in ["compare", "compare --json"] {
            on_terminal(&folder, words, &[a.as_os_str(), b.as_os_str()], shown);
        }
    }
    let [a, b] = &pairs[2];
    on_terminal(&folder, "compare --fail-if rte>1", &[a.as_os_str(), b.as_os_str()], shown);
    on_terminal(&folder, "sim grid 10M/1ms --baseline", &[pairs[5][0].as_os_str()], shown);
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn file_names_and_contents_have_no_terminal_effect() {
    let folder = folder("foreign-files");
    let scripts = folder.join(OsStr::from_bytes(&[HOSTILE.as_bytes(), b"\x9b\xff"].concat()));
    fs::create_dir(&scripts).unwrap();
    let name = OsString::from_vec([HOSTILE.as_bytes(), b"\x9b.pkt"].concat());
    write(&scripts, &name, format!("0 {HOSTILE}\n"));
    write(
        &scripts,
        "skipped.pkt".as_ref(),
        format!("// Profiles: {}. Why\n", HOSTILE.replace('\n', "")),
    );
    write(&scripts, "quoted.pkt".as_ref(), format!("0 socket(..., {HOSTILE:?}, 0) = 3\n"));
    let unknown = r#""a\u001b]0;title\u0007\nforged" = "\u001b]\u009b""#;
    let rules = write(&folder, "rules.toml".as_ref(), unknown);
    let value = write(&folder, "value.toml".as_ref(), format!("[tunables]\n{unknown}"));
    let nowhere = folder.join(HOSTILE);
    let option = OsString::from(format!("--{HOSTILE}"));
    for (words, argument) in [
        ("script run", scripts.as_os_str()),
        ("script run --json", scripts.as_os_str()),
        ("script run", nowhere.as_os_str()),
        ("sysctl --config", rules.as_os_str()),
        ("sysctl --config", value.as_os_str()),
        ("sysctl --config", nowhere.as_os_str()),
        ("load -n 1 -w mem:delay=1ms -m POST --data-file", nowhere.as_os_str()),
        ("load -n 1 -w mem:delay=1ms --pcap", nowhere.join("x").as_os_str()),
        ("load -n 1 -w mem:delay=1ms --trace", nowhere.join("x").as_os_str()),
        ("load -n 1 -w mem:delay=1ms -o", nowhere.join("x").as_os_str()),
        ("load -n 1 -w mem:delay=1ms --html", nowhere.join("x").as_os_str()),
        ("serve -w kernel: -l 127.0.0.1:9 --file-root", nowhere.as_os_str()),
        ("serve -w kernel: -l 127.0.0.1:9 --access-log", nowhere.join("x").as_os_str()),
        ("lab run fddi-70ms --profile whimbrel --pcap-dir", rules.join(HOSTILE).as_os_str()),
        ("compare", option.as_os_str()),
        ("load -z", option.as_os_str()),
    ] {
        on_terminal(&folder, words, &[argument], "forged");
    }
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn iperf3_server_text_has_no_terminal_effect() {
    let folder = folder("foreign-iperf3");
    for words in ["", "--json", "--json=iperf3"] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let server = thread::spawn(move || serve_a_test(&listener));
        let words =
            format!("bulk send {at} -w kernel: -n 10K --no-tui --get-server-output {words}");
        let text = on_terminal(&folder, &words, &[], r"in\u001b]0;title\u0007");
        server.join().unwrap();
        // A line of another's is seen to be one.
        assert!(words.contains("json") || text.contains("\r\n  forged: 1\\rforged: 2"), "{text}");
    }
    fs::remove_dir_all(&folder).unwrap();
}

/// One test of an iperf3 server with hostile texts.
fn serve_a_test(listener: &TcpListener) {
    let accept = || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.read_exact(&mut [0; 37]).unwrap();
        stream
    };
    let mut control = accept();
    control.write_all(&[9]).unwrap();
    read_document(&mut control);
    control.write_all(&[10]).unwrap();
    let mut stream = accept();
    let reader = thread::spawn(move || stream.read_to_end(&mut Vec::new()));
    control.write_all(&[1, 2]).unwrap();
    let mut end = [0];
    control.read_exact(&mut end).unwrap();
    control.write_all(&[13]).unwrap();
    read_document(&mut control);
    let results = json!({
        "cpu_util_total": 0, "cpu_util_user": 0, "cpu_util_system": 0, "sender_has_retransmits": 0,
        "congestion_used": HOSTILE, "server_output_text": HOSTILE,
        "streams": [{ "id": 1, "bytes": 10_240, "retransmits": -1, "end_time": 1 }],
    });
    let results = results.to_string();
    control.write_all(&u32::try_from(results.len()).unwrap().to_be_bytes()).unwrap();
    control.write_all(results.as_bytes()).unwrap();
    control.write_all(&[14]).unwrap();
    control.read_to_end(&mut Vec::new()).unwrap();
    let _reset = reader.join().unwrap();
}

fn read_document(control: &mut TcpStream) {
    let mut length = [0; 4];
    control.read_exact(&mut length).unwrap();
    let mut document = vec![0; u32::from_be_bytes(length) as usize];
    control.read_exact(&mut document).unwrap();
}

#[test]
fn http_server_text_has_no_terminal_effect() {
    let folder = folder("foreign-http-server");
    let heads = [
        format!("HTTP/1.1 200 {HOSTILE}\r\nContent-Length: 0\r\n\r\n"),
        format!("HTTP/1.1 404 {HOSTILE}\r\n{HOSTILE}: {HOSTILE}\r\n\r\n"),
        format!("HTTP/1.1 200 OK\r\nX: {HOSTILE}\r\nContent-Length: {HOSTILE}\r\n\r\n"),
        format!("{HOSTILE}\r\n\r\n"),
    ];
    for head in heads {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let _some = stream.read(&mut [0; 4_096]).unwrap();
            stream.write_all(head.as_bytes()).unwrap();
        });
        on_terminal(&folder, &format!("load http://{at}/ -w kernel: -n 1 -c 1"), &[], "127.0.0.1");
        server.join().unwrap();
    }
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn http_client_and_file_text_has_no_terminal_effect() {
    let folder = folder("foreign-http-client");
    let root = folder.join(HOSTILE);
    fs::create_dir(&root).unwrap();
    let large = File::create(root.join("large")).unwrap();
    large.set_len(256 << 20).unwrap();
    let at = free_address();
    let words = format!("serve -w kernel: -l {at} --access-log - --file-root");
    let mut terminal = Terminal::run_with(&words, &folder, (40, 100), |it| it.arg(&root));
    terminal.await_text("listening");
    let ask = |head: &str| {
        let mut stream = TcpStream::connect(at).unwrap();
        stream.write_all(head.as_bytes()).unwrap();
        stream
    };
    // A head that is refused, and one that is not.
    ask("GET / HTTP/1.1\r\nHost: a\r\nUser-Agent: in\x1b]0;title\x07\x7f\r\n\r\n");
    let mut slow = ask("GET /large HTTP/1.1\r\nHost: a\r\nReferer: \u{202e}\u{9b}2J\r\n\r\n");
    slow.read_exact(&mut [0; 100]).unwrap();
    // The file becomes shorter than announced, which the server reports.
    large.set_len(0).unwrap();
    let _broken = slow.read_to_end(&mut Vec::new());
    await_that("the server tells", || terminal.bytes().contains("out/large: "));
    for logged in [r#""in\x1b]0;title\x07\x7f""#, r#""\xe2\x80\xae\xc2\x9b2J""#] {
        await_that("the log has both", || terminal.bytes().contains(logged));
    }
    terminal.signal(Signal::TERM);
    terminal.end();
    let text = printed(&terminal);
    assert!(
        text.contains(r"\nforged: 1\rforged: 2\u202e\u009b2J\u200b\u007fout/large: "),
        "{text}"
    );
    fs::remove_dir_all(&folder).unwrap();
}

/// A block of pcapng: its type, its body, and its length in front and behind.
fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(12 + body.len()).unwrap().to_le_bytes();
    [&kind.to_le_bytes()[..], &length, body, &length].concat()
}

/// Bytes up to the next word of 32 bits.
fn padded(bytes: &[u8]) -> Vec<u8> {
    [bytes, &[0; 3][..bytes.len().wrapping_neg() % 4]].concat()
}

/// Each of these options with [`HOSTILE`], and the end of options.
fn hostile_options(codes: &[u16]) -> Vec<u8> {
    let option = |code: &u16| {
        let length = u16::try_from(HOSTILE.len()).unwrap();
        [&code.to_le_bytes()[..], &length.to_le_bytes(), &padded(HOSTILE.as_bytes())].concat()
    };
    [codes.iter().flat_map(option).collect(), vec![0; 4]].concat()
}

/// A packet of IPv4 to 10.9.0.2 with this protocol.
fn packet(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(20 + payload.len()).unwrap();
    let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, protocol, 0, 0, 10, 9, 0, 1, 10, 9, 0, 2];
    packet[2..4].copy_from_slice(&length.to_be_bytes());
    let sum: u32 = packet.chunks(2).map(|it| u32::from(it[0]) << 8 | u32::from(it[1])).sum();
    let sum = !u16::try_from((sum & 0xffff) + (sum >> 16)).unwrap();
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    [&packet, payload].concat()
}

/// A capture whose every text is [`HOSTILE`]: comments, names of the machine and its interface, filters, resolved
/// names, an unknown block, and what segments, datagrams, echo requests and unknown protocols carry.
fn hostile_capture() -> Vec<u8> {
    let section = [&0x1a2b_3c4d_u32.to_le_bytes()[..], &[1, 0, 0, 0], &[0xff; 8]].concat();
    let section = [section, hostile_options(&[1, 2, 3, 4])].concat();
    let interface =
        [vec![101, 0, 0, 0, 0, 0, 4, 0], hostile_options(&[1, 2, 3, 11, 12, 15])].concat();
    let name = [&[10, 9, 0, 1][..], HOSTILE.as_bytes(), &[0]].concat();
    let record = [&[1, 0][..], &u16::try_from(name.len()).unwrap().to_le_bytes()].concat();
    let names = [record, padded(&name), vec![0; 4], hostile_options(&[1, 2])].concat();
    let text = HOSTILE.as_bytes();
    let segment = |flags| {
        [&[4, 0, 0, 80, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, flags, 1, 0, 0, 0, 0, 0], text].concat()
    };
    let datagram = [&[4, 0, 0, 80, 0, u8::try_from(8 + text.len()).unwrap(), 0, 0], text].concat();
    let packets = [
        packet(6, &segment(2)),
        packet(6, &segment(0x18)),
        packet(17, &datagram),
        packet(1, &[&[8, 0, 0, 0, 0, 1, 0, 1], text].concat()),
        packet(200, text),
        text.to_vec(),
    ];
    let packets = packets.iter().flat_map(|bytes| {
        let length = u32::try_from(bytes.len()).unwrap().to_le_bytes();
        let body = [&[0; 12][..], &length, &length, &padded(bytes), &hostile_options(&[1])];
        block(6, &body.concat())
    });
    let blocks = [block(0x0a0d_0d0a, &section), block(1, &interface), block(4, &names)];
    [blocks.concat(), block(0x8000_1234, &padded(text)), packets.collect()].concat()
}

#[test]
fn text_in_captures_has_no_terminal_effect() {
    let folder = folder("foreign-captures");
    let capture = hostile_capture();
    let wire = |name: &str, bytes: &[u8]| {
        let path = write(&folder, name.as_ref(), bytes);
        OsString::from(format!("pcap:{},addr=10.9.0.2/24,speed=max", path.display()))
    };
    let whole = wire(&format!("{HOSTILE}.pcapng"), &capture);
    for (words, shown) in [
        ("pcap -o out.pcapng -w", "frames captured"),
        ("serve -w", "replayed"),
        ("serve --access-log - --pcap again.pcapng -w", "replayed"),
        ("load http://10.9.0.1/ -w", "error"),
        ("crr 10.9.0.1:7 -w", "error"),
        ("bulk send 10.9.0.1 -w", "error"),
    ] {
        on_terminal(&folder, words, &[&whole], shown);
    }
    // Files that are none, or end anywhere: the error names the file.
    let (half, none) = (&capture[..capture.len() / 2], HOSTILE.as_bytes());
    for (name, bytes) in [("half", half), ("none", none)] {
        let broken = wire(&format!("{name}{HOSTILE}"), bytes);
        for words in ["pcap -o broken.pcapng -w", "serve -w"] {
            on_terminal(&folder, words, &[&broken], "cannot be replayed");
        }
    }
    let path = write(&folder, HOSTILE.as_ref(), &capture);
    for words in ["compare", "compare --json"] {
        on_terminal(&folder, words, &[path.as_os_str(), path.as_os_str()], "forged");
    }
    for words in ["sysctl --config", "sim grid 10M/1ms --baseline"] {
        on_terminal(&folder, words, &[path.as_os_str()], "forged");
    }
    let filter = format!("-wpcap:x,addr=10.9.0.2/24 -oy -- {HOSTILE}");
    let filter: Vec<_> = filter.splitn(4, ' ').map(OsStr::new).collect();
    on_terminal(&folder, "pcap", &filter, "FILTER");
    fs::remove_dir_all(&folder).unwrap();
}
