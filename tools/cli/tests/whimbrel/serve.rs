//! `whimbrel serve` over TUN, against the kernel's own curl and ping.

use std::fs;
use std::process::{Output, Stdio};
use std::thread;
use std::time::Duration;

use crate::needs::IPV6;
use crate::netns::Net;
use crate::running::{Running, await_that, interrupt, output, unbroken};

pub(crate) const MIB: usize = 1 << 20;

/// Bytes that repeat nowhere near.
pub(crate) fn noise(count: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let byte = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..count).map(byte).collect()
}

#[test]
fn curl_fetches_and_uploads_a_mebibyte_over_both_families() {
    let Some(net) = Net::with(&[IPV6, "curl"]) else { return };
    let root = net.folder().join("root");
    fs::create_dir(&root).unwrap();
    let sent = noise(MIB);
    fs::write(root.join("noise.bin"), &sent).unwrap();
    let serve = net.serve(&["--file-root", root.to_str().unwrap(), "--upload"]);
    for (name, host) in [("v4", "10.9.0.2"), ("v6", "[fd09::2]")] {
        let copy = net.folder().join(name);
        let curl = "curl -sS -g --fail --max-time 20";
        net.run(&format!("{curl} -o {} http://{host}/noise.bin", copy.display()));
        assert!(fs::read(&copy).unwrap() == sent, "{name}: what came is not what was sent");
        for expect in ["Expect:", "Expect:100-continue"] {
            let up = format!("-H {expect} -T {} http://{host}/up-{name}.bin", copy.display());
            net.run(&format!("{curl} {up}"));
            let written = fs::read(root.join(format!("up-{name}.bin"))).unwrap();
            assert!(written == sent, "{name}: what was written is not what was sent");
        }
    }
    let text = serve.stop();
    assert!(unbroken(&text).contains("6 requests (0 refused); 0 connections failed"), "{text}");
}

#[test]
fn thousand_sequential_connections_have_no_error() {
    let Some(net) = Net::with(&["curl"]) else { return };
    let serve = net.serve(&[]);
    let mut curl = net.command("curl");
    curl.args(["-sS", "--fail", "--max-time", "60", "-H", "Connection: close", "-o", "/dev/null"])
        .args(["-w", "%{http_code} %{num_connects} %{size_download}\n"])
        .arg("http://10.9.0.2/[1-1000]");
    let codes = output(&mut curl);
    let errors = String::from_utf8_lossy(&codes.stderr);
    assert!(codes.status.success() && errors.is_empty(), "{errors}");
    let codes = String::from_utf8_lossy(&codes.stdout);
    assert_eq!(codes.lines().filter(|line| *line == "200 1 128").count(), 1_000, "{codes}");
    let text = serve.stop();
    assert!(
        unbroken(&text).contains("1000 connections, 1000 requests (0 refused); 0 conn"),
        "{text}"
    );
}

#[test]
fn each_second_prints_connection_states() {
    let Some(net) = Net::with(&["curl"]) else { return };
    let serve = net.serve(&["-v", "-l", "10.9.0.2:80"]);
    net.run("curl -sS --fail --max-time 20 -H Connection:close -o /dev/null http://10.9.0.2/[1-3]");
    thread::sleep(Duration::from_millis(2_500));
    let text = serve.stop();
    let heading = text.lines().position(|line| line.contains("mem connections")).expect(&text);
    let line = text.lines().skip(heading).find(|line| line.contains("time-wait 3")).expect(&text);
    assert!(line.contains(" 0/4096 ") && !line.contains("listen"), "{line}");
}

#[test]
fn without_keepalive_each_request_has_a_connection() {
    let Some(net) = Net::with(&["curl"]) else { return };
    let serve = net.serve(&["--keepalive", "off"]);
    let line = "curl -sS --fail --max-time 20 -o /dev/null -w %{http_code}-%{num_connects}; \
                http://10.9.0.2/[1-4]";
    assert_eq!(net.run(line), "200-1;200-1;200-1;200-1;");
    let text = serve.stop();
    assert!(text.contains("4 connections, 4 requests"), "{text}");
}

#[test]
fn one_connection_carries_many_requests_and_a_long_body() {
    let Some(net) = Net::with(&["curl"]) else { return };
    let serve = net.serve(&["--body", "20M", "-l", "10.9.0.2:8080"]);
    let line = "curl -sS --fail --max-time 30 -o /dev/null -w %{size_download}-%{num_connects}; \
                http://10.9.0.2:8080/[1-4]";
    assert_eq!(net.run(line), "20971520-1;20971520-0;20971520-0;20971520-0;");
    let text = serve.stop();
    assert!(text.contains("1 connection, 4 requests"), "{text}");
}

#[test]
fn without_ipv6_default_wire_has_only_ipv4() {
    let Some(net) = Net::with(&[IPV6, "curl"]) else { return };
    net.set("net.ipv6.conf.all.disable_ipv6", "1");
    for words in [&["serve"][..], &["crr", "--server"]] {
        let text = net.serving(words).stop();
        assert!(text.contains("10.9.0.2:") && !text.contains("fd09::2"), "{text}");
    }
    let serve = net.serve(&[]);
    net.run("curl -sS --fail --max-time 20 -o /dev/null http://10.9.0.2/");
    serve.stop();
}

#[test]
fn ping_is_answered_over_both_families() {
    let Some(net) = Net::with(&[IPV6, "ping"]) else { return };
    let serve = net.serve(&[]);
    for line in ["ping -c 3 -i 0.2 -W 2 10.9.0.2", "ping -6 -c 3 -i 0.2 -W 2 fd09::2"] {
        let text = net.run(line);
        assert!(text.contains("3 received"), "{text}");
    }
    net.run("ping -c 1 -W 2 -s 1400 10.9.0.2");
    serve.stop();
}

#[test]
fn curl_and_ping_resolve_stack_by_arp_and_ndp() {
    let Some(net) = Net::with(&[IPV6, "curl", "ping"]) else { return };
    let root = net.folder().join("root");
    fs::create_dir(&root).unwrap();
    let sent = noise(MIB);
    fs::write(root.join("noise.bin"), &sent).unwrap();
    let wire = "tap:whim0,addr=10.9.0.2/24,addr=fd09::2/64,mac=02:77:68:69:6d:02";
    let serve = net.serve(&["-w", wire, "--file-root", root.to_str().unwrap(), "--upload"]);
    for (name, host) in [("v4", "10.9.0.2"), ("v6", "[fd09::2]")] {
        let copy = net.folder().join(name);
        let curl = "curl -sS -g --fail --max-time 20";
        net.run(&format!("{curl} -o {} http://{host}/noise.bin", copy.display()));
        assert!(fs::read(&copy).unwrap() == sent, "{name}: what came is not what was sent");
        net.run(&format!("{curl} -T {} http://{host}/up-{name}.bin", copy.display()));
        let written = fs::read(root.join(format!("up-{name}.bin"))).unwrap();
        assert!(written == sent, "{name}: what was written is not what was sent");
    }
    for line in ["ping -c 3 -i 0.2 -W 2 10.9.0.2", "ping -6 -c 3 -i 0.2 -W 2 fd09::2"] {
        let text = net.run(line);
        assert!(text.contains("3 received"), "{text}");
    }
    let neighbours = net.run("ip neigh show dev whim0");
    assert_eq!(neighbours.matches("02:77:68:69:6d:02").count(), 2, "{neighbours}");
    let text = serve.stop();
    assert!(
        text.contains("stack up on tap:whim0 (mac 02:77:68:69:6d:02; offloads: csum"),
        "{text}"
    );
    assert!(unbroken(&text).contains("4 requests (0 refused); 0 connections failed"), "{text}");
}

#[test]
fn unix_wire_server_waits_for_peer_and_leaves_no_file() {
    let Some(net) = Net::new() else { return };
    let path = net.folder().join("wire.sock");
    let serve = net.serve(&["-w", &format!("unix:{},addr=10.9.0.2/24", path.display())]);
    assert!(path.exists());
    let text = serve.stop();
    let waiting = "wire.sock (waiting for its other end; mtu 1500)";
    assert!(unbroken(&text).contains(waiting), "{text}");
    assert!(!path.exists());
}

#[test]
fn idle_server_uses_less_than_1_percent_of_a_core() {
    let Some(net) = Net::with(&["curl"]) else { return };
    let serve = net.serve(&[]);
    net.run("curl -sS --fail --max-time 5 -o /dev/null http://10.9.0.2/");
    let before = serve.cpu_time();
    thread::sleep(Duration::from_secs(5));
    let taken = serve.cpu_time() - before;
    assert!(taken < Duration::from_millis(50), "{taken:?} in 5 s");
    serve.stop();
}

#[test]
fn sigterm_during_transfer_leaves_nothing_open() {
    let Some(net) = Net::with(&["curl"]) else { return };
    let serve = net.serve(&["--body", "1G"]);
    let mut slow = net.command("curl");
    let part = net.folder().join("part");
    slow.args(["-s", "--limit-rate", "1M", "http://10.9.0.2/", "-o"]).arg(&part);
    let mut slow = Running::start(&mut slow);
    await_that("a part came", || fs::metadata(&part).is_ok_and(|part| part.len() > 0));
    let text = serve.stop();
    let cut = slow.wait();
    // 18: only part of the file came; 56: the connection was reset.
    assert!(matches!(cut.code(), Some(18 | 56)), "{cut}");
    assert!(unbroken(&text).contains("1 connection failed"), "{text}");
}

#[test]
fn quiet_prints_nothing() {
    let Some(net) = Net::new() else { return };
    let mut command = net.command(env!("CARGO_BIN_EXE_whimbrel"));
    command.args(["serve", "--quiet"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = Running::start(&mut command);
    interrupt(child.id());
    let Output { status, stdout, stderr } = child.output();
    assert!(status.success(), "{status}");
    assert_eq!((&stdout[..], &stderr[..]), (&b""[..], &b""[..]));
}

/// Value of a counter in the MIB of the namespace's kernel.
pub(crate) fn kernel_counter(net: &Net, name: &str) -> u64 {
    let text = net.run("cat /proc/net/netstat");
    let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("TcpExt:")).collect();
    let [names, values] = lines[..] else { panic!("{text}") };
    let pairs = names.split_whitespace().zip(values.split_whitespace());
    let found = pairs.into_iter().find(|(known, _)| *known == name);
    found.expect(name).1.parse().unwrap()
}

#[test]
fn curl_uses_fast_open_once_it_has_a_cookie() {
    let Some(net) = Net::with(&[IPV6, "curl"]) else { return };
    let serve = net.serve(&["--fastopen", "8"]);
    let curl = "curl -sS -g --fail --max-time 20 --tcp-fastopen -o /dev/null";
    // The first of each family asks for a cookie, the others bring it with their request.
    for host in ["10.9.0.2", "[fd09::2]"] {
        for _ in 0..3 {
            net.run(&format!("{curl} http://{host}/"));
        }
    }
    let text = serve.stop();
    assert!(unbroken(&text).contains("6 requests (0 refused); 0 connections failed"), "{text}");
    assert_eq!(kernel_counter(&net, "TCPFastOpenActive"), 4);
    assert_eq!(kernel_counter(&net, "TCPFastOpenActiveFail"), 0);
}
