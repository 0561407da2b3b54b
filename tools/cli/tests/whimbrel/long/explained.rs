//! `whimbrel explain` of 2,000,000 flows through a pipe, within 256 MiB, and of a connection of each of the lab's reports.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::process::{Command, Stdio};
use std::thread;

use serde_json::Value;

use crate::explain::{explained, whimbrel};
use crate::running::{self, Running};
use crate::scratch::scratch;

const FLOWS: u64 = 2_000_000;
const MOST_KIB: u32 = 256 << 10;

#[test]
#[cfg_attr(
    debug_assertions,
    ignore = "2,000,000 flows take a minute in a debug build: give --release"
)]
fn two_million_flows_are_explained_within_256_mib() {
    let shell = format!("ulimit -d {MOST_KIB} && exec \"$0\" explain --json -");
    let mut command = Command::new("sh");
    command.args(["-c", &shell, env!("CARGO_BIN_EXE_whimbrel")]);
    let mut explain = Running::start(command.stdin(Stdio::piped()).stdout(Stdio::piped()));
    let mut input = BufWriter::with_capacity(1 << 16, explain.take_stdin());
    let writer = thread::spawn(move || write_flows(&mut input));
    let ended = explain.output();
    let written = writer.join().unwrap();
    assert!(ended.status.success() && written.is_ok(), "{}: {written:?}", ended.status);
    let document: Value = serde_json::from_slice(&ended.stdout).unwrap();
    let capture = &document["captures"][0];
    assert_eq!((&capture["connections"], &capture["whole"]), (&FLOWS.into(), &true.into()));
    assert_eq!(capture["summed_up"], FLOWS - 50_000, "the bound of flows at a time");
}

/// Reports of users, as the lab repeats them: a connection of each.
#[test]
#[cfg_attr(
    debug_assertions,
    ignore = "the runs of the lab take half a minute in a debug build: give --release"
)]
fn refused_ports_of_the_lab_are_explained_and_whimbrel_has_none() {
    let folder = scratch("explain-lab");
    for words in [
        "unikraft-nginx --profile lwip-2.1",
        // Enough to use all ports twice.
        "unikraft-nginx --profile whimbrel --vary lasts=10s --vary runs=2 --vary service-rate=20000",
        "illumos-1125ms --profile illumos-2011,whimbrel --vary rate=500",
    ] {
        let line = format!("lab run {words} --no-tui --pcap-dir {}", folder.display());
        // The verdict is of the case, not of this test.
        running::output(&mut whimbrel(&line));
    }
    let (mut refused, mut fine) = (0, 0);
    for entry in fs::read_dir(&folder).unwrap() {
        let file = entry.unwrap().path();
        let findings = explained("", &file)["findings"].clone();
        if file.to_string_lossy().contains("whimbrel.pcapng") {
            fine += 1;
            assert!(
                findings.as_array().unwrap().iter().all(|it| it["info"] == true),
                "{findings:#}"
            );
        } else {
            refused += 1;
            assert_eq!(findings[0]["id"], "TW_SYN_REFUSED", "{}", file.display());
        }
    }
    assert!(refused >= 3 && fine >= 4, "{refused} and {fine}");
    fs::remove_dir_all(folder).unwrap();
}

/// A capture in which each flow has a segment or two, of random hosts, flags and lengths.
fn write_flows(output: &mut impl Write) -> io::Result<()> {
    let header: [u32; 6] = [0xa1b2_c3d4, 0x0004_0002, 0, 0, 65_535, 101];
    header.into_iter().try_for_each(|word| output.write_all(&word.to_le_bytes()))?;
    let mut state = 5u64;
    let mut random = || {
        // Knuth's MMIX.
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 32) as u32
    };
    for flow in 0..FLOWS {
        // Different ends for each, so that no two are one flow.
        let ends = [0x0b00_0000 + (flow >> 8) as u32, 0x2000_0000 | random() >> 8];
        let ports = [1_024 + (flow & 0xff) as u16, 80];
        let count = 1 + u64::from(random() >> 31);
        for number in 0..count {
            let is_back = number == 1;
            let text = if random() >> 31 == 0 { (random() >> 22) as u16 } else { 0 };
            let flags = if is_back { (random() >> 24) as u8 & 0x39 } else { 2 };
            let order = if is_back { [1, 0] } else { [0, 1] };
            let packet = segment(order.map(|at| (ends[at], ports[at])), random(), flags, text);
            let at = flow * 20 + number;
            let head = [1_700_000_000 + (at / 1_000_000) as u32, (at % 1_000_000) as u32, 40];
            head.into_iter().try_for_each(|word| output.write_all(&word.to_le_bytes()))?;
            output.write_all(&(40 + u32::from(text)).to_le_bytes())?;
            output.write_all(&packet)?;
        }
    }
    output.flush()
}

/// Headers of IPv4 and TCP.
fn segment([from, to]: [(u32, u16); 2], seq: u32, flags: u8, text: u16) -> [u8; 40] {
    let mut bytes = [0; 40];
    bytes[0] = 0x45;
    bytes[2..4].copy_from_slice(&(40 + text).to_be_bytes());
    (bytes[8], bytes[9]) = (64, 6);
    bytes[12..16].copy_from_slice(&from.0.to_be_bytes());
    bytes[16..20].copy_from_slice(&to.0.to_be_bytes());
    bytes[20..22].copy_from_slice(&from.1.to_be_bytes());
    bytes[22..24].copy_from_slice(&to.1.to_be_bytes());
    bytes[24..28].copy_from_slice(&seq.to_be_bytes());
    (bytes[32], bytes[33]) = (0x50, flags);
    bytes
}
