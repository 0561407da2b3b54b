//! What an application asks for on one socket, where it differs from the rules of the stack.
//!
//! A listener hands it on to the connections that it accepts. What nearly no connection has set
//! apart stands in a box of its own ([`SocketOverrides`]), so that it costs the others nothing.

use core::time::Duration;

use whimbrel_recovery::cc::Algorithm;
use whimbrel_wire::TrafficClass;

use super::{BufferSize, Connection, Cork, Flags, KeepAlive, Mishaps, Nagle, RouteMetrics, State};
use crate::{Context, Tunables};

/// Everything that can be set on one socket.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct SocketOptions {
    /// Whether small segments wait for earlier ones.
    pub nagle: Nagle,
    /// Whether segments that are not full wait for more text.
    pub cork: Cork,
    /// Whether the connection is probed when it is silent.
    pub keep_alive: KeepAlive,
    /// The size of the send buffer.
    pub send_size: BufferSize,
    /// The size of the receive buffer.
    pub recv_size: BufferSize,
    /// How often the SYN-ACK would be repeated until a handshake whose third segment has no text
    /// counts as complete; 0: at once (`TCP_DEFER_ACCEPT`). Of a listener only.
    pub defer_accept: u8,
    /// The congestion control (`TCP_CONGESTION`); without, that of the route or of the tunable, which a
    /// connection keeps.
    pub congestion_control: Option<Algorithm>,
    /// What few applications set.
    pub overrides: SocketOverrides,
}

/// What few applications set. `None`: as the tunable of that name has it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct SocketOverrides {
    /// The time to live of IPv4 packets, 1 ..= 255.
    pub ttl: Option<u8>,
    /// The type of service of IPv4 packets.
    pub tos: TrafficClass,
    /// The hop limit of IPv6 packets, 1 ..= 255.
    pub hop_limit: Option<u8>,
    /// The traffic class of IPv6 packets.
    pub traffic_class: TrafficClass,
    /// How long the connection may be silent before it is probed.
    pub keepalive_time: Option<Duration>,
    /// The time between two probes.
    pub keepalive_interval: Option<Duration>,
    /// How many unanswered probes end the connection.
    pub keepalive_probes: Option<u8>,
    /// How long what was sent may be unacknowledged, or what is to be sent may wait for the peer's
    /// window, before the connection is given up (RFC 5482 3); no limit but `retries` without.
    pub user_timeout: Option<Duration>,
    /// How often a SYN is repeated; of a listener, a SYN-ACK. 254 at most.
    pub syn_retries: Option<u8>,
    /// How often text is retransmitted: R2 of RFC 9293 3.8.3. 254 at most.
    pub retries: Option<u8>,
    /// How long an orphan waits in FIN-WAIT-2 for the peer's FIN; zero: not at all.
    pub fin_timeout: Option<Duration>,
    /// The most that is announced as MSS, and taken from the peer's announcement, octets; less than
    /// `least_mss` counts as that. It has an effect until the SYN is out.
    pub max_seg: Option<u16>,
    /// Octets that may wait to be sent for the first time (`TCP_NOTSENT_LOWAT`); without, what the
    /// send buffer holds.
    pub unsent_low_water: Option<u32>,
    /// The largest window that is announced, octets.
    pub window_clamp: Option<u32>,
    /// When text is acknowledged.
    pub acks: AckTiming,
}

/// What was set for one connection alone, what its route says of its path, and what few meet.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct ColdOptions {
    pub(super) overrides: SocketOverrides,
    pub(super) send_size: BufferSize,
    pub(super) recv_size: BufferSize,
    pub(super) metrics: RouteMetrics,
    pub(super) mishaps: Mishaps,
}

/// When text that arrives in order is acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum AckTiming {
    /// After `delayed_ack`, or when `ack_every` segments came.
    #[default]
    Delayed,
    /// Each segment at once (`TCP_QUICKACK`).
    AtOnce,
}

/// What the packets of a connection say beside its segments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Marking {
    /// Time to live, or hop limit.
    pub hop_limit: u8,
    /// Type of service, or traffic class; its ECN field is 0.
    pub class: TrafficClass,
}

impl Marking {
    /// Where nobody asked for anything.
    pub fn usual(tunables: &Tunables) -> Self {
        Self { hop_limit: tunables.hop_limit, class: TrafficClass::default() }
    }
}

impl SocketOptions {
    /// The window that the scale is chosen for, octets.
    pub fn scale_limit(&self, tunables: &Tunables) -> u32 {
        let most = self.recv_size.scale_limit(tunables);
        most.min(self.overrides.window_clamp.unwrap_or(u32::MAX))
    }

    /// The most that is announced at first, octets, on a path whose route says `pipe` of it; 0: nothing.
    pub fn recv_limit(&self, pipe: u32, tunables: &Tunables) -> u32 {
        let size = self.recv_size.recv_range(pipe, tunables).floor;
        size.min(self.overrides.window_clamp.unwrap_or(u32::MAX))
    }
}

impl SocketOverrides {
    /// What packets to a peer of this family say.
    pub fn marking(&self, is_v4: bool, tunables: &Tunables) -> Marking {
        let (hop_limit, class) =
            if is_v4 { (self.ttl, self.tos) } else { (self.hop_limit, self.traffic_class) };
        Marking { hop_limit: hop_limit.unwrap_or(tunables.hop_limit), class }
    }
}

/// What an application sets.
impl Connection {
    /// Takes all of `options`; the MSS only if our SYN is not out yet.
    pub fn set_options(&mut self, cx: &mut Context, options: &SocketOptions) {
        let overrides = &options.overrides;
        let idle = self.keepalive_time(&cx.tunables);
        if self.overrides().copied().unwrap_or_default() != *overrides {
            self.apart().overrides = *overrides;
        }
        if self.is_before_syn() {
            self.limit_mss(overrides.max_seg, cx.tunables.least_mss);
        }
        if let Some(algorithm) = options.congestion_control {
            self.set_congestion_control(algorithm);
        }
        self.set_nodelay(options.nagle);
        self.set_send_size(cx, options.send_size);
        self.set_recv_size(cx, options.recv_size);
        self.offer_scale(cx);
        if options.keep_alive != self.keep_alive() {
            self.set_keep_alive(cx, options.keep_alive);
        } else if idle != self.keepalive_time(&cx.tunables) {
            self.restart_keep_alive(cx);
        }
        self.set_cork(cx, options.cork);
        if self.acks_at_once() && self.timers.delays_ack() {
            self.receiver.owe_ack();
        }
    }

    /// Whether nothing was announced to the peer yet.
    pub(super) fn is_before_syn(&self) -> bool {
        self.state == State::SynSent && self.sender.is_idle()
    }

    fn limit_mss(&mut self, most: Option<u16>, least: u16) {
        if let Some(most) = most.map(|most| most.max(least)) {
            self.sender.limit_mss(most);
            self.receiver.limit_mss(most);
        }
    }

    fn keep_alive(&self) -> KeepAlive {
        if self.flags.has(Flags::KEEP_ALIVE) { KeepAlive::On } else { KeepAlive::Off }
    }
}

/// What holds for this connection.
impl Connection {
    /// What its packets say.
    pub fn marking(&self, tunables: &Tunables) -> Marking {
        match self.overrides() {
            Some(set) => set.marking(self.remote.is_v4(), tunables),
            None => Marking::usual(tunables),
        }
    }

    pub(super) fn overrides(&self) -> Option<&SocketOverrides> {
        self.stats.apart.as_deref().map(|apart| &apart.overrides)
    }

    /// Room for what is set for this connection alone.
    #[cold]
    pub(super) fn apart(&mut self) -> &mut ColdOptions {
        self.stats.apart.get_or_insert_default()
    }

    pub(super) fn keepalive_time(&self, tunables: &Tunables) -> Duration {
        self.overrides().and_then(|set| set.keepalive_time).unwrap_or(tunables.keepalive_time)
    }

    pub(super) fn keepalive_interval(&self, tunables: &Tunables) -> Duration {
        let set = self.overrides().and_then(|set| set.keepalive_interval);
        set.unwrap_or(tunables.keepalive_interval)
    }

    pub(super) fn keepalive_probes(&self, tunables: &Tunables) -> u8 {
        let set = self.overrides().and_then(|set| set.keepalive_probes);
        set.unwrap_or(tunables.keepalive_probes)
    }

    /// How long the peer may leave us without an acknowledgment, if that is limited by time.
    pub(super) fn user_timeout(&self, tunables: &Tunables) -> Option<Duration> {
        self.patience(tunables).or_else(|| {
            let usual = Some(tunables.user_timeout).filter(|limit| !limit.is_zero());
            usual.filter(|_| !matches!(self.state, State::SynSent | State::SynReceived))
        })
    }

    /// How long the peer may be silent, if that is limited by time for this connection.
    pub(super) fn patience(&self, tunables: &Tunables) -> Option<Duration> {
        let own = self.overrides().and_then(|set| set.user_timeout);
        own.or(self.connect_timeout(tunables))
    }

    /// Whether time limits the first SYN, too. What an application sets does not: as on Linux it is
    /// looked at with the second.
    pub(super) fn limits_first_syn(&self, tunables: &Tunables) -> bool {
        self.connect_timeout(tunables).is_some()
            && self.overrides().is_none_or(|set| set.user_timeout.is_none())
    }

    fn connect_timeout(&self, tunables: &Tunables) -> Option<Duration> {
        let limit = Some(tunables.connect_timeout).filter(|limit| !limit.is_zero())?;
        let opening = matches!(self.state, State::SynSent | State::SynReceived) && !self.is_early();
        opening.then_some(limit)
    }

    pub(super) fn syn_retries(&self, tunables: &Tunables) -> u8 {
        self.asked_retries(|set| set.syn_retries).unwrap_or(tunables.syn_retries)
    }

    /// The same of a SYN-ACK.
    pub(super) fn synack_retries(&self, tunables: &Tunables) -> u8 {
        self.asked_retries(|set| set.syn_retries).unwrap_or(tunables.synack_retries)
    }

    pub(super) fn retries(&self, tunables: &Tunables) -> u8 {
        self.asked_retries(|set| set.retries).unwrap_or(tunables.retries)
    }

    /// What was set, of what [`Connection::attempts`] can exceed.
    fn asked_retries(&self, which: impl FnOnce(&SocketOverrides) -> Option<u8>) -> Option<u8> {
        self.overrides().and_then(which).map(|asked| asked.min(u8::MAX - 1))
    }

    pub(super) fn fin_timeout(&self, tunables: &Tunables) -> Duration {
        self.overrides().and_then(|set| set.fin_timeout).unwrap_or(tunables.fin_timeout)
    }

    pub(super) fn unsent_low_water(&self) -> Option<u32> {
        self.overrides()?.unsent_low_water
    }

    /// The most octets that are announced at once; `u32::MAX` if the application did not say.
    #[inline]
    pub(super) fn window_clamp(&self) -> u32 {
        self.overrides().and_then(|set| set.window_clamp).unwrap_or(u32::MAX)
    }

    /// The most ranges that may be held out of order: as many again for each 512 segments of the receive
    /// buffer, so that of 256 there is one for two segments. Slow start that overshoots loses every
    /// second one.
    pub(super) fn max_ranges(&self, tunables: &Tunables) -> usize {
        let most = u64::from(tunables.max_out_of_order);
        let segments = u64::from(self.receiver.size() / u32::from(self.sender.mss()));
        most.max(most * segments / 512) as usize
    }

    /// The most octets that buffer and application let us announce at once.
    pub(super) fn recv_limit(&self) -> u32 {
        self.receiver.limit(self.window_clamp())
    }

    pub(super) fn acks_at_once(&self) -> bool {
        self.overrides().is_some_and(|set| set.acks == AckTiming::AtOnce)
    }
}
