//! Errors of opening a TUN or TAP device.

use std::io;

use crate::config::ConfigError;
use crate::entropy::EntropyError;

/// Reason why a TUN or TAP device could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TunError {
    /// There is no `/dev/net/tun`, or no driver behind it.
    #[error(
        "no TUN device: cannot open /dev/net/tun ({0}). Load the driver (modprobe tun); in a \
         container pass the device in (--device /dev/net/tun)"
    )]
    NoDevice(io::Error),
    /// The system requires a privilege.
    #[error(
        "no privilege to {doing} ({error}). Run as root, or give the program CAP_NET_ADMIN: setcap \
         cap_net_admin+ep FILE; in a container --cap-add NET_ADMIN"
    )]
    Privilege {
        /// The refused operation, for messages.
        doing: &'static str,
        /// The system's error.
        error: io::Error,
    },
    /// Another process holds the interface.
    #[error(
        "interface {0} is busy: another process holds it. End that one (ip -d link show {0} and \
         fuser /dev/net/tun help to find it), or choose another name"
    )]
    Busy(String),
    /// An interface of that name exists, and cannot be attached to.
    #[error(
        "interface {0} exists and is not one of the same kind (tun or tap) and number of queues: choose \
         another name, as in whim0; or, if it is not needed, delete it: ip link delete {0}"
    )]
    Mismatch(String),
    /// The descriptor is not of a TUN or TAP device.
    #[error(
        "the descriptor is not of a TUN or TAP device: give one of /dev/net/tun that was attached to an \
         interface (TUNSETIFF), as VpnService.Builder.establish() returns it on Android"
    )]
    NotTun,
    /// The descriptor is of the device, but of no interface.
    #[error(
        "the descriptor of /dev/net/tun belongs to no interface: attach it first \
         (TUNSETIFF with IFF_TUN or IFF_TAP, and IFF_NO_PI)"
    )]
    NotAttached,
    /// The addresses are not valid for a stack.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// More queues than a device supports.
    #[error("{0} queues asked of a device with one: open them together, by Tun::open_queues")]
    Queues(u16),
    /// The system returned no random bytes for a station's address.
    #[error(transparent)]
    Entropy(#[from] EntropyError),
    /// Another refusal by the system.
    #[error("cannot {doing} on interface {name}: {error}{}", hint(error))]
    Refused {
        /// The refused operation, for messages.
        doing: &'static str,
        /// Name of the interface.
        name: String,
        /// The system's error.
        error: io::Error,
    },
}

impl TunError {
    /// True if a privilege or a device is missing: exit code 4 of the command line. Otherwise the
    /// code is 1.
    pub fn is_privilege_or_device(&self) -> bool {
        matches!(self, Self::NoDevice(_) | Self::Privilege { .. })
    }

    /// Converts an error of opening `/dev/net/tun`.
    pub(super) fn on_open(error: io::Error) -> Self {
        match error.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => {
                Self::Privilege { doing: "open /dev/net/tun", error }
            }
            _ => Self::NoDevice(error),
        }
    }

    /// Converts an error of attaching to the interface.
    pub(super) fn on_attach(name: &str, error: io::Error) -> Self {
        match error.raw_os_error() {
            Some(libc::EBUSY) => Self::Busy(name.into()),
            Some(libc::EINVAL) => Self::Mismatch(name.into()),
            _ => Self::on_setup("attach", name, error),
        }
    }

    /// Converts an error of the setup.
    pub(super) fn on_setup(doing: &'static str, name: &str, error: io::Error) -> Self {
        match error.raw_os_error() {
            Some(libc::EPERM) => Self::Privilege { doing, error },
            _ => Self::Refused { doing, name: name.into(), error },
        }
    }
}

fn hint(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        // These result from adding an IPv6 address if IPv6 is switched off.
        Some(libc::EACCES | libc::EOPNOTSUPP | libc::EAFNOSUPPORT) => {
            " (is IPv6 switched off? sysctl net.ipv6.conf.all.disable_ipv6=0, or give no IPv6 address)"
        }
        _ => "",
    }
}

#[cfg(test)]
mod tests;
