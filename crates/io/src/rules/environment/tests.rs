use std::collections::BTreeMap;

use super::*;

fn environment(variables: &[(&str, &str)]) -> Result<Variables, RulesError> {
    Variables::new(variables.iter().map(|(name, value)| ((*name).into(), (*value).into())))
}

#[test]
fn every_name_has_a_variable_of_its_own() {
    let mut owners = BTreeMap::new();
    for name in names() {
        let short = name.strip_prefix("net.ipv4.").unwrap_or(name);
        for word in [in_capitals(name), in_capitals(short)] {
            let owner = *owners.entry(word.clone()).or_insert(name);
            assert_eq!(owner, name, "{word}");
            assert_eq!(name_of(&word), Some(name));
        }
    }
    assert_eq!(name_of("TCP_SYN_RETRIES"), Some("net.ipv4.tcp_syn_retries"));
    assert_eq!(name_of("NET_IPV4_TCP_SYN_RETRIES"), Some("net.ipv4.tcp_syn_retries"));
}

#[test]
fn variables_of_others_mean_nothing_and_of_ours_something() {
    let given = [("WHIMBREL_REQUIRE_NET", "1"), ("PATH", "/bin"), ("WHIMBREL_MSL", "5s")];
    let environment = environment(&given).unwrap();
    let [variable] = &environment.tunables[..] else { panic!("{environment:?}") };
    assert_eq!((variable.name, &variable.value[..]), ("msl", "5s"));
}

#[test]
fn a_variable_that_means_nothing_is_named_with_what_would() {
    let refused = environment(&[("WHIMBREL_TCP_SYN_RETRYS", "3")]);
    let text = refused.unwrap_err().to_string();
    for part in ["WHIMBREL_TCP_SYN_RETRYS: ", "net.ipv4.tcp_syn_retries", "unset"] {
        assert!(text.contains(part), "{part:?} is not in: {text}");
    }
}
