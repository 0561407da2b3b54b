use clap::Parser;
use whimbrel_tcp::Tunables;

use super::*;

#[derive(Parser)]
struct Typed {
    #[command(flatten)]
    arguments: Arguments,
}

fn plan(words: &[&str]) -> Result<ServePlan, Failure> {
    let words = std::iter::once("serve").chain(words.iter().copied());
    let arguments = Typed::try_parse_from(words).unwrap().arguments;
    // As on a machine that has IPv6.
    over(&arguments.wire, &arguments)
}

fn usage_error(words: &[&str]) -> String {
    match plan(words) {
        Err(Failure::Usage(text)) => text,
        other => panic!("{other:?}"),
    }
}

#[test]
fn without_options_port_80_of_both_addresses_is_served() {
    let plan = plan(&[]).unwrap();
    let listen: Vec<_> = plan.listen.iter().map(ToString::to_string).collect();
    assert_eq!(listen, ["10.9.0.2:80", "[fd09::2]:80"]);
    assert!(matches!(plan.content, ContentPlan::Web(SitePlan::Fixed(128), Protocol::Http1)));
}

#[test]
fn an_unspecified_address_is_any_of_its_family() {
    assert!(plan(&["-l", "0.0.0.0:8080", "-l", "[::]:8080"]).is_ok());
    let text = usage_error(&["-w", "tun:t0,addr=10.1.0.2/24", "-l", "[::]:80"]);
    assert!(text.contains("which has 10.1.0.2:"), "{text}");
}

#[test]
fn port_alone_is_that_of_every_address_and_names_are_resolved() {
    let listen = |words: &[&str]| {
        let plan = plan(words).unwrap();
        plan.listen.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    for typed in ["8080", ":8080"] {
        assert_eq!(listen(&["-l", typed]), ["10.9.0.2:8080", "[fd09::2]:8080"]);
        assert_eq!(listen(&["-w", "kernel:", "-l", typed]), ["0.0.0.0:8080"]);
    }
    let named = listen(&["-w", "kernel:", "-l", "localhost:8080"]);
    assert!(named == ["127.0.0.1:8080"] || named == ["[::1]:8080"], "{named:?}");
    assert!(usage_error(&["-l", "localhost:80"]).contains("which has 10.9.0.2 and fd09::2"));
}

#[test]
fn bad_listen_address_is_refused_with_valid_ones() {
    assert!(usage_error(&["-l", "10.9.0.3:80"]).contains("which has 10.9.0.2 and fd09::2"));
    assert!(usage_error(&["-l", "10.9.0.2"]).contains("ADDR:PORT"));
    assert!(usage_error(&["-l", "10.9.0.2:0"]).contains("1 to 65535"));
}

#[test]
fn invalid_wire_is_refused() {
    assert!(usage_error(&["-w", "tin:x"]).starts_with("--wire: "));
    assert!(usage_error(&["-w", "tun:t0,addr=10.1.0.2/24,queues=0"]).contains("1 to 256"));
}

#[test]
fn tunables_are_set_in_the_order_in_which_they_are_typed() {
    let typed = ["-S", "msl=5s", "--set", "TCP_MSL=2000", "-S", "ip_local_port_range=1024 2047"];
    let tunables = plan(&typed).unwrap().setup.rules.tunables;
    assert_eq!(tunables.value_of("msl").as_deref(), Some("2s"));
    assert_eq!((tunables.port_first, tunables.port_last), (1_024, 2_047));
    assert_eq!(plan(&[]).unwrap().setup.rules.tunables, Tunables::default());
}

#[test]
fn syncookies_option_overrides_its_tunable() {
    let rule = |words: &[&str]| {
        let tunables = plan(words).unwrap().setup.rules.tunables;
        tunables.value_of("net.ipv4.tcp_syncookies").unwrap()
    };
    assert_eq!(rule(&[]), "auto");
    assert_eq!(rule(&["-S", "net.ipv4.tcp_syncookies=0"]), "off");
    assert_eq!(rule(&["--syncookies", "always", "-S", "net.ipv4.tcp_syncookies=0"]), "always");
    assert!(usage_error(&["-w", "kernel:", "--syncookies", "off"]).contains("sysctl"));
}

#[test]
fn invalid_tunable_is_refused_with_remedy() {
    assert!(usage_error(&["-S", "msl"]).starts_with("--set: \"msl\" has no value: give KEY="));
    let text = usage_error(&["-S", "tw.sin=linux"]);
    assert!(text.starts_with("--set: no tunable is named \"tw.sin\": perhaps tw.syn"), "{text}");
    let text = usage_error(&["-S", "tw.syn=lunix"]);
    assert!(text.contains("one of rfc6191, by-sequence, linux"), "{text}");
    let text = usage_error(&["-S", "ports.first=65000"]);
    assert!(text.contains("give a port from 65000"), "{text}");
}

#[test]
fn options_that_exclude_each_other_are_refused() {
    for words in [
        ["--body", "1", "--file-root", "/"].as_slice(),
        &["--upload"],
        &["--quiet", "-v"],
        &["--backlog", "0"],
        &["--syncookies", "on"],
        &["--body", "x"],
    ] {
        let words = std::iter::once("serve").chain(words.iter().copied());
        assert!(Typed::try_parse_from(words).is_err());
    }
}
