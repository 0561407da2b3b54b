//! Each row of docs/BOUNDS.md: where it is full, the one who filled it gives way, and an honest peer beside
//! it is served. Floods that are no other test's are here: ten seconds each, an honest exchange in each
//! second.

use core::time::Duration;
use std::string::String;
use std::vec::Vec;

use whimbrel_base::packet::SegMeta;
use whimbrel_tcp::conn::RouteMetrics;
use whimbrel_udp::{Bind, Local};
use whimbrel_wire::tcp::{TcpFlags, TcpOptions};
use whimbrel_wire::{Address, Endpoint, IcmpMessage, Protocol, UdpHeader};

use super::hosts::{Hosts, Over, client_addr, config, drain, host, send, server_addr};
use super::packets::{exchange, fix_checksum, fragment, packet, packet_from};
use super::refuse::segment_between;
use crate::{Answer, Handle, ListenerId, Route, RxFrame, Shard, TxBatch};
use whimbrel_tcp::Tunables;

/// What shows that a row holds under a flood.
enum Proof {
    /// A flood in this file.
    Flood(fn()),
    /// Tests elsewhere, each as `file#name`.
    Tests(&'static [&'static str]),
    /// Only its owner fills it: that connection, process or host waits.
    Own,
}

use Proof::{Flood, Own, Tests};

/// How the name of each row begins, in their order.
const ROWS: [(&str, Proof); 49] = [
    ("fragments that wait", Flood(honest_fragments_become_whole)),
    (
        "neighbours,",
        Tests(&[
            "crates/stack/src/shard/tests/ethernet/bounds.rs#the_neighbour_in_use_stays_while_a_thousand_others_come_and_go",
            "crates/stack/src/shard/tests/ethernet/bounds.rs#known_neighbour_is_served_amid_flood_of_made_up_ones",
        ]),
    ),
    (
        "packets that wait until",
        Tests(&[
            "crates/stack/src/shard/tests/ethernet/bounds.rs#question_is_not_wasted_while_made_up_neighbours_are_sought",
        ]),
    ),
    (
        "claims to be",
        Tests(&[
            "crates/stack/src/shard/tests/ethernet/states.rs#claims_in_a_stream_cost_a_few_questions_a_second_and_win_nothing",
            "crates/stack/src/shard/tests/ethernet/bounds.rs#no_neighbour_loses_its_address_without_being_asked",
        ]),
    ),
    ("text that was not read", Own),
    ("short texts", Own),
    (
        "chunks that wait",
        Tests(&[
            "crates/tcp/src/recv/chunk_pool/tests.rs#beyond_its_bound_a_pool_forgets_what_it_lent_first",
        ]),
    ),
    (
        "all that a shard holds",
        Tests(&[
            "crates/sim/tests/crowd.rs#ten_thousand_slow_readers_stay_inside_the_budget_and_a_fast_one_keeps_its_rate",
        ]),
    ),
    ("an HTTP head (", Own),
    ("an HTTP head of a response", Own),
    ("streams and frames of HTTP/2", Own),
    ("what a turn of a server does", Own),
    (
        "a capture",
        Tests(&["crates/io/tests/memory/captures.rs#states_of_flows_that_are_gone_are_forgotten"]),
    ),
    ("what travels on a link", Own),
    (
        "a trace",
        Tests(&[
            "crates/io/tests/memory/traces.rs#connections_that_went_without_a_segment_are_forgotten",
        ]),
    ),
    (
        "pages that list",
        Tests(&["crates/cli/src/serving/files/listing/tests.rs#few_pages_are_kept"]),
    ),
    (
        "lines of `--access-log`",
        Tests(&[
            "crates/cli/src/serving/access_log/tests.rs#a_stuck_disk_stalls_nobody_and_what_has_no_room_is_counted",
        ]),
    ),
    (
        "files that are sent",
        Tests(&[
            "crates/cli/tests/whimbrel/slow.rs#a_hundred_files_that_nobody_reads_take_no_descriptor_from_honest_clients",
        ]),
    ),
    ("SYNs for any destination", Flood(honest_dials_are_asked_about)),
    (
        "addresses of others",
        Tests(&[
            "crates/stack/src/shard/tests/anywhere.rs#the_address_that_has_waited_longest_goes_when_there_is_a_number_for_no_other",
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
            "crates/stack/src/shard/tests/flood.rs#under_a_flood_of_syns_clients_connect_and_memory_stays_in_its_bounds",
        ]),
    ),
    ("complete connections", Flood(full_accept_queue_leaves_other_listeners_alone)),
    (
        "handshakes of Fast Open",
        Tests(&[
            "crates/stack/src/shard/tests/fast_open.rs#beyond_the_limit_syns_are_ordinary_until_a_handshake_is_over",
        ]),
    ),
    ("records in TIME-WAIT", Flood(full_time_wait_leaves_clients_alone)),
    ("answers that wait to leave", Flood(syn_acks_leave_beside_resets)),
    ("challenge acknowledgments", Own),
    ("text that is not acknowledged", Own),
    ("what is in flight", Own),
    (
        "paths narrower than the link (",
        Tests(&[
            "crates/stack/src/ip/path_mtu/tests.rs#at_the_bound_the_destination_longest_unheard_of_is_forgotten",
            "crates/stack/src/shard/tests/icmp.rs#a_connection_finds_a_narrow_path_again_that_was_forgotten",
        ]),
    ),
    (
        "cookies of servers",
        Tests(&[
            "crates/tcp/src/table/fast_open/cache/tests.rs#at_the_bound_the_server_that_was_silent_for_longest_is_forgotten",
        ]),
    ),
    (
        "names of connections to serve",
        Tests(&[
            "crates/stack/src/shard/tests/lists.rs#connections_that_go_while_no_application_looks_are_not_listed_for_ever",
        ]),
    ),
    ("packets of a user's own", Own),
    ("packets that nothing takes", Flood(unclaimed_packets_leave_connections_alone)),
    ("what crosses between a task", Own),
    ("answers that byte servers", Own),
    (
        "connections to an iperf3 server",
        Tests(&[
            "crates/apps/tests/loads/iperf3.rs#who_keeps_connections_open_and_says_nothing_keeps_nobody_out",
        ]),
    ),
    (
        "what an iperf3 client sends",
        Tests(&[
            "crates/apps/tests/loads/iperf3.rs#garbage_and_silence_cost_a_client_its_own_connection_alone",
        ]),
    ),
    ("datagrams that wait to be received", Flood(full_socket_leaves_others_alone)),
    ("what of a connection's turn", Own),
    ("datagrams for any destination", Flood(datagrams_for_any_destination_leave_sockets_alone)),
    ("datagrams that wait to leave", Own),
    (
        "paths narrower than the link, of datagrams",
        Tests(&[
            "crates/io/tests/memory/datagrams.rs#errors_about_datagrams_leave_no_more_than_the_paths_of_the_latest",
        ]),
    ),
    (
        "paths narrower than the link, of echo replies",
        Tests(&[
            "crates/stack/src/shard/tests/echo.rs#what_is_said_of_echo_replies_holds_for_icmp_alone",
        ]),
    ),
    ("datagrams between a task", Own),
    ("sockets with descriptors", Own),
];

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
        ROWS.len(),
        "a row of docs/BOUNDS.md has no place in ROWS, or is no more"
    );
    for (row, (name, proof)) in rows.iter().zip(&ROWS) {
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
    mut beside: impl FnMut(&mut Hosts, u64),
) {
    for burst in 0..SECONDS * BURSTS {
        let packets = flood(burst as u32);
        let frames: Vec<_> = packets.iter().map(|it| RxFrame::new(it, SegMeta::SINGLE)).collect();
        hosts.server.rx(hosts.now, &frames);
        beside(hosts, burst % BURSTS);
        hosts.run(PAUSE);
    }
    hosts.server.check_invariants().expect("what must hold");
}

/// A client that connects in each second, asks and is answered: within 40 ms, a burst for each step.
#[derive(Default)]
struct Asker {
    ends: Option<(Handle, Option<Handle>)>,
    served: u64,
}

impl Asker {
    fn step(&mut self, hosts: &mut Hosts, step: u64, to: Endpoint, listener: ListenerId) {
        let now = hosts.now;
        hosts.client.tell_time(now);
        match (step, self.ends) {
            (10, _) => self.ends = hosts.client.connect(to, None).ok().map(|client| (client, None)),
            (11, Some((client, _))) => {
                let server = hosts.server.accept(listener);
                self.ends = Some((client, Some(server.expect("complete within 10 ms"))));
                send(&mut hosts.client, client, b"question");
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
    Address::from_v4_octets((0x0a01_0000 + number % 0xff_ffff).to_be_bytes())
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

/// A client with a route to everywhere, and a server that listens for any destination.
fn hosts_for_any_destination() -> (Hosts, ListenerId) {
    let everywhere = Route {
        network: Address::from_v4_octets([0; 4]),
        prefix_len: 0,
        gateway: None,
        metric: 0,
        metrics: RouteMetrics::default(),
    };
    let tunables = Tunables::default();
    let mut client = config(client_addr, 1, &tunables);
    client.routes = Vec::from([everywhere]);
    let mut server = host(server_addr, 2, &tunables);
    server.take_any_address();
    let listener = server.listen_any().expect("no other");
    (Hosts::of(Shard::new(client).expect("valid"), server), listener)
}

/// 1,600 SYNs a second, to as many destinations and then to one, all of them accepted or none; an honest dial
/// is asked about and complete within 20 ms, be it to another destination or to that one.
fn honest_dials_are_asked_about() {
    for (to_one, accepts) in [(false, false), (false, true), (true, false), (true, true)] {
        let (mut hosts, listener) = hosts_for_any_destination();
        let hole = Address::from_v4_octets([192, 0, 2, 9]);
        let syn = |number: u32| {
            let to = if to_one {
                hole
            } else {
                Address::from_v4_octets((0xcb00_0000 + number).to_be_bytes())
            };
            let from = (forged(number), 4_000);
            segment_between([from, (to, 80)], TcpFlags::SYN, [100, 0], TcpOptions::default())
        };
        let (mut dialled, mut served) = (None, 0);
        besiege(
            &mut hosts,
            |burst| (burst * 16..burst * 16 + 16).map(syn).collect(),
            |hosts, burst| {
                let own = dialled.and_then(|client| hosts.client.flow(client));
                while let Some(asked) = hosts.server.asked(listener) {
                    if accepts || own.is_some_and(|flow| flow.local == asked.flow.remote) {
                        assert!(hosts.server.answer_syn(asked.syn, Answer::Accept));
                    }
                }
                let now = hosts.now;
                hosts.client.tell_time(now);
                match burst {
                    10 => dialled = hosts.client.connect(Endpoint::new(hole, 80), None).ok(),
                    12 => {
                        let client = dialled.take().expect("a free port");
                        assert_eq!(
                            hosts.client.state(client),
                            Some(whimbrel_tcp::conn::State::Established)
                        );
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
    let listener = hosts.listen(Over::V4, 8);
    let at = Endpoint::new(server_addr(Over::V4), 80);
    let syn = |number: u32| {
        let to = (server_addr(Over::V4), 81);
        segment_between(
            [(forged(number), 4_000), to],
            TcpFlags::SYN,
            [100, 0],
            TcpOptions::default(),
        )
    };
    let mut asker = Asker::default();
    besiege(
        &mut hosts,
        |burst| (burst * 8..burst * 8 + 8).map(syn).collect(),
        |hosts, burst| asker.step(hosts, burst, at, listener),
    );
    assert_eq!(asker.served, SECONDS);
    assert!(hosts.server.counters().listen_overflows > 5_000);
}

/// 400 connections a second that the server closes first, and 64 records for them; clients are served within 40 ms.
fn full_time_wait_leaves_clients_alone() {
    let mut hosts = Hosts::with(&Tunables { max_time_wait: 64, ..Tunables::default() });
    let flooded = Endpoint::new(server_addr(Over::V4), 81);
    let many = hosts.server.listen(flooded, 64).expect("the port is free");
    let listener = hosts.listen(Over::V4, 8);
    let at = Endpoint::new(server_addr(Over::V4), 80);
    let (mut asker, mut clients) = (Asker::default(), Vec::new());
    besiege(
        &mut hosts,
        |_| Vec::new(),
        |hosts, burst| {
            let now = hosts.now;
            hosts.client.tell_time(now);
            while let Some(server) = hosts.server.accept(many) {
                hosts.server.close(server);
            }
            // Two bursts later the server has closed them.
            clients.drain(..4.min(clients.len().saturating_sub(8))).for_each(|client| {
                hosts.client.close(client);
            });
            clients.extend((0..4).map(|_| hosts.client.connect(flooded, None).expect("a port")));
            asker.step(hosts, burst, at, listener);
        },
    );
    assert_eq!(asker.served, SECONDS);
    assert!(hosts.server.counters().time_wait_overflow > 3_000);
}

/// Stray segments fill what may wait while the device takes nothing; a SYN-ACK has its place there, and
/// clients are served within 40 ms of when it takes some.
fn syn_acks_leave_beside_resets() {
    let mut hosts = Hosts::new();
    let listener = hosts.listen(Over::V4, 8);
    let at = Endpoint::new(server_addr(Over::V4), 80);
    let stray = |number: u32| {
        let to = (server_addr(Over::V4), 9);
        segment_between(
            [(forged(number), 4_000), to],
            TcpFlags::ACK,
            [100, 77],
            TcpOptions::default(),
        )
    };
    // Full, and then a SYN, before the device takes anything.
    let mut batch = TxBatch::new(64);
    (0..1_200).for_each(|number| {
        hosts.server.rx(hosts.now, &[RxFrame::new(&stray(number), SegMeta::SINGLE)]);
    });
    assert!(hosts.server.counters().replies_refused > 0);
    let client = hosts.client.connect(at, None).expect("a free port");
    hosts.client.tx(&mut batch);
    let syn = batch.pending()[0].to_vec();
    hosts.server.rx(hosts.now, &[RxFrame::new(&syn, SegMeta::SINGLE)]);
    hosts.run(PAUSE);
    assert_eq!(hosts.client.state(client), Some(whimbrel_tcp::conn::State::Established));
    let server = hosts.server.accept(listener).expect("complete");
    hosts.client.abort(client);
    hosts.server.abort(server);
    let mut asker = Asker::default();
    besiege(
        &mut hosts,
        |burst| (burst * 16..burst * 16 + 16).map(stray).collect(),
        |hosts, burst| asker.step(hosts, burst, at, listener),
    );
    assert_eq!(asker.served, SECONDS);
}

/// 16 packets in each burst that nothing takes and no application fetches; clients are served within 40 ms.
fn unclaimed_packets_leave_connections_alone() {
    let mut hosts = Hosts::new();
    hosts.server.keep_unclaimed(128);
    let listener = hosts.listen(Over::V4, 8);
    let at = Endpoint::new(server_addr(Over::V4), 80);
    let stray = packet_from(forged(1), forged(2), Protocol(200), &[7; 1_000]);
    let mut asker = Asker::default();
    besiege(
        &mut hosts,
        |_| (0..16).map(|_| stray.clone()).collect(),
        |hosts, burst| asker.step(hosts, burst, at, listener),
    );
    assert_eq!(asker.served, SECONDS);
    assert!(hosts.server.ip_counters().unclaimed_dropped > 10_000);
}

/// A datagram from a forged host to a port of the address.
fn datagram(number: u32, to: Address, port: u16, data: &[u8]) -> Vec<u8> {
    let from = forged(number);
    let mut octets = std::vec![0; data.len() + UdpHeader::LEN];
    UdpHeader { src_port: 4_000, dst_port: port }.emit_datagram(from, to, data, &mut octets);
    packet_from(from, to, Protocol::UDP, &octets)
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
