//! Measurements for each selection.

use super::super::{CASES, Role};
use super::*;

fn planned(case: &str, selection: &Selection) -> Result<Vec<Setup>, PlanError> {
    plan(Case::by_name(case).unwrap(), selection)
}

fn profile(name: &str) -> &'static Profile {
    Profile::by_name(name).unwrap()
}

fn vary(key: &str, values: &[&str]) -> Vec<(String, Vec<String>)> {
    vec![(key.into(), values.iter().map(|value| (*value).into()).collect())]
}

#[test]
fn default_plan_has_each_row_and_each_bound_figure() {
    for case in CASES {
        let setups = plan(case, &Selection::default()).unwrap();
        assert_eq!(setups.len(), case.rows.len(), "{}", case.name);
        assert!(setups.iter().all(|setup| setup.seed == 1 && !setup.bounds.is_empty()));
        assert!(setups.iter().any(|setup| setup.role == Some(Role::Report)));
        assert!(setups.iter().any(|setup| setup.role == Some(Role::Cure)));
    }
}

#[test]
fn foreign_profile_runs_with_default_settings_and_no_verdict() {
    let own = Selection { profiles: vec![profile("illumos-2011")], ..Selection::default() };
    let own = planned("illumos-1125ms", &own).unwrap();
    assert!(own.len() > 1 && own.iter().all(|setup| setup.role.is_some()));

    let other = Selection { profiles: vec![profile("freebsd-15")], ..Selection::default() };
    let other = planned("illumos-1125ms", &other).unwrap();
    let of_default = Selection { profiles: vec![profile("whimbrel")], ..Selection::default() };
    let of_default = planned("illumos-1125ms", &of_default).unwrap();
    let settings =
        |setups: &[Setup]| setups.iter().map(|it| it.settings.clone()).collect::<Vec<_>>();
    assert_eq!(settings(&other), settings(&of_default));
    assert!(other.iter().all(|setup| setup.role.is_none() && setup.bounds.is_empty()));
}

#[test]
fn varied_values_replace_row_values_and_have_no_verdict() {
    let selection = Selection {
        profiles: vec![profile("illumos-2014-tuned")],
        vary: vary("rate", &["400", "600"]),
        seeds: vec![7, 8],
    };
    let setups = planned("illumos-1125ms", &selection).unwrap();
    let told: Vec<_> =
        setups.iter().map(|it| (it.seed, it.values.of_name("rate"), it.settings.len())).collect();
    let once = [(400.0, 3), (600.0, 3), (400.0, 1), (600.0, 1)];
    let expected = [7, 8].iter().flat_map(|seed| once.map(|(rate, count)| (*seed, rate, count)));
    assert_eq!(told, expected.collect::<Vec<_>>());
    assert!(setups.iter().all(|setup| setup.role.is_none()));
    // A tunable changes the rules, under any of its names.
    let selection =
        Selection { vary: vary("net.inet.tcp.msl", &["30000"]), ..Selection::default() };
    let setups = planned("macos-16k", &selection).unwrap();
    let msl = setups.iter().map(|setup| setup.rules.msl_link.as_secs());
    assert!(msl.clone().count() > 0 && msl.into_iter().all(|msl| msl == 30));
}

#[test]
fn invalid_selection_error_names_valid_values() {
    let refused = |case: &str, key: &str, value: &str| {
        let selection = Selection { vary: vary(key, &[value]), ..Selection::default() };
        planned(case, &selection).unwrap_err().to_string()
    };
    let unknown = refused("fddi-70ms", "windwo", "64k");
    assert!(unknown.contains("\"windwo\"") && unknown.contains("perhaps window"), "{unknown}");
    assert!(unknown.contains("bytes, window, route, delay, host-delay"), "{unknown}");
    let value = refused("fddi-70ms", "delay", "5");
    assert!(value.contains("delay=5: give 0s to 1s"), "{value}");
    let tunable = refused("macos-16k", "msl", "soon");
    assert!(tunable.contains("soon"), "{tunable}");
    let ports = refused("macos-16k", "ports.first", "65535");
    assert!(!ports.contains("macos-12") || ports.contains("ports"), "{ports}");
}
