//! Errors of `whimbrel`, and its exit codes. `tests/commands/usage.md` has more usage errors, to the
//! letter.

use std::fs;
use std::process::Command;

use crate::needs;
use crate::netns::{FOR_UNPRIVILEGED, Net, public_copy, unprivileged};
use crate::running::{fail, output};
use crate::scratch::scratch;

fn whimbrel(words: &str) -> (i32, String) {
    fail(Command::new(env!("CARGO_BIN_EXE_whimbrel")).args(words.split_whitespace()))
}

fn assert_says(error: &(i32, String), code: i32, parts: &[&str]) {
    assert_eq!(error.0, code, "{}", error.1);
    for part in parts {
        assert!(error.1.contains(part), "{part:?} is not in: {}", error.1);
    }
}

#[test]
fn a_usage_error_exits_with_2() {
    assert_says(&whimbrel("serve -w tap:t0,addr=10.1.0.2/24,mac=x"), 2, &["mac=02:00:00"]);
    assert_says(&whimbrel("serve -w unix:/t,host=10.1.0.2"), 2, &["addr and mtu", "unix:/run"]);
    assert_says(&whimbrel("serve -l 10.9.0.77:80"), 2, &["--listen", "which has 10.9.0.2"]);
    assert_says(&whimbrel("serve -S tcp_retries2=31"), 2, &["1 to 30 retransmissions"]);
    assert_says(&whimbrel("serve -w kernel: -S msl=1s"), 2, &["--set", "sysctl"]);
    assert_says(&whimbrel("serve -w kernel: --fastopen 4"), 2, &["--fastopen", "sysctl"]);
    assert_says(&whimbrel("serve --config /nowhere.toml"), 1, &["/nowhere.toml", "No such file"]);
    assert_says(&whimbrel("script run --against kernel -S msl=1s x"), 2, &["--set", "shard"]);
    assert_says(&whimbrel("serve --upload"), 2, &["--file-root"]);
    assert_says(&whimbrel(""), 2, &["Usage"]);
}

#[test]
fn load_usage_error_exits_2_with_remedy() {
    assert_says(&whimbrel("load https://10.9.0.1/ -w kernel:"), 2, &["TLS", "http://"]);
    assert_says(&whimbrel("load -w tun:t0,addr=10.1.0.2/24"), 2, &["add its address"]);
    assert_says(&whimbrel("load -w kernel: --seed 1"), 2, &["--seed"]);
    assert_says(&whimbrel("load -w kernel: --local-ports 1-2"), 2, &["--local-ports", "sysctl"]);
    assert_says(&whimbrel("load --local-ports 9-1"), 2, &["--local-ports", "49152-65535"]);
    assert_says(&whimbrel("bulk send -w kernel: --wscale 3"), 2, &["--wscale", "sysctl"]);
    assert_says(&whimbrel("bulk send --window 1"), 2, &["--window", "buffers.send", "bytes"]);
    assert_says(&whimbrel("bulk send -R --bidir"), 2, &["cannot be used with"]);
    assert_says(&whimbrel("load -n 5 -z 1s"), 2, &["cannot be used with"]);
    assert_says(&whimbrel("load -H Accept"), 2, &["--header", "Accept: text/html"]);
    assert_says(&whimbrel("load --close client"), 2, &["--no-keepalive"]);
    assert_says(&whimbrel("load --fail-if p99"), 2, &["p99>50ms"]);
    assert_says(&whimbrel("load -D /nowhere"), 1, &["/nowhere", "No such file"]);
    assert_says(&whimbrel("load -n 1 -o /nowhere/x"), 1, &["--output", "/nowhere/x"]);
    assert_says(&whimbrel("load -n 1 --pcap /nowhere/x"), 1, &["/nowhere/x", "can be written"]);
    assert_says(&whimbrel("load http://no.invalid/ -w kernel:"), 1, &["no.invalid", "address"]);
    assert_says(&whimbrel("load -w kernel: --shards 2"), 2, &["--shards", "--threads"]);
    assert_says(&whimbrel("load --stack kernel -t 9 -c 8"), 2, &["--threads", "8 --connections"]);
    assert_says(&whimbrel("load --stack kernel -t 9 -n 8"), 2, &["--threads", "8 requests"]);
    assert_says(&whimbrel("load -w mem: --stack kernel"), 2, &["--stack", "mem:", "leave one"]);
    assert_says(&whimbrel("load -w kernel: --stack user"), 2, &["--stack", "leave one"]);
    assert_says(
        &whimbrel("load -w kernel: --local-addr 192.0.2.1"),
        2,
        &["--local-addr", "192.0.2.1", "ip address"],
    );
}

#[test]
fn other_usage_errors_exit_2_with_remedy() {
    assert_says(&whimbrel("crr --server -r 0,1"), 2, &["--sizes", "at least one byte"]);
    assert_says(&whimbrel("crr --server -w mem:"), 2, &["--wire", "connects only this process"]);
    assert_says(&whimbrel("crr --mode cc --close server"), 2, &["client or rst"]);
    assert_says(&whimbrel("crr --mode rr --close rst"), 2, &["leave it out"]);
    assert_says(&whimbrel("crr -i 1,3"), 2, &["3 to 30", "3,10"]);
    assert_says(&whimbrel("crr -I 90,5"), 2, &["95 or 99"]);
    assert_says(&whimbrel("load --latency-correction off"), 2, &["--rate"]);
    assert_says(&whimbrel("load --local-addr 10.0.0.2"), 2, &["--local-addr", "10.0.0.0/24"]);
    assert_says(&whimbrel("load --json --json-stream"), 2, &["cannot be used with"]);
    assert_says(&whimbrel("bulk send -C x -w kernel:"), 2, &["the kernel has no", "reno"]);
    assert_says(&whimbrel("bulk send -M 9"), 2, &["88 to 32,767"]);
    assert_says(&whimbrel("bulk send -n 0"), 2, &["--bytes", "at least one byte"]);
    assert_says(&whimbrel("bulk send --wscale 15"), 2, &["0 to 14"]);
    assert_says(&whimbrel("bulk recv -b 1M"), 2, &["--bitrate"]);
    assert_says(&whimbrel("bulk recv --fq-rate 1M"), 2, &["--fq-rate", "limit its rate there"]);
    assert_says(&whimbrel("bulk send --fq-rate 8k"), 2, &["--fq-rate", "at least 32k"]);
    assert_says(
        &whimbrel("bulk send --fq-rate 35G -w kernel:"),
        2,
        &["--fq-rate", "35000000000 bit/s", "at most 34G"],
    );
    assert_says(&whimbrel("serve -w pcap:x.pcapng"), 2, &["--wire", "addr="]);
    assert_says(&whimbrel("serve -w pcap:x,addr=10.9.0.2/24,speed=2"), 2, &["speed=max"]);
    assert_says(&whimbrel("serve -w pcap:/nowhere,addr=10.9.0.2/24"), 1, &["/nowhere", "No such"]);
    assert_says(
        &whimbrel("load http://10.9.0.1/ -w pcap:x,addr=10.9.0.2/24"),
        2,
        &["pcap: is read-only"],
    );
    assert_says(
        &whimbrel("pcap -w tun:t,addr=10.9.0.2/24,queues=2 -c 4 -o x"),
        2,
        &["--count", "one queue"],
    );
    assert_says(&whimbrel("pcap -w pcap:x,addr=10.9.0.2/24 -a 10"), 2, &["duration:10"]);
    assert_says(&whimbrel("pcap -w pcap:x,addr=10.9.0.2/24 -b 10M -o x"), 2, &["filesize:100M"]);
    assert_says(&whimbrel("pcap -w pcap:x,addr=10.9.0.2/24 -b filesize:1M"), 2, &["-o FILE"]);
    assert_says(&whimbrel("serve --pcap x,rotate=many"), 2, &["--pcap", "100M"]);
    assert_says(&whimbrel("serve --echo --sink"), 2, &["--sink"]);
    assert_says(&whimbrel("serve --close rst"), 2, &["--echo"]);
    assert_says(&whimbrel("serve --echo --keepalive off"), 2, &["cannot be used with"]);
    assert_says(&whimbrel("serve -w kernel: --seed 1"), 2, &["--seed", "leave it out"]);
    assert_says(&whimbrel("serve --json=oha"), 2, &["oha", "whimbrel"]);
    assert_says(&whimbrel("serve -o /nowhere/x"), 1, &["--output", "/nowhere/x"]);
    assert_says(&whimbrel("load --quiet -v"), 2, &["cannot be used with"]);
}

#[test]
fn missing_server_is_one_clear_line() {
    for command in ["load http://127.0.0.1:9/", "crr 127.0.0.1:9", "bulk send 127.0.0.1:9"] {
        let error = whimbrel(&format!("{command} -w kernel:"));
        assert_says(&error, 1, &["127.0.0.1:9", "connection refused", "is a server listening"]);
        assert_eq!(error.1.lines().count(), 1, "{}", error.1);
    }
}

#[test]
fn wrong_kind_of_server_is_one_clear_line() {
    let Some(net) = Net::new() else { return };
    let cases = [
        (
            "--discard",
            "bulk recv AT --peer plain -t 200ms",
            "no data received: does the server send",
        ),
        (
            "--echo",
            "load http://AT/ -n 3 -c 1",
            "malformed answer, 3 times): the peer speaks another",
        ),
        ("--sink", "crr AT -n 3 --timeout 500ms", "response timeout, 3 times): the server takes"),
        (
            "--body=1",
            "bulk send AT --peer plain -t 200ms",
            "closed before the answer was complete: the peer hung",
        ),
    ];
    for (server, words, said) in cases {
        let server = net.serve(&["-w", "kernel:", "-l", "127.0.0.1:1234", server]);
        let words = words.replace("AT", "127.0.0.1:1234");
        let mut command = net.command(env!("CARGO_BIN_EXE_whimbrel"));
        let error = fail(command.args(words.split(' ')).args(["-w", "kernel:"]));
        assert_says(&error, 1, &["127.0.0.1:1234", said]);
        assert_eq!(error.1.lines().count(), 1, "{}", error.1);
        server.end();
    }
}

#[test]
fn unwritable_result_exits_1_but_closed_pipe_does_not() {
    if !needs::found(&["bash"]) {
        return;
    }
    let run = |line: &str| {
        let program = env!("CARGO_BIN_EXE_whimbrel");
        let line = line.replace("whimbrel", program);
        // Of a locale that is not there bash would complain.
        let mut bash = Command::new("bash");
        let output = output(bash.env("LC_ALL", "C").args(["-o", "pipefail", "-c", &line]));
        (output.status.code().unwrap(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let scripts = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/scripts/rfc9293/established");
    for words in [
        "load -n 20",
        "load -n 20 --json",
        "load -n 20 --json-stream",
        "load -n 20 --csv",
        "crr -n 20",
        "bulk send -n 1M",
        "load --print-config",
        "doctor",
        "man",
        "completions bash",
        "sim run --seeds 0..2",
        "sim grid 10M/1ms/reno",
        &format!("script run {scripts}"),
    ] {
        let (code, error) = run(&format!("whimbrel {words} > /dev/full"));
        assert_says(
            &(code, error.clone()),
            1,
            &["standard output", "No space left", "redirect it"],
        );
        assert_eq!(error.lines().count(), 1, "{words}: {error}");
        if words != "doctor" {
            let (code, error) = run(&format!("whimbrel {words} | true"));
            assert_eq!((code, error.as_str()), (0, ""), "{words}");
        }
    }
    for (words, code) in [("load -w foo", 2), ("load -n 5 --fail-if p99>0s --quiet", 3)] {
        let (ended, _) = run(&format!("whimbrel {} 2> /dev/full", words.replace('>', "\\>")));
        assert_eq!(ended, code, "an error that cannot be told has its code: {words}");
    }
    let full = whimbrel("load -n 20 -o /dev/full");
    assert_says(&full, 1, &["--output /dev/full", "No space left"]);
}

#[test]
fn port_in_use_exits_1_with_remedy() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let at = taken.local_addr().unwrap();
    let error = whimbrel(&format!("serve -w kernel: -l {at}"));
    assert_says(&error, 1, &["address in use", &at.to_string(), "--listen"]);
}

#[test]
fn unreadable_file_root_exits_1() {
    let error = whimbrel("serve --file-root /nowhere/at/all");
    assert_says(&error, 1, &["--file-root /nowhere/at/all", "No such file", "use a directory"]);
}

#[test]
fn unusable_interface_exits_1_with_reason() {
    let Some(net) = Net::with_veth(&[]) else { return };
    let refused =
        |spec: &str| fail(net.command(env!("CARGO_BIN_EXE_whimbrel")).args(["serve", "-w", spec]));
    assert_says(&refused("packet:eth7,addr=10.9.0.2/24"), 1, &["no interface eth7", "ip link"]);
    assert_says(&refused("packet:lo,addr=10.9.0.2/24"), 1, &["lo carries no Ethernet"]);
    let mut itself = net.command(env!("CARGO_BIN_EXE_whimbrel"));
    itself.args(["crr", "10.9.0.2:7", "-w", "tun:whim0,addr=10.9.0.2/24"]);
    assert_says(&fail(&mut itself), 2, &["10.9.0.2:7 is this stack's own", "other side"]);
    let own = refused("packet:vstack,addr=10.9.0.1/24");
    assert_says(&own, 1, &["10.9.0.1 is an address of this machine's own", "kernel-addresses"]);
    net.run("ip link set vstack down");
    assert_says(&refused("packet:vstack,addr=10.9.0.2/24"), 1, &["ip link set vstack up"]);
}

#[test]
fn path_without_socket_exits_1() {
    let file = scratch("no-socket");
    fs::write(&file, "").unwrap();
    let error = whimbrel(&format!("serve -w unix:{},addr=10.9.0.2/24", file.display()));
    let said = format!("{} exists and is no socket", file.display());
    assert_says(&error, 1, &[&said, "another path"]);
    let error = whimbrel("serve -w unix:/nowhere/x,addr=10.9.0.2/24");
    assert_says(&error, 1, &["no folder for /nowhere/x", "another path"]);
}

#[test]
fn name_or_address_in_use_exits_1() {
    let Some(net) = Net::new() else { return };
    let serve = net.serve(&[]);
    let mut second = net.command(env!("CARGO_BIN_EXE_whimbrel"));
    assert_says(&fail(second.arg("serve")), 1, &["whim0", "another process", "another name"]);
    serve.stop();
    let mut twice = net.command(env!("CARGO_BIN_EXE_whimbrel"));
    twice.args(["serve", "-l", "10.9.0.2:80", "-l", "10.9.0.2:80"]);
    assert_says(&fail(&mut twice), 1, &["address in use", "10.9.0.2:80", "another port"]);
}

#[test]
fn a_missing_privilege_exits_with_4() {
    let Some(net) = Net::with(&FOR_UNPRIVILEGED) else { return };
    let copy = public_copy(net.folder());
    // Not for this user, and, as with udev on many systems, for all users.
    for (mode, doing) in [("600", "open /dev/net/tun"), ("666", "attach")] {
        let error = fail(unprivileged(&net, &copy, mode).arg("serve"));
        assert_says(&error, 4, &["no privilege", doing, "CAP_NET_ADMIN"]);
    }
}

#[test]
fn a_missing_device_exits_with_4() {
    let Some(net) = Net::with(&["unshare", "mount"]) else { return };
    let mut command = net.command("unshare");
    let hide = "mount -t tmpfs none /dev/net && exec \"$0\" serve";
    command.args(["-m", "sh", "-c", hide, env!("CARGO_BIN_EXE_whimbrel")]);
    assert_says(&fail(&mut command), 4, &["no TUN device", "modprobe tun"]);
}
