//! Changes of a link while it is in use.

use std::fmt;
use std::sync::Arc;

use whimbrel_base::Instant;
use whimbrel_link::{LinkConfig, LinkCounters, LinkState};

use super::gate::{PacketVerdict, Rule};
use super::line::Line;

/// One direction of a wire inside the process, to change it while stacks use it. Clones change the
/// same link.
///
/// Changes happen at the time of the stacks at the wire. If they follow a paused tokio clock, call the
/// methods within that runtime. A packet meets the rule first, then [`drop_next`](Self::drop_next),
/// then [`hold`](Self::hold), and then enters the link.
#[derive(Clone)]
pub struct LinkHandle {
    pub(super) line: Arc<Line>,
    /// Reads the time of the wire.
    pub(super) now: ReadTime,
}

/// A function that returns the time of a wire, from any thread.
pub(super) type ReadTime = Arc<dyn Fn() -> Instant + Send + Sync>;

impl LinkHandle {
    /// Replaces the configuration. Waiting packets, and the rest of the packet that is being sent,
    /// leave at the new rate and travel with the new delay; packets that were sent arrive as before. A
    /// shorter queue drops none that wait. Steps (`at=`) count from the start of the wire's clock.
    /// `back` is ignored. Hosts keep the MTU with which they were built; longer packets are lost.
    pub fn set(&self, config: LinkConfig) {
        self.line.change(self.now(), |state, now| state.link.set_config(now, config));
    }

    /// Takes the link down. Packets on it and new ones are lost
    /// ([`LinkCounters::lost_down`]). Hosts are not notified.
    pub fn down(&self) {
        self.line.change(self.now(), |state, _| state.link.set_state(LinkState::Down));
    }

    /// Takes the link up again.
    pub fn up(&self) {
        self.line.change(self.now(), |state, _| state.link.set_state(LinkState::Up));
    }

    /// Drops the next `packets` packets, in addition to those of earlier calls
    /// ([`LinkCounters::lost_targeted`]).
    pub fn drop_next(&self, packets: u64) {
        self.line.change(self.now(), |state, _| {
            state.gate.drops = state.gate.drops.saturating_add(packets);
        });
    }

    /// Holds new packets in front of the link until [`LinkHandle::release`]. Those on it arrive. More
    /// than [1 GiB](whimbrel_link::Link::MAX_BYTES) of them are lost
    /// ([`LinkCounters::lost_crowded`]).
    pub fn hold(&self) {
        self.line.change(self.now(), |state, _| state.gate.hold());
    }

    /// Lets the held packets enter the link, all at once, and holds no more.
    pub fn release(&self) {
        self.line.change(self.now(), |state, now| {
            for packet in state.gate.release() {
                state.enter(now, packet);
            }
        });
    }

    /// Judges each new packet by `rule`, which gets the whole IP packet, until the next call.
    /// [`Filter`](whimbrel_link::filter::Filter) helps to recognize packets. The rule runs while the
    /// sending stack waits; a panic ends that stack.
    pub fn on(&self, rule: impl FnMut(&[u8]) -> PacketVerdict + Send + 'static) {
        let rule = Some(Rule::new(rule));
        self.line.change(self.now(), |state, _| state.gate.rule = rule);
    }

    /// Removes the rule.
    pub fn clear_rule(&self) {
        self.line.change(self.now(), |state, _| state.gate.rule = None);
    }

    /// Returns the number of held packets.
    pub fn held(&self) -> usize {
        self.line.lock().gate.waiting()
    }

    /// Returns the counters of the link.
    pub fn counters(&self) -> LinkCounters {
        self.line.counters()
    }

    /// Loses all packets on the link, held ones included, and new ones until it is plugged in.
    pub(crate) fn unplug(&self) {
        self.line.change(self.now(), |state, _| {
            state.gate.lose_held(&mut state.link);
            let before = state.link.state();
            state.link.set_state(LinkState::Down);
            state.link.set_state(before);
            state.gate.is_unplugged = true;
        });
    }

    /// Carries packets again.
    pub(crate) fn plug(&self) {
        self.line.change(self.now(), |state, _| state.gate.is_unplugged = false);
    }

    fn now(&self) -> Instant {
        (self.now)()
    }
}

impl fmt::Debug for LinkHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LinkHandle").field("line", &self.line).finish_non_exhaustive()
    }
}
