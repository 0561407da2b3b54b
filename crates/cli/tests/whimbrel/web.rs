//! Web clients and servers at the edges: a process without descriptors.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

use crate::netns::WHIMBREL;
use crate::running::{Running, await_that};
use crate::signals::free_address;

#[test]
fn a_server_without_descriptors_says_so_and_goes_on_later() {
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
        while !told.contains("no descriptor is left of the 40") {
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
