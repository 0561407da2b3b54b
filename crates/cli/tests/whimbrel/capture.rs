//! `--pcap`: what is written can be read, by another parser and by tshark where it is installed.

use std::fs;
use std::path::Path;
use std::process::Command;

use pcap_parser::pcapng::{Block, OptionCode, parse_block_le};

use crate::netns::{Net, fail, succeed};

/// The comments of the packets, those without one included.
fn comments(path: &Path) -> Vec<String> {
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

/// The states that a capture tells of, in their order.
fn states(path: &Path) -> Vec<String> {
    let states = comments(path).into_iter().filter(|comment| comment.starts_with("state: "));
    states.map(|comment| comment["state: ".len()..].to_owned()).collect()
}

/// The same packets as tshark reads them; `None` where it is not installed.
fn tshark(path: &Path, fields: &[&str]) -> Option<Vec<String>> {
    if Command::new("tshark").arg("-v").output().is_err() {
        eprintln!("SKIPPED: no tshark: install it to have captures read by Wireshark's parser");
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
fn a_load_in_memory_is_captured_with_the_states_of_its_connection() {
    let folder = std::env::temp_dir().join(format!("whim-pcap-{}", std::process::id()));
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
    let Some(net) = Net::new() else { return };
    let path = net.folder().join("serve.pcapng");
    let serve = net.serve(&["--body", "100k", "--pcap", &format!("{},snap=96", path.display())]);
    net.run("curl -sS --fail --max-time 20 -o /dev/null http://10.9.0.2/");
    // Nobody listens there: a reset answers, and the SYN counts as dropped.
    fail(net.command("curl").args(["-sS", "--max-time", "5", "http://10.9.0.2:81/"]));
    serve.stop();
    let comments = comments(&path);
    for part in ["state: SYN-RECEIVED", "SYN-RECEIVED -> ESTABLISHED", "drop: NO_SOCKET"] {
        assert!(comments.iter().any(|comment| comment.contains(part)), "{part}: {comments:?}");
    }
    if let Some(lines) = tshark(&path, &["frame.len", "frame.cap_len", "tcp.dstport"]) {
        assert_eq!(lines.len(), comments.len());
        assert!(lines.iter().any(|line| line.ends_with("|81")), "{lines:?}");
        let cut = |line: &String| line.split('|').nth(1).is_some_and(|octets| octets == "96");
        assert!(lines.iter().any(cut), "{lines:?}");
    }
}
