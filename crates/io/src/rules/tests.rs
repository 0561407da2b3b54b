use super::*;
use crate::test_file::TestFile;

fn variables(set: &[(&str, &str)]) -> Variables {
    Variables::new(set.iter().map(|(name, value)| ((*name).into(), (*value).into()))).unwrap()
}

#[test]
fn environment_names_a_file_and_overrides_it() {
    let file =
        TestFile::new("gathered", "profile = \"linux\"\n[tunables]\nack_every = 3\nmsl = \"7s\"\n");
    let named = file.name();
    let environment = variables(&[("WHIMBREL_CONFIG", named), ("WHIMBREL_ACK_EVERY", "4")]);
    let mut rules = Rules::gather(Sources { environment, ..Sources::default() }).unwrap();
    assert_eq!((rules.profile.name, rules.tunables.ack_every), ("linux", 4));
    let origin = |rules: &Rules, name: &str| rules.origin(Tunables::named(name)[0]).cloned();
    assert_eq!(origin(&rules, "ack_every"), Some(Origin::Environment("WHIMBREL_ACK_EVERY".into())));
    assert_eq!(origin(&rules, "msl.link"), Some(Origin::File(format!("{named}:4"))));
    assert_eq!(origin(&rules, "tw.syn"), Some(Origin::Profile("linux-6.18")));
    assert_eq!(origin(&rules, "retries"), None);
    rules.set("ack_every", "5", Origin::Option("--set")).unwrap();
    assert_eq!(rules.tunables.ack_every, 5, "a program's own word is the last");
}

#[test]
fn what_is_shown_is_a_file_that_means_the_same() {
    let environment = variables(&[("WHIMBREL_PROFILE", "freebsd"), ("WHIMBREL_MSL", "5s")]);
    let rules = Rules::gather(Sources { environment, ..Sources::default() }).unwrap();
    let file = TestFile::new("shown", rules.to_string());
    let sources = Sources { file: Some(file.path().into()), ..Sources::default() };
    let again = Rules::gather(sources).unwrap();
    assert_eq!((&again.tunables, again.profile), (&rules.tunables, rules.profile));
}

#[test]
fn values_that_contradict_each_other_name_who_said_so() {
    let environment = variables(&[("WHIMBREL_PORTS_LAST", "2000")]);
    let rules = Rules::gather(Sources { environment, ..Sources::default() }).unwrap();
    let text = rules.validate().unwrap_err().to_string();
    assert!(text.starts_with("WHIMBREL_PORTS_LAST: ports.last=2000"), "{text}");
}
