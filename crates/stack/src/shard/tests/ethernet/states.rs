//! Each state of a neighbour, and what leads out of it.

use std::time::Duration;
use std::vec::Vec;

use whimbrel_wire::MacAddress;
use whimbrel_wire::ndp::NeighborFlags;

use super::super::hosts::{BOTH, Over};
use super::station::{Host, Sent, address, advertises, announces, answers, asks, station};
use crate::link::neighbours::NeighbourState::{Delay, Incomplete, Probe, Reachable, Stale};

const OTHER: MacAddress = MacAddress([6, 6, 6, 6, 6, 6]);

#[test]
fn packet_waits_until_unknown_neighbour_answers() {
    for over in BOTH {
        let mut host = Host::new();
        assert_eq!(host.ping(over, 9), [Sent::Ask(address(over, 9), None)]);
        assert_eq!(host.ping(over, 9), [], "one question is enough");
        assert_eq!((host.state(over, 9), host.neighbours().waiting()), (Some(Incomplete), 2));
        let sent = host.take(&answers(over, 9, station(9)));
        assert_eq!(sent, [Sent::Echo(1, station(9)), Sent::Echo(2, station(9))]);
        assert_eq!((host.state(over, 9), host.neighbours().waiting()), (Some(Reachable), 0));
        assert_eq!(host.ping(over, 9), [Sent::Echo(3, station(9))]);
        assert_eq!(host.shard.next_deadline(), None);
    }
}

#[test]
fn silent_neighbour_costs_three_questions_and_its_packets() {
    for over in BOTH {
        let mut host = Host::new();
        let question = Sent::Ask(address(over, 9), None);
        assert_eq!(host.ping(over, 9), [question]);
        assert_eq!(host.run(Duration::from_millis(990)), []);
        assert_eq!(host.run(Duration::from_millis(20)), [question]);
        assert_eq!(host.run_seconds(1), [question]);
        assert_eq!(host.run_seconds(1), []);
        assert_eq!(host.state(over, 9), None);
        let counters = host.counters();
        assert_eq!((counters.failed, counters.out_neighbour_failed, counters.asked), (1, 1, 3));
        assert!(host.neighbours().is_empty() && host.shard.next_deadline().is_none());
        assert_eq!(host.ping(over, 9), [question], "the next packet begins again");
    }
}

#[test]
fn a_neighbour_that_asks_is_answered_and_known() {
    for over in BOTH {
        let mut host = Host::new();
        assert_eq!(host.take(&asks(over, 9, station(9))), [Sent::Answer(station(9))]);
        assert_eq!(host.state(over, 9), Some(Stale));
        assert_eq!(host.ping(over, 9), [Sent::Echo(1, station(9))]);
        assert_eq!(host.state(over, 9), Some(Delay));
    }
}

#[test]
fn a_question_of_the_one_that_is_sought_answers_ours() {
    for over in BOTH {
        let mut host = Host::new();
        host.ping(over, 9);
        let sent = host.take(&asks(over, 9, station(9)));
        assert_eq!(sent, [Sent::Echo(1, station(9)), Sent::Answer(station(9))]);
        assert_eq!(host.state(over, 9), Some(Stale), "it need not hear us");
    }
}

#[test]
fn unsolicited_claims_only_move_known_neighbours() {
    for over in BOTH {
        let mut host = Host::new();
        for frame in [announces(over, 9, station(9)), answers(over, 9, station(9))] {
            assert_eq!(host.take(&frame), []);
            assert!(host.neighbours().is_empty());
        }
        host.take(&asks(over, 9, station(9)));
        host.take(&announces(over, 9, OTHER));
        assert_eq!(host.ping(over, 9), [Sent::Echo(1, OTHER)]);
    }
}

#[test]
fn stale_neighbour_in_use_is_probed_after_5s() {
    for over in BOTH {
        let mut host = Host::new();
        host.take(&asks(over, 9, station(9)));
        assert_eq!(host.run_seconds(600), [], "who is not used is not asked");
        host.ping(over, 9);
        assert_eq!(host.run(Duration::from_millis(4_990)), []);
        let probe = Sent::Ask(address(over, 9), Some(station(9)));
        assert_eq!(host.run(Duration::from_millis(20)), [probe]);
        assert_eq!(host.state(over, 9), Some(Probe));
        assert_eq!(host.ping(over, 9), [Sent::Echo(2, station(9))], "used meanwhile");
        assert_eq!(host.run_seconds(2), [probe, probe]);
        assert_eq!(host.run_seconds(1), []);
        assert_eq!((host.state(over, 9), host.counters().failed), (None, 1));
    }
}

#[test]
fn answered_probe_holds_until_use_renews_it() {
    for over in BOTH {
        let mut host = Host::new();
        host.take(&asks(over, 9, station(9)));
        host.ping(over, 9);
        host.run(Duration::from_millis(5_010));
        host.take(&answers(over, 9, station(9)));
        assert_eq!(host.state(over, 9), Some(Reachable));
        host.run_seconds(14);
        host.ping(over, 9);
        assert_eq!(host.state(over, 9), Some(Reachable), "15 s at least");
        host.run_seconds(32);
        host.ping(over, 9);
        assert_eq!(host.state(over, 9), Some(Delay), "45 s at most");
        host.take(&answers(over, 9, station(9)));
        assert_eq!(host.run_seconds(60), []);
    }
}

#[test]
fn an_advertisement_without_override_never_moves_a_neighbour() {
    let mut host = Host::new();
    host.ping(Over::V6, 9);
    host.take(&answers(Over::V6, 9, station(9)));
    let flags = NeighborFlags { router: false, solicited: true, overrides: false };
    host.take(&advertises(9, Some(OTHER), flags));
    assert_eq!(host.state(Over::V6, 9), Some(Stale), "another station claims to be it");
    host.take(&advertises(9, Some(OTHER), flags));
    assert_eq!(host.ping(Over::V6, 9), [Sent::Echo(2, station(9))]);
    host.take(&advertises(9, Some(station(9)), flags));
    assert_eq!(host.state(Over::V6, 9), Some(Reachable), "the same station confirms");
    host.take(&advertises(9, None, flags));
    assert_eq!(host.state(Over::V6, 9), Some(Reachable));
}

#[test]
fn an_advertisement_without_a_station_finds_nobody() {
    let mut host = Host::new();
    host.ping(Over::V6, 9);
    let flags = NeighborFlags { router: false, solicited: true, overrides: true };
    assert_eq!(host.take(&advertises(9, None, flags)), []);
    assert_eq!(host.state(Over::V6, 9), Some(Incomplete));
    // Unsolicited: known, but not that it hears us.
    let flags = NeighborFlags { solicited: false, ..flags };
    assert_eq!(host.take(&advertises(9, Some(station(9)), flags)), [Sent::Echo(1, station(9))]);
    assert_eq!(host.state(Over::V6, 9), Some(Stale));
}

#[test]
fn a_stale_neighbour_that_asks_from_another_station_has_moved() {
    for over in BOTH {
        let mut host = Host::new();
        host.take(&asks(over, 9, station(9)));
        host.take(&asks(over, 9, OTHER));
        assert_eq!(host.state(over, 9), Some(Stale));
        assert_eq!(host.ping(over, 9), [Sent::Echo(1, OTHER)]);
    }
}

/// Unasked claims that the neighbour 9 is at `mac`.
fn claims(over: Over, mac: MacAddress) -> [Vec<u8>; 3] {
    [announces(over, 9, mac), answers(over, 9, mac), asks(over, 9, mac)]
}

/// A host to whom the neighbour 9 answered, so long ago.
fn confirmed(over: Over, ago: Duration) -> Host {
    let mut host = Host::new();
    host.ping(over, 9);
    host.take(&answers(over, 9, station(9)));
    host.run(ago);
    host
}

#[test]
fn a_claim_to_be_a_reachable_neighbour_is_put_to_the_one_known() {
    for over in BOTH {
        for (at, claim) in claims(over, OTHER).iter().enumerate() {
            let mut host = confirmed(over, Duration::from_secs(2));
            let probe = Sent::Ask(address(over, 9), Some(station(9)));
            let sent = host.take(claim);
            assert!(sent.contains(&probe) && sent.len() <= 2, "{sent:?}");
            assert_eq!(host.ping(over, 9), [Sent::Echo(2, station(9))], "{at}");
            assert_eq!(host.run(Duration::from_millis(400)), [probe]);
            host.take(&answers(over, 9, station(9)));
            assert_eq!(host.state(over, 9), Some(Reachable));
            assert_eq!(host.run_seconds(10), []);
            assert_eq!(host.ping(over, 9), [Sent::Echo(3, station(9))]);
            assert_eq!((host.counters().claims, host.counters().moved), (1, 0));
        }
    }
}

#[test]
fn moved_neighbour_is_followed_within_1s() {
    for over in BOTH {
        for claim in claims(over, OTHER) {
            let mut host = confirmed(over, Duration::from_secs(2));
            host.take(&claim);
            assert_eq!(host.run(Duration::from_millis(1_001)).len(), 2, "two more questions");
            assert_eq!(host.ping(over, 9), [Sent::Echo(2, OTHER)]);
            assert_eq!((host.counters().claims, host.counters().moved), (1, 1));
            assert_eq!(host.counters().failed, 0);
        }
    }
}

#[test]
fn stream_of_claims_costs_few_questions_and_wins_nothing() {
    for over in BOTH {
        let mut host = confirmed(over, Duration::ZERO);
        let mut questions = 0;
        for _ in 0..1_000 {
            for sent in host.take(&announces(over, 9, OTHER)) {
                assert_eq!(sent, Sent::Ask(address(over, 9), Some(station(9))));
                questions += 1;
                host.take(&answers(over, 9, station(9)));
            }
            host.run(Duration::from_millis(10));
        }
        assert!((5..=12).contains(&questions), "{questions} questions in 10 s");
        assert_eq!(host.ping(over, 9), [Sent::Echo(2, station(9))]);
        assert_eq!((host.counters().claims, host.counters().moved), (1_000, 0));
    }
}

#[test]
fn claim_on_unconfirmed_neighbour_in_use_is_verified() {
    for over in BOTH {
        let mut host = confirmed(over, Duration::from_secs(60));
        host.ping(over, 9);
        assert_eq!(host.state(over, 9), Some(Delay));
        let probe = Sent::Ask(address(over, 9), Some(station(9)));
        assert_eq!(host.take(&announces(over, 9, OTHER)), [probe]);
        // While it is asked, the last of them that claims is the one that takes over.
        assert_eq!(host.take(&announces(over, 9, station(7))), []);
        host.run_seconds(1);
        assert_eq!(host.ping(over, 9), [Sent::Echo(3, station(7))]);
    }
}

#[test]
fn suspected_path_does_not_admit_claim() {
    let mut host = confirmed(Over::V6, Duration::from_secs(2));
    let flags = NeighborFlags { router: false, solicited: false, overrides: false };
    host.take(&advertises(9, Some(OTHER), flags));
    assert_eq!(host.state(Over::V6, 9), Some(Stale));
    let probe = Sent::Ask(address(Over::V6, 9), Some(station(9)));
    assert_eq!(host.take(&announces(Over::V6, 9, OTHER)), [probe]);
    host.take(&answers(Over::V6, 9, station(9)));
    assert_eq!(host.ping(Over::V6, 9), [Sent::Echo(2, station(9))]);
}

#[test]
fn where_claims_are_believed_one_frame_moves_a_neighbour() {
    for over in BOTH {
        for claim in claims(over, OTHER) {
            let mut host = confirmed(over, Duration::from_secs(2));
            host.shard.set_tunable("neighbours.claims", "replace").expect("it is one");
            host.take(&claim);
            assert_eq!(host.ping(over, 9), [Sent::Echo(2, OTHER)]);
            assert_eq!(host.counters().claims, 0);
        }
    }
}
