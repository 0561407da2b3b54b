//! Commands by name.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use super::words::{Line, is_flag};
use super::{ShellAct, count, sysctl};
use crate::host::{Administration, SocketFilter};

/// Acts of a line; `None` if it is unknown.
pub(super) fn acts(line: &Line) -> Option<Vec<ShellAct>> {
    let mut stages = line.stages.iter().map(Vec::as_slice);
    let words = without_sudo(stages.next()?);
    let (command, arguments) = words.split_first()?;
    let rest: Vec<&[String]> = stages.collect();
    let name = command.rsplit('/').next()?;
    if matches!(name, "sockstat" | "netstat" | "ss" | "test" | "[") {
        let drops = name == "ss" && arguments.iter().any(|it| is_flag(it, 'K'));
        return if drops && rest.is_empty() && !line.negated {
            Some(vec![ShellAct::Administer(Administration::Drop(count::ss_filter(arguments)?))])
        } else {
            count::act(name, arguments, &rest, line).map(|act| vec![act])
        };
    }
    if line.negated || !rest.is_empty() {
        return None;
    }
    match (name, &line.output) {
        ("echo" | "printf", Some(file)) => {
            let variable = sysctl::name_of_file(file)?;
            let words = arguments.iter().filter(|it| *it != "-n").map(String::as_str);
            return Some(vec![sysctl::set(&variable, &words.collect::<Vec<_>>().join(" "))?]);
        }
        (_, Some(_)) => return None,
        (_, None) => {}
    }
    plain(name, arguments)
}

fn plain(name: &str, arguments: &[String]) -> Option<Vec<ShellAct>> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match name {
        "sysctl" => sysctl::acts(&words),
        // Values in the form of `/proc/sys/net/ipv4/tcp_sack=1`.
        "set_sysctls.py" => words.iter().map(|word| file_and_value(word)).collect(),
        // Linux' defaults, which its profile has, without cached paths.
        "defaults.sh" if words.is_empty() => {
            Some(vec![ShellAct::Administer(Administration::PurgeCaches)])
        }
        // Each script has a new host: there is nothing to restore.
        _ if name.starts_with("sysctl_restore_") && words.is_empty() => no_effect(),
        "ip" => ip(&words),
        "tcpdrop" => tcpdrop(&words),
        "ifconfig" => match words.as_slice() {
            [] | [_] | [_, "up"] => no_effect(),
            _ => None,
        },
        "ethtool" => ethtool(&words),
        "tc" => tc(&words),
        // Modules have no effect of their own; variables configure their features. Time is the
        // script's own.
        "kldload" | "kldunload" | "kldstat" | "modprobe" | "sleep" | "sync" | "true" | ":"
        | "echo" | "printf" | "uname" | "exit" => no_effect(),
        _ => None,
    }
}

fn no_effect() -> Option<Vec<ShellAct>> {
    Some(vec![ShellAct::NoEffect])
}

fn file_and_value(word: &str) -> Option<ShellAct> {
    let (file, value) = word.split_once('=')?;
    sysctl::set(&sysctl::name_of_file(file)?, value)
}

fn ip(words: &[&str]) -> Option<Vec<ShellAct>> {
    let words = match words {
        ["-4" | "-6", rest @ ..] => rest,
        all => all,
    };
    match words {
        ["tcp_metrics" | "tcpmetrics", "flush" | "delete" | "del", ..]
        | ["route", "flush", "cache"] => {
            Some(vec![ShellAct::Administer(Administration::PurgeCaches)])
        }
        ["link", "set", "dev", _, "up"] | ["link", "set", _, "up"] => no_effect(),
        [_, "show" | "list" | "ls", ..] => no_effect(),
        _ => None,
    }
}

/// `tcpdrop -a`, `tcpdrop -s STATE [-a]`, or the four ends of a connection.
fn tcpdrop(words: &[&str]) -> Option<Vec<ShellAct>> {
    let filter = match words {
        ["-a"] => SocketFilter { states: count::connected(), ..SocketFilter::default() },
        ["-s", state] | ["-s", state, "-a"] | ["-a", "-s", state] => {
            SocketFilter { states: count::states(state)?, ..SocketFilter::default() }
        }
        [_, local, _, remote] => SocketFilter {
            local_port: Some(local.parse().ok()?),
            remote_port: Some(remote.parse().ok()?),
            ..SocketFilter::default()
        },
        _ => return None,
    };
    Some(vec![ShellAct::Administer(Administration::Drop(filter))])
}

/// Offloads: packets of this host are cut and checksummed in any case.
fn ethtool(words: &[&str]) -> Option<Vec<ShellAct>> {
    const OFFLOADS: [&str; 8] = ["tso", "gso", "gro", "lro", "tx", "rx", "sg", "rxhash"];
    let ["-K", _, features @ ..] = words else { return None };
    let known = features
        .chunks(2)
        .all(|feature| matches!(feature, [name, "on" | "off"] if OFFLOADS.contains(name)));
    known.then_some(vec![ShellAct::NoEffect])
}

/// A queue that neither delays nor drops.
fn tc(words: &[&str]) -> Option<Vec<ShellAct>> {
    match words {
        [
            "qdisc",
            "add" | "replace" | "change",
            "dev",
            _,
            "root",
            "pfifo" | "pfifo_fast" | "noqueue",
        ]
        | ["qdisc", "del" | "delete", "dev", _, "root"]
        | ["qdisc", "show", ..] => no_effect(),
        _ => None,
    }
}

fn without_sudo(words: &[String]) -> &[String] {
    match words.split_first() {
        Some((sudo, rest)) if sudo == "sudo" => rest,
        _ => words,
    }
}
