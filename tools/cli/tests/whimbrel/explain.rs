//! `whimbrel explain`, on captures of this program's own runs.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::running::{fail, succeed, succeed_with};
use crate::scratch::scratch;

fn whimbrel(words: &str) -> Command {
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
fn explained(words: &str, file: &Path) -> Value {
    let text = succeed(&mut whimbrel(&format!("explain --json {words} {}", file.display())));
    let document: Value = serde_json::from_str(&text).unwrap();
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
    fs::remove_file(file).unwrap();
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
