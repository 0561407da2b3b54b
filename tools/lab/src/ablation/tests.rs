//! The values switched back, and the results of a few of them.

use whimbrel_tcp::TUNABLES;

use super::super::{CASES, Measured, Verdict};
use super::*;

fn case(name: &str) -> &'static Case {
    Case::by_name(name).unwrap()
}

fn of(name: &str, vary: &[(&str, &str)]) -> Vec<Setup> {
    let vary = vary.iter().map(|(key, value)| ((*key).into(), vec![(*value).into()])).collect();
    ablate(case(name), &Selection { vary, ..Selection::default() }).unwrap()
}

fn differing(rules: &Tunables, other: &Tunables) -> Vec<&'static str> {
    let differs = |info: &&TunableInfo| info.value(rules) != info.value(other);
    TUNABLES.iter().filter(differs).map(|info| info.field).collect()
}

fn verdict(setup: &Setup) -> (Measured, Verdict) {
    let measured = setup.measure(&|| true).unwrap();
    let verdict = setup.judge(&measured);
    (measured, verdict)
}

#[test]
fn each_profile_value_is_reset_alone() {
    for case in CASES.into_iter().filter(|case| !case.ablation.is_empty()) {
        let setups = ablate(case, &Selection::default()).unwrap();
        let (whole, trials) = setups.split_first().unwrap();
        assert_eq!((whole.role, &whole.back), (Some(Role::Report), &None));
        let mut switched: Vec<_> = trials
            .iter()
            .flat_map(|trial| {
                assert!(trial.role == Some(Role::Trial) && trial.back.is_some());
                let fields = differing(&trial.rules, &whole.rules);
                assert!(!fields.is_empty(), "{}: {:?}", case.name, trial.back);
                fields
            })
            .collect();
        let mut all = differing(&whole.rules, &Tunables::default());
        // Ports 32,768 to 5,000 are no range.
        all.retain(|field| (case.name, *field) != ("fddi-70ms", "port_first"));
        switched.sort_unstable();
        all.sort_unstable();
        assert_eq!(switched, all, "{}", case.name);
    }
    assert!(of("freebsd-qps", &[]).is_empty());
}

#[test]
fn decisive_values_suffice_without_the_others() {
    // A hundred ports: used up at once, and none comes free before the end.
    let quick = [("lasts", "2s"), ("ports.first", "49152"), ("ports.last", "49251")];
    let setups = of("macos-16k", &quick);
    assert_eq!(verdict(&setups[0]).1, Verdict::Reproduced);
    let trial =
        |name: &str| setups.iter().find(|it| it.back.as_ref().is_some_and(|it| it.name == name));
    let reuse = trial("net.ipv4.tcp_tw_reuse").unwrap();
    let (measured, cured) = verdict(reuse);
    assert_eq!(cured, Verdict::FailsNoMore, "{:?}", measured.figures);
    assert_eq!(verdict(trial("buffers").unwrap()).1, Verdict::StillFails);

    let alone = only(&setups[0], reuse.back.as_slice()).unwrap();
    assert_eq!(verdict(&alone).1, Verdict::StillFails);
    let none = only(&setups[0], &[]).unwrap();
    assert_eq!(verdict(&none).1, Verdict::FailsNoMore);
}

#[test]
fn another_profile_is_switched_in_the_same_way_with_every_seed() {
    let selection = Selection {
        profiles: vec![Profile::by_name("freebsd-15").unwrap()],
        seeds: vec![3, 4],
        ..Selection::default()
    };
    let setups = ablate(case("macos-16k"), &selection).unwrap();
    assert!(setups.iter().all(|setup| setup.profile == "freebsd-15"));
    let wholes = setups.iter().filter(|setup| setup.back.is_none());
    assert_eq!(wholes.map(|setup| setup.seed).collect::<Vec<_>>(), [3, 4]);
}

#[test]
fn kept_values_are_the_profiles_own() {
    // illumos' tunable is twice the lifetime.
    let setups = of("illumos-1125ms", &[]);
    let whole = &setups[0];
    let name = "tcp_time_wait_interval";
    let back = setups.iter().filter_map(|it| it.back.clone()).find(|it| it.name == name).unwrap();
    let alone = only(whole, &[back]).unwrap();
    assert_eq!(alone.rules.msl_link, whole.rules.msl_link);
    let fields = differing(&alone.rules, &Tunables::default());
    assert_eq!(fields, ["msl_remote", "msl_link", "msl_loopback"]);
}
