//! The validation of tunables, each by itself and all together.

use alloc::format;
use alloc::string::ToString;

use whimbrel_base::PortRange;
use whimbrel_base::tunables::{self, InvalidTunable, print_time};

use super::Tunables;

impl Tunables {
    /// Returns an error unless every value lies in its range and none contradicts another.
    pub fn validate(&self) -> Result<(), InvalidTunable> {
        tunables::check_ranges(self)?;
        self.port_range()?;
        let least_rto = self.initial_rto.max(self.min_rto);
        if self.max_rto < least_rto {
            let least = print_time(least_rto.into());
            let accepted = format!("at least {least}, as initial_rto and tcp_rto_min_us have it");
            let value = print_time(self.max_rto.into());
            return Err(tunables::contradiction::<Self>(
                "net.ipv4.tcp_rto_max_ms",
                value,
                accepted,
            ));
        }
        Ok(())
    }

    /// The ephemeral ports, or why the tunables name none.
    pub fn port_range(&self) -> Result<PortRange, InvalidTunable> {
        let (first, last) = (self.port_first, self.port_last);
        PortRange::new(first, last).ok_or_else(|| {
            let least = first.max(1);
            let accepted = format!("a port from {least}, with ports.first={first}, to 65535");
            tunables::contradiction::<Self>("ports.last", last.to_string(), accepted)
        })
    }
}
