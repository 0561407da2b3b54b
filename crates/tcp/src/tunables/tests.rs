use alloc::collections::BTreeSet;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use alloc::{format, vec};
use core::time::Duration;

use proptest::prelude::*;
use whimbrel_base::{Micros, tunables::Unit};
use whimbrel_recovery::cc::INITIAL_SEGMENTS;
use whimbrel_wire::tcp::OptionOrder;

use super::{
    AnswerInTimeWait, BufferPolicy, FragNeeded, Isn, MissingTimestamps, NeighbourClaims, PortOrder,
    RefusedPorts, RstInTimeWait, RstInWindow, SynInTimeWait, SynInWindow, SynRetry, TUNABLE_GROUPS,
    TUNABLES, Tunables,
};

fn set(name: &str, value: &str) -> Tunables {
    let mut tunables = Tunables::default();
    tunables.set_by_name(name, value).unwrap_or_else(|error| panic!("{error}"));
    tunables
}

fn refusal(name: &str, value: &str) -> String {
    let mut tunables = Tunables::default();
    let error = tunables.set_by_name(name, value).expect_err(value);
    assert_eq!(tunables, Tunables::default(), "{name}={value} changed something");
    error.to_string()
}

#[test]
fn the_defaults_are_valid_and_print_as_what_they_parse_to() {
    Tunables::default().validate().unwrap();
    for info in TUNABLES {
        let value = info.value(&Tunables::default());
        assert_eq!(set(info.name.text, &value), Tunables::default(), "{}={value}", info.field);
        assert_eq!(Tunables::default().value_of(info.field), Some(value));
    }
}

#[test]
fn every_name_is_used_once_and_every_tunable_says_what_it_is() {
    let mut names = BTreeSet::new();
    for info in TUNABLES {
        let aliases = info.aliases.iter().map(|name| name.text);
        let field = Some(info.field).filter(|field| *field != info.name.text);
        for name in aliases.chain([info.name.text]).chain(field) {
            assert!(names.insert(name), "{name} is used twice");
        }
        assert!(info.help.ends_with('.'), "{}: {}", info.field, info.help);
        let explains_itself = matches!(info.unit, Unit::Choice(_));
        let ends = info.too_low.ends_with('.') && info.too_high.ends_with('.');
        assert!(explains_itself || ends, "{} says nothing of its ends", info.field);
    }
    for group in TUNABLE_GROUPS {
        assert_eq!(group.members::<Tunables>().count(), group.fields.len());
        for name in group.names {
            assert!(names.insert(name.text), "{} is used twice", name.text);
        }
    }
}

#[test]
fn both_ends_of_each_range_are_valid_and_one_beyond_is_not() {
    for info in TUNABLES {
        let Some((least, most)) = info.range() else { continue };
        for end in [least, most] {
            let tunables = set(info.name.text, &end);
            assert_eq!(info.value(&tunables), end, "{}", info.field);
        }
    }
    for (name, value) in [
        ("buffers.send", "2047"),
        ("buffers.recv", "1073741825"),
        ("initial_rto", "999us"),
        ("net.ipv4.tcp_rto_max_ms", "240001"),
        ("net.ipv4.tcp_syn_retries", "31"),
        ("net.ipv4.tcp_retries2", "0"),
        ("delayed_ack", "500ms"),
        ("ack_every", "17"),
        ("msl.remote", "256s"),
        ("net.ipv4.tcp_max_tw_buckets", "0"),
        ("ports.first", "0"),
        ("ports.last", "65536"),
        ("isn.tick", "0"),
        ("isn.step", "16777217"),
        ("max_out_of_order", "4097"),
        ("mem.budget", "1048575"),
        ("mem.budget", "4398046511105"),
        ("net.ipv4.ip_default_ttl", "0"),
        ("net.ipv4.tcp_retries1", "31"),
        ("net.ipv4.tcp_min_snd_mss", "47"),
        ("connect_timeout", "3601s"),
        ("user_timeout", "86401s"),
        ("initial_window", "0"),
        ("initial_window", "101"),
        ("slow_start.limit", "256"),
        ("mss.default.v4", "47"),
        ("mss.default.v6", "65476"),
        ("buffers.recv.max", "2047"),
        ("buffers.send.max", "1073741825"),
    ] {
        assert!(refusal(name, value).starts_with(name), "{name}={value}");
    }
}

#[test]
fn values_are_read_with_the_unit_that_their_name_has() {
    let secs = Duration::from_secs;
    assert_eq!(set("net.ipv4.tcp_fin_timeout", "30").fin_timeout, secs(30));
    assert_eq!(set("tcp_fin_timeout", "30").fin_timeout, secs(30), "net.ipv4. may be left out");
    assert_eq!(set("fin_timeout", "1.5s").fin_timeout, Duration::from_millis(1500));
    assert_eq!(set("net.inet.tcp.finwait2_timeout", "30000").fin_timeout, secs(30));
    assert_eq!(set("net.inet.tcp.rexmit_initial", "3000").initial_rto, secs(3).into());
    assert_eq!(set("net.inet.tcp.rexmit_initial", "3s").initial_rto, secs(3).into());
    assert_eq!(set("tcp_rto_min_us", "50000").min_rto, Micros::from_millis(50));
    assert_eq!(set("net.inet.tcp.recvspace", "64k").recv_buffer, 65_536);
    assert_eq!(set("TCP_WND", "131072").recv_buffer, 131_072);
    assert_eq!(set("net.inet.tcp.delayed_ack", "0").ack_every, 1);
    assert_eq!(set("net.inet.tcp.delayed_ack", "1").ack_every, 2);
    assert_eq!(set("net.inet.tcp.keepinit", "75000").connect_timeout, secs(75));
    assert_eq!(set("net.inet.tcp.rexmit_slop", "30").min_rto, Micros::from_millis(30));
    assert_eq!(set("tcp_max_syn_backlog", "512").max_syn_entries, 512);
    assert_eq!(set("isn.tick", "4us").isn_tick_nanos, 4_000);
    assert_eq!(set("tcp_iss_incr", "25000").isn_step, 12_500, "illumos adds half of it");
    let millis = Duration::from_millis;
    assert_eq!(set("tcp_rexmit_interval_initial", "1000").initial_rto, millis(1_125).into());
    assert_eq!(set("tcp_rexmit_interval_initial", "8ms").initial_rto, millis(9).into());
    assert_eq!(set("tcp_ip_abort_interval", "60000").user_timeout, secs(60));
    for (value, on) in [("on", true), ("0", false), ("yes", true), ("false", false)] {
        assert_eq!(set("net.inet.tcp.sack.enable", value).sack, on);
    }
}

#[test]
fn of_three_numbers_of_linux_the_first_counts_for_nothing() {
    let tunables = set("net.ipv4.tcp_rmem", "4096 131072 6291456");
    assert_eq!((tunables.recv_buffer, tunables.recv_buffer_max), (131_072, 6_291_456));
    let tunables = set("tcp_wmem", "4096 16384 4194304");
    assert_eq!((tunables.send_buffer, tunables.send_buffer_max), (16_384, 4 << 20));
    for value in ["131072", "4096 131072", "4096 131072 65536", "1 2 3 4", "a b c", ""] {
        assert!(refusal("net.ipv4.tcp_rmem", value).starts_with("net.ipv4.tcp_rmem"), "{value}");
    }
}

#[test]
fn policies_are_set_by_name_and_by_what_other_systems_say() {
    assert_eq!(set("tw.syn", "by-sequence").tw_syn, SynInTimeWait::BySequence);
    assert_eq!(set("buffers", "route").buffers, BufferPolicy::Route);
    assert_eq!(set("tw.answer", "silence").tw_answer, AnswerInTimeWait::Silence);
    assert_eq!(set("tw.rst", "end").tw_rst, RstInTimeWait::End);
    assert_eq!(set("net.ipv4.tcp_rfc1337", "1").tw_rst, RstInTimeWait::Ignore);
    assert_eq!(set("net.ipv4.tcp_rfc1337", "0").tw_rst, RstInTimeWait::AtRcvNxt);
    assert_eq!(set("icmp.frag_needed", "immediate").frag_needed, FragNeeded::Immediate);
    assert_eq!(set("neighbours.claims", "replace").neighbour_claims, NeighbourClaims::Replace);
    assert_eq!(set("neighbours.claims", "verify").neighbour_claims, NeighbourClaims::Verify);
    assert_eq!(set("icmp.frag_needed", "verified").frag_needed, FragNeeded::Verified);
    assert_eq!(set("net.inet.tcp.insecure_rst", "1").rst_in_window, RstInWindow::Any);
    assert_eq!(set("net.inet.tcp.insecure_syn", "1").syn_in_window, SynInWindow::Reset);
    let missing = |value| set("net.inet.tcp.tolerate_missing_ts", value).missing_timestamps;
    assert_eq!(["0", "1"].map(missing), [MissingTimestamps::DropSyn, MissingTimestamps::Take]);
    assert_eq!(set("isn", "host-wide").isn, Isn::HostWide);
    assert_eq!(set("tcp_strong_iss", "0").isn, Isn::HostWidePlain);
    assert_eq!(set("ports", "even-first").port_order, PortOrder::EvenFirst);
    assert_eq!(set("net.inet.ip.portrange.randomized", "0").port_order, PortOrder::Sequential);
    assert_eq!(set("options.order", "freebsd").option_order, OptionOrder::FreeBsd);
    assert_eq!(set("options.order", "lwip").option_order, OptionOrder::LwIp);
    assert_eq!(set("options.order", "illumos").option_order, OptionOrder::Illumos);
    assert_eq!(set("ports.refused", "forget").refused_ports, RefusedPorts::Forget);
    let text = refusal("tw.syn", "sometimes");
    let names = "one of rfc6191, by-sequence, linux, illumos, never";
    assert_eq!(text, format!("tw.syn=sometimes: give {names}, as in tw.syn=rfc6191"));
}

#[test]
fn freebsd_switch_sets_scaling_and_timestamps_in_four_positions() {
    let of = |value| {
        let tunables = set("net.inet.tcp.rfc1323", value);
        (tunables.window_scaling, tunables.timestamps)
    };
    let positions = [(false, false), (true, true), (true, false), (false, true)];
    assert_eq!(["0", "1", "2", "3"].map(of), positions);
    assert!(refusal("net.inet.tcp.rfc1323", "4").starts_with("net.inet.tcp.rfc1323"));
}

#[test]
fn one_msl_of_another_system_is_the_msl_of_every_path() {
    for (name, value) in [
        ("msl", "5s"),
        ("net.inet.tcp.msl", "5000"),
        ("TCP_MSL", "5000"),
        ("tcp_time_wait_interval", "10000"),
        ("tcp_time_wait_interval", "10s"),
    ] {
        let tunables = set(name, value);
        let msls = [tunables.msl_remote, tunables.msl_link, tunables.msl_loopback];
        assert_eq!(msls, [Duration::from_secs(5); 3], "{name}={value}");
        assert_eq!(tunables.value_of(name).as_deref(), Some("5s"));
    }
    assert_eq!(Tunables::default().value_of("msl").as_deref(), Some("60s 10s 2s"));
}

#[test]
fn a_range_of_ports_is_set_as_linux_has_it() {
    for value in ["1024 65535", "1024\t65535", "1024-65535", "1024,65535"] {
        let tunables = set("net.ipv4.ip_local_port_range", value);
        assert_eq!((tunables.port_first, tunables.port_last), (1024, 65_535));
        let shown = tunables.value_of("ip_local_port_range");
        assert_eq!(shown.as_deref(), Some("1024 65535"));
    }
    for value in ["", "1024", "1 2 3", "0 5", "a b"] {
        refusal("net.ipv4.ip_local_port_range", value);
    }
}

#[test]
fn refusal_names_tunable_value_range_unit_and_remedy() {
    assert_eq!(
        refusal("net.ipv4.tcp_syn_retries", "99"),
        "net.ipv4.tcp_syn_retries=99: give 0 to 30 repetitions, as in net.ipv4.tcp_syn_retries=6; \
         beyond that: an application waits for hours to learn that no host is there"
    );
    assert_eq!(
        refusal("net.inet.tcp.delacktime", "soon"),
        "net.inet.tcp.delacktime (delayed_ack)=soon: give a time from 0s to 499ms (ns, us, ms, s, \
         min, h), as in delayed_ack=40ms"
    );
    assert_eq!(
        refusal("sack", "maybe"),
        "sack (net.ipv4.tcp_sack)=maybe: give on or off, as in net.ipv4.tcp_sack=on"
    );
    assert!(refusal("initial_rto", "3").contains("a time from 1ms to 60s"), "3 of what?");
}

#[test]
fn what_means_nothing_is_refused() {
    for value in ["", "-1", "+1", "1 ", "0x10", "64kB", "99999999999999999999", "1e3", "ä"] {
        let refused = Tunables::default().set_by_name("buffers.send", value).is_err();
        assert!(refused || value == "1 ", "{value:?}");
    }
    for value in ["s", ".5s", "1.s", "1..5s", "1.0000000001s", "-1s", "1 s", "20000000000s", "1d"] {
        assert!(Tunables::default().set_by_name("initial_rto", value).is_err(), "{value:?}");
    }
}

#[test]
fn an_unknown_name_is_answered_with_names_like_it() {
    let near = |name| refusal(name, "1");
    assert!(near("net.ipv4.tcp_syn_retry").contains("perhaps net.ipv4.tcp_syn_retries"));
    assert!(near("retries2").contains("net.ipv4.tcp_retries2"));
    assert!(near("tw.sin").contains("perhaps tw.syn"));
    assert!(near("tcp_msl").contains("TCP_MSL"));
    assert!(near("zzzzzzzzzzzz").contains("docs/reference/tunables.md"));
    assert!(near("").starts_with("no tunable is named \"\""));
}

#[test]
fn tunables_that_contradict_each_other_are_set_and_then_refused() {
    let mut tunables = set("ports.first", "61000");
    let text = tunables.validate().expect_err("61000 to 60999").to_string();
    assert_eq!(
        text,
        "ports.last=60999: give a port from 61000, with ports.first=61000, to 65535, as in \
         ports.last=60999"
    );
    tunables.set_by_name("ports.last", "61000").unwrap();
    tunables.validate().unwrap();
    let text = set("tcp_rto_max_ms", "1000").clone();
    text.validate().unwrap();
    let short = Tunables { initial_rto: Micros::from_millis(2_000), ..text };
    let error = short.validate().expect_err("1 s at most, 2 s at first").to_string();
    assert!(error.starts_with("net.ipv4.tcp_rto_max_ms=1s: give at least 2s"), "{error}");
}

#[test]
fn a_struct_with_a_value_out_of_range_is_refused_by_validation() {
    let wrong = Tunables { max_time_wait: 0, ..Tunables::default() };
    let error = wrong.validate().expect_err("no record").to_string();
    assert!(error.starts_with("net.ipv4.tcp_max_tw_buckets=0: give 1 to 268435456 records"));
    let wrong = Tunables { delayed_ack: Duration::from_secs(1), ..Tunables::default() };
    assert!(wrong.validate().is_err());
}

fn waits(tunables: &Tunables, count: u8) -> Vec<u64> {
    let wait = |repeats| tunables.syn_retry.wait(repeats, tunables).as_millis() as u64;
    (0..count).map(wait).collect()
}

#[test]
fn syns_are_repeated_by_their_schedule() {
    let at = |schedule| waits(&set("syn.retry", schedule), 8);
    assert_eq!(at("x2"), [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]);
    assert_eq!(at("x1"), [1_000; 8], "lwIP");
    assert_eq!(at("x1.5")[..4], [1_000, 1_500, 2_250, 3_375]);
    assert_eq!(at("1s,1.2s,4s")[..5], [1_000, 1_200, 4_000, 4_000, 4_000]);
    let illumos = Tunables { initial_rto: Micros::from_millis(1_125), ..Tunables::default() };
    assert_eq!(waits(&illumos, 3), [1_125, 2_250, 4_500]);
    let too_many = vec!["1s"; 13].join(",");
    for schedule in ["", "x", "x0", "x0.5", "x11", "x1.123", "1s,", "0s", "2h", "1", &too_many] {
        refusal("syn.retry", schedule);
    }
    assert_eq!(SynRetry::listed(&[]), None);
}

#[test]
fn slow_start_limit_counts_segments_and_zero_means_none() {
    for (segments, most) in [(0, u32::MAX), (1, 1_460), (2, 2_920), (255, 372_300)] {
        let tunables = Tunables { slow_start_limit: segments, ..Tunables::default() };
        assert_eq!(tunables.slow_start(1_460).most, most, "{segments}");
    }
}

#[test]
fn initial_window_defaults_to_that_of_rfc_6928() {
    assert_eq!(Tunables::default().initial_window, INITIAL_SEGMENTS);
}

proptest! {
    #[test]
    fn what_is_printed_parses_to_the_same(
        at in 0..TUNABLES.len(),
        number in any::<u64>(),
        unit in prop::sample::select(vec!["", "k", "M", "ns", "us", "ms", "s"]),
    ) {
        let info = &TUNABLES[at];
        let mut tunables = Tunables::default();
        let number = if number % 2 == 0 { number % 1_000 } else { number % 100_000 };
        if tunables.set_by_name(info.name.text, &format!("{number}{unit}")).is_ok() {
            let shown = info.value(&tunables);
            prop_assert_eq!(&set(info.name.text, &shown), &tunables, "{}={}", info.field, shown);
        }
    }

    #[test]
    fn nothing_that_is_typed_panics(name in ".{0,20}", value in ".{0,20}", at in 0..TUNABLES.len()) {
        let mut tunables = Tunables::default();
        let _ = tunables.set_by_name(&name, &value);
        let _ = tunables.set_by_name(TUNABLES[at].field, &value);
        prop_assert!(tunables.value_of("isn").is_some());
    }

    #[test]
    fn a_schedule_prints_as_it_is_typed(percent in 100_u16..=1_000, millis in prop::collection::vec(1_u64..=3_600_000, 1..=12)) {
        let times: Vec<_> = millis.into_iter().map(Duration::from_millis).collect();
        for syn_retry in [SynRetry::factor(percent), SynRetry::listed(&times)] {
            let tunables = Tunables { syn_retry: syn_retry.unwrap(), ..Tunables::default() };
            let shown = tunables.value_of("syn.retry").unwrap();
            prop_assert_eq!(set("syn.retry", &shown), tunables);
        }
    }
}
