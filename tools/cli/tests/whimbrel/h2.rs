//! `serve --h2c`, against curl's HTTP/2; and `load --fastopen`.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::netns::Net;
use crate::running::{Running, await_that, fail, succeed, unbroken};
use crate::serve::{MIB, kernel_counter, noise};
use crate::signals::free_address;

const CURL: &str = "curl -sS --max-time 20 --http2-prior-knowledge";

#[test]
fn http_2_by_prior_knowledge_moves_files_both_ways() {
    let Some(net) = Net::with(&["curl"]) else { return };
    let root = net.folder().join("root");
    fs::create_dir(&root).unwrap();
    let sent = noise(MIB);
    fs::write(root.join("noise.bin"), &sent).unwrap();
    for (name, wire, at) in [
        ("tun", "tun:whim0,addr=10.9.0.2/24", "10.9.0.2:80"),
        ("kernel", "kernel:", "127.0.0.1:8080"),
    ] {
        let files = ["--h2c", "--file-root", root.to_str().unwrap(), "--upload"];
        let serve = net.serve(&[&["-w", wire, "-l", at], &files[..]].concat());
        let copy = net.folder().join(name);
        let told = "-w %{http_version},%{http_code},%{size_download};";
        let down = format!("{CURL} {told} -o {} http://{at}/noise.bin", copy.display());
        assert_eq!(net.run(&down), "2,200,1048576;");
        assert!(fs::read(&copy).unwrap() == sent, "{name}: what came is not what was sent");
        let up = format!("{CURL} {told} -T {} http://{at}/up-{name}.bin", copy.display());
        assert!(net.run(&up).contains("2,201,"), "{name}");
        let written = fs::read(root.join(format!("up-{name}.bin"))).unwrap();
        assert!(written == sent, "{name}: what was written is not what was sent");
        // Without a length in advance, with parts, and with a missing file.
        let line = format!("{CURL} {told} -o /dev/null");
        for (words, expected) in [
            (format!("-r 10-19 http://{at}/noise.bin"), "2,206,10;"),
            (format!("-I http://{at}/noise.bin"), "2,200,0;"),
            (format!("http://{at}/nowhere"), "2,404,"),
        ] {
            assert!(net.run(&format!("{line} {words}")).starts_with(expected), "{name}: {words}");
        }
        let text = serve.end();
        assert!(unbroken(&text).contains("5 requests (1 refused); 0 connections failed"), "{text}");
    }
}

/// Sends twenty `GET /` on one connection at once. (curl 7.88 stops early if it does that by prior
/// knowledge, with any server.) Returns the number of complete answers with 200.
fn twenty_at_once(at: &str) -> usize {
    let frame = |kind: u8, flags: u8, stream: u32, payload: &[u8]| {
        let length = (payload.len() as u32).to_be_bytes();
        [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
    };
    let mut ask = [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(), frame(4, 0, 0, &[])].concat();
    // :method GET, :scheme http, :path /, :authority w; the head and the stream end.
    let head = [0x82, 0x86, 0x84, 0x41, 1, b'w'];
    (0..20).for_each(|number| ask.extend(frame(1, 5, 2 * number + 1, &head)));
    let mut stream = TcpStream::connect(at).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    stream.write_all(&ask).unwrap();
    let (mut good, mut ended) = (0, 0);
    while ended < 20 {
        let mut head = [0; 9];
        stream.read_exact(&mut head).unwrap();
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; length as usize];
        stream.read_exact(&mut payload).unwrap();
        // Of a head of a response the first byte is :status 200.
        good += usize::from(head[3] == 1 && payload[0] == 0x88);
        ended += usize::from(head[3] == 0 && head[4] & 1 == 1);
    }
    good
}

#[test]
fn streams_of_one_connection_do_not_wait_for_each_other() {
    let port = free_address();
    let mut serve = Command::new(env!("CARGO_BIN_EXE_whimbrel"));
    serve.args(["serve", "-w", "kernel:", "-l", &port.to_string(), "--h2c", "--think", "300ms"]);
    let serve = Running::start(serve.stdout(Stdio::null()));
    await_that("it serves", || TcpStream::connect(port).is_ok());
    let began = Instant::now();
    let good = twenty_at_once(&port.to_string());
    let took = began.elapsed();
    drop(serve);
    assert_eq!(good, 20);
    assert!((Duration::from_millis(300)..Duration::from_secs(3)).contains(&took), "{took:?}");
}

#[test]
fn too_long_body_is_refused_and_http_1_still_works() {
    let Some(net) = Net::with(&["curl"]) else { return };
    let serve = net.serve(&["--h2c", "--max-body", "1k"]);
    let long = net.folder().join("long");
    fs::write(&long, noise(2_000)).unwrap();
    let refused = format!(
        "{CURL} -w %{{http_code}} -o /dev/null --data-binary @{} http://10.9.0.2/",
        long.display()
    );
    assert_eq!(net.run(&refused), "413");
    let old = "curl -sS --http1.1 --max-time 5 -o /dev/null -w %{http_version},%{http_code}; \
               http://10.9.0.2/[1-3]";
    assert_eq!(net.run(old), "1.1,200;1.1,200;1.1,200;");
    assert_eq!(net.run(&format!("{CURL} -w %{{http_code}} -o /dev/null http://10.9.0.2/")), "200");
    serve.stop();
}

#[test]
fn requests_go_in_syns_once_a_cookie_is_known() {
    let load = "load -n 100 -c 2 -K -w mem:delay=10ms --clock virtual --json";
    let document = |words: &str| -> Value {
        let mut command = Command::new(env!("CARGO_BIN_EXE_whimbrel"));
        serde_json::from_str(&succeed(command.args(words.split(' ')))).unwrap()
    };
    let milli = |of: &Value| (of["latency"]["p50"].as_f64().unwrap() * 1e3).round();
    let (slow, fast) = (document(load), document(&format!("{load} --fastopen")));
    assert_eq!((milli(&slow), milli(&fast)), (40.0, 20.0), "{fast}");
    let counted = |side: &str, name: &str| fast["stack"][side]["counters"][name].as_u64();
    // The first two ask for the cookie.
    assert_eq!(counted("client", "TcpExtTCPFastOpenActive"), Some(98), "{fast}");
    assert_eq!(counted("server", "TcpExtTCPFastOpenPassive"), Some(98), "{fast}");
    assert_eq!((&fast["statuses"]["200"], &fast["summary"]["failed"]), (&100.into(), &0.into()));
    let mut off = Command::new(env!("CARGO_BIN_EXE_whimbrel"));
    let (code, error) = fail(off.args("load --fastopen -S net.ipv4.tcp_fastopen=0".split(' ')));
    assert!(code == 2 && error.contains("client_enable is off"), "{error}");
    let mut own = Command::new(env!("CARGO_BIN_EXE_whimbrel"));
    let (code, error) = fail(own.args("load --fastopen -w kernel:".split(' ')));
    assert!(code == 2 && error.contains("use the URL"), "{error}");
}

#[test]
fn kernel_requests_go_in_syns() {
    let Some(net) = Net::new() else { return };
    let serve = net.serve(&["--fastopen", "8"]);
    let load = "load http://10.9.0.2/ -w kernel: --fastopen -n 40 -c 2 -K --json";
    let text = net.run(&format!("{} {load}", env!("CARGO_BIN_EXE_whimbrel")));
    let document: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (&document["statuses"]["200"], &document["summary"]["failed"]),
        (&40.into(), &0.into())
    );
    let opened = kernel_counter(&net, "TCPFastOpenActive");
    assert!((36..40).contains(&opened), "{opened}");
    serve.stop();
}
