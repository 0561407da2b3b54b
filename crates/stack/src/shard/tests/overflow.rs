//! A full accept queue: what becomes of handshakes whose listener's application does not keep up.

use std::time::Duration;

use whimbrel_tcp::conn::State;
use whimbrel_tcp::{CloseReason, DropReason, Tunables};

use super::hosts::{Hosts, Over, client_addr, events, host, server_addr, server_at};
use crate::{Event, Handle, ListenerId};

/// Two clients of a listener whose queue holds one; both SYNs arrive before either third segment.
fn crowded(abort_on_overflow: bool) -> (Hosts, ListenerId, [Handle; 2]) {
    let server = host(server_addr, 2, &Tunables { abort_on_overflow, ..Tunables::default() });
    let mut hosts = Hosts::of(host(client_addr, 1, &Tunables::default()), server);
    let listener = hosts.listen(Over::V4, 1);
    let clients =
        [(); 2].map(|()| hosts.client.connect(server_at(Over::V4), None).expect("a free port"));
    hosts.run(Duration::from_millis(100));
    let counters = hosts.server.counters();
    assert_eq!((counters.listen_overflows, counters.listen_drops), (1, 1));
    assert_eq!(counters.dropped(DropReason::ListenOverflow), 1);
    assert_eq!((counters.syn_cache_overflows, counters.syn_cache_cookies), (0, 0));
    (hosts, listener, clients)
}

#[test]
fn full_queue_drops_third_segment_and_repeats_syn_ack() {
    let (mut hosts, listener, clients) = crowded(false);
    assert_eq!(hosts.server.census().syn_entries, 1);
    assert_eq!(hosts.client.state(clients[1]), Some(State::Established));
    let first = hosts.server.accept(listener).expect("the first");
    hosts.run(Duration::from_secs(1));
    let second = hosts.server.accept(listener).expect("the second, after its SYN-ACK was repeated");
    assert_eq!(hosts.server.counters().syn_retrans, 1);
    for (client, server) in clients.into_iter().zip([first, second]) {
        hosts.client.abort(client);
        hosts.server.abort(server);
    }
    hosts.assert_no_leaks();
}

#[test]
fn abort_on_overflow_resets_third_segment() {
    let (mut hosts, listener, clients) = crowded(true);
    assert_eq!(hosts.server.census().syn_entries, 0);
    assert!(events(&mut hosts.client).contains(&Event::Closed(clients[1], CloseReason::Reset)));
    let counters = hosts.server.counters();
    assert_eq!((counters.embryonic_resets, counters.out_rsts), (1, 1));
    let first = hosts.server.accept(listener).expect("the first");
    assert_eq!(hosts.server.accept(listener), None);
    hosts.client.abort(clients[0]);
    hosts.client.close(clients[1]);
    hosts.server.abort(first);
    hosts.assert_no_leaks();
}
