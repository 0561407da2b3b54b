//! Finds the values of a profile that make a case fail: each is switched back to the default, and
//! the decisive ones are tried without all others.

use whimbrel_stack::Profile;
use whimbrel_tcp::Tunables;
use whimbrel_tcp::tunables::TunableInfo;

use super::plan::{PlanError, Wanted, varied};
use super::{Case, Role, Selection, Setup};

/// A value of a profile and its default.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AblatedSetting {
    /// Name in the profile, of one tunable or of a group.
    pub name: &'static str,
    /// Value of the profile.
    pub from: String,
    /// Default, under the same name.
    pub to: String,
}

/// Measurements that show which values of its profile make `case` fail: one with the whole profile,
/// and one for each value at its default. Empty if no value makes it fail.
pub fn ablate(case: &'static Case, selection: &Selection) -> Result<Vec<Setup>, PlanError> {
    let mut setups = Vec::new();
    for row in case.ablation {
        let own = Profile::by_name(row.profile).into_iter();
        let profiles = match selection.profiles.as_slice() {
            [] => own.collect(),
            wanted => wanted.to_vec(),
        };
        for profile in profiles {
            let wanted = Wanted::of_row(row, profile, true);
            for settings in varied(&wanted.settings, &selection.vary) {
                let whole = wanted.setup(case, settings, false)?;
                setups.extend(trials(&whole, profile));
            }
        }
    }
    let seeds = if selection.seeds.is_empty() { &[1][..] } else { &selection.seeds };
    let with = |seed: u64| setups.iter().map(move |setup| Setup { seed, ..setup.clone() });
    Ok(seeds.iter().copied().flat_map(with).collect())
}

/// Measurement with only these values of the profile, and the default's otherwise; `None` if those
/// contradict them.
pub fn only(whole: &Setup, values: &[AblatedSetting]) -> Option<Setup> {
    let mut rules = Tunables::default();
    let is_rule = |key: &str| whole.case.parameters.iter().all(|parameter| parameter.name != key);
    for (key, value) in whole.settings.iter().filter(|(key, _)| is_rule(key)) {
        rules.set_by_name(key, value).ok()?;
    }
    // By the names of this stack: another system's may have another unit, such as twice the
    // lifetime.
    for info in values.iter().flat_map(|value| Tunables::named(value.name)) {
        rules.set_by_name(info.name.text, &info.value(&whole.rules)).ok()?;
    }
    rules.validate().ok()?;
    Some(Setup { rules, role: Some(Role::Trial), kept: values.to_vec(), ..whole.clone() })
}

/// The whole profile, and a trial for each of its values.
fn trials(whole: &Setup, profile: &'static Profile) -> Vec<Setup> {
    let default = Tunables::default();
    let differs = |info: &&'static TunableInfo| info.value(&whole.rules) != info.value(&default);
    let mut setups = vec![whole.clone()];
    let mut switched: Vec<&str> = Vec::new();
    for (_, setting) in profile.all_settings() {
        let named = Tunables::named(setting.name);
        let of_it: Vec<_> = named.into_iter().filter(differs).collect();
        if of_it.iter().all(|info| switched.contains(&info.field)) {
            continue;
        }
        switched.extend(of_it.iter().map(|info| info.field));
        let mut rules = whole.rules.clone();
        for info in of_it {
            // A table reads its own values.
            let _ = rules.set_by_name(info.name.text, &info.value(&default));
        }
        // A value that requires another one of the profile shows nothing on its own.
        if rules.validate().is_ok() {
            let [from, to] = [&whole.rules, &default]
                .map(|rules| rules.value_of(setting.name).unwrap_or_default());
            let back = Some(AblatedSetting { name: setting.name, from, to });
            setups.push(Setup { rules, role: Some(Role::Trial), back, ..whole.clone() });
        }
    }
    setups
}

#[cfg(test)]
mod tests;
