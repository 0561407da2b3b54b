//! Pages of results: every figure is the document's, and a browser finds nothing wrong with them.

use std::fs;
use std::process::Command;
use std::sync::OnceLock;

use serde_json::Value;

use crate::needs;
use crate::running::{fail, succeed};
use crate::scratch::scratch;

mod browser;
mod figures;

/// Each case in a short form: changed settings have no verdicts, but all else is there.
const CASES: [&str; 5] = [
    "lab run unikraft-nginx --profile lwip-2.1,lwip-2.1+msl5s,whimbrel --vary requests=1 --vary service-rate=5000 --vary \
     lasts=4s --vary runs=2",
    "lab run illumos-1125ms --profile illumos-2011,whimbrel --vary rate=1000 --vary warmup=20s --vary lasts=5s",
    "lab run macos-16k --profile macos-12,whimbrel --vary lasts=2s",
    "lab run fddi-70ms --profile freebsd-2.2.5,whimbrel --vary bytes=8M",
    "lab run freebsd-qps --vary lasts=100ms --vary rounds=1 --vary threads=1",
];
const LOADS: [&str; 5] = [
    "load -z 3s -c 4 -q 200 -K --repeat 2 -w mem:delay=2ms,loss=2% --clock virtual",
    "crr -l 2s -w mem:delay=2ms --clock virtual",
    "bulk send -t 4 -w mem:rate=45M,delay=35ms --clock virtual",
    "sim grid 10M/1ms 10M/10ms",
    "sim grid --full 10M/1ms/0% 10M/10ms/1%/0.25bdp",
];

fn whimbrel(words: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_whimbrel"));
    command.args(words.split_whitespace());
    command
}

/// A command, its page, and its document: of one run.
struct Made {
    words: &'static str,
    page: String,
    document: Value,
}

/// All of them, made once for all tests.
fn all_made() -> &'static [Made] {
    static MADE: OnceLock<Vec<Made>> = OnceLock::new();
    MADE.get_or_init(|| {
        let path = scratch("made.html");
        let made = |words: &&'static str| {
            let mut command = whimbrel(words);
            let document = succeed(command.arg("--json").arg("--html").arg(&path));
            let (page, document) = (fs::read_to_string(&path), serde_json::from_str(&document));
            Made { words, page: page.unwrap(), document: document.unwrap() }
        };
        CASES.iter().chain(&LOADS).map(made).collect()
    })
}

#[test]
fn every_page_figure_equals_the_document() {
    for Made { words, page, document } in all_made() {
        assert!(page.len() < 2_000_000, "{words}: {} bytes", page.len());
        assert!(!page.contains("http://") && !page.contains("https://"), "{words}");
        let told = figures::compare(page, document);
        assert!(told > 10, "{words}: {told} figures");
        if words.starts_with("lab") {
            figures::assert_no_others(page, document);
        } else {
            assert!(page.contains(&format!("Made by <code>whimbrel {words}</code>")), "{words}");
        }
    }
}

#[test]
fn lab_page_has_one_title_and_no_empty_strip() {
    for Made { words, page, document } in all_made().iter().filter(|it| it.words.starts_with("lab"))
    {
        let case = &document["cases"][0];
        let title = case["glance"]["title"].as_str().unwrap();
        let headings =
            ["h1", "h2", "h3"].map(|tag| page.matches(&format!("<{tag}>{title}")).count());
        assert_eq!(headings, [1, 0, 0], "{words}");
        assert!(!page.contains("class=\"contents\""), "{words}");
        let rows = case["rows"].as_array().unwrap();
        let values = |name: &Value| {
            let series = rows.iter().filter_map(|row| row["series"].as_array()).flatten();
            let named = series.filter(|series| series["name"] == *name);
            named.filter_map(|series| series["values"].as_array()).flatten().collect::<Vec<_>>()
        };
        for strip in case["strips"].as_array().unwrap() {
            let has_some = values(&strip["series"]).iter().any(|it| it.as_f64() > Some(0.0));
            let title = strip["title"].as_str().unwrap().replace('\'', "&#39;");
            let is_drawn = page.contains(&format!("<b>{title}</b>: "));
            assert_eq!(is_drawn, has_some, "{words}: {title}");
        }
        for row in rows.iter().filter(|row| row["role"] == "works" || row["role"] == "inferred") {
            let label = row["label"].as_str().unwrap();
            assert!(!page.contains(&format!("✕ {label}")), "{words}: {label}");
        }
    }
}

#[test]
fn browser_accepts_pages_in_all_sizes_and_modes() {
    if !needs::found(&["chromium"]) {
        return;
    }
    for Made { words, page, .. } in all_made() {
        for (looks, verdict) in browser::verdicts(page) {
            assert!(verdict.starts_with("nothing wrong with"), "{words}, {looks}:\n{verdict}");
        }
    }
}

#[test]
fn bad_page_fails_the_browser_check() {
    if !needs::found(&["chromium"]) {
        return;
    }
    let spoilt = "<!DOCTYPE html><html><head><title>x</title></head><body><p style='color:#999;background:#aaa'>pale</p>\
         <svg viewBox='0 0 90 20' width='90'><text x='80' y='12'>beyond</text><text x='2' y='12'>one</text>\
         <text x='4' y='13'>two</text></svg><div style='width:3000px'>wide</div><img src='none.png'></body></html>";
    let (_, verdict) = browser::verdicts(spoilt).remove(0);
    for part in [
        "contrast 1.",
        "outside its drawing: beyond",
        "over each other: one and two",
        "the page is 30",
        "error: file",
    ] {
        assert!(verdict.contains(part), "{part} is not in: {verdict}");
    }
}

#[test]
fn page_bad_only_in_print_fails_the_browser_check() {
    if !needs::found(&["chromium"]) {
        return;
    }
    let words: String = (0..30).map(|number| format!("<p>word {number}</p>")).collect();
    let spoilt = format!(
        "<!DOCTYPE html><html><head><title>x</title><style>@media print{{.tall{{break-inside:avoid;height:1200px}}\
         .wide{{width:900px}}}}</style></head><body>{words}<div class='tall'>tall</div><div class='wide'>wide</div></body></html>"
    );
    let mut all = browser::verdicts(&spoilt);
    let (_, printed) = all.pop().unwrap();
    for (looks, verdict) in all.iter().filter(|(looks, _)| looks.contains("1280")) {
        assert!(verdict.starts_with("nothing wrong with"), "{looks}: {verdict}");
    }
    for part in ["higher than a sheet, 1200: tall", "the page is 90"] {
        assert!(printed.contains(part), "{part} is not in: {printed}");
    }
}

#[test]
fn unwritable_page_is_reported_before_the_run() {
    for words in ["lab run", "load -z 1h", "crr -l 1h", "bulk send -t 1h", "sim grid"] {
        let (code, error) = fail(whimbrel(words).args(["--html", "/nowhere/at/all.html"]));
        assert_eq!(code, 1, "{words}: {error}");
        assert!(
            error.contains("--html /nowhere/at/all.html") && error.contains("can be written"),
            "{error}"
        );
    }
}

#[test]
fn page_escapes_text_and_links_captures() {
    let folder = scratch("page with captures");
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join("lab.html");
    let mut command = whimbrel("lab run macos-16k --profile macos-12");
    succeed(command.arg("--html").arg(&path).arg("--pcap-dir").arg(folder.join("a<b>&c")));
    let page = fs::read_to_string(&path).unwrap();
    assert!(page.contains("<a href=\"a%3Cb%3E%26c/macos-16k-01-macos-12.pcapng\">"), "{page}");
    assert!(!page.contains("a<b>"), "{page}");
    fs::remove_dir_all(&folder).unwrap();
}
