//! Datagrams by the million between two hosts, over links that lose, delay and fragment: none arrives
//! twice, altered, or at the wrong socket, and every one that was lost is accounted for.
//!
//! `scripts/long/datagrams` plays ten million of them, which is ignored here.

mod world;

use world::{Traffic, World};

#[test]
fn whatever_the_links_do_a_datagram_is_its_sockets_whole_and_once() {
    for seed in 0..8 {
        World::new(Traffic { seed, datagrams: 15_000 }).play();
    }
}

#[test]
#[ignore = "ten million datagrams: scripts/long/datagrams"]
fn ten_million_are_their_sockets_whole_and_once() {
    for seed in 100..110 {
        World::new(Traffic { seed, datagrams: 1_000_000 }).play();
    }
}
