//! Why a script cannot be run against this machine's kernel, and what to do.

use std::io;

use whimbrel_io::{ConfigError, TunError};

/// Why a script cannot be run against this machine's kernel.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KernelHostError {
    /// The system does not allow that without a privilege.
    #[error(
        "no privilege to {doing} ({error}). Run as root: a network namespace needs CAP_SYS_ADMIN, a \
         TUN device in it CAP_NET_ADMIN; in a container --cap-add SYS_ADMIN --cap-add NET_ADMIN"
    )]
    Privilege {
        /// What the system was asked to do, for people.
        doing: &'static str,
        /// What the system said.
        error: io::Error,
    },
    /// The device could not be had over which the script's packets go.
    #[error(transparent)]
    Tun(#[from] TunError),
    /// The script's addresses or MTU make no network.
    #[error(transparent)]
    Network(#[from] ConfigError),
    /// Anything else that the system refused.
    #[error("cannot {doing}: {error}")]
    System {
        /// What the system was asked to do, for people.
        doing: &'static str,
        /// What the system said.
        error: io::Error,
    },
}

impl KernelHostError {
    /// Whether a privilege or a device is missing: exit code 4 of the command line. Otherwise 1.
    pub fn is_privilege_or_device(&self) -> bool {
        match self {
            Self::Privilege { .. } => true,
            Self::Tun(error) => error.is_privilege_or_device(),
            Self::Network(_) | Self::System { .. } => false,
        }
    }

    pub(super) fn system(doing: &'static str, error: io::Error) -> Self {
        match error.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => Self::Privilege { doing, error },
            _ => Self::System { doing, error },
        }
    }
}
