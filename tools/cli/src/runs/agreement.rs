//! Agreement of a load's shards on the number of runs.

use std::sync::{Mutex, PoisonError};

use whimbrel_apps::load::{RunAgreement, RunCount};

/// Counts of each shard so far.
#[derive(Default, Debug)]
pub(crate) struct ShardAgreement(Mutex<Vec<Vec<RunCount>>>);

impl ShardAgreement {
    /// Sets the number of parts to come.
    pub(crate) fn expect(&self, parts: u32) {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        told.resize(parts as usize, Vec::new());
    }
}

impl RunAgreement for ShardAgreement {
    fn tell(&self, part: u32, runs: &[RunCount]) -> Vec<f64> {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = told.get_mut(part as usize) {
            *place = runs.to_vec();
        }
        let every = |run: usize| {
            let of_each = told.iter().map(|runs| runs.get(run).copied());
            of_each.reduce(|all, one| Some(all?.merge(one?))).flatten()
        };
        (0..).map_while(every).map(|run| run.rate()).collect()
    }
}

#[cfg(test)]
mod tests;
