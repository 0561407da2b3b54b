//! The host of a script: the stack, or this kernel.

use whimbrel_kernel::KernelHost;
use whimbrel_script::dialect::Dialect;
use whimbrel_script::setup::{IpVersion, Setup};
use whimbrel_script::shard_host::{Recording, ShardHost};

use super::ScriptTarget;
use super::plan::ScriptPlan;
use crate::failure::Failure;

/// The stack by the plan's rules, at the script's addresses, in virtual time.
pub(super) fn shard(
    plan: &ScriptPlan,
    setup: &Setup,
    recording: &Recording,
) -> Result<ShardHost, String> {
    let host = ShardHost::new(&setup.network, plan.rules.tunables.clone());
    let host = host.map_err(|error| error.to_string())?;
    Ok(match plan.captures {
        Some(_) => host.recorded("script", recording),
        None => host,
    })
}

/// This machine's kernel, at the script's addresses, in real time.
pub(super) fn kernel(setup: &Setup) -> Result<KernelHost, String> {
    // Where that is not allowed, a busy machine may make scripts fail that would pass.
    KernelHost::take_precedence();
    KernelHost::new(&setup.network).map_err(|error| error.to_string())
}

/// Checks that a host can exist: a missing privilege or device is missing for all scripts.
pub(super) fn check(plan: &ScriptPlan) -> Result<(), Failure> {
    if plan.against == ScriptTarget::Shard {
        return Ok(());
    }
    let setup = Setup::new(IpVersion::V4, Dialect::default());
    KernelHost::new(&setup.network)?;
    Ok(())
}
