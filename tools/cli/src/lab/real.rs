//! `whimbrel lab run CASE --real`: a case in real time, with the kernel's TCP at one end and this stack
//! at the other. Each end has a private network namespace that ends with this process.

use std::time::Duration;

use whimbrel_io::Stop;
use whimbrel_lab::{Bound, Case, Measured, Role, Selection, Setup, at_least, within};
use whimbrel_stack::Profile;

use crate::failure::Failure;
use crate::machine;
use crate::need::Need;

mod fddi_70ms;
mod macos_16k;
mod testbed;
mod unikraft_nginx;

/// A measurement in real time.
struct RealRow {
    /// A profile, or another measured stack.
    who: &'static str,
    /// Names and values of settings.
    settings: &'static [(&'static str, &'static str)],
    role: Option<Role>,
    bounds: &'static [Bound],
}

/// The measurement of a case in real time.
struct Real {
    case: &'static str,
    /// Longer and shorter.
    rows: [&'static [RealRow]; 2],
    measure: fn(&Setup, &Stop) -> Result<Measured, String>,
}

const ALL: [&Real; 3] = [&unikraft_nginx::REAL, &macos_16k::REAL, &fddi_70ms::REAL];

/// The measurements in real time of `case`.
pub(super) fn setups(case: &'static Case, is_quick: bool) -> Result<Vec<Setup>, Failure> {
    let Some(real) = of(case) else {
        let names: Vec<_> = ALL.iter().map(|real| real.case).collect();
        let text = format!("{} has none: give one of {}", case.name, names.join(", "));
        return Err(Failure::usage("--real", text));
    };
    let planned = whimbrel_lab::plan(case, &Selection::default());
    let planned = planned.map_err(|error| Failure::usage("--real", error))?;
    let rows = real.rows[usize::from(is_quick)].iter();
    Ok(rows.filter_map(|row| Some(row.setup(planned.first()?))).collect())
}

/// Fails if this machine lacks something that takes.
pub(super) fn check() -> Result<(), Failure> {
    const NEEDS: &[Need] = &[Need::Tun, Need::NetAdmin, Need::Namespaces, Need::Programs];
    match machine::lacks(NEEDS) {
        None => Ok(()),
        Some((needs, text)) => Err(Failure::Missing { text: format!("--real: {text}"), needs }),
    }
}

/// Measures; an error names the obstacle.
pub(super) fn measure(setup: &Setup, stop: &Stop) -> Result<Measured, String> {
    let real = of(setup.case).ok_or("it has no measurement in real time")?;
    (real.measure)(setup, stop)
}

fn of(case: &Case) -> Option<&'static Real> {
    ALL.into_iter().find(|real| real.case == case.name)
}

impl RealRow {
    fn setup(&self, like: &Setup) -> Setup {
        let profile = Profile::by_name(self.who).and_then(|profile| profile.tunables().ok());
        let typed = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        let clock = [("clock", "real")];
        Setup {
            profile: self.who,
            settings: clock.iter().chain(self.settings).map(typed).collect(),
            rules: profile.unwrap_or_default(),
            role: self.role,
            bounds: self.bounds.to_vec(),
            ..like.clone()
        }
    }
}

/// The value that a row sets for this name.
fn setting<'s>(setup: &'s Setup, name: &str) -> Option<&'s str> {
    setup.settings.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
}

/// A number of seconds that a row sets.
fn seconds(setup: &Setup, name: &str) -> Duration {
    let text = setting(setup, name).and_then(|text| text.strip_suffix('s'));
    Duration::from_secs(text.and_then(|text| text.parse().ok()).unwrap_or(0))
}

/// `--profile`, if it is one.
fn profile_of(setup: &Setup) -> Option<[&'static str; 2]> {
    Profile::by_name(setup.profile).map(|profile| ["--profile", profile.name])
}

const REPORT: Option<Role> = Some(Role::Report);
const BETTER: Option<Role> = Some(Role::Better);
const INFERRED: Option<Role> = Some(Role::Inferred);
const WORKS: Option<Role> = Some(Role::Works);
const CURE: Option<Role> = Some(Role::Cure);
