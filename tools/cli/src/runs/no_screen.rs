//! Stands where the screen is left out (without the feature `tui`): there is none.

use std::sync::Arc;

use super::control::LoadControl;
use super::plan::LoadRunPlan;
use super::progress::LoadProgress;
use crate::options::ScreenOptions;
use crate::report::Reporter;

/// A screen that never exists.
pub(crate) enum Screen {}

impl Screen {
    pub(crate) const fn of(
        _: &LoadRunPlan,
        _: ScreenOptions,
        _: &Reporter,
        _: &Arc<LoadControl>,
    ) -> Option<Self> {
        None
    }

    pub(crate) const fn show(&mut self, _: LoadProgress) {
        match *self {}
    }
}
