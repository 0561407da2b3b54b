//! A number for each place of a transport, for state about its connections.

use alloc::vec::Vec;

/// A number for each place that has one.
#[derive(Default, Debug)]
pub struct PlaceTable(Vec<Option<u32>>);

impl PlaceTable {
    /// The number of this place.
    pub fn at(&self, place: u32) -> Option<u32> {
        self.0.get(place as usize).copied().flatten()
    }

    /// Sets the number of this place, or clears it.
    pub fn set(&mut self, place: u32, value: Option<u32>) {
        let at = place as usize;
        if at >= self.0.len() {
            if value.is_none() {
                return;
            }
            self.0.resize(at + 1, None);
        }
        if let Some(slot) = self.0.get_mut(at) {
            *slot = value;
        }
    }
}
