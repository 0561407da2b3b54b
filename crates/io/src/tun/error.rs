//! Why a TUN or TAP device could not be had, and what to do.

use std::io;

use crate::config::ConfigError;
use crate::entropy::EntropyError;

/// Why a TUN or TAP device could not be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TunError {
    /// There is no `/dev/net/tun`, or no driver behind it.
    #[error(
        "no TUN device: cannot open /dev/net/tun ({0}). Load the driver (modprobe tun); in a \
         container pass the device in (--device /dev/net/tun)"
    )]
    NoDevice(io::Error),
    /// The system does not allow that without a privilege.
    #[error(
        "no privilege to {doing} ({error}). Run as root, or give the program CAP_NET_ADMIN: setcap \
         cap_net_admin+ep FILE; in a container --cap-add NET_ADMIN"
    )]
    Privilege {
        /// What the system was asked to do, for people.
        doing: &'static str,
        /// What the system said.
        error: io::Error,
    },
    /// Another process holds it.
    #[error(
        "interface {0} is busy: another process holds it. End that one (ip -d link show {0} and \
         fuser /dev/net/tun help to find it), or choose another name"
    )]
    Busy(String),
    /// An interface of that name exists, and is none that we could attach to.
    #[error(
        "interface {0} exists and is not one of the same kind (tun or tap) and number of queues: choose \
         another name, as in whim0; if nobody needs it any more, ip link delete {0}"
    )]
    Mismatch(String),
    /// A descriptor of something else.
    #[error(
        "the descriptor is not of a TUN or TAP device: give one of /dev/net/tun that was attached to an \
         interface (TUNSETIFF), as VpnService.Builder.establish() returns it on Android"
    )]
    NotTun,
    /// A descriptor of the device, and of no interface of it.
    #[error(
        "the descriptor of /dev/net/tun belongs to no interface: whoever opened it attaches it first \
         (TUNSETIFF with IFF_TUN or IFF_TAP, and IFF_NO_PI)"
    )]
    NotAttached,
    /// Addresses that are none of a stack's.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// More queues than one device has.
    #[error("{0} queues asked of a device with one: open them together, by Tun::open_queues")]
    Queues(u16),
    /// The system gave no random bytes for a station's address.
    #[error(transparent)]
    Entropy(#[from] EntropyError),
    /// Anything else that the system refused.
    #[error("cannot {doing} on interface {name}: {error}{}", hint(error))]
    Refused {
        /// What the system was asked to do, for people.
        doing: &'static str,
        /// The name of the interface.
        name: String,
        /// What the system said.
        error: io::Error,
    },
}

impl TunError {
    /// Whether a privilege or a device is missing: exit code 4 of the command line. Otherwise 1.
    pub fn is_privilege_or_device(&self) -> bool {
        matches!(self, Self::NoDevice(_) | Self::Privilege { .. })
    }

    /// What a failure to open `/dev/net/tun` comes to.
    pub(super) fn on_open(error: io::Error) -> Self {
        match error.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => {
                Self::Privilege { doing: "open /dev/net/tun", error }
            }
            _ => Self::NoDevice(error),
        }
    }

    /// From attaching to the interface.
    pub(super) fn on_attach(name: &str, error: io::Error) -> Self {
        match error.raw_os_error() {
            Some(libc::EBUSY) => Self::Busy(name.into()),
            Some(libc::EINVAL) => Self::Mismatch(name.into()),
            _ => Self::on_setup("attach", name, error),
        }
    }

    /// From setting it up.
    pub(super) fn on_setup(doing: &'static str, name: &str, error: io::Error) -> Self {
        match error.raw_os_error() {
            Some(libc::EPERM) => Self::Privilege { doing, error },
            _ => Self::Refused { doing, name: name.into(), error },
        }
    }
}

fn hint(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        // What adding an IPv6 address gives where IPv6 is switched off.
        Some(libc::EACCES | libc::EOPNOTSUPP | libc::EAFNOSUPPORT) => {
            " (is IPv6 switched off? sysctl net.ipv6.conf.all.disable_ipv6=0, or give no IPv6 address)"
        }
        _ => "",
    }
}

#[cfg(test)]
mod tests;
