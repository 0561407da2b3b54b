//! A queue opened elsewhere: by a VPN service on Android, or a parent process with the privilege.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use whimbrel_stack::InterfaceAddress;

use super::{Layer, TunConfig};
use crate::config::check_addresses;
use crate::sys::tun::TunFile;
use crate::tun::{Framing, TunError};

/// A queue and the properties of its interface. Clones are the same queue.
#[derive(Clone, Debug)]
pub(crate) struct TunHandle {
    file: Arc<TunFile>,
    flags: i32,
}

impl PartialEq for TunHandle {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.file, &other.file)
    }
}

impl Eq for TunHandle {}

impl TunConfig {
    /// Creates a configuration for a stack with `addresses` behind an existing interface. `fd` is
    /// one of its queues, as `VpnService.Builder.establish()` returns it on Android, or as a parent
    /// with the privilege to open `/dev/net/tun` passes it on. This needs no privilege, and does
    /// not change the interface; the descriptor becomes non-blocking.
    ///
    /// The descriptor shows whether frames are IP packets or Ethernet's, whether offload headers
    /// precede them (`IFF_VNET_HDR`), and whether there may be other queues (`IFF_MULTI_QUEUE`).
    /// Without offload headers there are no offloads, and [`TunConfig::with_offload`] has no
    /// effect.
    ///
    /// The descriptor does not show the MTU: it is 1500 unless set by [`TunConfig::with_mtu`]. Nor
    /// does it show whether packet information precedes frames (the kernel uses the bit of
    /// `IFF_NO_PI` for another purpose here). There must be none, as on Android; a device that
    /// finds some fails with an error.
    ///
    /// # Errors
    ///
    /// [`TunError::NotTun`], [`TunError::NotAttached`], [`TunError::Config`] for addresses that are
    /// not valid for a stack.
    ///
    /// ```
    /// use std::os::fd::OwnedFd;
    /// use whimbrel_io::{TunConfig, WireSpec};
    /// use whimbrel_stack::InterfaceAddress;
    ///
    /// fn wire(from_the_service: OwnedFd) -> Result<WireSpec, Box<dyn std::error::Error>> {
    ///     let addr = "10.9.0.2".parse::<std::net::IpAddr>()?.into();
    ///     let own = InterfaceAddress { addr, prefix_len: 24 };
    ///     Ok(WireSpec::Tun(TunConfig::from_fd(from_the_service, vec![own])?.with_mtu(1_400)?))
    /// }
    /// ```
    pub fn from_fd(fd: OwnedFd, addresses: Vec<InterfaceAddress>) -> Result<Self, TunError> {
        check_addresses(&addresses)?;
        let refused = |doing| move |error| TunError::on_setup(doing, "of the descriptor", error);
        let file = TunFile::adopt(fd).map_err(refused("look at what is open"))?;
        let file = file.ok_or(TunError::NotTun)?;
        let (name, flags) = file.interface().map_err(|error| match error.raw_os_error() {
            Some(libc::EBADFD) => TunError::NotAttached,
            _ => refused("find the name and flags")(error),
        })?;
        let is_tap = flags & libc::IFF_TAP != 0;
        let given = TunHandle { file: Arc::new(file), flags };
        let layer = if is_tap { Layer::Ethernet(None) } else { Layer::Ip };
        let config = Self { layer, addresses, given: Some(given), ..Self::named(name) };
        Ok(config.with_derived_hosts())
    }

    /// Returns the queue opened elsewhere, if there is one.
    pub(crate) fn given(&self) -> Option<&TunHandle> {
        self.given.as_ref()
    }
}

impl TunHandle {
    /// Duplicates the queue's descriptor.
    pub(crate) fn file(&self) -> Result<TunFile, TunError> {
        let refused = |error| TunError::on_setup("take the descriptor", "of the descriptor", error);
        let fd = self.file.as_fd().try_clone_to_owned().map_err(refused)?;
        TunFile::adopt(fd).map_err(refused)?.ok_or(TunError::NotTun)
    }

    /// Returns the header in front of its frames.
    pub(crate) fn framing(&self) -> Framing {
        if self.flags & libc::IFF_VNET_HDR != 0 { Framing::Vnet } else { Framing::Bare }
    }

    /// True if its interface may have other queues.
    pub(crate) fn is_multi_queue(&self) -> bool {
        self.flags & libc::IFF_MULTI_QUEUE != 0
    }
}
