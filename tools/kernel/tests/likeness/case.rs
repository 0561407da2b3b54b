//! Cases: a state, stimuli, and what follows.

use std::fmt;

use crate::scenes::{SCENES, Scene};
use crate::shape::{self, NamedStimulus};

/// One case.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) scene: Scene,
    /// True if timestamps and SACK were negotiated.
    pub(crate) stamped: bool,
    /// The stimuli, one or two.
    pub(crate) stimuli: Vec<NamedStimulus>,
    /// True if time-outs precede the calls at the end.
    pub(crate) waits: bool,
}

impl Case {
    /// Returns the name of the initial state.
    pub(crate) fn state(&self) -> String {
        self.scene.name.to_owned() + if self.stamped { "+ts" } else { "" }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.state())?;
        self.stimuli.iter().try_for_each(|named| write!(f, " {}", named.name))?;
        f.write_str(if self.waits { " later" } else { "" })
    }
}

/// Selection of cases.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CaseSet {
    /// Each state with each stimulus, and with each pair of those that may follow.
    Default,
    /// These, and each pair of stimuli.
    All,
}

/// Returns the cases.
pub(crate) fn cases(which: CaseSet) -> Vec<Case> {
    let first = if which == CaseSet::All { shape::all() } else { shape::seconds() };
    [singles(false), singles(true), pairs(&first)].concat()
}

/// Returns each state with each stimulus.
fn singles(waits: bool) -> Vec<Case> {
    each_scene(|scene, stamped, cases| {
        for first in shape::all() {
            cases.push(Case { scene, stamped, stimuli: vec![first], waits });
        }
    })
}

/// Returns each state with each of these stimuli, and each that may follow.
fn pairs(first: &[NamedStimulus]) -> Vec<Case> {
    each_scene(|scene, stamped, cases| {
        for first in first {
            let again = (!shape::SECONDS.contains(&first.name)).then(|| first.clone());
            for second in shape::seconds().into_iter().chain(again) {
                let stimuli = vec![first.clone(), second];
                cases.push(Case { scene, stamped, stimuli, waits: false });
            }
        }
    })
}

fn each_scene(mut each: impl FnMut(Scene, bool, &mut Vec<Case>)) -> Vec<Case> {
    let mut cases = Vec::new();
    for scene in SCENES {
        for stamped in [false, true] {
            // Linux offers again what the SYN that crossed its own has not, and all else would
            // differ.
            if stamped || !scene.name.starts_with("crossed") {
                each(*scene, stamped, &mut cases);
            }
        }
    }
    cases
}
