use serde_json::{Value, json};

use super::parse;

fn socket(remote: &str, sport: u16, dport: u16) -> Value {
    json!({
        "transport": "tcp", "state": "ESTABLISHED",
        "local": { "addr": "10.0.0.2", "port": sport },
        "remote": { "addr": remote, "port": dport },
    })
}

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

fn matches(filter: &str, socket: &Value) -> bool {
    let (states, filter) =
        parse(&words(filter)).unwrap_or_else(|error| panic!("{filter}: {error:?}"));
    states.is_none_or(|states| states.contain(socket))
        && filter.is_none_or(|filter| filter.matches(socket))
}

#[test]
fn conditions_hold_as_in_ss() {
    let four = socket("10.0.0.1", 80, 40_000);
    let six = socket("fd00::1", 443, 1_024);
    for (filter, of_four, of_six) in [
        ("sport = :80", true, false),
        ("sport = 80", true, false),
        ("sport eq :80", true, false),
        ("sport != 80", false, true),
        ("dport gt :1024", true, false),
        ("dport >= 1024", true, true),
        ("dport lt 1024", false, false),
        ("dport<=1024", false, true),
        ("dst 10.0.0.1", true, false),
        ("dst 10.0.0.0/24", true, false),
        ("dst 10.0.0.0/0", true, false),
        ("dst 10.0.1.0/24", false, false),
        ("dst fd00::/16", false, true),
        ("dst [fd00::1]:1024", false, true),
        ("dst [fd00::1]:1025", false, false),
        ("dst 10.0.0.1:40000", true, false),
        ("dst :40000", true, false),
        ("dst *:40000", true, false),
        ("src = 10.0.0.2", true, true),
        ("src != 10.0.0.2", false, false),
        ("not sport = 80", false, true),
        ("! sport = 80", false, true),
        ("( sport = 80 or sport = 443 )", true, true),
        ("(sport = 80 or sport = 443) and dst 10.0.0.1", true, false),
        ("sport = 80 dst 10.0.0.1", true, false),
        ("sport = 80 | dport = 1024 & sport = 80", true, false),
        ("sport = 80 or dport = 1024 and sport = 443", false, true),
        ("sport = 443 and dport = 1 or sport = 80", true, false),
        ("sport = :*", true, true),
        ("state established", true, true),
        ("state time-wait", false, false),
        ("state all exclude established", false, false),
        ("exclude established", false, false),
        ("state bucket state big sport = 80", true, false),
        ("state connected dst 10.0.0.1", true, false),
    ] {
        assert_eq!(matches(filter, &four), of_four, "{filter}");
        assert_eq!(matches(filter, &six), of_six, "{filter}");
    }
}

#[test]
fn wrong_filters_say_what_is_wrong() {
    let deep = "( ".repeat(70) + "sport = 1";
    for (filter, says) in [
        ("state foo", "no state"),
        ("sport", "ends where a port belongs"),
        ("sport = 70000", "no port"),
        ("sport = 10.0.0.2:80", "no port"),
        ("dst 10.0.0.0/33", "no address"),
        ("dst example", "no address"),
        ("dst > 10.0.0.1", "equal or not"),
        ("( sport = 80", "where a bracket )"),
        ("sport = 80 )", "follows a whole filter"),
        ("dev eth0", "of the kernel's sockets"),
        ("fwmark = 1", "of the kernel's sockets"),
        ("cgroup /a", "of the kernel's sockets"),
        ("sport = 80 state all", "before all conditions"),
        ("nonsense", "no condition"),
        (deep.trim(), "more than 64"),
    ] {
        let error = format!("{:?}", parse(&words(filter)).expect_err(filter));
        assert!(error.contains(says), "{filter}: {error}");
    }
}
