//! Each case by the rules of a stack that is another case's: what comes of it is the same arithmetic.

use super::{SMALL, figures, measure};

#[test]
fn the_first_case_on_freebsd_has_what_the_server_has_time_for_in_each_run() {
    // It lets a SYN in whose number is greater, as those of a Linux client on one port always are: what
    // waits for two lifetimes waits for nobody.
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
fn the_second_case_on_linux_has_nobody_late_and_on_lwip_ends_with_its_ports() {
    let of = ["answered", "late", "unanswered"];
    // Numbers of one pair of ends only rise, so that none looks old.
    let settings = [("rate", "500"), ("warmup", "0s"), ("lasts", "30s")];
    assert_eq!(
        figures(&measure("illumos-1125ms", "linux-6.18", &settings), of),
        [15_000.0, 0.0, 0.0]
    );
    // Ports one after the other, 49152 to 65534, each refused for two minutes. A second's worth of those who
    // come then ask for one to the end, and nobody else has a turn.
    let settings = [("rate", "1000"), ("warmup", "0s"), ("lasts", "20s")];
    let [answered, late, unanswered] =
        figures(&measure("illumos-1125ms", "lwip-2.1", &settings), of);
    assert_eq!((answered, late, unanswered), (16_383.0, 0.0, 20_000.0 - 16_383.0 - 1_000.0));
}

#[test]
fn the_third_case_on_lwip_ends_with_its_ports_as_well() {
    let settings = [("lasts", "3s")];
    let of = ["answered", "rate_at_end"];
    assert_eq!(figures(&measure("macos-16k", "lwip-2.1", &settings), of), [16_383.0, 0.0]);
}

#[test]
fn the_fifth_case_has_a_buffer_a_round_trip_whosever_that_is() {
    let rate = |profile: &str, settings: &[(&str, &str)]| {
        let settings = [&[("host-delay", "0s"), ("bytes", "16M")], settings].concat();
        measure("fddi-70ms", profile, &settings).figure("rate").unwrap()
    };
    for (profile, settings, bytes) in [
        // TCP_WND, and tcp_xmit_hiwat, which is less than tcp_recv_hiwat.
        ("lwip-2.1", &[][..], 262_142.0),
        ("illumos-2011", &[], 49_152.0),
        // Whoever asks for a size has that, and no more.
        ("linux-6.18", &[("window", "64k")], 65_536.0),
    ] {
        let (rate, bound) = (rate(profile, settings), bytes * 8.0 / 0.070 / 1e6);
        assert!((0.85 * bound..bound).contains(&rate), "{profile}: {rate} of {bound}");
    }
    // Who does not has a window that grows beyond the 875 KB of the path: its line is the bound.
    let grown = rate("linux-6.18", &[("bytes", "64M")]);
    assert!((80.0..100.0).contains(&grown), "{grown}");
}
