//! `whimbrel load`: of itself in memory and over the kernel, and of a real web server over TUN.

use std::fs;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use serde_json::{Value, json};

use crate::netns::Net;
use crate::running::{
    Running, Signal, await_handler, await_that, fail, interrupt, output, send, succeed, unbroken,
};
use crate::scratch::scratch;

fn whimbrel(words: &str) -> String {
    succeed(Command::new(env!("CARGO_BIN_EXE_whimbrel")).args(words.split_whitespace()))
}

fn document(words: &str) -> Value {
    serde_json::from_str(&whimbrel(words)).unwrap()
}

#[test]
fn load_in_memory_prints_a_summary() {
    let text = whimbrel("load -n 2000 -c 10");
    for part in [
        "over mem:",
        "Success rate:  100.00%",
        "Requests:      2,000",
        "[200] 2000 responses",
        "Error distribution: (none)",
        "99.99% in",
        "connect",
        "TIME-WAIT now",
    ] {
        assert!(text.contains(part), "{part:?} is not in: {text}");
    }
}

#[test]
fn virtual_minute_has_exact_count_and_repeats() {
    let words = "load -z 60s -c 5 -q 100 -w mem:delay=10ms,loss=1% --clock virtual --seed 7 --json";
    let first = document(words);
    let summary = &first["summary"];
    let begun = [&summary["answered"], &summary["in_flight_at_end"], &summary["never_begun"]];
    assert_eq!(begun.iter().filter_map(|count| count.as_u64()).sum::<u64>(), 6_000, "{summary}");
    assert_eq!(summary["duration"], 60.0);
    assert_eq!(first["seed"], 7);
    assert_eq!(first["schema"], "whimbrel.load/1");
    assert!(first["links"][0]["lost"].as_u64().unwrap() > 0);
    assert_eq!(first, document(words), "the same seed gives the same run");
}

#[test]
fn json_stream_has_each_interval_then_the_document() {
    let virtually = "-z 3s -q 100 -w mem:delay=1ms --clock virtual";
    for command in ["load --repeat 2 --gap 1s", "crr"] {
        let text = whimbrel(&format!("{command} {virtually} --json-stream"));
        let lines: Vec<Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let (last, intervals) = lines.split_last().unwrap();
        assert_eq!(last["event"], "summary");
        assert_eq!(last["data"]["summary"]["duration"], 3.0);
        let runs = last["data"]["runs"].as_array().unwrap().len();
        assert_eq!(intervals.len(), 3 * runs, "{text}");
        let data = &intervals.last().unwrap()["data"];
        assert_eq!((&data["run"], &data["start"]), (&runs.into(), &2.0.into()), "{data}");

        let table = whimbrel(&format!("{command} {virtually} --csv"));
        let (heading, rows) = table.split_once('\n').unwrap();
        assert!(heading.starts_with("run,start,seconds,answered,"), "{heading}");
        assert_eq!(rows.lines().count(), 3 * runs, "{rows}");
    }
}

#[test]
fn a_result_is_written_into_a_file() {
    let path = scratch("out.json");
    let text = whimbrel(&format!("load -n 20 -o {} --json-stream", path.display()));
    assert_eq!(text, "");
    let last: Value =
        serde_json::from_str(fs::read_to_string(&path).unwrap().lines().last().unwrap()).unwrap();
    fs::remove_file(path).unwrap();
    assert_eq!(last["data"]["summary"]["answered"], 20);
    assert!(last["data"]["effort"]["elapsed"].as_f64() > Some(0.0), "{last}");
    assert!(last["data"]["env"]["offloads"]["mtu"].as_u64() > Some(1_000), "{last}");
}

#[test]
fn uncorrected_latency_counts_from_sending() {
    // One connection, and one answer every 20 ms, at a rate of 100 a second.
    let words = "load -z 2s -c 1 -q 100 -w mem:delay=10ms --clock virtual --json";
    let most = |more: &str| {
        let document = document(&format!("{words} {more}"));
        document["latency_corrected"]["max"].as_f64().unwrap()
    };
    assert!(most("") > 0.5);
    assert!(most("--latency-correction off") < 0.05);
}

#[test]
fn connections_begin_at_the_addresses_that_are_given() {
    // One port: in TIME-WAIT at one address, free at the next.
    let ports = "load -n 3 -c 1 -K --close client --local-ports 50000-50000 --json";
    let one = document(&format!("{ports} --local-addr 10.0.0.7"));
    let three = document(&format!("{ports} --local-addr 10.0.0.7,10.0.0.8,10.0.0.9"));
    assert_eq!(three["summary"]["failed"], 0, "{three}");
    assert_ne!(one["stack"], three["stack"]);
    let kernel = document("load -w kernel: -n 20 -K --local-addr 127.0.0.7,127.0.0.8 --json");
    assert_eq!(kernel["statuses"]["200"], 20);
}

#[test]
fn colours_and_counters_follow_options() {
    let painted = whimbrel("load -n 20 --color always");
    assert!(painted.contains("\u{1b}[1mSummary:"), "{painted}");
    let plain = whimbrel("load -n 20 -v");
    assert!(!plain.contains('\u{1b}'), "{plain}");
    assert!(plain.contains("Counters (server side):") && plain.contains("TcpPassiveOpens"));
    assert!(!plain.contains("TcpEstabResets"), "{plain}");
    let explained = whimbrel("load -n 20 -vv");
    let about = |name: &str| {
        let mut lines = explained.lines().skip_while(|line| !line.contains(name)).skip(1);
        lines.next().is_some_and(|line| line.starts_with("      ") && line.len() > 20)
    };
    assert!(about(" TcpEstabResets ") && about(" TcpPassiveOpens "), "{explained}");
}

#[test]
fn local_server_delays_work_in_virtual_time() {
    let load = "load -n 40 -c 4 -w mem:delay=5ms --clock virtual --json";
    let thinks = document(&format!("{load} --think 100ms"));
    let milli = |of: &Value, key: &str| (of["latency"][key].as_f64().unwrap() * 1e3).round();
    // A connection opens for the first.
    assert_eq!((milli(&thinks, "p50"), milli(&thinks, "max")), (110.0, 120.0), "{thinks}");
    assert_eq!(thinks["config"]["pace"]["think"], 0.1);
    let crr = "crr -n 4 -c 4 -w mem:delay=5ms --clock virtual --json";
    let accepts = document(&format!("{crr} --accept-delay 100ms"));
    assert_eq!((milli(&accepts, "min"), milli(&accepts, "max")), (120.0, 420.0), "{accepts}");
}

#[test]
fn local_server_counts_requests_and_delays() {
    let load = "load -z 1s -c 4 -w mem:delay=1ms --clock virtual --json --service-rate 1k";
    for shards in ["", " --shards 2"] {
        let document = document(&format!("{load} --requests-per-connection 10{shards}"));
        let summary = &document["summary"];
        let (answered, opened) = (&summary["answered"], &summary["connections_opened"]);
        let (answered, opened) = (answered.as_u64().unwrap(), opened.as_u64().unwrap());
        assert!((900..=1_000).contains(&answered), "{summary}");
        assert!((answered / 10..=answered / 10 + 4).contains(&opened), "{summary}");
        let by_syn = summary["opened_by_syn"].as_array().unwrap();
        assert_eq!((by_syn.len(), by_syn[0].as_u64()), (1, Some(opened)), "{summary}");
        let config = &document["config"];
        assert_eq!(config["pace"]["service_rate"], 1_000.0);
        assert_eq!(config["requests_per_connection"], 10);
    }
}

#[test]
fn unopened_connections_are_reported_and_refused_counted() {
    // After some hundred packets each way nothing arrives any more.
    let load = "load -z 20s -c 3 -K --connect-timeout 60s -w mem:delay=1ms,burst-loss=0.2%:0% \
                --clock virtual";
    let document = document(&format!("{load} --json"));
    let left = &document["summary"]["opening_at_end"];
    assert_eq!(left["count"], 3, "{left}");
    assert!(left["oldest"].as_f64().unwrap() > 15.0, "{left}");
    let counts = left["by_age"].as_array().unwrap().iter().map(|age| &age["count"]);
    assert_eq!(counts.map(|count| count.as_u64().unwrap()).sum::<u64>(), 3, "{left}");
    assert_eq!(left["by_age"][1]["from"], 15, "{left}");
    assert_eq!(document["summary"]["refused"], 0);
    let text = whimbrel(load);
    assert!(text.contains("3 connections not open at the end, the oldest after 19"), "{text}");
}

#[test]
fn no_keepalive_opens_a_connection_per_request() {
    for close in ["server", "client", "rst"] {
        let document = document(&format!("load -n 300 -c 4 -K --close {close} --json"));
        assert_eq!(document["summary"]["connections_opened"], 300, "{close}");
        assert_eq!(document["summary"]["unclean_closes"], 0, "{close}");
        assert_eq!(document["stack"]["client"]["counters"]["TcpActiveOpens"], 300);
    }
}

#[test]
fn connections_begin_from_the_ports_that_are_given() {
    for command in ["load -n 12 -K", "crr -n 12"] {
        let document = document(&format!("{command} -c 2 --local-ports 50000-50003 --json"));
        let rules = &document["rules"]["tunables"];
        assert_eq!(rules["ports.last"]["value"], "50003");
        assert_eq!(rules["ports.first"]["origin"], "--local-ports");
    }
    let text = whimbrel("load -n 12 -c 2 -K --local-ports 50000-50003");
    let ports = text.lines().find(|line| line.contains("ports to draw from"));
    assert!(ports.is_some_and(|line| line.ends_with(" 4")), "{text}");
}

#[test]
fn repeated_runs_share_a_stack_and_its_time_wait() {
    let words = "load -n 100 -c 2 -K --close client --repeat 3 --gap 5s \
                 -w mem:delay=1ms --clock virtual --json";
    let document = document(words);
    let runs = document["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 3);
    assert!(runs.iter().all(|run| run["answered"] == 100), "{runs:?}");
    assert_eq!(document["stack"]["client"]["time_wait"], 300);
    let text = whimbrel(&words.replace("--json", ""));
    assert!(text.contains("The last run:") && text.contains("    3         100"), "{text}");
    assert!(text.contains("Stack (client side, all runs):"), "{text}");
}

#[test]
fn load_over_unix_wire_reaches_another_process() {
    let path = scratch("load.sock");
    let wire = |host: u8| format!("unix:{},addr=10.7.0.{host}/24", path.display());
    let mut serve = Command::new(env!("CARGO_BIN_EXE_whimbrel"));
    serve.args(["serve", "-w", &wire(1)]).stdout(Stdio::null());
    let mut serve = Running::start(&mut serve);
    await_that("the socket is there", || path.exists());
    let document = document(&format!("load http://10.7.0.1/ -n 200 -c 4 -w {} --json", wire(2)));
    serve.signal(Signal::TERM);
    assert!(serve.wait().success());
    assert_eq!(document["statuses"]["200"], 200);
}

#[test]
fn load_over_kernel_sockets_serves_itself() {
    let document = document("load -w kernel: -n 500 -c 5 -K --json");
    assert_eq!(document["statuses"]["200"], 500);
    assert_eq!(document["summary"]["failed"], 0);
    assert_eq!(document["stack"]["client"], Value::Null);
    // Other tests may use it, too.
    let counted = &document["stack"]["kernel"]["counters"];
    assert!(counted["TcpActiveOpens"].as_u64() >= Some(500), "{counted}");
    assert!(counted["TcpPassiveOpens"].as_u64() >= Some(500), "{counted}");
    assert_eq!(self::document("load -n 5 --json")["stack"]["kernel"], Value::Null);
}

#[test]
fn threads_share_the_connections_over_the_kernels_sockets() {
    let load = "load -w kernel: -t 3 -c 7";
    let shared = document(&format!("{load} -n 500 -K --json"));
    assert_eq!(
        (&shared["statuses"]["200"], &shared["summary"]["failed"]),
        (&500.into(), &0.into())
    );
    assert_eq!(shared["summary"]["connections_opened"], 500);
    assert_eq!(shared["latency"]["count"], 500);
    assert_eq!(shared["config"]["threads"], 3);

    let runs = document(&format!("{load} -n 60 --repeat 3 --gap 0s --json"));
    let answered: Vec<_> = runs["runs"].as_array().unwrap().iter().collect();
    assert_eq!(answered.len(), 3, "{runs}");
    assert!(answered.iter().all(|run| run["answered"] == 60), "{runs}");

    let text = whimbrel(&format!("{load} -z 700ms -q 500 -i 200ms --json-stream"));
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (last, intervals) = lines.split_last().unwrap();
    let told = |key| intervals.iter().filter_map(|line| line["data"][key].as_u64()).sum::<u64>();
    assert_eq!(last["data"]["summary"]["answered"], told("answered"), "{text}");
    let summary = &last["data"]["summary"];
    let due = ["answered", "in_flight_at_end", "never_begun", "failed"];
    assert_eq!(due.iter().filter_map(|key| summary[key].as_u64()).sum::<u64>(), 350, "{summary}");
}

#[test]
fn the_stack_can_be_named_instead_of_the_wire() {
    assert_eq!(document("load --stack kernel -n 5 --json")["env"]["wire"], "kernel:");
    assert_eq!(document("crr --stack user -n 5 --json")["env"]["wire"], "mem:");
}

#[test]
fn exchanges_wait_for_a_free_port_and_explain() {
    let load = "load -n 12 -c 2 -K --close client --local-ports 50000-50003 \
                -w mem:delay=1ms --clock virtual";
    let document = document(&format!("{load} --json"));
    let summary = &document["summary"];
    assert_eq!((&summary["answered"], &summary["failed"]), (&12.into(), &0.into()));
    // Four begin at once; two times four more a second later, each when a port is taken over.
    let waits = &summary["port_waits"];
    assert!(waits["exchanges"].as_u64() >= Some(2), "{waits}");
    assert!(waits["seconds"].as_f64() > Some(1.0), "{waits}");
    assert_eq!((&waits["last"]["first"], &waits["last"]["last"]), (&50_000.into(), &50_003.into()));
    assert_eq!(waits["last"]["time_wait"], 4, "{waits}");
    assert!(document["phases"]["connect"]["max"].as_f64() < Some(0.1), "a port is no handshake");
    let text = whimbrel(load);
    let (_, line) = text.split_once(" waited for a free port").expect(&text);
    let line = unbroken(line);
    for part in ["ports 50000 to 50003", "4 in TIME-WAIT", "ip_local_port_range"] {
        assert!(line.contains(part), "{part:?} is not in: {line}");
    }
    let command =
        format!("{load} -S net.ipv4.tcp_tw_reuse=0 --connect-timeout 1s -z 20s --fail-if errors>0");
    let command = command.replace("-n 12", "");
    let (code, error) =
        fail(Command::new(env!("CARGO_BIN_EXE_whimbrel")).args(command.split_whitespace()));
    assert_eq!(code, 3, "who waits for longer than a connection may take has failed: {error}");
}

#[test]
fn summary_begins_with_what_held_connections_up() {
    let load = "load -z 10s -c 20 -K --close client --local-ports 50000-53999 -S tcp_tw_reuse=0 \
                -w mem:delay=1ms --clock virtual";
    let text = whimbrel(load);
    let (_, rest) = text.split_once("  Held up:       ").expect(&text);
    assert!(rest.starts_with("87.9%, no free port"), "{text}");
    assert!(text.find("Held up") < text.find("Slowest"), "{text}");
    assert!(text.contains("none         in 8 of 10 intervals"), "{text}");
    assert!(text.contains("no free port: set net.ipv4.tcp_tw_reuse=1, widen"), "{text}");
    let document = document(&format!("{load} --json"));
    let held = &document["summary"]["held"][0];
    assert_eq!(held["cause"], "no free port");
    assert!((87.0..89.0).contains(&held["percent"].as_f64().unwrap()), "{held}");
    let page = scratch("held.html");
    let mut command = Command::new(env!("CARGO_BIN_EXE_whimbrel"));
    succeed(command.args(load.split_whitespace()).arg("--html").arg(&page));
    let html = fs::read_to_string(&page).unwrap();
    let first = html.split_once("<article class=\"card\">").unwrap().1;
    let first = first.split_once("</article>").unwrap().0;
    assert!(first.contains("87.9 %") && first.contains("held up: no free port"), "{first}");
    for (condition, expected) in [("held>50%", 3), ("held>90%", 0)] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_whimbrel"));
        let ran = command.args(load.split_whitespace()).args(["--fail-if", condition]).output();
        assert_eq!(ran.unwrap().status.code(), Some(expected), "{condition}");
    }
}

#[test]
fn unanswered_syns_hold_connections_up() {
    let load = "load -n 40 -c 2 -K -w mem:delay=1ms,loss=30% --clock virtual --seed 3 --json";
    let held = &document(load)["summary"]["held"];
    let causes: Vec<_> = held.as_array().unwrap().iter().map(|it| &it["cause"]).collect();
    assert_eq!(causes, ["SYNs unanswered"], "{held}");
    assert!(held[0]["percent"].as_f64() > Some(10.0), "{held}");
    assert_eq!(document("load -n 40 -w mem: --clock virtual --json")["summary"]["held"], json!([]));
}

#[test]
fn limit_of_a_time_needs_a_unit() {
    let load = "load -n 100 -w mem:delay=70ms --clock virtual --fail-if";
    let run = |condition: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_whimbrel"));
        fail(command.args(load.split_whitespace()).arg(condition))
    };
    let (code, error) = run("p99>100");
    let reason =
        "\"p99\" is a time, and 100 has no unit: give one of ns, us, ms, s, as in p99>100ms";
    assert!(code == 2 && error.contains(reason), "{code} {error}");
    let (code, error) = run("p99>100ms");
    assert!(code == 3 && error.contains(" ms, limit 100 ms"), "{code} {error}");
}

#[test]
fn a_body_is_posted_whole() {
    let document = document("load -n 20 -c 2 -m POST -d hello --json");
    // The server answers with the length and the checksum of the body.
    let expected = "5 bytes, crc32 3610a686\n".len() * 20;
    assert_eq!(document["summary"]["body_octets"], expected);
}

#[test]
fn load_document_has_origin_options_and_counters() {
    let words = "load -n 300 -c 3 -K --seed 5 -S msl=30s -w mem:delay=1ms --clock virtual --json";
    let document = document(words);
    let env = &document["env"];
    assert_eq!((&env["wire"], &env["clock"]), (&"mem:delay=1ms".into(), &"virtual".into()));
    assert!(env["kernel"].as_str().is_some_and(|name| !name.is_empty()), "{env}");
    assert!(env["cpu"].is_string() && env["offloads"]["mtu"].is_u64(), "{env}");
    assert!(document["tool"].as_str().unwrap().starts_with("whimbrel "));
    assert_eq!(document["seed"], 5);
    let config = &document["config"];
    assert_eq!((&config["connections"], &config["requests"]), (&3.into(), &300.into()));
    assert_eq!((&config["repeat"], &config["body"]), (&1.into(), &128.into()));
    assert!(config["request_octets"].as_u64() > Some(20), "{config}");
    assert_eq!(document["rules"]["tunables"]["msl.remote"]["origin"], "--set");

    // Every connection was opened and closed once, and the server, which closed, keeps its TIME-WAIT;
    // the last acknowledgments are in flight.
    let stack = &document["stack"];
    let states = |side: &str| {
        let states = stack[side]["states"].as_object().unwrap().iter();
        let some = states.filter(|(_, count)| **count != 0 && count.as_u64().is_some());
        some.map(|(state, count)| format!("{state} {count}")).collect::<Vec<_>>()
    };
    assert_eq!(stack["client"]["states"].as_object().unwrap().len(), 10, "{stack}");
    assert_eq!(states("client"), ["last_ack 3"]);
    assert_eq!(states("server"), ["fin_wait_1 3", "listen 1", "time_wait 297"]);
    assert_eq!(stack["client"]["counters"]["TcpActiveOpens"], 300);
    assert_eq!(stack["server"]["counters"]["TcpPassiveOpens"], 300);
    let bytes = STANDARD.decode(document["histogram"].as_str().unwrap()).unwrap();
    let histogram: Histogram<u64> = Deserializer::new().deserialize(&mut &*bytes).unwrap();
    assert_eq!(histogram.len(), 300);
    let median = document["latency"]["p50"].as_f64().unwrap();
    assert_eq!(histogram.value_at_quantile(0.5), (median * 1e9).round() as u64);
}

#[test]
fn fail_if_exits_3_if_true_else_0() {
    let load = "load -n 50 --quiet --fail-if";
    let command = |condition: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_whimbrel"));
        command.args(load.split(' ')).arg(condition);
        command
    };
    let (code, error) = fail(&mut command("p99>3600s || errors<1"));
    assert!(code == 3 && error.contains("errors<1"), "{code} {error}");
    assert_eq!(succeed(&mut command("p99>3600s || errors>0.1%")), "");
    // Programs read the same.
    let verdict = |condition: &str| {
        let document = output(command(condition).arg("--json")).stdout;
        let document: Value = serde_json::from_slice(&document).unwrap();
        document["verdict"].clone()
    };
    let met = verdict("errors<1");
    assert_eq!((&met["fail_if"], &met["failed"]), (&"errors<1".into(), &true.into()), "{met}");
    assert_eq!(met["met"][0]["figure"], "errors", "{met}");
    assert_eq!(verdict("errors>0.1%")["failed"], false);
}

#[test]
fn interrupted_load_prints_its_result() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_whimbrel"));
    command.args(["load", "-z", "1h"]).stdout(Stdio::piped());
    let child = Running::start(&mut command);
    thread::sleep(Duration::from_millis(700));
    interrupt(child.id());
    let output = child.output();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && text.contains("Success rate:  100.00%"), "{text}");
}

#[test]
fn repeated_signal_counts_once() {
    // As `timeout` sends it: to the program, and to the group that it is in.
    for (words, signal, part) in [
        ("load -z 1h -w kernel: -t 2", Signal::INT, "Success rate:  100.00%"),
        ("crr -l 1h", Signal::TERM, "TCP_CRR"),
        ("bulk send -t 1h", Signal::INT, "sender"),
        ("load -z 1h --json", Signal::TERM, "\"succeeded\""),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_whimbrel"));
        let child = Running::start(command.args(words.split(' ')).stdout(Stdio::piped()));
        await_handler(child.id());
        thread::sleep(Duration::from_millis(500));
        send(child.id(), signal);
        send(child.id(), signal);
        let output = child.output();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success() && text.contains(part), "{words}: {}", output.status);
    }
}

/// An nginx in a namespace: one process, so that none is left if it is killed.
fn serve_nginx(net: &Net) -> Running {
    let folder = net.folder();
    fs::create_dir_all(folder.join("root")).unwrap();
    fs::write(folder.join("root/page"), vec![b'x'; PAGE]).unwrap();
    let path = folder.display();
    let config = format!(
        "user root; master_process off; pid {path}/pid; error_log stderr; daemon off;\n\
         events {{ worker_connections 1024; }}\n\
         http {{ access_log off; client_body_temp_path {path}/a; proxy_temp_path {path}/b;\n\
         fastcgi_temp_path {path}/c; uwsgi_temp_path {path}/d; scgi_temp_path {path}/e;\n\
         server {{ listen 0.0.0.0:8080; root {path}/root; }} }}\n"
    );
    fs::write(folder.join("nginx.conf"), config).unwrap();
    let mut command = net.command("nginx");
    command.arg("-c").arg(folder.join("nginx.conf"));
    let nginx = Running::start(command.stderr(Stdio::null()));
    await_that("nginx listens", || net.run("ss -tln").contains(":8080"));
    nginx
}

#[test]
fn load_measures_real_nginx_over_tun() {
    let Some(net) = Net::with(&["nginx", "ss"]) else { return };
    let _nginx = serve_nginx(&net);
    let whimbrel = env!("CARGO_BIN_EXE_whimbrel");
    let wire = "tun:whim1,addr=10.9.0.2/24,host=10.9.0.1";
    for (options, opened) in [("", 8), ("-K", 400), ("-K --close client", 400)] {
        let load = "load http://10.9.0.1:8080/page -n 400 -c 8 --json";
        let text = net.run(&format!("{whimbrel} {load} -w {wire} {options}"));
        let document: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(document["statuses"]["200"], 400, "{options}: {text}");
        assert_eq!(document["summary"]["body_octets"], 400 * PAGE, "{options}");
        assert_eq!(document["summary"]["failed"], 0, "{options}: {text}");
        assert_eq!(document["summary"]["connections_opened"], opened, "{options}");
    }
    let missing = "load http://10.9.0.1:8080/nothing -n 10 --json --fail-if errors>0";
    let mut command = net.command(whimbrel);
    let (code, error) = fail(command.args(missing.split(' ')).args(["-w", wire]));
    assert!(code == 3, "404 is an error: {code} {error}");
}

const PAGE: usize = 10_000;
