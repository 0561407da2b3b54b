//! Datagrams by the million between two hosts, over links that lose, delay and fragment: none arrives
//! twice, altered, or at the wrong socket, and every one that was lost is accounted for.
//!
//! `cargo test --release -p whimbrel-stack --test two_hosts datagrams` plays ten million of them.

mod world;

use world::{Traffic, World};

#[test]
fn datagram_reaches_its_socket_whole_and_once() {
    for seed in 0..8 {
        World::new(Traffic { seed, datagrams: 15_000 }).play();
    }
}

/// Ten million in two halves, side by side: a minute of two processors with optimisation.
mod long {
    use super::{Traffic, World};

    #[test]
    #[cfg_attr(debug_assertions, ignore = "it takes minutes in a debug build: give --release")]
    fn five_million_are_their_sockets_whole_and_once() {
        play(100);
    }

    #[test]
    #[cfg_attr(debug_assertions, ignore = "it takes minutes in a debug build: give --release")]
    fn five_million_others_are_their_sockets_whole_and_once() {
        play(105);
    }

    fn play(first: u64) {
        for seed in first..first + 5 {
            World::new(Traffic { seed, datagrams: 1_000_000 }).play();
        }
    }
}
