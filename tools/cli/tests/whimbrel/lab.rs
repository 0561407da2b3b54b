//! `whimbrel lab`: cases from the command line. Whether they come out right `.ci/run` asks the whole of them.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::pty::Terminal;
use crate::running::{Running, document, fail, interrupt, output, succeed, whimbrel};
use crate::schema::checked;
use crate::scratch::scratch;

/// Exit code and output of a command with any result.
fn answer(command: &mut Command) -> (i32, String) {
    let output = output(command);
    (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap())
}

/// A case whose outcome takes a moment.
const QUICK: &str = "lab run macos-16k --profile macos-12";

#[test]
fn every_listed_case_has_a_description() {
    let list = succeed(&mut whimbrel("lab list"));
    let names: Vec<_> = list.lines().filter(|line| !line.starts_with(' ')).collect();
    assert_eq!(names.len(), 5, "{list}");
    for line in names {
        let name = line.split(' ').next().unwrap();
        let story = succeed(&mut whimbrel(&format!("lab show {name}")));
        for part in [
            "Symptoms:",
            "Workaround:",
            "People saw",
            "What was wrong:",
            "By default Whimbrel",
            "[default: ",
        ] {
            assert!(story.replace('\n', " ").contains(part), "{part} is not in: {story}");
        }
    }
}

#[test]
fn a_case_has_a_table_with_a_picture_and_a_verdict() {
    let text = succeed(&mut whimbrel(QUICK));
    assert!(text.contains("macos-12 ") && text.contains(" reproduced\n"), "{text}");
    assert!(text.contains(" 16,384 ") && text.contains("█·········"), "{text}");
    assert!(text.ends_with("verdict: reproduced\n\n"), "{text}");
    // The packets of a connection are printed only on request.
    assert!(!text.contains("client > server"), "{text}");
    let verbose = succeed(&mut whimbrel(&format!("{QUICK} -v")));
    assert!(verbose.contains("client > server  SYN"), "{verbose}");
}

#[test]
fn other_seed_agrees_and_varied_row_has_no_verdict() {
    let again = succeed(&mut whimbrel(&format!("{QUICK} --seed 9")));
    assert!(again.contains("macos-12 seed 9 "), "{again}");
    assert!(again.contains(" reproduced\n"), "{again}");
    let open = succeed(&mut whimbrel("lab run macos-16k --vary lasts=2s --profile macos-12"));
    assert!(open.contains("verdict: none"), "{open}");
}

#[test]
fn lab_document_is_complete_and_repeats_exactly() {
    let words = format!("{QUICK} --json");
    let text = succeed(&mut whimbrel(&words));
    assert_eq!(text, succeed(&mut whimbrel(&format!("{words} -j 1"))));
    let document: Value = checked(&text);
    assert_eq!(document["schema"], "whimbrel.lab/1");
    let row = &document["cases"][0]["rows"][0];
    assert_eq!(row["profile"], "macos-12");
    assert_eq!(row["verdict"], "reproduced");
    assert_eq!(row["figures"]["answered"]["value"], 16_384.0);
    assert_eq!(row["rules"]["ports.first"], "49152");
    assert_eq!(row["runs"][0]["summary"]["answered"], 16_384);
    assert_eq!(row["series"][0]["values"].as_array().map(Vec::len), Some(10));
    let packet = &row["witness"]["packets"][0];
    assert!(packet["text"].as_str().unwrap().contains("SYN"));
    assert_eq!(
        (&packet["flags"], &packet["verdict"]["after"]),
        (&"SYN".into(), &"SYN-RECEIVED".into())
    );
    assert_eq!(row["command"], "whimbrel lab run macos-16k --profile macos-12");
    let changes = row["changes"].as_array().unwrap();
    let first = changes.iter().find(|change| change["name"] == "ports.first").unwrap();
    assert_eq!((&first["value"], &first["default"]), (&"49152".into(), &"32768".into()));
    assert_eq!(first["decides"], true);
    let free = row["series"].as_array().unwrap().iter().find(|it| it["name"] == "ports free");
    assert_eq!(free.unwrap()["values"][9], 0.0);
    assert_eq!(document["cases"][0]["glance"]["old"], 0);
    assert_eq!(document["command"], QUICK.replace("lab", "whimbrel lab"));

    let csv = succeed(&mut whimbrel(&format!("{QUICK} --csv")));
    assert!(csv.starts_with("case,profile,settings,seed,figure,value,unit,verdict\n"), "{csv}");
    assert!(csv.contains("macos-16k,macos-12,\"\",1,answered,16384,count,reproduced\n"), "{csv}");
}

/// The figure of a row of the only case.
fn figure(document: &Value, row: usize, name: &str) -> f64 {
    document["cases"][0]["rows"][row]["figures"][name]["value"].as_f64().expect(name)
}

#[test]
fn global_lock_limits_rate_to_its_hold_time() {
    let quick = "--vary lasts=200ms --vary rounds=1 --json";
    let all = document(&format!("lab run freebsd-qps {quick}"));
    let [alone, old, patched, own] = [0, 1, 2, 4].map(|row| figure(&all, row, "locks"));
    assert!(old > patched + 0.8 && patched > 5.0 && own == 0.0, "{old} {patched} {own}");
    assert!(alone > 6.3, "{alone}");
    assert!((0..5).all(|row| figure(&all, row, "failed") == 0.0));
    assert!(figure(&all, 4, "of_processes") > 0.0);

    let held =
        document(&format!("lab run freebsd-qps --profile freebsd-9.2 --vary hold=100us {quick}"));
    // With two threads no more than with one.
    for row in [0, 1] {
        let most = 1.0 / (figure(&held, row, "locks") * 100e-6);
        assert!(figure(&held, row, "rate") <= 1.01 * most, "{held:#}");
    }
}

#[test]
fn varied_and_repeated_runs_are_rows() {
    let words = "lab run fddi-70ms --profile freebsd-2.2.5+fix --vary window=64k,128k --vary bytes=1M \
                 --repeat 2 --seed 5 --json";
    let rows = &document(words)["cases"][0]["rows"];
    let told = rows.as_array().unwrap().iter().map(|row| {
        (row["seed"].as_u64().unwrap(), row["settings"]["window"].as_str().unwrap().to_owned())
    });
    let expected = [(5, "64k"), (5, "128k"), (6, "64k"), (6, "128k")];
    assert_eq!(told.collect::<Vec<_>>(), expected.map(|(seed, window)| (seed, window.to_owned())));
    assert_eq!(rows[0]["verdict"], "none");
}

#[test]
fn ablation_finds_the_settings_that_cause_a_failure() {
    // A hundred ports are gone at once.
    let words = "lab run macos-16k --ablate --vary lasts=2s --vary ports.first=49152 --vary \
                 ports.last=49251";
    let text = succeed(&mut whimbrel(words)).replace('\n', " ");
    let found = "verdict: net.ipv4.tcp_tw_reuse=off causes the failure of macos-12";
    assert!(text.contains(found) && text.contains("its default ends it"), "{text}");
    assert!(text.contains("only these settings it still"), "{text}");
    assert!(text.contains("  net.ipv4.tcp_tw_reuse on, not off  "), "{text}");

    let rows = &document(&format!("{words} --json"))["cases"][0]["rows"];
    let rows = rows.as_array().unwrap();
    assert_eq!((&rows[0]["ablation"], &rows[0]["verdict"]), (&Value::Null, &"reproduced".into()));
    let back = |row: &&Value| row["ablation"]["back"]["name"] == "net.ipv4.tcp_tw_reuse";
    let reuse = rows.iter().find(back).unwrap();
    assert_eq!((&reuse["verdict"], &reuse["role"]), (&"fails no more".into(), &"trial".into()));
    assert_eq!(reuse["ablation"]["back"]["profile"], "off");
    let last = rows.last().unwrap();
    assert_eq!(last["ablation"]["kept"][0]["name"], "net.ipv4.tcp_tw_reuse");
    assert_eq!(last["verdict"], "still fails");

    let (code, error) = fail(&mut whimbrel("lab run freebsd-qps --ablate"));
    assert_eq!(code, 2);
    assert!(error.contains("--ablate") && error.contains("unikraft-nginx"), "{error}");
}

#[test]
fn vary_takes_quoted_commas_and_repeated_keys() {
    let words = "lab run fddi-70ms --profile freebsd-2.2.5+fix --vary bytes=1M --json \
                 --vary net.ipv4.ip_local_reserved_ports=\"80,443\",8080 \
                 --vary window=64k --vary window=128k";
    let rows = &document(words)["cases"][0]["rows"];
    let told = rows.as_array().unwrap().iter().map(|row| {
        let settings = &row["settings"];
        let of = |key: &str| settings[key].as_str().unwrap().to_owned();
        (of("net.ipv4.ip_local_reserved_ports"), of("window"))
    });
    let expected = [("80,443", "64k"), ("80,443", "128k"), ("8080", "64k"), ("8080", "128k")];
    let expected = expected.map(|(ports, window)| (ports.to_owned(), window.to_owned()));
    assert_eq!(told.collect::<Vec<_>>(), expected);
}

#[test]
fn wrong_figure_exits_3_with_bound_and_packets() {
    let (code, text) = answer(&mut whimbrel(&format!("{QUICK} --expect answered=20000")));
    assert_eq!(code, 3, "{text}");
    for part in [
        " WRONG\n",
        "answered is 16,384, but must be 20,000\n",
        "client > server  SYN",
        "verdict: WRONG, 1 of 1\n",
    ] {
        assert!(text.contains(part), "{part:?} is not in: {text}");
    }
    let (code, text) = answer(&mut whimbrel(&format!("{QUICK} --expect answered=20000.. --json")));
    assert_eq!(code, 3, "{text}");
    let document: Value = checked(&text);
    assert_eq!(document["cases"][0]["rows"][0]["verdict"], "wrong");

    // An expectation that holds is right, independent of the report and of varied settings.
    let words = "lab run macos-16k --profile macos-12 --vary lasts=2s --expect answered=..16384";
    let text = succeed(&mut whimbrel(words));
    assert!(
        text.contains(" as expected\n") && text.ends_with("verdict: as expected\n\n"),
        "{text}"
    );
}

#[test]
fn packets_of_each_row_are_written_to_pcap_dir() {
    let folder = scratch("lab-captures");
    let words = format!("{QUICK} --pcap-dir {}", folder.display());
    succeed(&mut whimbrel(&words));
    let file = fs::read(folder.join("macos-16k-01-macos-12.pcapng")).unwrap();
    assert_eq!(file[..4], 0x0a0d_0d0a_u32.to_le_bytes());
    fs::remove_dir_all(&folder).unwrap();

    fs::write(&folder, "a file").unwrap();
    let (code, error) = fail(&mut whimbrel(&words));
    assert_eq!(code, 1);
    assert!(error.contains("--pcap-dir") && error.contains("can be written"), "{error}");
    fs::remove_file(&folder).unwrap();
}

#[test]
fn unknown_names_are_refused_with_known_ones() {
    for (words, parts) in [
        ("lab run macos", &["perhaps macos-16k", "fddi-70ms"][..]),
        ("lab show macos", &["perhaps macos-16k"]),
        ("lab run --profile macos", &["macos-12"]),
        ("lab run macos-16k --vary rat=4", &["\"rat\"", "service-rate", "-S help"]),
        ("lab run macos-16k --vary close=rst", &["close=rst", "client or server"]),
        ("lab run macos-16k --vary lasts=0s", &["lasts=0s", "1s to 3600s"]),
        ("lab run macos-16k --vary lasts", &["KEY=V1,V2"]),
        ("lab run macos-16k --vary msl=soon", &["soon"]),
        ("lab run macos-16k --vary syn.retry=\"1s,2s", &["a quote is not closed"]),
        ("lab run macos-16k --expect answers=1", &["\"answers\"", "answered", "--expect"]),
        ("lab run macos-16k --expect answered=5..1", &["FIGURE=LEAST..MOST"]),
        ("lab run --repeat 0", &["--repeat"]),
        ("lab run --json --csv", &["cannot be used with"]),
    ] {
        let (code, error) = fail(&mut whimbrel(words));
        assert_eq!(code, 2, "{words}: {error}");
        for part in parts {
            assert!(error.contains(part), "{words}: {part} is not in: {error}");
        }
    }
}

#[test]
fn interrupt_prints_completed_rows() {
    // The first is over soon, the second is not.
    let mut command = whimbrel("lab run macos-16k fddi-70ms -j 1 --profile macos-12");
    let mut child = Running::start(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
    let mut lines = BufReader::new(child.take_stdout()).lines();
    assert!(lines.any(|line| line.unwrap().starts_with("verdict: ")));
    interrupt(child.id());
    let output = child.output();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("interrupted: ") && error.contains("measurements"), "{error}");
}

#[test]
fn progress_lines_are_cleared_before_the_table() {
    let folder = scratch("lab-progress");
    fs::create_dir_all(&folder).unwrap();
    let mut terminal = Terminal::run(&format!("{QUICK} --repeat 3 -j 1"), &folder, (60, 110));
    assert_eq!(terminal.end().code(), Some(0));
    terminal.await_text("verdict: reproduced");
    let bytes = terminal.bytes();
    let mut rest = bytes.as_str();
    for line in [
        "  0%  macos-16k  macos-12 ",
        " 33%  macos-16k  macos-12 seed 2 ",
        " 67%  macos-16k  macos-12 seed 3 ",
    ] {
        let at = rest.find(line).unwrap_or_else(|| panic!("{line:?} is not in: {bytes}"));
        rest = &rest[at + line.len()..];
    }
    let text = terminal.text();
    assert!(text.starts_with("macos-16k: ") && !text.contains("67%"), "{text}");
    fs::remove_dir_all(&folder).unwrap();

    // There is none elsewhere, or with --no-tui.
    let mut terminal =
        Terminal::run(&format!("{QUICK} --no-tui"), &std::env::temp_dir(), (60, 110));
    assert_eq!(terminal.end().code(), Some(0));
    terminal.await_text("verdict: reproduced");
    assert!(!terminal.bytes().contains("0%"), "{}", terminal.bytes());
}
