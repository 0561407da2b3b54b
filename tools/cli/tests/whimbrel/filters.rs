//! Filters of our ss and of iproute2's: the same connections, of which each lists its own end.

use std::fs;
use std::net::TcpStream;
use std::process::{Command, Stdio};

use crate::namespace::{INSIDE, in_a_namespace};
use crate::needs::{self, TUN};
use crate::running::{Running, await_that};
use crate::scratch::scratch;
use crate::signals::await_serving;

/// Conditions on the kernel's ends, at 10.9.0.1; P and Q are ports there, P < Q.
const CONDITIONS: &[&str] = &[
    "sport = :P",
    "sport = P",
    "sport == P",
    "sport eq :P",
    "sport != P",
    "sport neq P",
    "sport ne P",
    "sport > P",
    "sport gt P",
    "sport < Q",
    "sport lt Q",
    "sport >= Q",
    "sport geq Q",
    "sport ge Q",
    "sport <= P",
    "sport leq P",
    "sport le P",
    "sport = :*",
    "dport = 80",
    "dport = http",
    "dport = 81",
    "src 10.9.0.1",
    "src 10.9.0.1:P",
    "src :P",
    "src *:P",
    "src 10.9.0.0/24",
    "src 10.9.0.77/24",
    "src 10.9.1.0/24",
    "src = 10.9.0.1",
    "src eq 10.9.0.1",
    "dst 10.9.0.2:http",
    "dst 10.0.0.0/8:80",
    "dst 0.0.0.0/0",
    "dst ::/0",
    "dst fd00::/16",
    "not sport = P",
    "! sport = P",
    "not not sport = P",
    "not ( sport = P or sport = Q )",
    "( sport = P or sport = Q )",
    "sport = P or sport = Q",
    "sport = P | sport = Q",
    "sport = P || sport = Q",
    "sport > P and sport <= Q",
    "sport > P & sport <= Q",
    "sport > P && sport <= Q",
    "sport > P sport <= Q",
    "sport = P or sport = Q and dport = 81",
    "dport = 81 and sport = P or sport = Q",
    "not sport = P and dport = 80",
    "state established sport = P",
    "state connected dst 10.9.0.2",
    "state synchronized",
    "state time-wait",
    "state bucket",
    "state big src 10.9.0.1",
    "state all exclude established src 10.9.0.1",
    "exclude established src 10.9.0.1",
    "state listening state established sport = Q",
];

/// Filters that neither accepts.
const REFUSED: &[&str] = &[
    "sport",
    "sport =",
    "sport = nosuch",
    "sport = 10.9.0.1:80",
    "src 10.9.0.0/33",
    "src > 10.9.0.1",
    "nonsense",
    "( sport = 80",
    "sport = 80 )",
    "and sport = 80",
    "sport = 80 and",
    "sport = 80 or",
    "not",
    "state nosuch",
    "sport = 80 state all",
];

/// The condition on our ends.
fn mirrored(condition: &str) -> String {
    let mirror = |word: &str| match word {
        "sport" => "dport".to_owned(),
        "dport" => "sport".to_owned(),
        "src" => "dst".to_owned(),
        "dst" => "src".to_owned(),
        other => other.to_owned(),
    };
    condition.split(' ').map(mirror).collect::<Vec<_>>().join(" ")
}

/// Lines of a listing; `None` if the filter is refused.
fn listed(mut command: Command, filter: &str) -> Option<usize> {
    let output = command.arg("-Htn").args(filter.split(' ')).output().unwrap();
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).lines().count())
}

#[test]
fn filters_select_what_iproute2s_select() {
    in_a_namespace("filters::filters_select_what_iproute2s_select", &[TUN, "ip", "ss"], || {
        let folder = scratch("filters");
        fs::create_dir_all(&folder).unwrap();
        let whimbrel = |words: &str| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_whimbrel"));
            command.args(words.split(' ')).env_remove(INSIDE).env("XDG_RUNTIME_DIR", &folder);
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
            command
        };
        let mut serve =
            Running::start(&mut whimbrel("serve -w tun:whim0,addr=10.9.0.2/24,host=10.9.0.1"));
        let _printed = await_serving(&mut serve);
        let open = |_| TcpStream::connect("10.9.0.2:80").unwrap();
        let streams: Vec<_> = (0..6).map(open).collect();
        let mut ports: Vec<_> =
            streams.iter().map(|stream| stream.local_addr().unwrap().port()).collect();
        ports.sort_unstable();
        let ours = |filter: &str| listed(whimbrel("ss"), filter);
        await_that("connections", || ours("state established") == Some(6));
        let (mut selected, mut wrong) = (0, Vec::new());
        for condition in CONDITIONS {
            let condition =
                condition.replace('P', &ports[1].to_string()).replace('Q', &ports[4].to_string());
            let linux = listed(needs::command("ss"), &condition);
            let own = ours(&mirrored(&condition));
            selected += linux.unwrap_or(0);
            if linux.is_none() || linux != own {
                wrong.push(format!("{condition}: ss {linux:?}, whimbrel ss {own:?}"));
            }
        }
        for filter in REFUSED {
            let (linux, own) = (listed(needs::command("ss"), filter), ours(filter));
            if linux.is_some() || own.is_some() {
                wrong.push(format!("{filter}: ss {linux:?}, whimbrel ss {own:?}"));
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
        assert!(selected > 60, "the conditions select only {selected} connections");
    });
}
