//! Types that an address can be given as.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use whimbrel_wire::Address;

/// An address as text (`"10.0.0.1"`, `"fd00::1"`) or as a type of std's.
///
/// Each function that takes an address of a host takes any of these. The types of routes
/// ([`Route`](crate::Route)) take std's `IpAddr`.
pub trait ToAddress: sealed::Sealed {
    /// Returns the address.
    ///
    /// # Errors
    ///
    /// [`InvalidAddress`]: the text is not an address.
    fn to_address(&self) -> Result<IpAddr, InvalidAddress>;
}

/// Text that is not an address.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0:?} is no address: give one, as in 10.9.0.2 or fd09::2")]
pub struct InvalidAddress(String);

impl From<InvalidAddress> for io::Error {
    fn from(error: InvalidAddress) -> Self {
        Self::new(io::ErrorKind::InvalidInput, error)
    }
}

impl ToAddress for str {
    fn to_address(&self) -> Result<IpAddr, InvalidAddress> {
        self.parse().map_err(|_| InvalidAddress(self.into()))
    }
}

impl ToAddress for String {
    fn to_address(&self) -> Result<IpAddr, InvalidAddress> {
        self.as_str().to_address()
    }
}

impl<A: ToAddress + ?Sized> ToAddress for &A {
    fn to_address(&self) -> Result<IpAddr, InvalidAddress> {
        (**self).to_address()
    }
}

/// Types that are addresses.
macro_rules! addresses {
    ($($type:ty),*) => {$(
        impl sealed::Sealed for $type {}

        impl ToAddress for $type {
            fn to_address(&self) -> Result<IpAddr, InvalidAddress> {
                Ok((*self).into())
            }
        }
    )*};
}

addresses!(IpAddr, Ipv4Addr, Ipv6Addr);

impl sealed::Sealed for Address {}

impl ToAddress for Address {
    fn to_address(&self) -> Result<IpAddr, InvalidAddress> {
        Ok(self.to_ip())
    }
}

mod sealed {
    pub trait Sealed {}

    impl Sealed for str {}
    impl Sealed for String {}
    impl<A: Sealed + ?Sized> Sealed for &A {}
}

#[cfg(test)]
mod tests;
