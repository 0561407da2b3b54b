//! Clients that send garbage, too much or nothing, that read nothing, and other users.

use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::needs;
use crate::world::{Control, World, wait_until};

#[test]
fn garbage_gets_errors_and_the_stream_goes_on() {
    let world = World::new();
    let mut control = Control::new(&world.path());
    for garbage in ["\n", "nonsense\n", "[1]\n", "{}\n", "{\"id\":[],\"method\":7}\n", "\u{0}\n"] {
        control.send(garbage);
        let answer = control.line().expect("an answer");
        assert_eq!(answer["error"]["code"], "bad-request", "{garbage:?}: {answer}");
    }
    control.stream.write_all(b"\xff\xfe\n").expect("a stream");
    assert_eq!(control.line().expect("an answer")["error"]["code"], "bad-request");
    // Deeper than a parser's stack may be.
    control.send(&format!("{}\n", "[".repeat(60_000)));
    assert_eq!(control.line().expect("an answer")["error"]["code"], "bad-request");
    assert_eq!(control.ask("hello", json!({}))["result"], control.greeting);
}

#[test]
fn half_a_line_is_no_request() {
    let world = World::new();
    let mut control = Control::new(&world.path());
    control.send("{\"id\":1,\"method\":\"sysctl\",\"params\":{\"name\":\"isn\",");
    control.stream.shutdown(std::net::Shutdown::Write).expect("a stream");
    assert_eq!(control.line(), None);
    let mut other = Control::new(&world.path());
    other.send("{\"id\":2,");
    other.send("\"method\":\"hello\"}\n");
    assert_eq!(other.line().expect("an answer")["id"], 2);
}

#[test]
fn gigabyte_without_a_line_end_is_refused_after_64_kib() {
    let world = World::new();
    let mut control = Control::new(&world.path());
    let piece = vec![b'x'; 1 << 16];
    let mut sent = 0_u64;
    while sent < 1 << 30 {
        match control.stream.write(&piece) {
            Ok(len) => sent += len as u64,
            Err(_) => break,
        }
    }
    assert!(sent < 4 << 20, "{sent} bytes were taken");
    let answer = control.line().expect("an answer");
    assert_eq!(answer["error"]["code"], "too-long");
    assert_eq!(control.line(), None);
}

#[test]
fn ninth_client_is_refused_until_one_leaves() {
    let world = World::new();
    let mut clients: Vec<_> = (0..8).map(|_| Control::new(&world.path())).collect();
    let refused = Control::new(&world.path());
    assert_eq!(refused.greeting["error"]["code"], "busy");
    drop(clients.pop());
    wait_until(|| Control::new(&world.path()).greeting.get("error").is_none());
    for client in &mut clients {
        assert_eq!(client.ask("hello", json!({}))["result"]["pid"], std::process::id());
    }
}

#[test]
fn each_of_fifty_refused_clients_is_told_why() {
    let world = World::new();
    let _clients: Vec<_> = (0..8).map(|_| Control::new(&world.path())).collect();
    let refused: Vec<_> = (0..50).map(|_| Control::new(&world.path())).collect();
    for client in refused {
        assert_eq!(client.greeting["error"]["code"], "busy");
    }
}

#[test]
fn refused_client_that_trickles_is_left_in_time() {
    let world = World::new();
    let mut clients: Vec<_> = (0..8).map(|_| Control::new(&world.path())).collect();
    let mut refused = Control::new(&world.path());
    assert_eq!(refused.greeting["error"]["code"], "busy");
    // A byte at a time, while the server reads; the others stay busy.
    wait_until(|| {
        for client in &mut clients {
            client.ask("hello", json!({}));
        }
        refused.stream.write_all(b" ").is_err()
    });
}

#[test]
fn silent_client_gives_way_and_is_told() {
    let world = World::new();
    let mut silent: Vec<_> = (0..8).map(|_| Control::new(&world.path())).collect();
    silent[0].send("{\"half a line\":");
    // They give way one by one, and only after 5 s of silence.
    wait_until(|| {
        let mut new = Control::new(&world.path());
        new.greeting.get("error").is_none() && {
            assert_eq!(new.ask("hello", json!({}))["result"], new.greeting);
            true
        }
    });
    wait_until(|| {
        silent.iter_mut().any(|client| {
            client.stream.set_nonblocking(true).expect("a stream");
            client.line().is_some_and(|line| line["error"]["code"] == "silent")
        })
    });
}

#[test]
fn client_that_reads_nothing_gets_an_error_and_no_more() {
    let world = World::new();
    world.connect(400);
    let mut control = Control::new(&world.path());
    for id in 0..20 {
        let line = json!({ "id": id, "method": "ss", "params": { "detail": "full" } });
        control.send(&format!("{line}\n"));
    }
    // Others are served meanwhile.
    let mut other = Control::new(&world.path());
    assert_eq!(other.list(json!({})).0.len(), 402);
    std::thread::sleep(Duration::from_millis(5_500));
    let (mut last, mut sockets) = (Value::Null, 0);
    while let Some(line) = control.line() {
        sockets += usize::from(line.get("socket").is_some());
        last = line;
    }
    assert_eq!(last["error"]["code"], "slow", "after {sockets} sockets: {last}");
    assert!(sockets < 20 * 402);
}

#[test]
fn end_of_the_server_ends_its_clients_and_removes_the_socket() {
    let mut world = World::new();
    let mut control = Control::new(&world.path());
    drop(world.control.take());
    assert_eq!(control.line(), None);
    assert!(!world.path().exists());
}

/// Output of another user's attempt to connect.
fn as_other_user(world: &World) -> String {
    let user = "setpriv --reuid 65534 --regid 65534 --clear-groups";
    let curl = "curl --verbose --silent --http0.9 --max-time 20 --unix-socket";
    let mut command = needs::command(&format!("{user} {curl}"));
    let output = command.arg(world.path()).arg("http://control/").output().expect("it runs");
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

#[test]
fn other_user_is_refused_by_mode_and_by_peer_check() {
    if !needs::found(&["setpriv", "curl"]) {
        return;
    }
    if fs::metadata("/proc/self").is_ok_and(|it| it.uid() != 0) {
        return needs::skip("a second user needs root");
    }
    let world = World::new();
    let folder = world.path().parent().expect("a folder").to_owned();
    let set = |path: &Path, mode| {
        fs::set_permissions(path, Permissions::from_mode(mode)).expect("ours");
    };
    set(&folder, 0o777);
    let refused = as_other_user(&world);
    assert!(refused.contains("Permission denied"), "{refused}");
    set(&world.path(), 0o666);
    let refused = as_other_user(&world);
    assert!(refused.contains("\"code\":\"denied\""), "{refused}");
    assert!(refused.contains("you are user 65534"), "{refused}");
    // Root is still served.
    assert_eq!(Control::new(&world.path()).greeting["pid"], std::process::id());
}
