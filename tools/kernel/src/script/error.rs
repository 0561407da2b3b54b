//! Errors of running a script against this machine's kernel.

use std::io;

use whimbrel_io::{ConfigError, TunError};

/// Reason why a script cannot be run against this machine's kernel.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KernelHostError {
    /// The system requires a privilege.
    #[error(
        "no privilege to {doing} ({error}). Run as root: a network namespace needs CAP_SYS_ADMIN, a \
         TUN device in it CAP_NET_ADMIN; in a container --cap-add SYS_ADMIN --cap-add NET_ADMIN"
    )]
    Privilege {
        /// The refused operation, for messages.
        doing: &'static str,
        /// The system's error.
        error: io::Error,
    },
    /// The device of the script's packets could not be opened.
    #[error(transparent)]
    Tun(#[from] TunError),
    /// The script's addresses or MTU are invalid.
    #[error(transparent)]
    Network(#[from] ConfigError),
    /// Another refusal by the system.
    #[error("cannot {doing}: {error}")]
    System {
        /// The refused operation, for messages.
        doing: &'static str,
        /// The system's error.
        error: io::Error,
    },
}

impl KernelHostError {
    /// True if a privilege or a device is missing: exit code 4 of the command line. Otherwise the
    /// code is 1.
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
