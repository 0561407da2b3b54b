use super::*;

fn refusal(text: &str) -> String {
    File::parse("a.toml", text).unwrap_err().to_string()
}

#[test]
fn names_are_quoted_or_not_and_values_are_of_any_simple_kind() {
    let text = "profile = 'linux'\n[tunables]\nnet.ipv4.tcp_sack = false\n\"ports.first\" = 40_000\n\
                'msl' = '5s'\n[tunables.tw]\nsyn = \"linux\"\n";
    let file = File::parse("a.toml", text).unwrap();
    let lines: Vec<_> =
        file.tunables.iter().map(|it| (&it.place[..], &it.name[..], &it.value[..])).collect();
    assert_eq!(
        lines,
        [
            ("a.toml:3", "net.ipv4.tcp_sack", "off"),
            ("a.toml:4", "ports.first", "40000"),
            ("a.toml:5", "msl", "5s"),
            ("a.toml:7", "tw.syn", "linux"),
        ],
        "in the order of the file"
    );
    assert_eq!(file.profile.map(|(profile, _)| profile.name), Some("linux"));
}

#[test]
fn what_means_nothing_is_named_with_its_line() {
    for (text, parts) in [
        ("[tunables]\nmsl = 1.5", ["a.toml:2: ", "msl: give a text"]),
        ("[tunables]\nmsl = [1]", ["a.toml:2: ", "whole number"]),
        ("[tunables]\nmsl = 0x10", ["a.toml:2: ", "whole number"]),
        ("\nprofil = 'linux'", ["a.toml:2: profil ", "profile = \"NAME\""]),
        ("profile = 'plan9'", ["a.toml:1: profile: \"plan9\"", "freebsd"]),
        ("profile = 3", ["a.toml:1: profile ", "[tunables]"]),
        ("[tunables]\nmsl = = 3", ["a.toml:2: ", "quoted"]),
        ("[tunables]\nports = 'random'\nports.first = 1", ["a.toml:3: ", "\"ports.first\""]),
    ] {
        let error = refusal(text);
        for part in parts {
            assert!(error.contains(part), "{part:?} is not in: {error}");
        }
    }
}

#[test]
fn a_file_that_is_not_there_says_so() {
    let text = File::read("/nowhere.toml".into()).unwrap_err().to_string();
    assert!(text.contains("/nowhere.toml: No such file"), "{text}");
}
