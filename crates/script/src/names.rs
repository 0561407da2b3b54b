//! What a script's numbers and `...` stand for on the host.

use alloc::collections::BTreeMap;

use whimbrel_posix::Domain;
use whimbrel_wire::Endpoint;

use super::call::Unconnected;

/// What a script's names stand for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Names {
    /// The family of `socket(..., …)`: IPv6 for scripts of IPv4 in mapped addresses.
    pub domain: Domain,
    /// The end that stands for `...` as the address of `bind`.
    pub local: Endpoint,
    /// `...` of `connect` and `sendto`.
    pub remote: Endpoint,
    /// What the address of `sendto` means to a socket that is not connected.
    pub unconnected: Unconnected,
    /// The host's descriptors by the script's.
    fds: BTreeMap<i32, i32>,
}

/// What a call taught about descriptors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Learned {
    /// Nothing: no descriptor was opened or closed.
    Nothing,
    /// The script's descriptor is this one of the host's.
    Opened {
        /// The script's own number of the descriptor.
        script: i32,
        /// The host's number of it.
        host: i32,
    },
    /// The script's descriptor is no more.
    Closed {
        /// The script's own number of the descriptor.
        script: i32,
    },
}

impl Names {
    /// The port of `...`, on either side.
    pub const PORT: u16 = 8080;

    /// Stands for a descriptor that the script has not opened: no host has it.
    pub const NO_FD: i32 = i32::MAX;

    /// Names of no descriptor yet, for hosts at these ends.
    pub const fn new(domain: Domain, local: Endpoint, remote: Endpoint) -> Self {
        Self { domain, local, remote, unconnected: Unconnected::Fails, fds: BTreeMap::new() }
    }

    /// The same where the address of `sendto` means this to a socket that is not connected.
    #[must_use]
    pub fn by_sendto(self, unconnected: Unconnected) -> Self {
        Self { unconnected, ..self }
    }

    /// The host's descriptor. Negative ones are passed as they are.
    pub fn host_fd(&self, script: i32) -> i32 {
        if script < 0 {
            return script;
        }
        self.fds.get(&script).copied().unwrap_or(Self::NO_FD)
    }

    /// Takes note of what a call taught.
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
