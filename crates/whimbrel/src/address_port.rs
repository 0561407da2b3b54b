//! Address checks of a shard, on its thread.

use crate::waiters::deliver;
use std::collections::BTreeMap;

use tokio::sync::oneshot;
use whimbrel_stack::Shard;
use whimbrel_stack::link::{AddressConflict, CheckedAddress};
use whimbrel_stack::shard::AddressError;
use whimbrel_wire::Address;

/// An address to check, with the sender of the result.
#[derive(Debug)]
pub(crate) struct AddressCheck {
    pub(crate) addr: Address,
    pub(crate) answer: oneshot::Sender<Result<(), AddressError>>,
}

/// Pending address checks.
#[derive(Default, Debug)]
pub(crate) struct AddressPort {
    waiting: BTreeMap<Address, Vec<oneshot::Sender<Result<(), AddressError>>>>,
}

impl AddressPort {
    pub(crate) fn process_request(&mut self, shard: &mut Shard, check: AddressCheck) {
        let AddressCheck { addr, answer } = check;
        match shard.check_address(addr) {
            Ok(None) => self.waiting.entry(addr).or_default().push(answer),
            // The caller may have gone.
            Ok(Some(checked)) => drop(deliver(answer, verdict(checked))),
            Err(error) => drop(deliver(answer, Err(error))),
        }
    }

    /// Sends results to the waiting tasks.
    pub(crate) fn tell(&mut self, shard: &mut Shard) {
        while let Some(checked) = shard.poll_checked() {
            for answer in self.waiting.remove(&checked.addr).unwrap_or_default() {
                deliver(answer, verdict(checked));
            }
        }
    }
}

fn verdict(checked: CheckedAddress) -> Result<(), AddressError> {
    checked.conflict.map_or(Ok(()), |AddressConflict { addr, station }| {
        Err(AddressError::InUse { addr, station })
    })
}
