//! Meaning of a script's numbers and `...` on the host.

use alloc::collections::BTreeMap;

use whimbrel_posix::Domain;
use whimbrel_wire::Endpoint;

use super::call::Unconnected;

/// Meaning of a script's names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Names {
    /// Family of `socket(..., …)`: IPv6 for IPv4 scripts with mapped addresses.
    pub domain: Domain,
    /// Endpoint for `...` in `bind`.
    pub local: Endpoint,
    /// Endpoint for `...` in `connect` and `sendto`.
    pub remote: Endpoint,
    /// Use of the address of `sendto` on a socket that is not connected.
    pub unconnected: Unconnected,
    /// The host's descriptors by the script's.
    fds: BTreeMap<i32, i32>,
}

/// Descriptors learned from a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Learned {
    /// No descriptor was opened or closed.
    Nothing,
    /// A descriptor of the script and its number on the host.
    Opened {
        /// The script's number.
        script: i32,
        /// The host's number.
        host: i32,
    },
    /// A descriptor was closed.
    Closed {
        /// The script's number.
        script: i32,
    },
}

impl Names {
    /// Port of `...`, on either side.
    pub const PORT: u16 = 8080;

    /// Stands for a descriptor that the script has not opened; no host has it.
    pub const NO_FD: i32 = i32::MAX;

    /// Names without descriptors, for hosts at these ends.
    pub const fn new(domain: Domain, local: Endpoint, remote: Endpoint) -> Self {
        Self { domain, local, remote, unconnected: Unconnected::Fails, fds: BTreeMap::new() }
    }

    /// Sets the use of the address of `sendto` on a socket that is not connected.
    #[must_use]
    pub fn by_sendto(self, unconnected: Unconnected) -> Self {
        Self { unconnected, ..self }
    }

    /// The host's descriptor. Negative ones are passed unchanged.
    pub fn host_fd(&self, script: i32) -> i32 {
        if script < 0 {
            return script;
        }
        self.fds.get(&script).copied().unwrap_or(Self::NO_FD)
    }

    /// Adds the names learned from a call.
    pub fn learn(&mut self, learned: Learned) {
        match learned {
            Learned::Nothing => {}
            Learned::Opened { script, host } => {
                self.fds.insert(script, host);
            }
            Learned::Closed { script } => {
                self.fds.remove(&script);
            }
        }
    }
}
