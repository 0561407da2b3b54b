//! The rows of docs/BOUNDS.md about programs under `whimbrel run`, and about a user's requests to a process.

use super::Proof::{self, Own, Tests};

/// They stand behind all others.
pub(super) const PROGRAM_ROWS: [(&str, Proof); 7] = [
    (
        "connections of a program that wait",
        Tests(&[
            "tools/cli/tests/whimbrel/run.rs#five_hundred_clients_at_once_repeat_no_syn",
            "tools/cli/tests/whimbrel/run.rs#published_ports_show_the_clients_address",
        ]),
    ),
    (
        "datagrams of a program",
        Tests(&["tools/cli/src/run/udp/tests.rs#longest_idle_flow_gives_way_at_the_bound"]),
    ),
    (
        "echo requests of a program",
        Tests(&["tools/cli/src/run/ping/tests.rs#longest_idle_identifier_gives_way_at_the_bound"]),
    ),
    (
        "events of the stack on a wire outside",
        Tests(&[
            "tools/cli/tests/whimbrel/run/wire.rs#uploads_of_five_hundred_clients_arrive_by_the_stacks_own_tcp",
        ]),
    ),
    (
        "errors about datagrams that a socket keeps",
        Tests(&[
            "crates/udp/src/sockets/tests.rs#socket_that_keeps_errors_gets_those_of_all_peers",
        ]),
    ),
    (
        "a path around a device",
        Tests(&["crates/io/src/impaired/tests.rs#queue_of_the_path_drops_what_is_too_much"]),
    ),
    ("requests by the control socket", Own),
];
