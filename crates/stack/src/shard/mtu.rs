//! The MTU of a link that changes.

use super::{ConfigError, Shard};
use crate::ip::FlowKey;

impl Shard {
    /// From now on the link carries IP packets of up to `mtu` bytes, and new connections announce what fits.
    /// If that is less than before, what connections have in flight and does not fit is cut anew and sent
    /// again, as no congestion lost it; segments of connections that are there never become larger. It walks
    /// all connections. A device that cuts super-segments has to take them still.
    ///
    /// # Errors
    ///
    /// [`ConfigError::Mtu`]: below 68, or below 1,280 where this host has an address of IPv6.
    pub fn set_mtu(&mut self, mtu: u16) -> Result<(), ConfigError> {
        let former = self.net.set_mtu(mtu)?;
        self.tcp.segmentation.set_sizes(self.net.ip.max_text(), mtu);
        if mtu < former {
            self.narrow_connections(mtu);
        }
        Ok(())
    }

    fn narrow_connections(&mut self, mtu: u16) {
        let mut next = 0;
        while let Some(index) = self.tcp.records.first_connection_from(next) {
            next = index + 1;
            if let Some((connection, cx)) = self.connection(index) {
                connection.on_link_mtu(cx, mtu);
                let (key, mss) = (FlowKey::of(connection), connection.mss());
                // What was being cut is in flight: it goes again with the rest.
                self.tcp.segmentation.forget_larger(&key, mss);
                self.after_change(index);
            }
        }
    }
}
