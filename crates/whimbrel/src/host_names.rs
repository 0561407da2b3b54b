//! Names of the hosts of a `sim::World`, as its stacks know them.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};

/// Addresses by name. Case is ignored, as by DNS (RFC 4343).
#[derive(Default, Debug)]
pub(crate) struct HostNames(Mutex<BTreeMap<String, HostAddresses>>);

/// Addresses of a host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HostAddresses {
    pub(crate) v4: Ipv4Addr,
    pub(crate) v6: Ipv6Addr,
}

impl HostAddresses {
    /// Returns the addresses of the host with this number, from 1 on.
    pub(crate) fn numbered(number: u16) -> Self {
        let [high, low] = number.to_be_bytes();
        let v6 = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, number);
        Self { v4: Ipv4Addr::new(10, 0, high, low), v6 }
    }
}

impl HostNames {
    pub(crate) fn add(&self, name: &str, addresses: HostAddresses) {
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        names.insert(name.to_ascii_lowercase(), addresses);
    }

    /// Returns the IPv4 address of a name, or the address that `name` is.
    pub(crate) fn lookup(&self, name: &str) -> io::Result<IpAddr> {
        if let Ok(address) = name.parse() {
            return Ok(address);
        }
        let names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = names.get(&name.to_ascii_lowercase()).map(|addresses| addresses.v4.into());
        found.ok_or_else(|| {
            let text = format!("no host of this world has the name {name:?}");
            io::Error::new(io::ErrorKind::NotFound, text)
        })
    }
}
