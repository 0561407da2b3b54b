//! Which case of the lab turns on which tunables: with the old value it fails, with another it does not.

use whimbrel_tcp::tunables::TunableInfo;

/// The cases, and the tunables that decide them, by field, in groups.
const CASES: &[(&str, &[&[&str]])] = &[
    (
        "unikraft-nginx",
        &[&["tw_syn", "tw_answer", "tw_rst", "syn_retry", "syn_after_challenge"], MSL, PORTS],
    ),
    (
        "illumos-1125ms",
        &[
            &["isn", "isn_step", "tw_syn", "tw_answer", "recv_buffer", "initial_rto"],
            &["syn_retry", "syn_after_challenge"],
            MSL,
            PORTS,
        ],
    ),
    (
        "macos-16k",
        &[
            &["port_first", "port_last", "tw_reuse"],
            &["tw_reuse_delay_remote", "tw_reuse_delay_link", "tw_reuse_delay_loopback"],
            MSL,
        ],
    ),
    (
        "fddi-70ms",
        &[
            &["buffers", "send_buffer", "send_buffer_max", "send_auto"],
            &["recv_buffer", "recv_buffer_max", "recv_auto", "window_scaling"],
            &["initial_window", "slow_start_limit", "hystart"],
        ],
    ),
];

/// How long TIME-WAIT lasts.
const MSL: &[&str] = &["msl_remote", "msl_link", "msl_loopback"];
/// Which ports a client draws, and in which order.
const PORTS: &[&str] = &["port_order", "refused_ports", "port_first", "port_last"];

/// The cases that turn on a tunable.
pub(super) fn of(info: &TunableInfo) -> Vec<&'static str> {
    let decides =
        |(_, groups): &&(&str, &[&[&str]])| groups.iter().any(|it| it.contains(&info.field));
    CASES.iter().filter(decides).map(|(case, _)| *case).collect()
}

#[cfg(test)]
mod tests;
