//! `whimbrel lab run --ablate`: which values of a profile make a case.

use serde_json::{Value, json};
use whimbrel_lab::{AblatedSetting, CASES, Role, Setup, Verdict};

use super::Row;
use crate::failure::Failure;
use crate::quantity::of;

/// The measurements with only those values of the profile that cause the failure: one for each switched
/// profile with such values.
pub(super) fn alone(rows: &[Row<'_>]) -> Vec<Setup> {
    let wholes = rows.iter().filter(|row| row.setup.back.is_none());
    let alone = |whole: &Row<'_>| {
        let found = found(rows, whole.setup);
        if found.is_empty() { None } else { whimbrel_lab::only(whole.setup, &found) }
    };
    wholes.filter_map(alone).collect()
}

/// The settings that a trial switches.
pub(super) fn label(setup: &Setup) -> Option<String> {
    match &setup.back {
        Some(AblatedSetting { name, from, to }) => {
            Some(format!("{name} {}, not {}", short(to), short(from)))
        }
        None if is_trial(setup) => {
            Some(format!("all of whimbrel but {} of these", of(setup.kept.len() as u64, "value")))
        }
        None => None,
    }
}

/// As much of a value as a line has room for.
fn short(value: &str) -> String {
    match value.char_indices().nth(14) {
        Some((end, _)) => format!("{}…", &value[..end]),
        None => value.to_owned(),
    }
}

/// True if the measurement is one of many that have the same conclusion.
pub(super) fn is_trial(setup: &Setup) -> bool {
    setup.role == Some(Role::Trial)
}

/// The settings that differ from the profile's.
pub(super) fn document(setup: &Setup) -> Value {
    let value =
        |it: &AblatedSetting| json!({ "name": it.name, "profile": it.from, "default": it.to });
    json!({
        "back": setup.back.as_ref().map(value),
        "kept": setup.kept.iter().map(value).collect::<Vec<_>>(),
    })
}

/// Names a measurement.
type Label = fn(&Setup) -> String;

/// The common conclusion of a case's trials; `None` without trials.
pub(super) fn conclusion(rows: &[Row<'_>], label: Label) -> Option<String> {
    rows.iter().find(|row| is_trial(row.setup))?;
    let wholes = rows.iter().filter(|row| !is_trial(row.setup));
    Some(wholes.map(|whole| sentence(rows, whole.setup, label)).collect())
}

fn sentence(rows: &[Row<'_>], whole: &Setup, label: Label) -> String {
    let label = label(whole);
    let found = found(rows, whole);
    let others = trials(rows, whole).filter(|row| row.setup.back.is_some()).count() - found.len();
    let names = found.iter().map(of_profile).collect::<Vec<_>>().join(", ");
    let makes = match found.as_slice() {
        [] => {
            return format!(
                "verdict: no single one of the {others} settings of {label} causes it\n"
            );
        }
        [_] => "causes the failure of {}: its default ends it",
        _ => "cause the failure of {}: the default of any of them ends it",
    };
    let makes = makes.replace("{}", &label);
    let kept = trials(rows, whole).find(|row| row.setup.back.is_none());
    let rest = match kept.map(|row| &row.verdict) {
        Some(Verdict::StillFails) => "; with only these settings it still fails",
        Some(_) => "; with only these settings it does not fail",
        None => "",
    };
    format!("verdict: {names} {makes}, unlike those of {others} other settings{rest}\n")
}

/// The values whose absence ends the failure.
fn found(rows: &[Row<'_>], whole: &Setup) -> Vec<AblatedSetting> {
    let ends = trials(rows, whole).filter(|row| row.verdict == Verdict::FailsNoMore);
    ends.filter_map(|row| row.setup.back.clone()).collect()
}

/// The trials of a profile.
fn trials<'r>(rows: &'r [Row<'r>], whole: &'r Setup) -> impl Iterator<Item = &'r Row<'r>> {
    let of = |setup: &'r Setup| (setup.case.name, setup.profile, &setup.settings, setup.seed);
    rows.iter().filter(|row| is_trial(row.setup)).filter(move |row| of(row.setup) == of(whole))
}

/// A value of the profile.
fn of_profile(value: &AblatedSetting) -> String {
    format!("{}={}", value.name, value.from)
}

/// Error for a case without values to switch.
pub(super) fn none() -> Failure {
    let cases = CASES.into_iter().filter(|case| !case.ablation.is_empty());
    let names: Vec<_> = cases.map(|case| case.name).collect();
    let names = names.join(", ");
    Failure::usage(
        "--ablate",
        format!("no setting of a profile causes that case: use one of {names}"),
    )
}
