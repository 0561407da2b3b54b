//! `whimbrel` on an interface of the kernel's, against the kernel's own curl and wrk at the other
//! end of a veth pair.

use std::fs;
use std::process::Stdio;

use crate::capture::tshark;
use crate::needs::IPV6;
use crate::netns::Net;
use crate::running::{succeed, unbroken};

const WIRE: &str = "packet:vstack,addr=10.9.0.2/24,addr=fd09::2/64";

/// Bytes that repeat nowhere near.
fn noise(count: u32) -> Vec<u8> {
    (0..count).map(|at| (at.wrapping_mul(at).wrapping_mul(0x9e37_79b9) >> 13) as u8).collect()
}

/// Curl fetches 2 MiB and brings them back, over both families.
fn down_and_up(net: &Net, wire: &str) {
    let root = net.folder().join("root");
    fs::create_dir_all(&root).unwrap();
    let sent = noise(2 << 20);
    fs::write(root.join("noise"), &sent).unwrap();
    let serve = net.serve(&["-w", wire, "--file-root", root.to_str().unwrap(), "--upload"]);
    for host in ["10.9.0.2", "[fd09::2]"] {
        let copy = net.folder().join("copy");
        let curl = "curl -sS -g --fail --max-time 60";
        net.run(&format!("{curl} -o {} http://{host}/noise", copy.display()));
        assert!(fs::read(&copy).unwrap() == sent, "{host}: what came is not what was sent");
        net.run(&format!("{curl} -T {} http://{host}/up", copy.display()));
        assert!(fs::read(root.join("up")).unwrap() == sent, "{host}: what was written is not");
    }
    let text = serve.stop();
    assert!(unbroken(&text).contains("4 requests (0 refused); 0 connections failed"), "{text}");
}

#[test]
fn curl_transfers_over_both_families_with_any_offloads() {
    let Some(net) = Net::with_veth(&[IPV6, "curl", "ethtool"]) else { return };
    down_and_up(&net, WIRE);
    down_and_up(&net, &format!("{WIRE},offload=off"));
    for end in ["vkernel", "vstack"] {
        net.run(&format!("ethtool -K {end} tx off tso off gso off gro off"));
    }
    down_and_up(&net, &format!("{WIRE},offload=off"));
    down_and_up(&net, WIRE);
}

#[test]
fn wrk_has_no_errors_over_short_and_long_connections() {
    let Some(net) = Net::with_veth(&["wrk"]) else { return };
    let serve = net.serve(&["-w", WIRE]);
    for fields in [&[][..], &["-H", "Connection: close"]] {
        let mut wrk = net.command("wrk");
        wrk.args(["-t1", "-d2s", "-c30"]).args(fields).arg("http://10.9.0.2/");
        let text = succeed(&mut wrk);
        let failed = text.contains("Socket errors") || text.contains("Non-2xx");
        assert!(!failed, "{fields:?}: {text}");
    }
    let text = serve.stop();
    assert!(unbroken(&text).contains("(0 refused); 0 connections failed"), "{text}");
}

#[test]
fn the_kernel_is_loaded_by_a_stack_on_the_same_interface_pair() {
    let Some(net) = Net::with_veth(&[]) else { return };
    let serve = net.serve(&["-w", "kernel:", "-l", "10.9.0.1:80"]);
    let whimbrel = |arguments: &[&str]| {
        let mut command = net.command(env!("CARGO_BIN_EXE_whimbrel"));
        succeed(command.args(arguments).args(["-w", WIRE]).stdin(Stdio::null()))
    };
    let text = whimbrel(&["load", "http://10.9.0.1/", "-n", "2000", "-c", "20", "--no-keepalive"]);
    assert!(text.contains("100.00%"), "{text}");
    serve.end();
    let serve = net.serve(&["-w", "kernel:", "-l", "10.9.0.1:5201", "--sink"]);
    let text = whimbrel(&["bulk", "send", "10.9.0.1", "--peer", "plain", "-n", "20M"]);
    assert!(text.contains("20.0 MBytes"), "{text}");
    serve.end();
    let serve = net.serve(&["-w", "kernel:", "-l", "10.9.0.1:12865", "--respond", "1,1"]);
    let text = whimbrel(&["crr", "10.9.0.1:12865", "-l", "1s"]);
    assert!(text.contains("Trans."), "{text}");
    serve.end();
}

#[test]
fn later_address_conflict_is_reported_once() {
    let Some(net) = Net::with_veth(&["ping"]) else { return };
    let serve = net.serve(&["-w", WIRE]);
    net.run("ip address add 10.9.0.2/24 dev vkernel");
    for host in [98, 99] {
        // No host answers; the test is about who asks for them.
        let ping = format!("ping -c1 -W1 -I 10.9.0.2 10.9.0.{host}");
        assert!(!net.command("ping").args(ping.split(' ').skip(1)).status().unwrap().success());
    }
    let (text, errors) = serve.end_complaining();
    let said = errors.matches("warning: 10.9.0.2 is also in use by the station ").count();
    assert!(said == 1 && errors.lines().count() == 1, "{text}{errors}");
}

#[test]
fn a_capture_of_the_interface_holds_ethernet_frames() {
    let Some(net) = Net::with_veth(&["curl"]) else { return };
    let file = net.folder().join("packet.pcapng");
    let serve = net.serve(&["-w", WIRE, "--pcap", file.to_str().unwrap()]);
    net.run("curl -sS --fail --max-time 20 -o /dev/null http://10.9.0.2/");
    serve.stop();
    if let Some(codes) = tshark(&file, &["http.response.code"]) {
        assert!(codes.iter().any(|code| code == "200"), "{codes:?}");
    }
}
