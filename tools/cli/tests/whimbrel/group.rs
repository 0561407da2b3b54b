//! `serve --cookie-group`: servers that complete each other's handshakes.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use whimbrel_base::{Instant, Secrets};
use whimbrel_io::{Device, UnixConfig, UnixWire};
use whimbrel_stack::{InterfaceAddress, Shard, ShardConfig, TxBatch};
use whimbrel_tcp::conn::State;
use whimbrel_wire::{Address, Endpoint};

use crate::running::{Running, await_that, fail, succeed};
use crate::scratch::scratch;

const KEY: &str = "0123456789abcdef0123456789abcdef";

/// A server at 10.7.0.2 on a separate wire.
struct Server {
    _running: Running,
    wire: UnixWire,
}

impl Server {
    fn new(path: &Path, key: &str) -> Self {
        let wire = format!("unix:{},addr=10.7.0.2/24", path.display());
        let mut serve = Command::new(env!("CARGO_BIN_EXE_whimbrel"));
        serve.args(["serve", "-w", &wire, "--echo", "--syncookies", "always", "--quiet"]);
        serve.args(["--cookie-group", "env:WHIMBREL_COOKIE_KEY"]).env("WHIMBREL_COOKIE_KEY", key);
        let running = Running::start(serve.stdout(Stdio::null()));
        await_that("the socket is there", || path.exists());
        let own = InterfaceAddress { addr: address(1), prefix_len: 24 };
        let config = UnixConfig::new(path.to_str().unwrap(), vec![own]).unwrap();
        Self { _running: running, wire: UnixWire::open(&config).unwrap() }
    }

    /// Delivers the client's frames to it.
    fn tell(&mut self, client: &mut Shard) {
        let mut batch = TxBatch::new(8);
        client.tx(&mut batch);
        self.wire.tx_burst(&mut batch).unwrap();
    }

    /// Delivers its frames to the client, until `done`.
    fn hear(&mut self, client: &mut Shard, done: impl Fn(&mut Shard) -> bool) {
        await_that("the server answers", || {
            self.wire.rx_burst(&mut |burst| client.rx(Instant::ZERO, burst)).unwrap();
            done(client)
        });
    }
}

fn address(host: u8) -> Address {
    Address::from_v4_bytes([10, 7, 0, host])
}

#[test]
fn server_completes_cookie_handshake_of_its_group() {
    let folder = scratch("group");
    fs::create_dir_all(&folder).unwrap();
    for (number, (key, completes)) in
        [(KEY, true), (&KEY.replace('0', "1"), false)].into_iter().enumerate()
    {
        let path = |name: &str| folder.join(format!("{name}{number}"));
        let (mut first, mut second) = (Server::new(&path("a"), KEY), Server::new(&path("b"), key));
        let mut client = Shard::new(ShardConfig {
            tunables: Default::default(),
            secrets: Secrets::from_seed(7),
            capabilities: first.wire.capabilities(),
            addresses: vec![InterfaceAddress { addr: address(1), prefix_len: 24 }],
            routes: Vec::new(),
        })
        .unwrap();
        let handle = client.connect(Endpoint::new(address(2), 7), None).unwrap();
        let state = |client: &Shard| client.snapshot(handle).map(|snapshot| snapshot.state);
        first.tell(&mut client);
        first.hear(&mut client, |client| state(client) == Some(State::Established));
        // The acknowledgment goes to the other one, and so does all that comes after it.
        client.send(handle, &mut bytes::Bytes::from_static(b"whimbrel")).unwrap();
        second.tell(&mut client);
        second.hear(&mut client, |client| match client.recv(handle) {
            whimbrel_stack::Recv::Data(echo) => {
                assert!(completes && echo == b"whimbrel"[..]);
                true
            }
            whimbrel_stack::Recv::Closed(_) | whimbrel_stack::Recv::Unknown => {
                assert!(!completes, "it was reset");
                true
            }
            _ => false,
        });
    }
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn invalid_key_exits_2_and_is_not_shown() {
    for (words, part) in [
        (vec!["--cookie-group", KEY], "file:PATH or env:NAME"),
        (vec!["--cookie-group", "env:WHIM_NO_SUCH"], "has no WHIM_NO_SUCH"),
        (vec!["--cookie-group", "file:/nowhere/key"], "/nowhere/key"),
        (vec!["--cookie-group", "env:WHIMBREL_COOKIE_KEY"], "31 characters"),
        (vec!["--cookie-group", "env:WHIMBREL_COOKIE_KEY", "--syncookies", "off"], "is off"),
        (vec!["--cookie-group", "env:WHIMBREL_COOKIE_KEY", "-w", "kernel:"], "their own keys"),
    ] {
        let mut serve = Command::new(env!("CARGO_BIN_EXE_whimbrel"));
        serve.arg("serve").args(&words).env("WHIMBREL_COOKIE_KEY", &KEY[1..]);
        let (code, error) = fail(&mut serve);
        assert_eq!(code, 2, "{words:?}: {error}");
        let shown = error.replace(words[1], "");
        assert!(error.contains(part) && !shown.contains("456789"), "{words:?}: {error}");
    }
    let text = succeed(Command::new(env!("CARGO_BIN_EXE_whimbrel")).args(["serve", "--help"]));
    assert!(text.contains("file:PATH|env:NAME"));
}
