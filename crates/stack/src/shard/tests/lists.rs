//! The lists of who is to be asked: bounded by what is there, not by what has been.

use whimbrel_tcp::Tunables;

use super::hosts::{DELAY, Hosts, Over, client_addr, drain, events, host, send, server_at};
use crate::{Event, Recv};

/// Names of connections that are gone, beyond as many as there are connections.
const SPARE: usize = 64;

#[test]
fn dirty_list_forgets_closed_connections_of_full_device() {
    let mut client = host(client_addr, 1, &Tunables::default());
    let stays = client.connect(server_at(Over::V4), None).expect("a free port");
    for _ in 0..10_000 {
        let handle = client.connect(server_at(Over::V4), None).expect("a free port");
        client.abort(handle);
        assert!(client.tcp.work.dirty.len() <= SPARE + 2, "{} listed", client.tcp.work.dirty.len());
        client.check_invariants().expect("who stays is listed");
    }
    client.abort(stays);
}

#[test]
fn event_list_forgets_closed_connections_without_reader() {
    let mut hosts = Hosts::new();
    let listener = hosts.listen(Over::V4, 8);
    for _ in 0..500 {
        let (client, server) = hosts.connected(Over::V4, listener);
        send(&mut hosts.client, client, b"text");
        hosts.run(2 * DELAY);
        assert_eq!(drain(&mut hosts.server, server), (b"text".to_vec(), Recv::Pending));
        // It was not asked what is new.
        hosts.server.abort(server);
        hosts.client.abort(client);
        hosts.run_until_quiet();
        for shard in [&hosts.client, &hosts.server] {
            let listed = shard.tcp.work.events.len();
            assert!(listed <= SPARE + 1 + 2 * shard.census().connections, "{listed} listed");
        }
    }
    assert_eq!(events(&mut hosts.server), [Event::Accepted(listener)], "one word of 500 that came");
    let (client, server) = hosts.connected(Over::V4, listener);
    assert_eq!(events(&mut hosts.server), [Event::Accepted(listener)], "and a word of the next");
    hosts.client.abort(client);
    hosts.server.abort(server);
    hosts.assert_no_leaks();
}
