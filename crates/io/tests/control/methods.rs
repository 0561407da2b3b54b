//! Answers of each method.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::world::{Control, World, call};

#[test]
fn greeting_names_process_hosts_and_methods() {
    let world = World::new();
    let control = Control::new(&world.path());
    let greeting = &control.greeting;
    assert_eq!(greeting["schema"], "whimbrel.control/1");
    assert_eq!(greeting["pid"], std::process::id());
    assert_eq!(greeting["command"], "test");
    assert_eq!(greeting["hosts"], json!([{ "name": null, "shards": 2 }]));
    assert!(greeting["methods"].as_array().expect("a list").contains(&json!("ss")));
}

#[test]
fn listing_has_each_connection_of_all_shards_once() {
    let world = World::new();
    world.connect(700);
    let mut control = Control::new(&world.path());
    let (sockets, last) = control.list(json!({ "states": ["ESTABLISHED"] }));
    assert_eq!(last, json!({ "id": 1, "done": { "sockets": 700 } }));
    let of = |name: &str| sockets.iter().map(|it| it[name].to_string()).collect::<BTreeSet<_>>();
    assert_eq!(of("remote").len(), 700);
    assert_eq!(of("cookie").len(), 700);
    assert_eq!(of("shard").len(), 2);
    assert!(sockets.iter().all(|it| it.get("info").is_none()));
    let (listeners, _) = control.list(json!({ "states": ["LISTEN"] }));
    assert_eq!(listeners.len(), 2);
    assert_eq!(listeners[0]["local"], json!({ "addr": "10.0.0.2", "port": 80 }));
    assert_eq!(listeners[0]["send_q"], 4_096);
    let (udp, _) = control.list(json!({ "transport": "udp" }));
    assert_eq!(udp.len(), 0);
}

#[test]
fn close_drops_a_connection_once() {
    let world = World::new();
    world.connect(1);
    let mut control = Control::new(&world.path());
    let (before, _) = control.list(json!({ "states": ["ESTABLISHED"] }));
    let closed =
        control.ask("close", json!({ "local": "10.0.0.2:80", "remote": text(&before[0]) }));
    assert_eq!(closed["result"], json!({ "closed": true }));
    let again = control.ask("close", json!({ "local": "10.0.0.2:80", "remote": text(&before[0]) }));
    assert_eq!(again["result"], json!({ "closed": false }));
}

fn text(socket: &Value) -> String {
    let (addr, port) = (&socket["remote"]["addr"], &socket["remote"]["port"]);
    format!("{}:{port}", addr.as_str().expect("an address"))
}

#[test]
fn full_listing_equals_the_snapshot() {
    let world = World::new();
    world.connect(1);
    let mut control = Control::new(&world.path());
    let (sockets, _) = control.list(json!({ "detail": "full", "states": ["ESTABLISHED"] }));
    let info = &sockets[0]["info"];
    let shard = &world.server[sockets[0]["shard"].as_u64().expect("a number") as usize];
    let remote = text(&sockets[0]).parse::<std::net::SocketAddr>().expect("an endpoint");
    let snapshot = call(shard, move |shard| {
        let local = crate::world::server_at();
        let flow = whimbrel_wire::Flow { local, remote: remote.into() };
        shard.snapshot_between(&flow).expect("open")
    });
    assert_eq!(info["mss"], snapshot.mss);
    assert_eq!(info["cwnd"], snapshot.cwnd);
    assert_eq!(info["segs_in"], snapshot.tally.segs_in);
    assert_eq!(info["segs_out"], snapshot.tally.segs_out);
    assert_eq!(info["rto"], snapshot.rto.as_secs_f64());
    assert_eq!(info["congestion"], "cubic");
    assert_eq!(info["limit"], "application");
    let (peer, own) = snapshot.scales.expect("scaled");
    assert_eq!(info["wscale"], json!([peer.get(), own.get()]));
}

#[test]
fn counters_are_sums_of_the_shards() {
    let world = World::new();
    world.connect(50);
    let mut control = Control::new(&world.path());
    let answer = control.ask("counters", json!({}));
    assert_eq!(answer["result"]["counters"]["TcpPassiveOpens"], 50);
    assert_eq!(answer["result"]["gauges"]["TcpCurrEstab"], 50);
    assert!(answer["result"]["drops"].as_object().is_some());
    let summary = control.ask("summary", json!({}));
    let summary = &summary["result"];
    assert_eq!(summary["states"]["ESTABLISHED"], 50);
    assert_eq!(summary["states"]["LISTEN"], 2);
    assert_eq!(summary["records"]["connections"], 50);
    assert_eq!(summary["accept_queue"], json!({ "waiting": 0, "most": 8_192 }));
    assert_eq!(summary["memory"]["pressure"], "none");
}

#[test]
fn tunable_changes_in_every_shard_or_in_none() {
    let world = World::new();
    let mut control = Control::new(&world.path());
    let value = |control: &mut Control, name: &str| {
        control.ask("sysctl", json!({ "name": name }))["result"]["tunables"][0].clone()
    };
    assert_eq!(value(&mut control, "isn")["origin"], "a test");
    let before = value(&mut control, "net.ipv4.tcp_syn_retries");
    assert_eq!(before["origin"], "default");
    let set = json!({ "name": "net.ipv4.tcp_syn_retries", "value": "3" });
    let after = control.ask("sysctl", set)["result"]["tunables"][0].clone();
    assert_eq!((&after["value"], &after["origin"]), (&json!("3"), &json!("control socket")));
    let read = |world: &World| {
        let read = |shard: &mut whimbrel_stack::Shard| shard.tunables().syn_retries;
        world.server.iter().map(|shard| call(shard, read)).collect::<Vec<_>>()
    };
    assert_eq!(read(&world), [3, 3]);
    for (name, wrong, says) in [
        ("isn", "host-wide", "isn cannot be changed"),
        ("net.ipv4.tcp_syn_retries", "x", "net.ipv4.tcp_syn_retries=x"),
        ("no.such", "1", "no tunable is named"),
    ] {
        let refused = control.ask("sysctl", json!({ "name": name, "value": wrong }));
        let text = refused["error"]["message"].as_str().expect("an error");
        assert!(text.contains(says), "{text}");
    }
    assert_eq!(read(&world), [3, 3]);
    let all = control.ask("sysctl", json!({}));
    assert_eq!(
        all["result"]["tunables"].as_array().expect("a list").len(),
        whimbrel_tcp::TUNABLES.len()
    );
}

#[test]
fn shard_that_ends_takes_its_change_back_from_the_others() {
    let mut world = World::new();
    let mut control = Control::new(&world.path());
    world.stop();
    let answer = control.ask("sysctl", json!({ "name": "mem.budget", "value": "1G" }));
    assert_eq!(answer["error"]["code"], "ended");
    assert_eq!(control.ask("counters", json!({}))["error"]["code"], "ended");
    assert_eq!(control.list(json!({})).1["error"]["code"], "ended");
}

#[test]
fn wrong_requests_get_errors_that_say_what_is_right() {
    let world = World::new();
    let mut control = Control::new(&world.path());
    for (method, params, says) in [
        ("nosuch", json!({}), "use hello, ss"),
        ("ss", json!({ "state": [] }), "no parameter \"state\""),
        ("ss", json!({ "states": ["ESTAB"] }), "use LISTEN"),
        ("ss", json!({ "detail": "long" }), "use one of brief, full"),
        ("ss", json!({ "host": "client" }), "leave out host"),
        ("close", json!({ "local": "10.0.0.2" }), "no ADDR:PORT"),
        ("sysctl", json!({ "value": "1" }), "value without name"),
        ("counters", json!({ "host": 1 }), "host is no text"),
    ] {
        let answer = control.ask(method, params.clone());
        let text = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(text.contains(says), "{method} {params}: {answer}");
    }
}
