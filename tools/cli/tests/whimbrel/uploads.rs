//! `whimbrel serve --upload` while one client holds all places of uploads.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use bytes::Bytes;
use whimbrel_kernel::KernelSockets;
use whimbrel_kernel::sockets::{KernelOptions, Received, SocketId};
use whimbrel_wire::Address;

use crate::netns::WHIMBREL;
use crate::running::{Running, Signal, await_that};
use crate::scratch::scratch;
use crate::signals::free_address;

/// Uploads that a server with 40 descriptors takes at a time.
const PLACES: usize = 4;

/// A server with 40 descriptors, in a separate folder.
struct Server {
    folder: PathBuf,
    at: SocketAddr,
    running: Running,
}

impl Server {
    fn start(name: &str, options: &str) -> Self {
        let (folder, at) = (scratch(name), free_address());
        fs::create_dir_all(folder.join("root")).unwrap();
        let (root, log) = (folder.join("root"), folder.join("log"));
        let line = format!(
            "ulimit -n 40; exec {WHIMBREL} serve -w kernel: -l {at} --upload {options} \
             --file-root {} --access-log {}",
            root.display(),
            log.display()
        );
        let mut command = Command::new("sh");
        command.args(["-c", &line]).stdout(Stdio::piped()).stderr(Stdio::null());
        let running = Running::start(&mut command);
        await_that("it serves", || TcpStream::connect(at).is_ok());
        Self { folder, at, running }
    }

    /// Number of files that are on their way.
    fn parts(&self) -> usize {
        let names = fs::read_dir(self.folder.join("root")).unwrap();
        let is_part = |name: &Path| name.extension().is_some_and(|it| it == "part");
        names.filter(|name| is_part(&name.as_ref().unwrap().path())).count()
    }

    /// Ends it; returns its log.
    fn end(self) -> String {
        self.running.signal(Signal::INT);
        assert!(self.running.output().status.success());
        let log = fs::read_to_string(self.folder.join("log")).unwrap();
        fs::remove_dir_all(self.folder).unwrap();
        log
    }
}

/// A connection from one of this machine's addresses.
struct Client {
    sockets: KernelSockets,
    id: SocketId,
    heard: Vec<u8>,
}

impl Client {
    fn new(host: u8, server: &Server, says: &[u8]) -> Self {
        let local = Some(Address::from(Ipv4Addr::new(127, 0, 0, host)));
        let mut sockets = KernelSockets::new().unwrap();
        let options = KernelOptions { local, ..KernelOptions::default() };
        let id = sockets.connect(server.at.into(), &options).unwrap();
        await_that("it is open", || sockets.poll_event().unwrap().is_some());
        let mut client = Self { sockets, id, heard: Vec::new() };
        client.say(says);
        client
    }

    fn say(&mut self, what: &[u8]) {
        let mut left = Bytes::copy_from_slice(what);
        self.sockets.send(self.id, &mut left).unwrap();
        assert!(left.is_empty());
    }

    /// Waits until these words come.
    fn hear(&mut self, words: &str) {
        await_that(words, || {
            while self.sockets.poll_event().unwrap().is_some() {}
            if let Ok(Received::Data(bytes)) = self.sockets.recv(self.id) {
                self.heard.extend_from_slice(&bytes);
            }
            String::from_utf8_lossy(&self.heard).contains(words)
        });
    }
}

fn put(name: &str, text: &str) -> Vec<u8> {
    format!("PUT /{name} HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n{text}").into_bytes()
}

/// The beginning of a connection of HTTP/2 with so many uploads of which nothing comes.
fn put_streams(count: usize) -> Vec<u8> {
    let frame = |kind: u8, flags: u8, stream: u32, payload: &[u8]| {
        let length = (payload.len() as u32).to_be_bytes();
        [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
    };
    let preface = [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(), frame(4, 0, 0, &[])].concat();
    // :method PUT, :scheme http, :path /u, :authority w; the head ends, and the stream does not.
    let head = [&[2, 3][..], b"PUT", &[0x86, 4, 2], b"/u", &[0x41, 1, b'w']].concat();
    let streams = (0..count as u32).flat_map(|number| frame(1, 4, 2 * number + 1, &head));
    preface.into_iter().chain(streams).collect()
}

#[test]
fn client_with_all_uploads_keeps_no_other_out() {
    for (name, options) in [("uploads-plain", ""), ("uploads-both", "--h2c")] {
        let server = Server::start(name, options);
        let mut greedy: Vec<_> = (0..PLACES)
            .map(|number| {
                let client = Client::new(1, &server, &put(&number.to_string(), "so"));
                await_that("it has a place", || server.parts() == number + 1);
                client
            })
            .collect();
        Client::new(1, &server, &put("more", "so")).hear("no other client has more than yours");
        assert_eq!(server.parts(), PLACES);
        let mut honest = Client::new(2, &server, &put("honest", "te"));
        greedy[0].hear("HTTP/1.1 503 Service Unavailable");
        greedy[0].hear("this was the oldest");
        honest.say(b"xt");
        honest.hear("HTTP/1.1 201 Created");
        assert_eq!(fs::read(server.folder.join("root/honest")).unwrap(), b"text");
        // The other uploads of the greedy one continue.
        for client in &mut greedy[1..] {
            client.say(b"on");
            client.hear("HTTP/1.1 201 Created");
        }
        assert_eq!(server.parts(), 0);
        let log = server.end();
        let lines = |words: &str| log.lines().filter(|line| line.contains(words)).count();
        assert_eq!([lines("\" 503 "), lines("\" 201 ")], [2, PLACES], "{log}");
        assert_eq!(lines("\"PUT /0 HTTP/1.1\" 503 "), 1, "{log}");
    }
}

#[test]
fn uploads_of_one_http_2_connection_keep_no_other_out() {
    let server = Server::start("uploads-streams", "--h2c");
    let mut greedy = Client::new(1, &server, &put_streams(PLACES + 2));
    greedy.hear("no other client has more than yours");
    assert_eq!(server.parts(), PLACES);
    let mut honest = Client::new(2, &server, &put("honest", "te"));
    greedy.hear("this was the oldest");
    honest.say(b"xt");
    honest.hear("HTTP/1.1 201 Created");
    await_that("the rest keeps its places", || server.parts() == PLACES - 1);
    // A connection of HTTP/2 displaces those of HTTP/1.1, too.
    drop(greedy);
    await_that("its places are free", || server.parts() == 0);
    let mut greedy: Vec<_> = (0..PLACES)
        .map(|number| Client::new(1, &server, &put(&number.to_string(), "so")))
        .collect();
    await_that("all places are taken", || server.parts() == PLACES);
    let _streams = Client::new(2, &server, &put_streams(1));
    await_that("one gave way", || {
        greedy.iter_mut().any(|client| {
            while client.sockets.poll_event().unwrap().is_some() {}
            matches!(client.sockets.recv(client.id), Ok(Received::Data(bytes))
                if bytes.starts_with(b"HTTP/1.1 503 "))
        })
    });
    assert_eq!(server.parts(), PLACES);
    server.end();
}
