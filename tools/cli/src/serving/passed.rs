//! Sockets that the service manager passed to this process: those of its socket units.

use std::os::fd::OwnedFd;

use crate::failure::Failure;

/// Takes them, once; none without a service manager.
pub(super) fn sockets() -> Result<Vec<OwnedFd>, Failure> {
    let refused = |error| Failure::run(format!("LISTEN_FDS: {error}"));
    let passed = sd_notify::listen_fds().map_err(refused)?;
    whimbrel_io::descriptors::take_passed(passed).map_err(refused)
}
