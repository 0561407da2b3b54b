//! Limits in force: what the application set, or what the tunables have.

use core::time::Duration;

use whimbrel_recovery::cc::Algorithm;

use crate::Tunables;
use crate::conn::tcb::Tcb;
use crate::conn::{Flags, KeepAlive, State};

impl Tcb {
    pub(in crate::conn) fn limit_mss(&mut self, most: Option<u16>, least: u16) {
        if let Some(most) = most.map(|most| most.max(least)) {
            self.sender.limit_mss(most);
            self.receiver.limit_mss(most);
        }
    }

    pub(in crate::conn) fn keep_alive(&self) -> KeepAlive {
        if self.flags.has(Flags::KEEP_ALIVE) { KeepAlive::On } else { KeepAlive::Off }
    }

    /// The time for which the peer may leave us without an acknowledgment, if that is limited by time.
    pub(in crate::conn) fn user_timeout(&self, tunables: &Tunables) -> Option<Duration> {
        self.patience(tunables).or_else(|| {
            let usual = Some(tunables.user_timeout).filter(|limit| !limit.is_zero());
            usual.filter(|_| !matches!(self.state, State::SynSent | State::SynReceived))
        })
    }

    /// The time for which the peer may be silent, if that is limited by time for this connection.
    pub(in crate::conn) fn patience(&self, tunables: &Tunables) -> Option<Duration> {
        let own = self.cold().overrides().and_then(|set| set.user_timeout);
        own.or(self.connect_timeout(tunables))
    }

    /// True if time limits the first SYN, too. What an application sets does not: as on Linux it is
    /// looked at with the second.
    pub(in crate::conn) fn limits_first_syn(&self, tunables: &Tunables) -> bool {
        self.connect_timeout(tunables).is_some()
            && self.cold().overrides().is_none_or(|set| set.user_timeout.is_none())
    }

    fn connect_timeout(&self, tunables: &Tunables) -> Option<Duration> {
        let limit = Some(tunables.connect_timeout).filter(|limit| !limit.is_zero())?;
        let opening = matches!(self.state, State::SynSent | State::SynReceived) && !self.is_early();
        opening.then_some(limit)
    }

    /// The most ranges that may be held out of order: as many again for each 512 segments of the receive
    /// buffer, so that of 256 there is one for two segments. Slow start that overshoots loses every
    /// second one.
    pub(in crate::conn) fn max_ranges(&self, tunables: &Tunables) -> usize {
        let most = u64::from(tunables.max_out_of_order);
        let segments = u64::from(self.receiver.size() / u32::from(self.sender.mss()));
        most.max(most * segments / 512) as usize
    }

    /// From now on this algorithm sets the congestion window, beginning with what it is.
    pub(in crate::conn) fn set_congestion_control(&mut self, algorithm: Algorithm) {
        let queue = self.buffers.as_deref_mut().map(|buffers| &mut buffers.send);
        self.sender.set_algorithm(algorithm, queue);
    }
}
