//! `whimbrel doctor`, and errors of commands about missing needs.

use std::process::Command;

use serde_json::Value;

use crate::netns::{FOR_UNPRIVILEGED, Net, public_copy, unprivileged};
use crate::running::{fail, output, succeed};

/// The output, with each need on one line again: long ones continue in the next line, behind blanks.
fn unbroken(text: Vec<u8>) -> String {
    String::from_utf8(text).unwrap().replace("\n      ", " ")
}

#[test]
fn each_need_has_a_line_and_a_json_entry() {
    let run = |words: &[&str]| {
        let mut doctor = Command::new(env!("CARGO_BIN_EXE_whimbrel"));
        let output = output(doctor.arg("doctor").args(words));
        (output.status.code().unwrap(), unbroken(output.stdout))
    };
    let (code, text) = run(&[]);
    let (same_code, json) = run(&["--json"]);
    let document: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(document["schema"], "whimbrel.doctor/1");
    let needs = document["needs"].as_array().unwrap();
    assert_eq!(text.lines().count(), needs.len(), "{text}");
    for (line, need) in text.lines().zip(needs) {
        let [verdict, name] = ["verdict", "name"].map(|key| need[key].as_str().unwrap());
        let mut words = line.split_whitespace();
        assert_eq!((words.next(), words.next()), (Some(verdict), Some(name)), "{line}");
        assert_eq!(line.contains(". Fix: "), verdict != "ok", "{line}");
    }
    // An ordinary user does not miss what only root has.
    assert_eq!(code, same_code, "{text}");
    assert!(matches!(code, 0 | 4), "{text}");
    assert!(code == 0 || needs.iter().any(|need| need["verdict"] == "fail"), "{text}");
}

#[test]
fn missing_privilege_names_its_doctor_line() {
    let Some(net) = Net::with(&FOR_UNPRIVILEGED) else { return };
    let copy = public_copy(net.folder());
    let unprivileged = |words: &[&str]| {
        let mut command = unprivileged(&net, &copy, "600");
        command.args(words);
        command
    };
    let output = output(&mut unprivileged(&["doctor"]));
    let text = unbroken(output.stdout);
    let error = unbroken(output.stderr);
    assert_eq!(output.status.code(), Some(0), "{text}{error}");
    let reason =
        "without root, these are missing: tun-device, net-admin, net-namespaces, low-ports,";
    assert!(error.starts_with(reason) && error.ends_with("; all else works\n"), "{error}");
    let setcap = format!("sudo setcap cap_net_admin+ep {}", copy.display());
    assert!(
        text.lines().any(|it| it.starts_with("fail  net-admin") && it.contains(&setcap)),
        "{text}"
    );
    for (words, lines) in [
        (&["serve"][..], &["tun-device", "net-admin"][..]),
        (&["serve", "-w", "packet:vstack,addr=10.9.0.2/24"], &["net-raw"]),
        (&["serve", "-w", "packet:vstack,addr=10.9.0.2/24,fanout=2"], &["net-raw"]),
        (&["serve", "-w", "kernel:", "-l", "127.0.0.1:80"], &["low-ports"]),
        (&["script", "run", "--against", "kernel", "/dev/null"], &["net-namespaces", "net-admin"]),
    ] {
        let (code, error) = fail(&mut unprivileged(words));
        assert_eq!(code, 4, "{error}");
        assert!(error.contains("of `whimbrel doctor`"), "{error}");
        for line in lines {
            assert!(error.contains(line), "{line} is not in: {error}");
            let failed = |it: &str| it.starts_with(&format!("fail  {line} "));
            assert!(text.lines().any(failed), "{line} did not fail in:\n{text}");
        }
    }
    // Its folder belongs to another user: the line names such folders.
    let wire = format!("unix:{}/wire.sock,addr=10.9.0.2/24", net.folder().display());
    let (code, error) = fail(&mut unprivileged(&["serve", "-w", &wire]));
    assert!(code == 4 && error.contains("the line unix-sockets of `whimbrel doctor`"), "{error}");
    let somewhere = |it: &str| it.starts_with("ok    unix-sockets") && it.contains("/tmp");
    assert!(text.lines().any(somewhere), "{text}");
}

/// The line of `whimbrel doctor` that has this name, in the namespace `net`.
fn line(net: &Net, name: &str) -> String {
    let text = succeed(net.command(env!("CARGO_BIN_EXE_whimbrel")).arg("doctor"));
    let text = unbroken(text.into_bytes());
    let line = text.lines().find(|line| line.split_whitespace().nth(1) == Some(name));
    line.unwrap_or_else(|| panic!("no {name} in:\n{text}")).to_owned()
}

#[test]
fn fanout_check_leaves_nothing_behind() {
    let Some(net) = Net::with_veth(&[]) else { return };
    assert!(line(&net, "packet-fanout").starts_with("ok "), "{}", line(&net, "packet-fanout"));
    assert_eq!(net.run("cat /proc/net/packet").lines().count(), 1);
}

#[test]
fn missing_veth_checksums_are_found_and_fixed() {
    let Some(net) = Net::with_veth(&["curl", "ethtool"]) else { return };
    // The replay of the capture shows the effect.
    let replayed = |name: &str| {
        let file = net.folder().join(name).display().to_string();
        let serve = net.serve(&["-w", "packet:vstack,addr=10.9.0.2/24", "--pcap", &file]);
        net.run("curl -s http://10.9.0.2/");
        serve.stop();
        let wire = format!("pcap:{file},addr=10.9.0.2/24,speed=max");
        let mut replay = net.command(env!("CARGO_BIN_EXE_whimbrel"));
        let output = output(replay.args(["pcap", "-o", "/dev/null", "-w", &wire]));
        String::from_utf8(output.stderr).unwrap()
    };
    let before = line(&net, "veth-checksums");
    assert!(before.starts_with("warn ") && before.contains("vkernel and vstack"), "{before}");
    assert!(replayed("before.pcapng").contains("TCP_CSUM"));

    let (_, fix) = before.split_once(". Fix: ").unwrap();
    for command in fix.split("; ") {
        net.run(command.strip_prefix("sudo ").unwrap());
    }
    let after = line(&net, "veth-checksums");
    assert!(after.starts_with("ok "), "{after}");
    let drops = replayed("after.pcapng");
    assert!(!drops.contains("TCP_CSUM") && drops.contains("NO_SOCKET"), "{drops}");
}

#[test]
fn doctor_names_namespace_of_remote_veth_end() {
    let (Some(net), Some(other)) = (Net::with_veth(&[]), Net::new()) else { return };
    net.give("vkernel", &other);
    let line = line(&net, "veth-checksums");
    let said = line.contains("the other end of vstack is in another network namespace");
    assert!(line.starts_with("ok ") && said, "{line}");
}
