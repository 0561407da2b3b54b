//! Each case by the rules of another case's stack: the result is the same arithmetic.

use super::{SMALL, figures, measure};

#[test]
fn freebsd_runs_of_the_first_case_reach_the_server_rate() {
    // It accepts a SYN with a greater number, as those of a Linux client on one port always are:
    // records that last two lifetimes delay no client.
    let settings = [SMALL, &[("runs", "2")]].concat();
    let [first, second, longest] = figures(
        &measure("unikraft-nginx", "freebsd-9.2", &settings),
        ["run_1", "run_2", "longest_wait"],
    );
    assert!((2_500.0..2_512.1).contains(&first), "{first}");
    assert!((2_500.0..2_512.1).contains(&second), "{second}");
    assert!(longest < 0.1, "{longest}");
}

#[test]
fn second_case_has_no_delay_on_linux_and_lacks_ports_on_lwip() {
    let of = ["answered", "late", "unanswered"];
    // Numbers of one pair of ends only rise, so that none looks old.
    let settings = [("rate", "500"), ("warmup", "0s"), ("lasts", "30s")];
    assert_eq!(
        figures(&measure("illumos-1125ms", "linux-6.18", &settings), of),
        [15_000.0, 0.0, 0.0]
    );
    // Ports one after the other, 49152 to 65534, each refused for two minutes. A second's worth of
    // the connections that come then retry to the end, and no other has a turn.
    let settings = [("rate", "1000"), ("warmup", "0s"), ("lasts", "20s")];
    let [answered, late, unanswered] =
        figures(&measure("illumos-1125ms", "lwip-2.1", &settings), of);
    assert_eq!((answered, late, unanswered), (16_383.0, 0.0, 20_000.0 - 16_383.0 - 1_000.0));
}

#[test]
fn third_case_on_lwip_ends_with_its_ports_as_well() {
    let settings = [("lasts", "3s")];
    let of = ["answered", "rate_at_end"];
    assert_eq!(figures(&measure("macos-16k", "lwip-2.1", &settings), of), [16_383.0, 0.0]);
}

#[test]
fn fifth_case_has_a_buffer_a_round_trip_whosever_that_is() {
    let rate = |profile: &str, settings: &[(&str, &str)]| {
        let settings = [&[("host-delay", "0s"), ("bytes", "16M")], settings].concat();
        measure("fddi-70ms", profile, &settings).figure("rate").unwrap()
    };
    for (profile, settings, bytes) in [
        // TCP_WND, and tcp_xmit_hiwat, which is less than tcp_recv_hiwat.
        ("lwip-2.1", &[][..], 262_142.0),
        ("illumos-2011", &[], 49_152.0),
        // An application's size is used unchanged.
        ("linux-6.18", &[("window", "64k")], 65_536.0),
    ] {
        let (rate, bound) = (rate(profile, settings), bytes * 8.0 / 0.070 / 1e6);
        assert!((0.85 * bound..bound).contains(&rate), "{profile}: {rate} of {bound}");
    }
    // Without a size the window grows beyond the 875 KB of the path: the line is the limit.
    let grown = rate("linux-6.18", &[("bytes", "64M")]);
    assert!((80.0..100.0).contains(&grown), "{grown}");
}
