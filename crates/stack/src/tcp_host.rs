//! The TCP of a host: its connections, their openings from either side, and what it remembers of flows.
//!
//! ```text
//! records    the flow table, connections, half-open entries, TIME-WAIT
//! work       the dirty list, the event list, timers
//! passive    listeners, SYNs, cookies, any destination
//! active     ports, the source pool, the Fast Open cache
//! ```

pub(crate) mod any_destination;
pub(crate) mod coalesce;
pub(crate) mod connecting;
pub(crate) mod connections;
pub(crate) mod cookies;
pub(crate) mod fast_open;
pub(crate) mod found;
pub(crate) mod getters;
pub(crate) mod half_open;
pub(crate) mod half_open_errors;
pub(crate) mod inspect;
pub(crate) mod markings;
pub(crate) mod opening;
pub(crate) mod pacing;
pub(crate) mod ports;
mod protocol;
pub(crate) mod record_checks;
pub(crate) mod records;
pub(crate) mod segmentation;
pub(crate) mod time_wait;
pub(crate) mod timers;
pub(crate) mod work;

use whimbrel_base::ports::PortRange;
use whimbrel_base::{Instant, Secrets};
use whimbrel_tcp::Tunables;
use whimbrel_tcp::table::{
    Cookies, FastOpenCache, FastOpenKeys, FastOpens, Identity, Listeners, Ports,
};
use whimbrel_wire::Address;

use self::any_destination::PendingDials;
use self::found::{BURST, BurstPlaces};
use self::opening::ListenerCache;
use self::ports::SourcePool;
use self::records::Records;
use self::segmentation::SegmentationQueue;
use self::work::WorkQueues;
use crate::net::Net;

/// The TCP of a host: its connections, and what else it remembers of flows.
#[derive(Debug)]
pub(crate) struct TcpHost {
    pub(crate) records: Records,
    pub(crate) work: WorkQueues,
    pub(crate) passive: Passive,
    pub(crate) active: Active,
    /// Handshakes that Fast Open began, from either side.
    pub(crate) fast_opens: FastOpens,
    pub(crate) identity: Identity,
    pub(crate) burst: BurstPlaces,
    /// The output of a connection in its turn, and the rest that has not left yet.
    pub(crate) segmentation: SegmentationQueue,
}

/// The openings that peers begin.
#[derive(Debug)]
pub(crate) struct Passive {
    pub(crate) listeners: Listeners,
    /// The listener that a SYN was for last.
    pub(crate) listener_cache: Option<ListenerCache>,
    /// Handshakes for any destination.
    pub(crate) dials: PendingDials,
    pub(crate) cookies: Cookies,
    /// When a cookie announced a window of the usual size last.
    pub(crate) wide_cookie: Option<Instant>,
    pub(crate) fast_open_keys: FastOpenKeys,
}

/// The openings that this host begins.
#[derive(Debug)]
pub(crate) struct Active {
    pub(crate) ports: Ports,
    pub(crate) sources: SourcePool,
    /// The last remote address passed to `connect`, with the source address chosen for it if the caller
    /// has no wish.
    pub(crate) last_connect_route: Option<(Address, Option<u16>)>,
    pub(crate) fast_open_cache: FastOpenCache,
}

impl TcpHost {
    /// The TCP of a host on this network, whose ephemeral ports lie in `range`.
    pub(crate) fn new(secrets: &Secrets, tunables: &Tunables, range: PortRange, net: &Net) -> Self {
        Self {
            records: Records::new(&secrets.flows, tunables),
            work: WorkQueues::new(),
            passive: Passive {
                listeners: Listeners::default(),
                listener_cache: None,
                dials: PendingDials::default(),
                cookies: Cookies::new(secrets),
                wide_cookie: None,
                fast_open_keys: FastOpenKeys::new(&secrets.fast_open),
            },
            active: Active {
                ports: Ports::new(secrets, range, tunables),
                sources: SourcePool::default(),
                last_connect_route: None,
                fast_open_cache: FastOpenCache::new(),
            },
            fast_opens: FastOpens::default(),
            identity: Identity::new(secrets, tunables),
            burst: BurstPlaces::new(BURST),
            segmentation: SegmentationQueue::new(net.ip.max_text(), net.ip.capabilities.mtu),
        }
    }
}
