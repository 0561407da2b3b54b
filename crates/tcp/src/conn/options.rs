//! Options of one socket, where they differ from the tunables of the stack.
//!
//! A listener hands it on to the connections that it accepts. What nearly no connection has set
//! apart stands in a box of its own ([`SocketOverrides`]), so that it costs the others nothing.

use core::num::NonZeroU64;
use core::time::Duration;

use whimbrel_recovery::cc::Algorithm;
use whimbrel_wire::TrafficClass;

use crate::Tunables;
use crate::conn::{BufferSize, Connection, Cork, KeepAlive, Nagle};

/// Everything that can be set on one socket.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct SocketOptions {
    /// The wait of small segments for earlier ones.
    pub nagle: Nagle,
    /// The wait of segments that are not full for more text.
    pub cork: Cork,
    /// Probing of a silent connection.
    pub keep_alive: KeepAlive,
    /// The size of the send buffer.
    pub send_size: BufferSize,
    /// The size of the receive buffer.
    pub recv_size: BufferSize,
    /// The number of times that the SYN-ACK would be repeated until a handshake whose third segment has no text
    /// counts as complete; 0: at once (`TCP_DEFER_ACCEPT`). Of a listener only.
    pub defer_accept: u8,
    /// The congestion control (`TCP_CONGESTION`); without, that of the route or of the tunable, which a
    /// connection keeps.
    pub congestion_control: Option<Algorithm>,
    /// Options that few applications set.
    pub overrides: SocketOverrides,
}

/// Options that few applications set. `None`: as the tunable of that name has it.
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
    /// The time for which the connection may be silent before it is probed.
    pub keepalive_time: Option<Duration>,
    /// The time between two probes.
    pub keepalive_interval: Option<Duration>,
    /// The number of unanswered probes end the connection.
    pub keepalive_probes: Option<u8>,
    /// The time for which what was sent may be unacknowledged, or what is to be sent may wait for the peer's
    /// window, before the connection is given up (RFC 5482 3); no limit but `retries` without.
    pub user_timeout: Option<Duration>,
    /// The number of times that a SYN is repeated; of a listener, a SYN-ACK. 254 at most.
    pub syn_retries: Option<u8>,
    /// The number of times that text is retransmitted: R2 of RFC 9293 3.8.3. 254 at most.
    pub retries: Option<u8>,
    /// The time for which an orphan waits in FIN-WAIT-2 for the peer's FIN; zero: not at all.
    pub fin_timeout: Option<Duration>,
    /// The most that is announced as MSS, and taken from the peer's announcement, bytes; less than
    /// `least_mss` counts as that. It has an effect until the SYN is out.
    pub max_seg: Option<u16>,
    /// Bytes that may wait to be sent for the first time (`TCP_NOTSENT_LOWAT`); without, what the
    /// send buffer holds.
    pub unsent_low_water: Option<u32>,
    /// The most bytes of text per second that leave, what is sent again included (`SO_MAX_PACING_RATE`). The
    /// connection is paced then. As on Linux the first 14,600 bytes leave at once. No wait exceeds a second, so that
    /// less than two segments per second has no effect.
    pub max_pacing_rate: Option<NonZeroU64>,
    /// The largest window that is announced, bytes.
    pub window_clamp: Option<u32>,
    /// When text is acknowledged.
    pub acks: AckTiming,
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

/// Fields of a connection's IP headers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Marking {
    /// Time to live, or hop limit.
    pub hop_limit: u8,
    /// Type of service, or traffic class; its ECN field is 0.
    pub class: TrafficClass,
}

impl Marking {
    /// The marking by the tunables, where no option was set.
    pub fn from_tunables(tunables: &Tunables) -> Self {
        Self { hop_limit: tunables.hop_limit, class: TrafficClass::default() }
    }
}

impl SocketOptions {
    /// The window that the scale is chosen for, bytes.
    pub fn scale_limit(&self, tunables: &Tunables) -> u32 {
        let most = self.recv_size.scale_limit(tunables);
        most.min(self.overrides.window_clamp.unwrap_or(u32::MAX))
    }

    /// The most that is announced at first, bytes, on a path whose route says `pipe` of it; 0: nothing.
    pub fn recv_limit(&self, pipe: u32, tunables: &Tunables) -> u32 {
        let size = self.recv_size.recv_range(pipe, tunables).floor;
        size.min(self.overrides.window_clamp.unwrap_or(u32::MAX))
    }
}

impl SocketOverrides {
    /// Returns the marking of packets to a peer of this family.
    pub fn marking(&self, is_v4: bool, tunables: &Tunables) -> Marking {
        let (hop_limit, class) =
            if is_v4 { (self.ttl, self.tos) } else { (self.hop_limit, self.traffic_class) };
        Marking { hop_limit: hop_limit.unwrap_or(tunables.hop_limit), class }
    }
}

/// Values in force for this connection.
impl Connection {
    /// Returns the marking of its packets.
    pub fn marking(&self, tunables: &Tunables) -> Marking {
        match self.transfer.tcb.cold().overrides() {
            Some(set) => set.marking(self.transfer.tcb.ends.remote.is_v4(), tunables),
            None => Marking::from_tunables(tunables),
        }
    }
}
