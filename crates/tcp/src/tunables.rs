//! The rules of one stack: one table, and everything that follows from it.
//!
//! A tunable is one entry of the table, in the file of its part in `tunables/table`. From it come the field
//! of [`Tunables`] with its documentation and default, what [`Tunables::validate`] checks, its line of
//! [`TUNABLES`], how [`Tunables::set_by_name`] reads it, and its section of the reference page.
//!
//! Names are Linux' where Linux has one for the same thing; aliases are what other systems call it,
//! each read with the unit that it has there.

#[macro_use]
mod table;

use core::time::Duration;

use whimbrel_base::tunables::{Reading, Unit};
use whimbrel_base::{Micros, ReservedPorts, tunables};
use whimbrel_recovery::cc::SlowStart;
use whimbrel_recovery::{PacingRatios, RouteMetrics};
use whimbrel_wire::tcp::OptionOrder;
use whimbrel_wire::{Address, Mss};

mod by_name;
mod groups;
mod policy;
mod syn_retry;
mod validation;

pub use self::groups::TUNABLE_GROUPS;
pub use self::policy::{
    AnswerInTimeWait, BufferPolicy, EcnNegotiation, EmptyInTimeWait, FragNeeded, Isn,
    MissingTimestamps, MtuProbing, NeighbourClaims, PortOrder, PortReuse, ProhibitedByIcmp,
    ReceiveWindow, RefusedPorts, RstInCloseWait, RstInTimeWait, RstInWindow, SoftErrors,
    SynCookies, SynInTimeWait, SynInWindow, TextAfterShutdown, TimeExceededByIcmp, ToldBuffers,
    UnreachableByIcmp,
};

pub use self::syn_retry::SynRetry;
pub use whimbrel_recovery::cc::CongestionAlgorithm;

impl Tunables {
    /// The MSS of a peer that announces none.
    pub fn default_mss(&self, peer: &Address) -> Mss {
        Mss::new(if peer.is_v4() { self.default_mss_v4 } else { self.default_mss_v6 })
    }

    /// The rules of slow start, for segments of `mss` bytes.
    pub fn slow_start(&self, mss: u32) -> SlowStart {
        let most = match self.slow_start_limit {
            0 => u32::MAX,
            segments => u32::from(segments).saturating_mul(mss),
        };
        SlowStart { most, hystart: self.hystart, paced: self.pacing }
    }

    /// The rates of paced flows whose algorithm has no rate of its own.
    pub const fn pacing_ratios(&self) -> PacingRatios {
        let (slow_start, avoidance) = (self.pacing_slow_start, self.pacing_avoidance);
        PacingRatios { slow_start, avoidance }
    }

    /// The receive buffer that a route sets for a connection that advertises `mss`, bytes; 0: none.
    pub fn recv_pipe(&self, metrics: &RouteMetrics, mss: u16) -> u32 {
        let recvpipe = metrics.recvpipe.unwrap_or(0);
        if self.buffers == BufferPolicy::Route {
            return recvpipe;
        }
        recvpipe.max(u32::from(metrics.initrwnd.unwrap_or(0)) * u32::from(mss))
    }
}

const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// The description of one of [`TUNABLES`].
pub type TunableInfo = tunables::TunableInfo<Tunables>;

table! {
    /// The rules in force. Plain values, which hot paths read as they are.
    pub struct Tunables in TUNABLES, with TUNABLE_GROUPS;
}

#[cfg(test)]
mod tests;
