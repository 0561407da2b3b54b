//! Web clients and servers at the edges: a process without descriptors, names with several addresses,
//! link-local addresses.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

use crate::needs::IPV6;
use crate::netns::{Net, WHIMBREL};
use crate::running::{Running, await_that, fail, succeed};
use crate::schema::checked;
use crate::signals::free_address;

#[test]
fn server_without_descriptors_reports_and_resumes() {
    for (words, ask, answer) in [
        ("serve -w kernel: -l AT", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 200 OK"),
        ("crr --server AT -w kernel:", "q", "a"),
        ("bulk --server -w kernel: --listen AT", "", ""),
    ] {
        let at = free_address();
        let line =
            format!("ulimit -n 40; exec {WHIMBREL} {}", words.replace("AT", &at.to_string()));
        let mut command = Command::new("sh");
        command.args(["-c", &line]).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut serve = Running::start(&mut command);
        await_that("it serves", || TcpStream::connect(at).is_ok());
        let mut clients: Vec<_> = (0..60).map(|_| TcpStream::connect(at).unwrap()).collect();
        let mut told = String::new();
        let mut errors = BufReader::new(serve.take_stderr());
        while !told.contains("no file descriptor is free of the 40") {
            assert!(errors.read_line(&mut told).unwrap() > 0, "{words}: {told}");
        }
        assert!(told.contains("ulimit -n"), "{told}");
        let mut last = clients.pop().unwrap();
        drop(clients);
        if !ask.is_empty() {
            last.write_all(ask.as_bytes()).unwrap();
            let mut heard = vec![0; answer.len()];
            last.read_exact(&mut heard).unwrap();
            assert_eq!(String::from_utf8_lossy(&heard), answer, "{words}");
        }
    }
}

/// `whimbrel` with these words, where the name `both` has the addresses ::1 and 127.0.0.1.
fn with_name(net: &Net, words: &str) -> Command {
    let hosts = net.folder().join("hosts");
    fs::write(&hosts, "127.0.0.1 both\n::1 both\n").unwrap();
    let script = format!("mount --bind {} /etc/hosts && exec {WHIMBREL} {words}", hosts.display());
    let mut command = net.command("unshare");
    command.args(["-m", "sh", "-c", &script]);
    command
}

#[test]
fn each_address_of_name_is_tried_over_kernels_sockets() {
    let Some(net) = Net::with(&[IPV6, "unshare"]) else { return };
    let web = net.serve(&["-w", "kernel:", "-l", "127.0.0.1:8080"]);
    let echo = net.serve(&["-w", "kernel:", "-l", "127.0.0.1:7", "--echo"]);
    let bulk = net.serving(&["bulk", "--server", "-w", "kernel:", "--listen", "127.0.0.1:5201"]);
    let sink = net.serve(&["-w", "kernel:", "-l", "127.0.0.1:9001", "--sink"]);
    let source = net.serve(&["-w", "kernel:", "-l", "127.0.0.1:9002", "--chargen"]);
    for words in [
        "load http://both:8080/ -n 20 -c 2 --json",
        "load http://both:8080/ -n 20 -c 2 -K --json",
        "crr both:7 -n 20 --json",
        "bulk send both -n 1M --json",
        "bulk recv both -n 1M -P 2 --json",
        "bulk send both:9001 --peer plain -n 1M -P 2 --json",
        "bulk recv both:9002 --peer plain -n 1M -P 2 --json",
    ] {
        let text = succeed(&mut with_name(&net, words));
        let document: serde_json::Value = checked(&text);
        let target = document["target"].as_str().unwrap();
        assert!(target.starts_with("127.0.0.1:"), "{words}: {target}");
        if words.starts_with("load") {
            let summary = &document["summary"];
            assert_eq!((&summary["succeeded"], &summary["failed"]), (&20.into(), &0.into()));
            assert_eq!(summary["unreached"][0]["address"], "[::1]:8080", "{summary}");
        }
    }
    for words in [
        "load http://both:9/ -n 20",
        "crr both:9 -n 20",
        "bulk send both:9 -n 1M",
        "bulk send both:9 --peer plain -n 1M",
    ] {
        let (code, error) = fail(&mut with_name(&net, words));
        for part in ["both:9", "[::1]:9: connection refused", "127.0.0.1:9: connection refused"] {
            assert!(code == 1 && error.contains(part), "{words}: {code} {error}");
        }
    }
    for serve in [web, echo, bulk, sink, source] {
        serve.end_complaining();
    }
}

#[test]
fn link_local_address_is_reached_in_its_zone() {
    let Some(net) = Net::with(&[IPV6]) else { return };
    net.run("ip address add fe80::7/64 dev lo nodad");
    let _web = serve_anywhere(&net, "-l [::]:8080");
    let _echo = serve_anywhere(&net, "-l [::]:7 --echo");
    for words in [
        "load http://[fe80::7%lo]:8080/ -w kernel: -n 20 --quiet",
        "load http://[fe80::7%25lo]:8080/ -w kernel: -n 20 --quiet",
        "crr [fe80::7%lo]:7 -w kernel: -n 20 --quiet",
    ] {
        net.run(&format!("{WHIMBREL} {words}"));
    }
    let mut command = net.command(WHIMBREL);
    let (code, error) = fail(command.args(["load", "http://[fe80::7]:8080/", "-w", "kernel:"]));
    assert!(code == 2 && error.contains("[fe80::1%eth0]"), "{code} {error}");
    for peer in ["iperf3", "plain"] {
        let mut command = net.command(WHIMBREL);
        let words = ["bulk", "send", "[fe80::7%lo]:9", "-w", "kernel:", "--peer", peer];
        let (code, error) = fail(command.args(words));
        let refused = "[fe80::7%lo]:9: connection refused";
        assert!(code == 1 && error.contains(refused), "{code} {error}");
        assert_eq!(error.matches("fe80").count(), 1, "{error}");
    }
}

/// A server that listens at every address of the namespace.
fn serve_anywhere(net: &Net, words: &str) -> (Running, impl BufRead) {
    let mut command = net.command(WHIMBREL);
    command.args(["serve", "-w", "kernel:"]).args(words.split(' ')).stdout(Stdio::piped());
    let mut serve = Running::start(&mut command);
    let (mut text, mut output) = (String::new(), BufReader::new(serve.take_stdout()));
    while !text.contains("listening") {
        assert!(output.read_line(&mut text).unwrap() > 0, "{text}");
    }
    (serve, output)
}
