//! Stands where the screen is left out (without the feature `tui`): there is none.

use std::sync::Arc;

use super::course::Course;
use super::plan::Plan;
use super::reins::Reins;
use crate::options::ScreenOptions;
use crate::report::Report;

/// None.
pub(crate) enum Screen {}

impl Screen {
    pub(crate) const fn of(_: &Plan, _: (ScreenOptions, &Report), _: &Arc<Reins>) -> Option<Self> {
        None
    }

    pub(crate) const fn show(&mut self, _: Course) {
        match *self {}
    }
}
