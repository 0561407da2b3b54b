//! A listing in slices, while connections come and go.

use std::collections::BTreeMap;
use std::time::Duration;
use std::vec::Vec;

use whimbrel_tcp::conn::SocketOptions;
use whimbrel_tcp::table::LatencyHistogram;
use whimbrel_udp::{Bind, Local};
use whimbrel_wire::{Endpoint, Flow};

use super::hosts::{Hosts, Over, send, server_addr, server_at};
use crate::Handle;
use crate::shard::{
    Listed, ListedPurpose, Listing, ListingDetail, ListingPlace, SocketState, StateCounts,
};

/// The whole listing of the server, with a call of `between` after each slice.
fn list(
    hosts: &mut Hosts,
    detail: ListingDetail,
    mut between: impl FnMut(&mut Hosts, usize),
) -> Vec<Listed> {
    hosts.server.set_now(hosts.now);
    let (mut place, mut all) = (Some(ListingPlace::default()), Vec::new());
    for slice in 0.. {
        let Some(from) = place else { break };
        let before = all.len();
        place = Listing::new(&hosts.server, detail).slice(from, &mut all);
        assert!(all.len() - before <= 256, "a slice of {} records", all.len() - before);
        assert!(slice < 10_000, "the listing does not end");
        between(hosts, slice);
    }
    all
}

fn flow(listed: &Listed) -> Option<Flow> {
    Some(Flow { local: listed.local, remote: listed.remote? })
}

/// The number of times that each flow appears.
fn appearances(all: &[Listed]) -> BTreeMap<Flow, usize> {
    let mut counts = BTreeMap::new();
    for flow in all.iter().filter_map(flow) {
        *counts.entry(flow).or_default() += 1;
    }
    counts
}

/// This many connections at the server, which are open.
fn connect(hosts: &mut Hosts, listener: crate::ListenerId, count: usize) -> Vec<(Handle, Handle)> {
    (0..count).map(|_| hosts.connected(Over::V4, listener)).collect()
}

fn reversed(hosts: &Hosts, client: Handle) -> Flow {
    let flow = hosts.client.flow(client).expect("a connection");
    Flow { local: flow.remote, remote: flow.local }
}

#[test]
fn every_kind_is_listed_once_with_its_timer() {
    let mut hosts = Hosts::new();
    let listener = hosts.listen(Over::V4, 8);
    hosts.server.udp_bind(&Bind::new(Local::Address(server_addr(Over::V4)), 53)).expect("free");
    let (client, server) = hosts.connected(Over::V4, listener);
    let (other, closed) = hosts.connected(Over::V4, listener);
    hosts.server.close(closed);
    hosts.run_until_quiet();
    hosts.client.close(other);
    hosts.run_until_quiet();
    hosts.lose = |_| true;
    assert_eq!(send(&mut hosts.server, server, b"text"), 4);
    hosts.run(Duration::from_millis(100));

    let all = list(&mut hosts, ListingDetail::Full, |_, _| ());
    let states: Vec<_> = all.iter().map(|it| it.state).collect();
    assert_eq!(states[..2], [Some(SocketState::Listen), None]);
    assert_eq!(all[0].queued, 8);
    let of = |state| all.iter().find(|it| it.state == Some(state)).expect("listed");
    let established = of(SocketState::Established);
    assert_eq!(flow(established), Some(reversed(&hosts, client)));
    assert_eq!(established.queued, 4);
    let purpose = established.timers[0].purpose;
    assert!(matches!(purpose, ListedPurpose::Connection(_)), "{purpose:?}");
    assert_eq!(established.snapshot.as_ref().expect("full").send_queued, 4);
    let waiting = of(SocketState::TimeWait).timers[0];
    assert_eq!(waiting.purpose, ListedPurpose::TimeWait);
    assert!(waiting.left > Duration::from_secs(18), "{:?}", waiting.left);
    assert_eq!(all.len(), 4);
    let (mut counts, mut next) = (StateCounts::default(), Some(0));
    while let Some(from) = next {
        next = Listing::new(&hosts.server, ListingDetail::Brief).count(from, &mut counts);
    }
    assert_eq!(counts, hosts.server.states());
    for (state, count) in counts.iter() {
        assert_eq!(all.iter().filter(|it| it.state == Some(state)).count(), count, "{state}");
    }
}

#[test]
fn times_of_passive_opens_are_recorded_only_on_request() {
    let mut hosts = Hosts::new();
    let listener = hosts.listen(Over::V4, 8);
    hosts.connected(Over::V4, listener);
    assert_eq!(hosts.server.latencies(), None);
    hosts.client.connect(server_at(Over::V4), None).expect("a free port");
    hosts.run(Duration::from_millis(50));
    // It waits already; the next comes to a listener that is timed.
    hosts.server.set_now(hosts.now);
    hosts.server.record_latencies();
    hosts.client.connect(server_at(Over::V4), None).expect("a free port");
    hosts.run(Duration::from_millis(400));
    hosts.server.set_now(hosts.now);
    assert!(hosts.server.accept(listener).is_some() && hosts.server.accept(listener).is_some());
    assert!(hosts.server.accept(listener).is_none());
    let latencies = hosts.server.latencies().expect("recorded");
    assert_eq!(latencies.handshake.counts().iter().sum::<u64>(), 1);
    assert!(latencies.handshake.sum() < Duration::from_millis(400));
    let bucket = LatencyHistogram::BOUNDS.partition_point(|at| *at < Duration::from_millis(400));
    assert_eq!(latencies.accept_wait.counts()[bucket], 2, "{latencies:?}");
    // A listener that begins later is timed, too, and its options change nothing of it.
    let other = Endpoint::new(server_addr(Over::V4), 81);
    let other = hosts.server.listen(other, 8).expect("free");
    hosts.server.set_listener_options(other, &SocketOptions::default());
    hosts.client.connect(Endpoint::new(server_addr(Over::V4), 81), None).expect("a free port");
    hosts.run(Duration::from_millis(400));
    assert!(hosts.server.accept(other).is_some());
    let latencies = hosts.server.latencies().expect("recorded");
    assert_eq!(latencies.handshake.counts().iter().sum::<u64>(), 2);
}

#[test]
fn half_open_entries_say_when_their_syn_ack_goes_again() {
    let mut hosts = Hosts::new();
    hosts.listen(Over::V4, 8);
    hosts.client.connect(server_at(Over::V4), None).expect("a free port");
    hosts.lose = |number| number > 1;
    hosts.run(Duration::from_millis(300));
    let all = list(&mut hosts, ListingDetail::Brief, |_, _| ());
    let entry = all.iter().find(|it| it.state == Some(SocketState::SynReceived)).expect("listed");
    assert_eq!(entry.timers[0].purpose, ListedPurpose::SynAck);
    let left = entry.timers[0].left.as_millis();
    assert!((690..=710).contains(&left), "{left} ms of the second are left after 300 ms");
}

#[test]
fn what_stays_is_listed_once_while_others_open_and_close() {
    let mut hosts = Hosts::new();
    let listener = hosts.listen(Over::V4, 4_096);
    let mut pairs = connect(&mut hosts, listener, 700);
    let stay: Vec<_> = pairs.iter().step_by(2).map(|(client, _)| *client).collect();
    let stay: Vec<_> = stay.into_iter().map(|client| reversed(&hosts, client)).collect();
    pairs = pairs.into_iter().skip(1).step_by(2).collect();
    let all = list(&mut hosts, ListingDetail::Brief, |hosts, slice| {
        let gone = pairs.drain(..pairs.len().min(40)).collect::<Vec<_>>();
        for (client, server) in gone {
            // Some enter TIME-WAIT at this side, some at the other.
            let (first, second) = (slice % 2 == 0, slice % 2 == 1);
            if first {
                hosts.server.close(server);
            }
            hosts.client.close(client);
            if second {
                hosts.server.close(server);
            }
        }
        hosts.run(Duration::from_millis(20));
        connect(hosts, listener, 30);
    });
    let counts = appearances(&all);
    for flow in &stay {
        assert_eq!(counts.get(flow), Some(&1), "{flow:?}");
    }
}

#[test]
fn what_enters_time_wait_meanwhile_is_listed() {
    let mut hosts = Hosts::new();
    let listener = hosts.listen(Over::V4, 4_096);
    let pairs = connect(&mut hosts, listener, 600);
    let flows: Vec<_> = pairs.iter().map(|(client, _)| reversed(&hosts, *client)).collect();
    let mut left = pairs.into_iter().rev().collect::<Vec<_>>();
    let all = list(&mut hosts, ListingDetail::Brief, |hosts, _| {
        for (client, server) in left.drain(..left.len().min(100)) {
            hosts.server.close(server);
            hosts.run(Duration::from_millis(5));
            hosts.client.close(client);
        }
        hosts.run(Duration::from_millis(20));
    });
    assert_eq!(hosts.server.census().time_wait, 600);
    let counts = appearances(&all);
    for flow in &flows {
        assert!(counts.contains_key(flow), "{flow:?} is missing");
    }
}

#[test]
fn listing_ends_while_more_enter_time_wait_than_it_lists() {
    let mut hosts = Hosts::new();
    let listener = hosts.listen(Over::V4, 4_096);
    let enter = |hosts: &mut Hosts, count| {
        let connect = |_| hosts.client.connect(server_at(Over::V4), None).expect("a free port");
        let clients: Vec<_> = (0..count).map(connect).collect();
        let flows: Vec<_> = clients.iter().map(|client| reversed(hosts, *client)).collect();
        hosts.run(Duration::from_millis(100));
        while let Some(server) = hosts.server.accept(listener) {
            hosts.server.close(server);
        }
        hosts.run(Duration::from_millis(100));
        clients.iter().for_each(|client| hosts.client.close(*client));
        hosts.run(Duration::from_millis(100));
        flows
    };
    let first = enter(&mut hosts, 600);
    let all = list(&mut hosts, ListingDetail::Brief, |hosts, slice| {
        assert!(slice < 60, "it never comes to the end");
        enter(hosts, 300);
    });
    let counts = appearances(&all);
    for flow in &first {
        assert_eq!(counts.get(flow), Some(&1), "{flow:?}");
    }
}

#[test]
fn records_in_time_wait_that_expire_or_thin_out_are_skipped() {
    let mut hosts = Hosts::new();
    let listener = hosts.listen(Over::V4, 4_096);
    let pairs = connect(&mut hosts, listener, 700);
    for (client, server) in &pairs {
        hosts.server.close(*server);
        hosts.client.close(*client);
    }
    hosts.run_until_quiet();
    let total = hosts.server.census().time_wait;
    assert!(total > 0, "this side closed first");
    let before = list(&mut hosts, ListingDetail::Brief, |_, _| ());
    assert_eq!(appearances(&before).len(), total);
    for flow in appearances(&before).keys().step_by(3) {
        hosts.server.abort_flow(flow);
    }
    let kept = hosts.server.census().time_wait;
    let after = list(&mut hosts, ListingDetail::Brief, |_, _| ());
    assert_eq!(appearances(&after).len(), kept);
    assert!(appearances(&after).values().all(|count| *count == 1));
}
