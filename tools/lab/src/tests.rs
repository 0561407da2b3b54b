//! Each case with its own bounds, if that is quick, and with values that were not reported, whose
//! results are arithmetic.

mod swapped;

use whimbrel_stack::Profile;
use whimbrel_stack::shard::SocketState;
use whimbrel_tcp::DropReason;

use super::*;

/// A case under a profile, with these values.
fn setup(case: &str, profile: &str, settings: &[(&str, &str)]) -> Setup {
    let selection = Selection {
        profiles: vec![Profile::by_name(profile).unwrap()],
        vary: settings.iter().map(|(key, value)| ((*key).into(), vec![(*value).into()])).collect(),
        seeds: vec![1],
    };
    plan(Case::by_name(case).unwrap(), &selection).unwrap().remove(0)
}

fn measure(case: &str, profile: &str, settings: &[(&str, &str)]) -> Measured {
    setup(case, profile, settings).measure(&|| true).unwrap()
}

fn figures<const N: usize>(measured: &Measured, names: [&str; N]) -> [f64; N] {
    names.map(|name| measured.figure(name).unwrap_or(f64::NAN))
}

/// The first case with a tenth of the requests: as many connections, and two requests on each.
const SMALL: &[(&str, &str)] = &[("requests", "2"), ("service-rate", "2512")];

#[test]
fn lwip_refuses_syns_for_two_segment_lifetimes() {
    let of = ["run_1", "run_2", "run_3", "run_4"];
    let measured = measure("unikraft-nginx", "lwip-2.1", SMALL);
    // 14,116 even ports, two requests each, in a minute.
    let whole = 14_116.0 * 2.0 / 60.0;
    let [first, second, third, fourth] = figures(&measured, of);
    assert!((first - whole).abs() < 1.0, "{first}");
    assert!(second < 1.0 && fourth < 1.0 && third > 400.0, "{second} {third} {fourth}");
    assert!(measured.figure("longest_wait").unwrap() > 15.0);
    // By then every port that the client uses is remembered, and no other.
    let remembered = measured.series.iter().find(|it| it.name == "TIME-WAIT, server").unwrap();
    let most = remembered.values.iter().copied().fold(0.0, f64::max);
    assert_eq!((most, measured.figure("ports_taken")), (14_116.0, Some(14_116.0)));
    let begins = |(at, name): &(Duration, String)| (at.as_secs(), name.clone());
    let begins: Vec<_> = measured.marks.iter().map(begins).collect();
    assert_eq!(begins[..2], [(0, "run 1".into()), (61, "run 2".into())]);
    let opening = measured.distributions.iter().find(|it| it.name == "opening").unwrap();
    assert_eq!(opening.longest_wait, measured.figure("longest_wait"));

    // A lifetime of 30 s: the ports of one run are free in the next.
    let half = measure("unikraft-nginx", "lwip-2.1", &[SMALL, &[("msl", "30s")]].concat());
    for rate in figures(&half, of) {
        assert!((rate - whole).abs() < 0.05 * whole, "{rate}");
    }
    // By the default's rules the server's rate is the limit, with any lifetime.
    for msl in ["5s", "60s"] {
        let cured = measure("unikraft-nginx", "whimbrel", &[SMALL, &[("msl", msl)]].concat());
        for rate in figures(&cured, of) {
            assert!((2_500.0..2_512.1).contains(&rate), "{msl}: {rate}");
        }
    }
}

#[test]
fn evidence_shows_the_answer_to_a_refused_syn() {
    let settings = [SMALL, &[("runs", "1"), ("lasts", "30s")]].concat();
    let evidence = measure("unikraft-nginx", "lwip-2.1", &settings).evidence.unwrap();
    assert_eq!(evidence.shows, EvidenceKind::Repetition);
    let lines: Vec<_> = evidence.packets.iter().map(ToString::to_string).collect();
    let first = lines.iter().position(|line| line.contains("SYN ")).unwrap();
    // After the end of the connection before it: SYN, ACK of the old one, RST, and so on.
    assert!(lines[first - 1].contains("ACK"), "{lines:#?}");
    assert!(lines[first].contains("client > server  SYN") && lines[first].contains("(RCV.NXT "));
    assert!(lines[first + 1].contains("server > client  ACK"), "{lines:#?}");
    assert!(lines[first + 2].contains("client > server  RST"), "{lines:#?}");
    let syns = lines[first..].iter().filter(|line| line.contains("SYN ")).count();
    assert!(syns > 3, "{lines:#?}");
    assert!(evidence.capture().len() > 60 * evidence.packets.len());
}

#[test]
fn each_packet_has_the_rule_of_its_receiver() {
    let settings = [SMALL, &[("runs", "1"), ("lasts", "30s")]].concat();
    let packets = |profile| {
        let evidence = measure("unikraft-nginx", profile, &settings).evidence.unwrap();
        let first = evidence.packets.iter().position(|packet| packet.flags() == "SYN").unwrap();
        let all = evidence.packets[first..].iter();
        let told = all.filter_map(|packet| Some((packet.flags(), packet.ruling.clone()?)));
        told.collect::<Vec<_>>()
    };
    let refused = packets("lwip-2.1");
    let [(_, syn), (answer, challenged), (_, rst)] = refused.first_chunk().unwrap();
    assert_eq!(syn.states, [Some(SocketState::TimeWait); 2]);
    assert_eq!(syn.dropped, Some(DropReason::TimeWaitSyn));
    let rules = [("tw.syn", "never".into()), ("tw.answer", "reset-in-window".into())];
    assert_eq!(syn.rules, rules);
    assert!(syn.counted.iter().any(|(name, _)| *name == "WhimbrelTimeWaitRefusedByPolicy"));
    assert_eq!((answer.as_str(), challenged.states[0]), ("ACK", Some(SocketState::SynSent)));
    assert_eq!(rst.rules, [("tw.rst", "ignore".into())]);
    assert_eq!(rst.dropped, Some(DropReason::TimeWaitReset));

    let accepted = packets("whimbrel");
    let (_, syn) = &accepted[0];
    assert_eq!(syn.states, [Some(SocketState::TimeWait), Some(SocketState::SynReceived)]);
    assert_eq!((syn.dropped, syn.rules.as_slice()), (None, &[("tw.syn", "rfc6191".into())][..]));
    let (flags, last) = accepted.last().unwrap();
    assert_eq!((flags.as_str(), last.states[1]), ("ACK", Some(SocketState::Established)));
}

#[test]
fn syn_outcome_names_the_deciding_timestamp() {
    let settings = [SMALL, &[("runs", "1"), ("lasts", "30s")]].concat();
    let told = |profile: &str, settings: &[(&str, &str)]| {
        let evidence = measure("unikraft-nginx", profile, settings).evidence.unwrap();
        let of = |packet: &SeenPacket| Some((packet.flags(), packet.newer, packet.outcome()?));
        evidence.packets.iter().filter_map(of).collect::<Vec<_>>()
    };
    let refused = told("lwip-2.1", &settings);
    let outcomes: Vec<_> = refused.iter().map(|(.., outcome)| *outcome).take(3).collect();
    let expected =
        ["port remembered: refused", "no valid answer: the client sends a reset", "reset ignored"];
    assert_eq!(outcomes, expected);
    // lwIP has no timestamps to compare.
    assert_eq!(refused[0].1, None);
    let [(_, newer, outcome)] = told("whimbrel", &settings).try_into().unwrap();
    assert_eq!(outcome, "newer timestamp: let in");
    assert!(newer.unwrap() > Duration::from_secs(5), "{newer:?}");
    let forgotten = told("lwip-2.1+msl5s", &settings);
    assert_eq!(forgotten[0].2, "nothing remembered: let in");
    // And by the number, with that rule.
    let by_number = told("lwip-2.1", &[&settings[..], &[("tw.syn", "by-sequence")]].concat());
    assert_eq!(by_number[0].2, "newer number: let in");
}

#[test]
fn opening_time_classes_count_every_connection() {
    let settings = [("rate", "500"), ("lasts", "30s")];
    let measured = measure("illumos-1125ms", "illumos-2011", &settings);
    let opening = measured.distributions.iter().find(|it| it.name == "opening").unwrap();
    let all: u64 = opening.classes.iter().map(|(_, count)| count).sum();
    assert_eq!(Some(all as f64), measured.figure("answered"));
    let late = opening.classes.iter().filter(|(seconds, _)| *seconds >= 1.125);
    let share = 100.0 * late.map(|(_, count)| *count).sum::<u64>() as f64 / all as f64;
    assert!((share - measured.figure("late").unwrap()).abs() < 1e-9, "{share}");
    assert!(opening.classes.is_sorted_by(|one, other| one.0 < other.0));
}

#[test]
fn transfer_series_has_a_few_hundred_steps_at_any_length() {
    for bytes in ["1M", "64M"] {
        let settings = [("window", "192k"), ("bytes", bytes), ("host-delay", "0s")];
        let measured = measure("fddi-70ms", "freebsd-2.2.5+fix", &settings);
        let of = |name| measured.series.iter().find(|series| series.name == name).unwrap();
        let most = |name| of(name).values.iter().copied().fold(0.0, f64::max);
        let steps = of("window").values.len();
        assert!((60..=240).contains(&steps), "{bytes}: {steps}");
        let lasts = of("window").step.as_secs_f64() * steps as f64;
        let took = measured.figure("seconds").unwrap();
        assert!((lasts - took).abs() < 0.05 * took, "{bytes}: {lasts} for {took}");
        // The window limits the bytes under way, though cwnd allows more.
        assert!((190_000.0..=196_608.0).contains(&most("window")), "{}", most("window"));
        assert!(most("in flight") <= most("window") && most("queue") <= most("window"));
        if bytes == "64M" {
            assert!(most("cwnd") > most("window") && most("in flight") > 180_000.0);
        }
    }
}

#[test]
fn illumos_opens_some_late_above_284_connections_per_second() {
    let late = |rate: &str| {
        let measured =
            measure("illumos-1125ms", "illumos-2011", &[("rate", rate), ("lasts", "30s")]);
        let [late, least, most] = figures(&measured, ["late", "late_least", "late_most"]);
        assert!(late == 0.0 || (least >= 1.125 && most < 1.135), "{rate}: {least} {most}");
        late
    };
    assert_eq!(late("200"), 0.0);
    // Between the reported values at 300 and at 500.
    let some = late("400");
    assert!((3.0..15.0).contains(&some), "{some}");
}

#[test]
fn macos_carries_one_connection_per_port() {
    let answered = |profile: &str, settings: &[(&str, &str)]| {
        measure("macos-16k", profile, settings).figure("answered").unwrap()
    };
    assert_eq!(answered("macos-12", &[("lasts", "9s")]), 16_384.0);
    let wide = ("net.inet.ip.portrange.first", "40000");
    assert_eq!(answered("macos-12", &[wide]), 25_536.0);
    // Other profiles have other ports: FreeBSD's 10000 to 65535.
    assert_eq!(answered("freebsd-15", &[("lasts", "3s")]), 55_536.0);
}

#[test]
fn macos_evidence_shows_kept_port_and_who_still_waits() {
    let failing = measure("macos-16k", "macos-12", &[]);
    let evidence = failing.evidence.as_ref().unwrap();
    assert_eq!(evidence.shows, EvidenceKind::KeptPort);
    let states = evidence.packets.iter().filter_map(|packet| packet.ruling.as_ref()?.states[1]);
    assert!(states.collect::<Vec<_>>().contains(&SocketState::TimeWait), "{evidence:?}");
    assert_eq!(evidence.packets.last().unwrap().flags(), "ACK");
    let of = |measured: &Measured| {
        let response = measured.distributions.iter().find(|it| it.name == "response").unwrap();
        let waiting: u64 = response.waiting.iter().map(|(_, count)| count).sum();
        (waiting, response.longest_wait.unwrap_or(0.0))
    };
    // After 5 s without a port each connection failed, and waits for the next 4.6 s at the end.
    let (waiting, longest) = of(&failing);
    assert!(waiting == 50 && longest > 4.0, "{waiting} {longest}");
    let server = measure("macos-16k", "macos-12", &[("close", "server"), ("lasts", "1s")]);
    assert!(of(&server).1 < 0.1, "{:?}", of(&server));
}

#[test]
fn server_that_closes_first_leaves_macos_its_ports() {
    let quick = [("lasts", "1s"), ("service-rate", "20k")];
    let answered = |close| {
        let measured =
            measure("macos-16k", "macos-12", &[&quick[..], &[("close", close)]].concat());
        figures(&measured, ["answered", "waiting"])
    };
    assert_eq!(answered("client"), [16_384.0, 50.0]);
    let [answered, waiting] = answered("server");
    assert!(answered > 19_900.0 && waiting == 0.0, "{answered} {waiting}");
}

#[test]
fn window_and_a_round_trip_are_a_rate() {
    let rate = |settings: &[(&str, &str)]| {
        let settings = [&[("bytes", "64M")], settings].concat();
        measure("fddi-70ms", "freebsd-2.2.5+fix", &settings).figure("rate").unwrap()
    };
    // 384 KB in 82 ms.
    let middle = rate(&[("window", "384k")]);
    assert!((0.9 * 38.4..38.4).contains(&middle), "{middle}");
    let without_host = rate(&[("window", "384k"), ("host-delay", "0s")]);
    assert!((0.9 * 44.9..44.9).contains(&without_host), "{without_host}");
    // The patch changes one rule.
    let by_route = [("window", "384k"), ("route", "64k"), ("buffers", "route")];
    assert!((0.9 * 6.39..6.4).contains(&rate(&by_route)));
}

#[test]
fn bounds_and_columns_name_measured_figures() {
    let quick = [
        ("unikraft-nginx", "whimbrel", &[("lasts", "1s"), ("service-rate", "500")][..]),
        ("illumos-1125ms", "whimbrel", &[("rate", "50"), ("warmup", "0s"), ("lasts", "2s")]),
        ("macos-16k", "macos-12", &[("lasts", "6s")]),
        ("fddi-70ms", "whimbrel", &[("bytes", "1M")]),
    ];
    for (case, profile, settings) in quick {
        let measured = measure(case, profile, settings);
        let case = Case::by_name(case).unwrap();
        let bounds = case.rows.iter().flat_map(|row| row.bounds).map(|bound| bound.figure);
        let picture = match case.picture {
            Picture::Bar(figure) => Some(figure),
            Picture::Line(name) => {
                assert!(measured.series.iter().any(|series| series.name == name), "{name}");
                None
            }
        };
        let columns = case.columns.iter().map(|column| column.figure);
        let limits = case.strips.iter().filter_map(|strip| strip.limit);
        let limits = limits.map(|(figure, _)| figure);
        for figure in bounds.chain(columns).chain(picture).chain(limits) {
            assert!(measured.figure(figure).is_some(), "{}: {figure}", case.name);
        }
        for strip in case.strips {
            let is_measured = measured.series.iter().any(|series| series.name == strip.series);
            assert!(is_measured, "{}: {}", case.name, strip.series);
        }
    }
}

#[test]
fn every_field_that_decides_a_case_is_one_and_stands_there_once() {
    for case in CASES {
        let fields = case.tunables.concat();
        for (at, field) in fields.iter().enumerate() {
            assert_eq!(Tunables::named(field).len(), 1, "{}: {field}", case.name);
            assert!(!fields[..at].contains(field), "{}: {field} twice", case.name);
        }
    }
}

#[test]
fn every_bounded_figure_has_a_description() {
    for case in CASES {
        for figure in case.figures() {
            let column = case.columns.iter().find(|column| column.figure == figure);
            let term = case.terms.iter().find(|(name, _)| *name == figure);
            assert!(column.is_some() || term.is_some(), "{}: {figure}", case.name);
        }
    }
}

#[test]
fn figure_out_of_bounds_is_wrong_under_any_profile() {
    let own = setup("macos-16k", "macos-12", &[]);
    const BOUNDS: &[Bound] = &[exactly("answered", 16_384.0)];
    let setup = Setup { role: Some(Role::Report), bounds: BOUNDS.to_vec(), ..own };
    let mut measured = Measured::default();
    assert!(matches!(setup.judge(&measured), Verdict::Wrong(misses) if misses[0].value.is_none()));
    measured.add("answered", Unit::Count, 16_384.0);
    assert_eq!(setup.judge(&measured), Verdict::Reproduced);
    let cure = Setup { role: Some(Role::Cure), ..setup.clone() };
    assert_eq!(cure.judge(&measured), Verdict::Cured);
    let inferred = Setup { role: Some(Role::Inferred), ..setup.clone() };
    assert_eq!(inferred.judge(&measured), Verdict::AsInferred);
    measured.figures[0].value += 1.0;
    let Verdict::Wrong(misses) = setup.judge(&measured) else { panic!("{measured:?}") };
    assert_eq!((misses[0].bound.figure, misses[0].value), ("answered", Some(16_385.0)));
    let open = Setup { role: None, ..setup };
    assert_eq!(open.judge(&measured), Verdict::Open);
}

#[test]
fn figures_and_packets_depend_on_the_seed_only() {
    let settings = [("rate", "500"), ("warmup", "0s"), ("lasts", "60s")];
    let setup = setup("illumos-1125ms", "illumos-2011", &settings);
    let of = |seed| Setup { seed, ..setup.clone() }.measure(&|| true).unwrap();
    let packets = |measured: &Measured| measured.evidence.as_ref().unwrap().packets.clone();
    let (one, again, other) = (of(5), of(5), of(6));
    assert_eq!((&one.figures, &one.series), (&again.figures, &again.series));
    assert_eq!(packets(&one), packets(&again));
    assert_ne!(packets(&one), packets(&other));
}

#[test]
fn unwanted_measurement_ends() {
    for case in CASES {
        let setup = plan(case, &Selection::default()).unwrap().remove(0);
        let why =
            if setup.is_on_threads() { "it is measured on real threads" } else { "interrupted" };
        assert_eq!(setup.measure(&|| false).unwrap_err(), why, "{}", case.name);
    }
}
