//! The rules of the stack from profile, file, environment and `-S`, as commands take them.

use std::fs;

use serde_json::Value;

use crate::running::{fail, succeed, whimbrel};
use crate::schema::checked;
use crate::scratch::scratch;

#[test]
fn print_config_shows_origins_in_every_stack_command() {
    for command in ["serve", "load", "crr", "bulk send", "script run x.pkt"] {
        let words = format!("{command} --profile freebsd -S msl=5s --print-config");
        let text = succeed(whimbrel(&words).env("WHIMBREL_TCP_SYN_RETRIES", "3"));
        for (rule, origin) in [
            ("profile = \"freebsd\"", "--profile"),
            ("\"msl.link\" = \"5s\"", "--set"),
            ("\"net.ipv4.tcp_syn_retries\" = \"3\"", "WHIMBREL_TCP_SYN_RETRIES"),
            ("\"tw.rst\" = \"ignore\"", "profile freebsd-15"),
            ("\"net.ipv4.tcp_sack\" = \"on\"", "default"),
        ] {
            let is = |line: &str| line.starts_with(rule) && line.ends_with(&format!("# {origin}"));
            assert!(text.lines().any(is), "{rule} of {origin} is not in:\n{text}");
        }
    }
}

#[test]
fn config_file_applies_and_is_in_the_document() {
    let file = scratch("config.toml");
    fs::write(&file, "profile = \"linux\"\n\n[tunables]\n\"ports.first\" = 50000\n").unwrap();
    let words = format!("load -n 20 -c 2 -K --json --config {}", file.display());
    let document: Value = checked(&succeed(&mut whimbrel(&words)));
    let rules = &document["rules"];
    assert_eq!(rules["profile"], "linux");
    assert_eq!(rules["tunables"]["ports.first"]["origin"], format!("{}:4", file.display()));
    assert_eq!(rules["tunables"]["tw.syn"]["origin"], "profile linux-6.18");
    let text = succeed(&mut whimbrel(&words.replace("--json", "")));
    // From 50000 to 60999.
    assert!(text.contains("11,000"), "the stack itself has these ports: {text}");

    fs::write(&file, "[tunables]\nmsl = 300\n").unwrap();
    let (code, error) = fail(&mut whimbrel(&words));
    assert_eq!(code, 2);
    assert!(error.contains(&format!("{}:2: msl", file.display())), "{error}");
    fs::remove_file(&file).unwrap();
}

#[test]
fn invalid_variable_is_an_error() {
    let (code, error) = fail(whimbrel("load -n 1").env("WHIMBREL_TCP_SYN_RETRYS", "3"));
    assert_eq!(code, 2);
    assert!(
        error.contains("WHIMBREL_TCP_SYN_RETRYS") && error.contains("tcp_syn_retries"),
        "{error}"
    );
}

#[test]
fn set_help_lists_all_tunables_with_value_and_range() {
    for command in ["serve", "load", "crr", "bulk send", "script run x.pkt", "pcap -w tun:x"] {
        let words = format!("{command} -S help --profile freebsd -S syn_retries=9");
        let text = succeed(&mut whimbrel(&words));
        for info in whimbrel_tcp::TUNABLES {
            let at = text.find(&format!("\n{}=", info.name.text));
            let entry = &text[at.unwrap_or_else(|| panic!("{}: {text}", info.name.text))..];
            let entry = entry[1..].split("\n\n").next().unwrap();
            let (rule, rest) = entry.split_once(char::is_whitespace).unwrap();
            assert!(!rule.ends_with('='), "{entry}");
            if let Some((least, most)) = info.range() {
                assert!(entry.contains(&format!("{least} to {most}")), "{entry}");
            }
            let help = rest.lines().last().unwrap();
            assert!(help.starts_with("    ") && help.trim().len() > 2, "{entry}");
        }
        assert!(text.contains("net.ipv4.tcp_syn_retries=9  "), "{text}");
        assert!(text.contains("tw.rst=ignore"), "the profile's: {text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }
}

#[test]
fn client_and_server_may_have_different_settings() {
    // The client keeps the TIME-WAIT, which is not tested; the server listens without timestamps.
    let words = "load -n 20 -c 2 --json --profile linux --server-profile freebsd \
                 --server-set net.ipv4.tcp_timestamps=0 --local-ports 50000-50999";
    let document: Value = checked(&succeed(&mut whimbrel(words)));
    assert_eq!(document["rules"]["profile"], "linux");
    assert_eq!(document["rules"]["tunables"]["net.ipv4.tcp_timestamps"], Value::Null);
    let server = &document["server_rules"];
    assert_eq!(server["profile"], "freebsd");
    let timestamps = &server["tunables"]["net.ipv4.tcp_timestamps"];
    assert_eq!(timestamps["origin"], "--server-set", "{server}");
    assert_eq!(server["tunables"]["ports.first"]["origin"], "--local-ports");

    // Without a separate profile it has the client's settings.
    let words = "load -n 20 -c 2 --json --profile linux --server-set msl=1s";
    let document: Value = checked(&succeed(&mut whimbrel(words)));
    let server = &document["server_rules"];
    assert_eq!(server["profile"], "linux");
    assert_eq!(server["tunables"]["tw.syn"]["origin"], "profile linux-6.18");
    assert_eq!(server["tunables"]["msl.link"]["origin"], "--server-set");
    let alone: Value = serde_json::from_str(&succeed(&mut whimbrel("load -n 2 --json"))).unwrap();
    assert_eq!(alone["server_rules"], Value::Null);
}

#[test]
fn server_uses_its_own_settings() {
    let load = "load -z 5s -c 1 -K -q 100 -w mem:delay=1ms --clock virtual --json";
    let held = |words: &str| {
        let document: Value =
            serde_json::from_str(&succeed(&mut whimbrel(&format!("{load} {words}")))).unwrap();
        document["stack"]["server"]["time_wait"].as_u64().unwrap()
    };
    // The server closes first: of 500 connections it holds those of the last 2 MSL.
    assert!(held("") > 480);
    assert!((150..=250).contains(&held("--server-set msl=1s")));
    assert!((150..=250).contains(&held("-S msl=1s")));
    assert!(held("-S msl=1s --server-profile whimbrel") > 480);
}

#[test]
fn print_config_has_server_settings_and_reads_back() {
    let file = scratch("both.toml");
    let words = "crr --profile linux --server-profile freebsd --print-config";
    let text = succeed(&mut whimbrel(words));
    let (client, server) = text.split_once("# The rules of the server in this process.").unwrap();
    assert!(client.contains("profile = \"linux\""), "{text}");
    assert!(server.contains("# profile = \"freebsd\"  # --server-profile"), "{text}");
    assert!(server.contains("\n# \"tw.rst\" = \"ignore\""), "{text}");
    fs::write(&file, &text).unwrap();
    let again = succeed(&mut whimbrel(&format!("crr --config {} --print-config", file.display())));
    assert!(again.contains("profile = \"linux\"") && !again.contains("freebsd"), "{again}");
    fs::remove_file(&file).unwrap();
}
