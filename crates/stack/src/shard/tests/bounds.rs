//! Each row of docs/BOUNDS.md: where it is full, the one who filled it gives way, and an honest peer is served.
//! Floods that are no other test's are here: ten seconds each, an honest exchange in each second.

use core::iter;
use core::time::Duration;
use std::string::String;
use std::vec::Vec;

use bytes::Bytes;
use whimbrel_base::Instant;
use whimbrel_base::packet::SegMeta;
use whimbrel_tcp::Tunables;
use whimbrel_tcp::conn::{RouteMetrics, SocketOptions, State};
use whimbrel_udp::{Bind, Local};
use whimbrel_wire::tcp::{FastOpen, TcpFlags, TcpOptions};
use whimbrel_wire::{Address, Endpoint, IcmpMessage, Mss, Protocol, UdpHeader};

use super::hosts::{
    Hosts, Over, Wire, client_addr, config, drain, events, host, send, server_addr, server_at,
};
use super::packets::{exchange, fix_checksum, fragment, packet, packet_from, sent, tcp, too_big};
use super::refuse::segment_between;
use crate::{Answer, Event, Handle, ListenerId, Route, RxFrame, SendTo, Shard};

/// The proof that a row holds under a flood.
enum Proof {
    /// A flood in this file.
    Flood(fn()),
    /// Tests elsewhere, each as `file#name`.
    Tests(&'static [&'static str]),
    /// Only its owner fills it: that connection, process or host waits.
    Own,
}

use Proof::{Flood, Own, Tests};
use programs::PROGRAM_ROWS;

mod programs;

/// The beginnings of the rows' names, in their order.
const ROWS: [(&str, Proof); 53] = [
    ("fragments that wait", Flood(honest_fragments_become_whole)),
    (
        "neighbours,",
        Tests(&[
            "crates/stack/src/shard/tests/ethernet/bounds.rs#neighbour_in_use_outlives_a_thousand_others",
            "crates/stack/src/shard/tests/ethernet/bounds.rs#known_neighbour_is_served_amid_flood_of_made_up_ones",
        ]),
    ),
    (
        "packets that wait until",
        Tests(&[
            "crates/stack/src/shard/tests/ethernet/bounds.rs#known_neighbour_is_served_amid_flood_of_made_up_ones",
            "crates/stack/src/shard/tests/ethernet/bounds.rs#question_is_not_wasted_while_made_up_neighbours_are_sought",
        ]),
    ),
    (
        "claims to be",
        Tests(&[
            "crates/stack/src/shard/tests/ethernet/states.rs#stream_of_claims_costs_few_questions_and_wins_nothing",
            "crates/stack/src/shard/tests/ethernet/bounds.rs#no_neighbour_loses_its_address_without_being_asked",
        ]),
    ),
    ("text that was not read", Own),
    ("short texts", Own),
    ("paced text", Own),
    (
        "chunks that wait",
        Tests(&[
            "crates/tcp/src/recv/chunk_pool/tests.rs#reader_has_chunks_amid_flood_of_text_that_is_held",
        ]),
    ),
    (
        "all that a shard holds",
        Tests(&[
            "tools/sim/tests/crowd.rs#slow_readers_stay_within_budget_and_fast_one_keeps_rate",
        ]),
    ),
    ("an HTTP head (", Own),
    ("an HTTP head of a response", Own),
    (
        "streams and frames of HTTP/2",
        Tests(&[
            "tools/cli/src/serving/h2/tests/bounds.rs#honest_client_is_answered_amid_connections_that_take_nothing",
        ]),
    ),
    (
        "what a turn of a server does",
        Tests(&[
            "tools/apps/src/http/server/tests.rs#cheap_request_waits_for_one_long_answer_at_most",
            "tools/cli/src/serving/h2/tests.rs#each_page_takes_a_separate_turn",
        ]),
    ),
    (
        "a capture",
        Tests(&[
            "crates/io/tests/memory/captures.rs#flood_of_flows_leaves_state_of_connection_that_is_there",
            "crates/io/tests/memory/captures.rs#states_of_flows_that_are_gone_are_forgotten",
        ]),
    ),
    (
        "what travels on a link",
        Tests(&["crates/link/src/link/tests.rs#small_packets_arrive_amid_flood_that_fills_link"]),
    ),
    (
        "a trace",
        Tests(&[
            "crates/io/tests/memory/traces.rs#flood_of_connections_leaves_trace_of_one_that_is_there",
            "crates/io/tests/memory/traces.rs#connections_that_went_without_a_segment_are_forgotten",
        ]),
    ),
    (
        "pages that list",
        Tests(&[
            "tools/cli/src/serving/files/listing/tests.rs#page_in_use_is_kept_amid_flood_of_others",
            "tools/cli/src/serving/files/listing/tests.rs#few_pages_are_kept",
        ]),
    ),
    (
        "lines of `--access-log`",
        Tests(&[
            "tools/cli/src/serving/access_log/tests.rs#lines_of_honest_client_are_written_amid_flood",
            "tools/cli/src/serving/access_log/tests.rs#stuck_disk_stalls_no_request_and_lost_lines_are_counted",
        ]),
    ),
    (
        "files that are sent",
        Tests(&[
            "tools/cli/tests/whimbrel/slow.rs#hundred_unread_files_leave_descriptors_for_others",
        ]),
    ),
    ("SYNs for any destination", Flood(honest_dials_are_asked_about)),
    (
        "addresses of others",
        Tests(&[
            "crates/stack/src/shard/tests/any_destination.rs#connection_keeps_its_address_amid_flood_of_others",
        ]),
    ),
    ("packets of a host to itself", Own),
    ("a host's own addresses", Own),
    ("echo requests that are under way", Own),
    (
        "dials between a shard",
        Tests(&[
            "crates/whimbrel/tests/tokio_types/any.rs#dials_to_a_black_hole_delay_no_other_destination",
        ]),
    ),
    (
        "half-open entries",
        Tests(&[
            "crates/stack/src/shard/tests/flood.rs#syn_flood_lets_clients_connect_within_bounds",
        ]),
    ),
    ("complete connections", Flood(full_accept_queue_leaves_other_listeners_alone)),
    ("handshakes of Fast Open", Flood(full_fast_open_leaves_ordinary_handshake)),
    ("records in TIME-WAIT", Flood(full_time_wait_leaves_clients_alone)),
    ("answers that wait to leave", Flood(syn_acks_leave_beside_resets)),
    ("challenge acknowledgments", Flood(challenged_connection_goes_on)),
    ("text that is not acknowledged", Own),
    ("what is in flight", Own),
    ("paths narrower than the link (", Flood(narrow_path_of_segments_stays_known)),
    (
        "cookies of servers",
        Tests(&[
            "crates/tcp/src/table/fast_open/cache/tests.rs#server_in_use_keeps_its_cookie_amid_flood_of_others",
        ]),
    ),
    ("names of connections to serve", Flood(gone_connections_leave_room_in_lists)),
    (
        "packets of a user's own",
        Tests(&[
            "crates/whimbrel/tests/tokio_types/packets.rs#connection_goes_on_beside_flood_of_its_device",
        ]),
    ),
    ("packets that nothing takes", Flood(unclaimed_packets_leave_connections_alone)),
    ("what crosses between a task", Own),
    ("answers that byte servers", Own),
    (
        "connections to an iperf3 server",
        Tests(&["tools/apps/tests/loads/iperf3.rs#silent_connections_give_way_to_new_ones"]),
    ),
    (
        "what an iperf3 client sends",
        Tests(&[
            "tools/apps/tests/loads/iperf3.rs#garbage_and_silence_cost_a_client_its_own_connection_alone",
        ]),
    ),
    ("datagrams that wait to be received", Flood(full_socket_leaves_others_alone)),
    ("what of a connection's turn", Own),
    ("datagrams for any destination", Flood(datagrams_for_any_destination_leave_sockets_alone)),
    ("datagrams that wait to leave", Own),
    ("paths narrower than the link, of datagrams", Flood(narrow_path_of_datagrams_is_found_again)),
    ("paths narrower than the link, by probes", Tests(&[FINDINGS_AGE])),
    (
        "paths narrower than the link, of echo replies",
        Flood(narrow_path_of_echo_replies_is_found_again),
    ),
    (
        "datagrams between a task",
        Tests(&[
            "crates/whimbrel/tests/tokio_types/udp.rs#socket_is_served_beside_flood_of_another",
        ]),
    ),
    (
        "sockets with descriptors",
        Tests(&["tools/posix/src/tests/errors.rs#client_is_served_while_all_descriptors_are_used"]),
    ),
    (
        "data between clients",
        Tests(&[
            "tools/apps/src/relay/tests.rs#endless_senders_hold_one_piece_each_and_delay_by_one_turn",
            "tools/apps/src/relay/tests.rs#silent_client_of_ended_server_is_closed_after_60_s",
        ]),
    ),
    (
        "connections that wait for a server",
        Tests(&["tools/cli/tests/whimbrel/forward.rs#full_backlog_is_tried_again_for_5_s"]),
    ),
];

const FINDINGS_AGE: &str =
    "crates/stack/src/shard/tests/mtu_search.rs#findings_age_are_replaced_and_can_be_forgotten";

/// A file of the repository.
#[allow(clippy::disallowed_methods, reason = "a document is held to what is tested")]
fn file(path: &str) -> String {
    let path = std::format!("{}/../../{path}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn each_row_of_bounds_is_served_under_flood() {
    let document = file("docs/BOUNDS.md");
    let rows: Vec<Vec<&str>> = document
        .lines()
        .filter(|line| line.starts_with("| ") && !line.starts_with("| queue"))
        .map(|line| line.trim_matches('|').split(" | ").map(str::trim).collect())
        .collect();
    assert_eq!(
        rows.len(),
        ROWS.len() + PROGRAM_ROWS.len(),
        "a row of docs/BOUNDS.md has no place in ROWS, or is no more"
    );
    for (row, (name, proof)) in rows.iter().zip(ROWS.iter().chain(&PROGRAM_ROWS)) {
        assert!(row[0].starts_with(name), "{} is where {name} was: see ROWS", row[0]);
        assert_eq!(row.len(), 6, "{name}: a cell more or less than the head has");
        assert!(!row[3].is_empty(), "{name}: who gives way?");
        match proof {
            Flood(flood) => flood(),
            Tests(tests) => tests.iter().for_each(|test| assert_exists(test)),
            Own => {}
        }
    }
}

fn assert_exists(test: &str) {
    let (path, name) = test.split_once('#').expect("a file and a name");
    assert!(file(path).contains(&std::format!("fn {name}(")), "{path} has no test {name}");
}

const SECONDS: u64 = 10;
/// Bursts in each second, and the time between two.
const BURSTS: u64 = 100;
const PAUSE: Duration = Duration::from_millis(10);

/// Ten seconds of a flood. Each of its bursts reaches the server at once, and then `beside` is called with
/// the number of the burst in its second, and time goes on.
fn besiege(
    hosts: &mut Hosts,
    mut flood: impl FnMut(u32) -> Vec<Vec<u8>>,
    mut meanwhile: impl FnMut(&mut Hosts, u64),
) {
    for burst in 0..SECONDS * BURSTS {
        arrive(&mut hosts.server, hosts.now, &flood(burst as u32));
        meanwhile(hosts, burst % BURSTS);
        hosts.run(PAUSE);
    }
    hosts.server.check_invariants().expect("what must hold");
}

fn arrive(server: &mut Shard, now: Instant, packets: &[Vec<u8>]) {
    let frames: Vec<_> = packets.iter().map(|it| RxFrame::new(it, SegMeta::SINGLE)).collect();
    server.rx(now, &frames);
}

/// A client is served in each second of a flood, at a listener of its own.
fn besiege_asker(hosts: &mut Hosts, flood: impl FnMut(u32) -> Vec<Vec<u8>>) {
    let mut asker = Asker::of(hosts.listen(Over::V4, 8));
    besiege(hosts, flood, |hosts, burst| asker.step(hosts, burst));
    assert_eq!(asker.served, SECONDS);
}

/// A client that connects in each second, asks and is answered: within 40 ms, a burst for each step.
struct Asker {
    listener: ListenerId,
    ends: Option<(Handle, Option<Handle>)>,
    /// The rest of the client's text.
    question: Bytes,
    served: u64,
}

impl Asker {
    fn of(listener: ListenerId) -> Self {
        Self { listener, ends: None, question: Bytes::new(), served: 0 }
    }

    fn step(&mut self, hosts: &mut Hosts, step: u64) {
        let now = hosts.now;
        hosts.client.set_now(now);
        match (step, self.ends) {
            (10, _) => {
                self.question = Bytes::from_static(b"question");
                let (to, options) = (server_at(Over::V4), SocketOptions::default());
                // Without a cookie it is as any other.
                let client = hosts.client.connect_fast(to, None, &options, &mut self.question);
                self.ends = client.ok().map(|client| (client, None));
            }
            (11, Some((client, _))) => {
                let own = hosts.client.flow(client).expect("open").local;
                let server = &mut hosts.server;
                let mut accepted = iter::from_fn(|| {
                    let accepted = server.accept(self.listener)?;
                    Some((accepted, server.flow(accepted)?.remote))
                });
                let accepted = accepted.find(|(_, peer)| *peer == own).map(|it| it.0);
                self.ends = Some((client, Some(accepted.expect("complete within 10 ms"))));
                if !self.question.is_empty() {
                    hosts.client.send(client, &mut self.question).expect("it is open");
                }
            }
            (12, Some((_, Some(server)))) => {
                assert_eq!(drain(&mut hosts.server, server).0, b"question");
                send(&mut hosts.server, server, b"answer");
            }
            (13, Some((client, Some(server)))) => {
                assert_eq!(drain(&mut hosts.client, client).0, b"answer");
                self.served += 1;
                hosts.client.abort(client);
                hosts.server.abort(server);
            }
            _ => {}
        }
    }
}

/// The address of this number, of a network that no host here is in.
fn forged(number: u32) -> Address {
    Address::from_v4_bytes((0x0a01_0000 + number % 0xff_ffff).to_be_bytes())
}

/// A segment of the forged host of this number.
fn segment(number: u32, to: (Address, u16), flags: TcpFlags, numbers: [u32; 2]) -> Vec<u8> {
    segment_between([(forged(number), 4_000), to], flags, numbers, TcpOptions::default())
}

fn syn(number: u32, to: (Address, u16)) -> Vec<u8> {
    segment(number, to, TcpFlags::SYN, [100, 0])
}

/// 23 forged first fragments a second, after 256 at once; an honest echo of 2,000 bytes in two pieces, 5 ms
/// apart, is answered each time.
fn honest_fragments_become_whole() {
    let junk = |number: u32| {
        let whole = packet_from(forged(number), server_addr(Over::V4), Protocol::ICMP, &[0; 16]);
        let mut piece = fragment(&whole, number, 0..8);
        fix_checksum(&mut piece);
        piece
    };
    let mut message = [0; 2_000];
    IcmpMessage::EchoRequest { identifier: 5, sequence: 9, data: &[7; 1_992] }.emit(&mut message);
    let whole = packet(Over::V4, Protocol::ICMP, &message);
    let mut hosts = Hosts::new();
    (0..256).for_each(|number| drop(exchange(&mut hosts.server, hosts.now, &junk(number))));
    let mut answered = 0;
    besiege(
        &mut hosts,
        |burst| if burst % 4 == 0 { Vec::from([junk(256 + burst)]) } else { Vec::new() },
        |hosts, burst| {
            if burst % 10 == 0 {
                let pieces =
                    [0..1_000, 1_000..2_000].map(|range| fragment(&whole, burst as u32 + 7, range));
                assert!(exchange(&mut hosts.server, hosts.now, &pieces[0]).is_empty());
                hosts.run(Duration::from_millis(5));
                exchange(&mut hosts.server, hosts.now, &junk(90_000 + burst as u32));
                answered +=
                    u64::from(!exchange(&mut hosts.server, hosts.now, &pieces[1]).is_empty());
            }
        },
    );
    assert_eq!(answered, SECONDS * 10);
    assert!(
        hosts.server.census().fragmented == 256
            && hosts.server.ip_counters().reassembly_evicted > 0
    );
}

/// A host with a route to everywhere.
fn host_of_everywhere(addr: fn(Over) -> Address, seed: u64) -> Shard {
    let mut config = config(addr, seed, &Tunables::default());
    config.routes.push(Route {
        network: Address::from_v4_bytes([0; 4]),
        prefix_len: 0,
        gateway: None,
        metric: 0,
        metrics: RouteMetrics::default(),
    });
    Shard::new(config).expect("valid")
}

/// A client with a route to everywhere, and a server that listens for any destination.
fn hosts_for_any_destination() -> (Hosts, ListenerId) {
    let mut server = host(server_addr, 2, &Tunables::default());
    server.take_any_address();
    let listener = server.listen_any().expect("no other");
    (Hosts::of(host_of_everywhere(client_addr, 1), server), listener)
}

/// 1,600 SYNs a second, to as many destinations and then to one, all of them accepted or none; an honest dial
/// is asked about and complete within 20 ms, be it to another destination or to that one.
fn honest_dials_are_asked_about() {
    for (to_one, accepts) in [(false, false), (false, true), (true, false), (true, true)] {
        let (mut hosts, listener) = hosts_for_any_destination();
        let hole = Address::from_v4_bytes([192, 0, 2, 9]);
        let dial = |number: u32| {
            let other = Address::from_v4_bytes((0xcb00_0000 + number).to_be_bytes());
            syn(number, (if to_one { hole } else { other }, 80))
        };
        let (mut dialled, mut served) = (None, 0);
        besiege(
            &mut hosts,
            |burst| (burst * 16..burst * 16 + 16).map(dial).collect(),
            |hosts, burst| {
                let own = dialled.and_then(|client| hosts.client.flow(client));
                while let Some(asked) = hosts.server.asked(listener) {
                    if accepts || own.is_some_and(|flow| flow.local == asked.flow.remote) {
                        assert!(hosts.server.answer_syn(asked.syn, Answer::Accept));
                    }
                }
                let now = hosts.now;
                hosts.client.set_now(now);
                match burst {
                    10 => dialled = hosts.client.connect(Endpoint::new(hole, 80), None).ok(),
                    12 => {
                        let client = dialled.take().expect("a free port");
                        assert_eq!(hosts.client.state(client), Some(State::Established));
                        served += 1;
                        hosts.client.abort(client);
                    }
                    _ => {}
                }
            },
        );
        assert_eq!(served, SECONDS, "{to_one} {accepts}");
        let counters = hosts.server.counters();
        let gave_way = if to_one { counters.verdict_crowded } else { counters.verdict_overflows };
        assert!(gave_way > 10_000, "{gave_way}");
    }
}

/// A listener whose application accepts nothing is full; at another port clients are served within 40 ms.
fn full_accept_queue_leaves_other_listeners_alone() {
    let mut hosts = Hosts::new();
    let full = Endpoint::new(server_addr(Over::V4), 81);
    hosts.server.listen(full, 8).expect("the port is free");
    for _ in 0..9 {
        hosts.client.connect(full, None).expect("a free port");
    }
    hosts.run(PAUSE);
    let to = (server_addr(Over::V4), 81);
    besiege_asker(&mut hosts, |burst| (burst * 8..burst * 8 + 8).map(|it| syn(it, to)).collect());
    assert!(hosts.server.counters().listen_overflows > 5_000);
}

/// 400 connections a second that the server closes first, and 64 records for them; clients are served within 40 ms.
fn full_time_wait_leaves_clients_alone() {
    let mut hosts = Hosts::with(&Tunables { max_time_wait: 64, ..Tunables::default() });
    let flooded = Endpoint::new(server_addr(Over::V4), 81);
    let many = hosts.server.listen(flooded, 64).expect("the port is free");
    let mut asker = Asker::of(hosts.listen(Over::V4, 8));
    let mut clients = Vec::new();
    besiege(
        &mut hosts,
        |_| Vec::new(),
        |hosts, burst| {
            let now = hosts.now;
            hosts.client.set_now(now);
            while let Some(server) = hosts.server.accept(many) {
                hosts.server.close(server);
            }
            // Two bursts later the server has closed them.
            clients.drain(..4.min(clients.len().saturating_sub(8))).for_each(|client| {
                hosts.client.close(client);
            });
            clients.extend((0..4).map(|_| hosts.client.connect(flooded, None).expect("a port")));
            asker.step(hosts, burst);
        },
    );
    assert_eq!(asker.served, SECONDS);
    assert!(hosts.server.counters().time_wait_overflow > 3_000);
}

/// 800 SYNs a second with a valid cookie, of which none is followed up, where eight may open connections and
/// there is room for all handshakes. A client's text is answered meanwhile, after an ordinary handshake.
fn full_fast_open_leaves_ordinary_handshake() {
    let mut hosts = Hosts::new();
    let listener = hosts.listen(Over::V4, 16_384);
    hosts.server.set_fast_open(listener, 8);
    let mut asker = Asker::of(listener);
    // The client gets a cookie, as does who floods.
    for step in 10..14 {
        asker.step(&mut hosts, step);
        hosts.run(PAUSE);
    }
    assert!(hosts.client.knows_fast_open_cookie(None, &server_at(Over::V4)));
    let fast = |port: u16, option| {
        let options = TcpOptions { fast_open: Some(option), ..TcpOptions::default() };
        let ends = [(forged(1), port), (server_addr(Over::V4), 80)];
        segment_between(ends, TcpFlags::SYN, [100, 0], options)
    };
    let granted = exchange(&mut hosts.server, hosts.now, &fast(9, FastOpen::REQUEST));
    let cookie = tcp(&granted[0]).0.options.fast_open.expect("a cookie");
    besiege(
        &mut hosts,
        |burst| (0..8).map(|it| fast((1_024 + burst * 8 + it) as u16, cookie)).collect(),
        |hosts, burst| {
            assert_eq!(hosts.server.census().fast_opens, 8);
            asker.step(hosts, burst);
        },
    );
    assert_eq!(asker.served, 1 + SECONDS);
    let counters = hosts.server.counters();
    // All but the eight that are in such a handshake, and no other bound was met.
    assert!(counters.fast_open_listen_overflows >= 7_992, "{counters:?}");
    assert_eq!((counters.cookies_sent, counters.listen_overflows), (0, 0));
}

/// 800 forged SYNs a second within a connection; what it asks is answered within 20 ms, and few of them are.
fn challenged_connection_goes_on() {
    let mut hosts = Hosts::new();
    let listener = hosts.listen(Over::V4, 8);
    let (client, server) = hosts.connected(Over::V4, listener);
    let flow = hosts.server.flow(server).expect("open");
    let ends = [flow.remote, flow.local].map(|end| (end.addr, end.port));
    let mut served = 0;
    besiege(
        &mut hosts,
        |burst| {
            let forged = |it| {
                let numbers = [burst * 8 + it, 0];
                segment_between(ends, TcpFlags::SYN, numbers, TcpOptions::default())
            };
            (0..8).map(forged).collect()
        },
        |hosts, burst| {
            let now = hosts.now;
            hosts.client.set_now(now);
            hosts.server.set_now(now);
            match burst {
                10 => _ = send(&mut hosts.client, client, b"question"),
                11 => {
                    assert_eq!(drain(&mut hosts.server, server).0, b"question");
                    send(&mut hosts.server, server, b"answer");
                }
                12 => {
                    assert_eq!(drain(&mut hosts.client, client).0, b"answer");
                    served += 1;
                }
                _ => {}
            }
        },
    );
    assert_eq!(served, SECONDS);
    let counters = hosts.server.counters();
    assert!(counters.challenge_acks <= 10 + 2 * SECONDS, "{counters:?}");
    assert!(counters.challenge_acks_skipped > 7_900, "{counters:?}");
}

/// In each burst 24 connections of the client's are refused and 150 given up before their SYN left, and no
/// application looks. Its one connection that is answered has its SYN sent at once, and its event is reported.
fn gone_connections_leave_room_in_lists() {
    let mut hosts = Hosts::new();
    let mut asker = Asker::of(hosts.listen(Over::V4, 8));
    let (closed, mut refused, mut told) = (Endpoint::new(server_addr(Over::V4), 9), Vec::new(), 0);
    besiege(
        &mut hosts,
        |_| Vec::new(),
        |hosts, burst| {
            if burst == 13 {
                let own = asker.ends.map(|(client, _)| Event::Connected(client));
                told += events(&mut hosts.client).iter().filter(|it| Some(**it) == own).count();
            }
            asker.step(hosts, burst);
            refused.drain(..).for_each(|it| hosts.client.abort(it));
            let mut dial = || hosts.client.connect(closed, None).expect("a free port");
            refused.extend((0..24).map(|_| dial()));
            for _ in 0..150 {
                let given_up = hosts.client.connect(closed, None).expect("a free port");
                hosts.client.abort(given_up);
            }
            let lists = &hosts.client.tcp.work;
            assert!(lists.dirty.len() <= 250 && lists.events.len() <= 250, "{lists:?}");
        },
    );
    assert_eq!((asker.served, told as u64), (SECONDS, SECONDS));
}

/// Destinations that are heard of before a siege of paths, as many as are remembered.
const PATHS: u32 = 4_096;

/// The server dials 200 destinations a second, each with a report of a narrow path; a client behind a narrow path
/// has 4,000 bytes within 40 ms, and its path is remembered once it was found.
fn narrow_path_of_segments_stays_known() {
    let mut hosts =
        Hosts::of(host(client_addr, 1, &Tunables::default()), host_of_everywhere(server_addr, 2));
    hosts.wire = Wire::Narrow(600);
    let listener = hosts.listen(Over::V4, 8);
    let dial = |server: &mut Shard, now, number| {
        server.set_now(now);
        let to = Endpoint::new(forged(number), 80);
        let dialled = server.connect(to, None).expect("a free port");
        let syn = tcp(&sent(server)[0]).0;
        let ends = [(to.addr, 80), (server_addr(Over::V4), syn.src_port)];
        let options = TcpOptions { mss: Some(Mss::new(1_460)), ..TcpOptions::default() };
        let numbers = [100, syn.seq.raw().wrapping_add(1)];
        exchange(server, now, &segment_between(ends, TcpFlags::SYN_ACK, numbers, options));
        send(server, dialled, &[7; 1_460]);
        let full = sent(server);
        arrive(server, now, &[too_big(&full[0], 1_300)]);
        assert_eq!(server.path_mtu(&to.addr), Some(1_300));
        server.abort(dialled);
        sent(server);
    };
    (0..PATHS).for_each(|number| dial(&mut hosts.server, hosts.now, number));
    let (mut number, mut ends, mut served) = (PATHS, None, 0);
    besiege(
        &mut hosts,
        |_| Vec::new(),
        |hosts, burst| {
            match (burst, ends) {
                (10, _) => {
                    let (client, server) = hosts.connected(Over::V4, listener);
                    send(&mut hosts.server, server, &[7; 4_000]);
                    ends = Some((client, server));
                }
                (14, Some((client, server))) => {
                    assert_eq!(drain(&mut hosts.client, client).0, [7; 4_000]);
                    assert_eq!(hosts.server.path_mtu(&client_addr(Over::V4)), Some(600));
                    served += 1;
                    hosts.client.abort(client);
                    hosts.server.abort(server);
                }
                _ => {}
            }
            // What waits to leave is for the wire.
            hosts.run(Duration::ZERO);
            for _ in 0..2 {
                dial(&mut hosts.server, hosts.now, number);
                number += 1;
            }
        },
    );
    assert_eq!(served, SECONDS);
}

/// 800 errors a second about what the server is said to have sent to as many hosts. What it sends in each second
/// to one behind a narrow path has that path's size from the first error about it on.
fn besiege_paths(
    hosts: &mut Hosts,
    sends_to: impl Fn(Address) -> Vec<u8>,
    asks: impl Fn(&mut Hosts) -> Vec<Vec<u8>>,
) {
    let error = |number| too_big(&sends_to(forged(number)), 1_300);
    arrive(&mut hosts.server, hosts.now, &(0..PATHS).map(error).collect::<Vec<_>>());
    let longest = |packets: &[Vec<u8>]| packets.iter().map(Vec::len).max();
    let (mut found, mut served) = (0, 0);
    besiege(
        hosts,
        |burst| (PATHS + burst * 8..PATHS + burst * 8 + 8).map(error).collect(),
        |hosts, burst| match burst {
            10 => {
                let packets = asks(hosts);
                if longest(&packets) > Some(1_000) {
                    found += 1;
                    arrive(&mut hosts.server, hosts.now, &[too_big(&packets[0], 1_000)]);
                }
            }
            14 => served += u64::from(longest(&asks(hosts)).is_some_and(|it| it <= 1_000)),
            _ => {}
        },
    );
    assert_eq!(served, SECONDS);
    assert!((1..=SECONDS / 2).contains(&found), "remembered for 4,096 others: found {found} times");
}

fn narrow_path_of_echo_replies_is_found_again() {
    let reply = |to| {
        let mut message = [0; 1_400];
        let data = &[7; 1_392];
        IcmpMessage::EchoReply { identifier: 5, sequence: 9, data }.emit(&mut message);
        packet_from(server_addr(Over::V4), to, Protocol::ICMP, &message)
    };
    let mut message = [0; 1_400];
    let data = &[7; 1_392];
    IcmpMessage::EchoRequest { identifier: 5, sequence: 9, data }.emit(&mut message);
    let request = packet(Over::V4, Protocol::ICMP, &message);
    let mut hosts = Hosts::new();
    besiege_paths(&mut hosts, reply, |hosts| exchange(&mut hosts.server, hosts.now, &request));
}

fn narrow_path_of_datagrams_is_found_again() {
    let datagram = |to| {
        let mut segment = std::vec![0; 1_400];
        let from = server_addr(Over::V4);
        UdpHeader { src_port: 53, dst_port: 4_000 }.emit_datagram(
            from,
            to,
            &[7; 1_392],
            &mut segment,
        );
        packet_from(from, to, Protocol::UDP, &segment)
    };
    let mut hosts = Hosts::new();
    let socket = hosts.server.udp_bind(&Bind::new(Local::Both, 53)).expect("a free port");
    besiege_paths(&mut hosts, datagram, |hosts| {
        hosts.server.set_now(hosts.now);
        let to = Endpoint::new(client_addr(Over::V4), 4_000);
        let text = Bytes::from_static(&[7; 1_392]);
        hosts.server.udp_send(socket, text, &SendTo::peer(to)).expect("sent");
        sent(&mut hosts.server)
    });
}

/// Stray segments fill what may wait while the device takes nothing; a SYN-ACK has its place there, and
/// clients are served within 40 ms of when it takes some.
fn syn_acks_leave_beside_resets() {
    let mut hosts = Hosts::new();
    let stray = |number| segment(number, (server_addr(Over::V4), 9), TcpFlags::ACK, [100, 77]);
    let at = Endpoint::new(server_addr(Over::V4), 81);
    let listener = hosts.server.listen(at, 8).expect("the port is free");
    // Full, and then a SYN, before the device takes anything.
    arrive(&mut hosts.server, hosts.now, &(0..1_200).map(stray).collect::<Vec<_>>());
    assert!(hosts.server.counters().replies_refused > 0);
    let client = hosts.client.connect(at, None).expect("a free port");
    arrive(&mut hosts.server, hosts.now, &sent(&mut hosts.client));
    hosts.run(PAUSE);
    assert_eq!(hosts.client.state(client), Some(State::Established));
    let server = hosts.server.accept(listener).expect("complete");
    hosts.client.abort(client);
    hosts.server.abort(server);
    besiege_asker(&mut hosts, |burst| (burst * 16..burst * 16 + 16).map(stray).collect());
}

/// 16 packets in each burst that nothing takes and no application fetches; clients are served within 40 ms.
fn unclaimed_packets_leave_connections_alone() {
    let mut hosts = Hosts::new();
    hosts.server.keep_unclaimed(128);
    let stray = packet_from(forged(1), forged(2), Protocol(200), &[7; 1_000]);
    besiege_asker(&mut hosts, |_| (0..16).map(|_| stray.clone()).collect());
    assert!(hosts.server.ip_counters().unclaimed_dropped > 10_000);
}

/// A datagram from a forged host to a port of the address.
fn datagram(number: u32, to: Address, port: u16, data: &[u8]) -> Vec<u8> {
    let from = forged(number);
    let mut bytes = std::vec![0; data.len() + UdpHeader::LEN];
    UdpHeader { src_port: 4_000, dst_port: port }.emit_datagram(from, to, data, &mut bytes);
    packet_from(from, to, Protocol::UDP, &bytes)
}

/// In each second a datagram to port 54 is there at once, while 1,600 of 1,000 bytes reach `to`.
fn flood_of_datagrams(hosts: &mut Hosts, to: (Address, u16)) {
    let socket = hosts.server.udp_bind(&Bind::new(Local::Both, 54)).expect("a free port");
    let mut served = 0;
    besiege(
        hosts,
        |burst| (0..16).map(|at| datagram(burst * 16 + at, to.0, to.1, &[7; 1_000])).collect(),
        |hosts, burst| {
            if burst == 10 {
                let honest = datagram(1, server_addr(Over::V4), 54, b"query");
                exchange(&mut hosts.server, hosts.now, &honest);
                let received = hosts.server.udp_recv(socket);
                served += u64::from(received.is_some());
            }
        },
    );
    assert_eq!(served, SECONDS);
}

fn full_socket_leaves_others_alone() {
    let mut hosts = Hosts::new();
    hosts.server.udp_bind(&Bind::new(Local::Both, 53)).expect("a free port");
    flood_of_datagrams(&mut hosts, (server_addr(Over::V4), 53));
}

fn datagrams_for_any_destination_leave_sockets_alone() {
    let mut hosts = Hosts::new();
    hosts.server.take_any_address();
    hosts.server.udp_bind_any().expect("no other");
    flood_of_datagrams(&mut hosts, (forged(9), 53));
}
