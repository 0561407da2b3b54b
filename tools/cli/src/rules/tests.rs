#[path = "../../../../tests/harness/test_file.rs"]
mod test_file;

use clap::Parser;
use whimbrel_tcp::Tunables;

use super::*;
use test_file::TestFile;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    rules: RuleOptions,
}

fn rules_of(words: &[&str], variables: &[(&str, &str)]) -> Result<Rules, Failure> {
    let line = Line::try_parse_from([&["whimbrel"], words].concat()).unwrap();
    let owned = variables.iter().map(|(name, value)| ((*name).into(), (*value).into()));
    line.rules.rules_in(Variables::new(owned)?, &[])
}

fn refusal(words: &[&str], variables: &[(&str, &str)]) -> String {
    let Err(Failure::Usage(text)) = rules_of(words, variables) else { panic!("{words:?}") };
    text
}

#[test]
fn later_setting_prevails() {
    let file =
        TestFile::new("order", "[tunables]\nack_every = 3\nmsl = \"7s\"\ntw.syn = \"linux\"\n");
    let file_words = ["--config", file.name(), "--profile", "linux"];
    let origin = |rules: &Rules, name: &str| {
        let origin = rules.origin(Tunables::named(name)[0]);
        origin.map_or_else(|| "default".into(), ToString::to_string)
    };

    let rules = rules_of(&["--profile", "linux"], &[]).unwrap();
    assert_eq!(
        (rules.tunables.ack_every, origin(&rules, "ack_every")),
        (1, "profile linux".into())
    );

    let rules = rules_of(&file_words, &[]).unwrap();
    let place = format!("{}:2", file.name());
    assert_eq!((rules.tunables.ack_every, origin(&rules, "ack_every")), (3, place));

    let variables = [("WHIMBREL_ACK_EVERY", "4"), ("HOME", "/")];
    let rules = rules_of(&file_words, &variables).unwrap();
    let expected = (4, "WHIMBREL_ACK_EVERY".into());
    assert_eq!((rules.tunables.ack_every, origin(&rules, "ack_every")), expected);

    let words = [&file_words[..], &["-S", "ack_every=5"]].concat();
    let rules = rules_of(&words, &variables).unwrap();
    assert_eq!((rules.tunables.ack_every, origin(&rules, "ack_every")), (5, "--set".into()));
    assert_eq!(origin(&rules, "msl.link"), format!("{}:3", file.name()), "a group's members too");
    assert_eq!(origin(&rules, "retries"), "default");
}

#[test]
fn profile_option_overrides_environment_and_file() {
    let file = TestFile::new("profile", "profile = \"freebsd\"\n");
    let name = |words: &[&str], variables: &[(&str, &str)]| {
        rules_of(words, variables).unwrap().profile.name
    };
    let config = ("WHIMBREL_CONFIG", file.name());
    assert_eq!(name(&[], &[]), "whimbrel");
    assert_eq!(name(&[], &[config]), "freebsd");
    assert_eq!(name(&[], &[config, ("WHIMBREL_PROFILE", "linux")]), "linux");
    let all = [config, ("WHIMBREL_PROFILE", "linux")];
    assert_eq!(name(&["--profile", "whimbrel"], &all), "whimbrel");
}

#[test]
fn printed_config_reads_back_equal() {
    let words = ["--profile", "freebsd", "-S", "msl=5s", "-S", "ports.first=40000"];
    let rules = rules_of(&words, &[]).unwrap();
    let text = rules.to_string();
    for (rule, origin) in [
        ("profile = \"freebsd\"", "# --profile"),
        ("\"msl.remote\" = \"5s\"", "# --set"),
        ("\"tw.syn\" = \"by-sequence\"", "# profile freebsd-15"),
        ("\"isn\" = \"rfc6528\"", "# default"),
    ] {
        let is = |line: &str| line.starts_with(rule) && line.ends_with(origin);
        assert!(text.lines().any(is), "{rule} {origin} is not in:\n{text}");
    }
    let file = TestFile::new("printed", &text);
    let again = rules_of(&["--config", file.name()], &[]).unwrap();
    assert_eq!(again.tunables, rules.tunables);
    assert_eq!(again.profile, rules.profile);
}

#[test]
fn config_error_names_file_line_key_value_and_remedy() {
    let file =
        TestFile::new("wrong", "profile = \"linux\"\n[tunables]\n\nnet.ipv4.tcp_retries2 = 31\n");
    let text = refusal(&["--config", file.name()], &[]);
    let said = format!("{}:4: net.ipv4.tcp_retries2=31: give 1 to 30", file.name());
    assert!(text.starts_with(&said), "{text}");
    let file = TestFile::new("typo", "[tunables]\ntcp_syn_retrys = 3\n");
    let text = refusal(&["--config", file.name()], &[]);
    assert!(text.contains(":2: ") && text.contains("net.ipv4.tcp_syn_retries"), "{text}");
    let text = refusal(&[], &[("WHIMBREL_TCP_RETRIES2", "31")]);
    assert!(text.starts_with("WHIMBREL_TCP_RETRIES2: ") && text.contains("1 to 30"), "{text}");
    let text = refusal(&["-S", "msl"], &[]);
    assert!(text.starts_with("--set: ") && text.contains("KEY=VALUE"), "{text}");
}

#[test]
fn contradicting_values_name_their_origins() {
    let file = TestFile::new("ports", "[tunables]\n\"ports.last\" = 2000\n");
    let text = refusal(&["--config", file.name()], &[]);
    assert!(text.starts_with(&format!("{}:2: ports.last=2000", file.name())), "{text}");
}

#[test]
fn document_has_settings_that_differ_from_default() {
    let document = document(&rules_of(&["-S", "ack_every=2"], &[]).unwrap());
    let expected = json!({
        "profile": "whimbrel",
        "tunables": {"ack_every": {"value": "2", "origin": "--set"}},
    });
    assert_eq!(document, expected);
}

#[test]
fn kernel_wire_refuses_tunables() {
    for words in [&["--profile", "linux"][..], &["-S", "msl=1s"], &["--config", "x.toml"]] {
        let line = Line::try_parse_from([&["whimbrel"], words].concat()).unwrap();
        let Err(Failure::Usage(text)) = line.rules.none_for_the_kernel(&[]) else {
            panic!("{words:?}")
        };
        assert!(text.contains("sysctl"), "{text}");
    }
    let options = RuleOptions::default();
    assert!(options.none_for_the_kernel(&[]).is_ok());
    let short = Shorthand { option: "--window", name: "buffers.send", value: "64k".into() };
    assert!(options.none_for_the_kernel(&[short]).is_err());
}
