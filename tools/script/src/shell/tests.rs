use proptest::prelude::*;

use super::*;

fn set(name: &str, value: &str) -> ShellAct {
    ShellAct::Set { name: name.into(), value: value.into() }
}

fn purge() -> ShellAct {
    ShellAct::Administer(Administration::PurgeCaches)
}

fn drop_all(filter: SocketFilter) -> ShellAct {
    ShellAct::Administer(Administration::Drop(filter))
}

fn in_states(states: &[&'static str]) -> SocketFilter {
    SocketFilter { states: states.to_vec(), ..SocketFilter::default() }
}

/// The only act of a text.
fn only(text: &str) -> ShellAct {
    let mut acts = read(text).unwrap_or_else(|line| panic!("{line}"));
    assert_eq!(acts.len(), 1, "{text}: {acts:?}");
    acts.remove(0)
}

/// The filter of a line, and the count that satisfies it.
fn counted(text: &str) -> (SocketFilter, HowMany) {
    match only(text) {
        ShellAct::Count { filter, expected } => (filter, expected),
        other => panic!("{text} does {other:?}"),
    }
}

#[track_caller]
fn unsupported(text: &str) -> UnsupportedLine {
    match read(text) {
        Err(line) => line,
        Ok(acts) => panic!("{text} does {acts:?}"),
    }
}

#[test]
fn variables_are_set_in_every_spelling() {
    let sack = || set("net.ipv4.tcp_sack", "0");
    for text in [
        "sysctl net.ipv4.tcp_sack=0",
        "sysctl -q -w net.ipv4.tcp_sack=0",
        "sysctl -qw 'net.ipv4.tcp_sack = 0'",
        "sysctl -w net.ipv4.tcp_sack = 0",
        "sysctl -w net/ipv4/tcp_sack=\"0\"",
        "sudo /sbin/sysctl -w net.ipv4.tcp_sack=0 > /dev/null 2>&1",
        "echo 0 > /proc/sys/net/ipv4/tcp_sack",
        "echo -n 0 >/proc/sys/net/ipv4/tcp_sack 2>/dev/null",
        "../common/set_sysctls.py /proc/sys/net/ipv4/tcp_sack=0",
    ] {
        assert_eq!(only(text), sack(), "{text}");
    }
    let several = read("sysctl -w net.ipv4.tcp_sack=0 net.ipv4.tcp_timestamps=1");
    assert_eq!(several, Ok(vec![sack(), set("net.ipv4.tcp_timestamps", "1")]));
    let range = "sysctl -q net.ipv4.ip_local_port_range=\"1024 2048\"";
    assert_eq!(only(range), set("net.ipv4.ip_local_port_range", "1024 2048"));
    assert_eq!(only("sysctl net.ipv4.tcp_sack"), ShellAct::NoEffect);
    // The host decides about the name.
    assert_eq!(only("sysctl -w vm.swappiness=1"), set("vm.swappiness", "1"));
}

#[test]
fn block_has_many_lines() {
    let text = "
        # What this is about.
        ./defaults.sh
        ./set_sysctls.py /proc/sys/net/ipv4/tcp_timestamps=0 \\
                         /proc/sys/net/ipv4/tcp_sack=1; true && sleep 1
        sysctl -q \"net.ipv4.tcp_retries2=5\" # and more
    ";
    let expected = vec![
        purge(),
        set("net.ipv4.tcp_timestamps", "0"),
        set("net.ipv4.tcp_sack", "1"),
        ShellAct::NoEffect,
        ShellAct::NoEffect,
        set("net.ipv4.tcp_retries2", "5"),
    ];
    assert_eq!(read(text), Ok(expected));
    assert_eq!(read(" \n # nothing\n;"), Ok(vec![]));
}

#[test]
fn unobservable_variables_have_no_effect() {
    for text in [
        "sysctl -w net.inet.tcp.log_debug=1",
        "sysctl -w net.inet.tcp.bb.pcb_ids_tot=5",
        "sysctl -w net.inet.tcp.ecn.maxretries=1",
        "sysctl -w net.inet.tcp.functions_default=freebsd",
        "kldload -n cc_newreno",
        "sysctl kern.timecounter.alloweddeviation=0",
        "ifconfig tun0 up",
        "ip link set dev tun0 up",
        "ethtool -K tun0 tso off gso off",
        "tc qdisc add dev tun0 root pfifo",
        "/tmp/sysctl_restore_${PPID}.sh",
        "true",
    ] {
        assert_eq!(only(text), ShellAct::NoEffect, "{text}");
    }
}

#[test]
fn default_that_is_changed_is_for_the_host_to_judge() {
    let ecn = "net.inet.tcp.ecn.maxretries";
    assert_eq!(only(&format!("sysctl -w {ecn}=2")), set(ecn, "2"));
    let stack = "net.inet.tcp.functions_default";
    assert_eq!(only(&format!("sysctl {stack}=rack")), set(stack, "rack"));
    // A tunable is set even to its default: it may have been changed before.
    let rexmit = "net.inet.tcp.rexmit_initial";
    assert_eq!(only(&format!("sysctl -w {rexmit}=1000")), set(rexmit, "1000"));
}

#[test]
fn caches_are_purged() {
    let host_cache = "sysctl -w net.inet.tcp.hostcache.purgenow=1";
    assert_eq!(only(host_cache), ShellAct::Administer(Administration::PurgeHostCache));
    for text in [
        "ip tcp_metrics flush all > /dev/null 2>&1",
        "ip tcp_metrics flush",
        "sysctl -q net.ipv4.route.flush=1",
    ] {
        assert_eq!(only(text), purge(), "{text}");
    }
}

#[test]
fn sockets_are_counted_through_pipes() {
    let waiting = || in_states(&["TIME_WAIT"]);
    for (text, expected) in [
        (
            "sockstat -4 -P tcp -s | grep packetdril | grep -c TIME_WAIT | grep 1",
            HowMany::Exactly(1),
        ),
        (
            "sockstat -6 -P tcp -s | grep packetdril | grep -c TIME_WAIT | grep 0",
            HowMany::Exactly(0),
        ),
        ("netstat -an -p tcp | grep TIME_WAIT", HowMany::AtLeast(1)),
        ("! netstat -tan | grep -q TIME_WAIT", HowMany::AtMost(0)),
        ("netstat -an | grep TIME_WAIT | wc -l | tr -d ' ' | grep -x 2", HowMany::Exactly(2)),
        ("ss -Htan state time-wait | wc -l | grep 3", HowMany::Exactly(3)),
        ("test $(ss -tan state time-wait | grep -c tcp) -eq 1", HowMany::Exactly(1)),
        ("[ \"$(netstat -an | grep -c TIME_WAIT)\" -ge 2 ]", HowMany::AtLeast(2)),
        ("test $(netstat -an | grep TIME_WAIT | wc -l) -lt 2", HowMany::AtMost(1)),
    ] {
        assert_eq!(counted(text), (waiting(), expected), "{text}");
    }
}

#[test]
fn count_may_ask_for_ports_and_several_states() {
    let (filter, _) = counted("netstat -an | grep :8080 | grep -E 'ESTABLISHED|CLOSE_WAIT'");
    let states = vec!["ESTABLISHED", "CLOSE_WAIT"];
    assert_eq!(filter, SocketFilter { states, port: Some(8080), ..SocketFilter::default() });
    let (filter, _) = counted("ss -Htn state established '( sport = :8080 and dport = :99 )'");
    assert_eq!((filter.local_port, filter.remote_port), (Some(8080), Some(99)));
    assert_eq!(filter.states, ["ESTABLISHED"]);
    assert_eq!(counted("sockstat -4 -l -P tcp | grep tcp4").0.states, ["LISTEN"]);
    assert_eq!(counted("sockstat -s | grep FIN_WAIT").0.states, ["FIN_WAIT1", "FIN_WAIT2"]);
    assert_eq!(counted("sockstat -s | grep -c CLOSED | grep 1").0.states, ["CLOSE"]);
    assert_eq!(counted("sockstat -s | grep -c SYN_RCVD | grep 1").0.states, ["SYN_RECV"]);
}

#[test]
fn connections_are_dropped() {
    let four =
        SocketFilter { local_port: Some(8080), remote_port: Some(99), ..SocketFilter::default() };
    assert_eq!(only("tcpdrop 192.168.0.1 8080 192.0.2.1 99"), drop_all(four.clone()));
    assert_eq!(only("tcpdrop -s TIME_WAIT -a"), drop_all(in_states(&["TIME_WAIT"])));
    let ShellAct::Administer(Administration::Drop(all)) = only("tcpdrop -a") else {
        panic!("it drops")
    };
    assert!(!all.states.contains(&"LISTEN") && all.states.len() == 9);
    assert_eq!(only("ss -K sport = :8080 dport = :99"), drop_all(four));
}

#[test]
fn unknown_line_is_reported_in_full() {
    for text in [
        "setkey -F",
        "iptables -A INPUT -j DROP",
        "ip route change default via 1.2.3.4 initcwnd 2",
        "ifconfig tun0 mtu 1400",
        "tc qdisc add dev tun0 root fq",
        "ethtool -K tun0 ntuple on",
        "kldstat -q -m tcpmd5 || kldload tcpmd5",
        "echo 1 > /etc/passwd",
        "sysctl -p /etc/sysctl.conf",
        "sysctl -w net.ipv4.tcp_wmem=\"4096 $((1 << 20)) 2\"",
        "sysctl -w x=`id`",
        "sockstat -s | awk '{print $1}' | grep 1",
        "sockstat -s | grep -c SOMETHING | grep 1",
        "sockstat -s | wc -l | grep 1",
        "sockstat -l | grep TIME_WAIT",
        "netstat -s | grep retransmit",
        "ss -tan state time-wait | wc -l | grep 1",
        "test -f /etc/passwd",
        "rm -rf /",
        "true &",
        "true | false",
        "true < /dev/null",
        "echo 'unfinished",
        "tcpdrop -l -a | sh",
        "! true",
        "| true",
        "true |",
        "!",
    ] {
        unsupported(text);
    }
    let line = unsupported("true\n  setkey -c < keys  \ntrue");
    assert_eq!(line, UnsupportedLine("setkey -c < keys".into()));
    assert_eq!(line.to_string(), "`setkey -c < keys` is not known");
    assert_eq!(unsupported("true; setkey -F; true").0, "setkey -F");
}

#[test]
fn counts_are_judged_by_their_command() {
    let holds = |expected: HowMany, of: [bool; 3]| {
        assert_eq!([0, 1, 2].map(|count| expected.is_met(count)), of, "{expected}");
        let not = of.map(|one| !one);
        assert_eq!([0, 1, 2].map(|count| expected.negated().is_met(count)), not, "! {expected}");
    };
    holds(HowMany::Exactly(1), [false, true, false]);
    holds(HowMany::NotExactly(1), [true, false, true]);
    holds(HowMany::AtLeast(1), [false, true, true]);
    holds(HowMany::AtMost(1), [true, true, false]);
    holds(HowMany::AtLeast(0), [true, true, true]);
}

proptest! {
    #[test]
    fn no_text_panics(text in ".{0,40}") {
        let _ = read(&text);
    }

    #[test]
    fn no_line_of_known_words_panics(words in prop::collection::vec(prop::sample::select(vec![
        "sysctl", "-w", "a=1", "=", "sockstat", "-4s", "-P", "tcp", "|", "grep", "-c", "1", "ss", "-K",
        "state", "sport", ":80", "test", "$(", ")", "-eq", "!", ";", ">", "2", "&1", "'", "\"", "\n",
        "TIME_WAIT", "wc", "-l", "[", "]", "tcpdrop", "echo", "/dev/null", "\\", "#", "ip", "tc",
    ]), 0..12)) {
        let _ = read(&words.join(" "));
        let _ = read(&words.concat());
    }
}
