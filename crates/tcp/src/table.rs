//! The tables of a stack's flows: the one table that finds a segment's record, and the records
//! that are not connections.

pub mod cookies;
pub mod fast_open;
mod fast_opens;
pub mod flow_table;
mod latency;
pub mod listeners;
pub mod ports;
pub mod syn_cache;
pub mod syn_entry;
pub mod time_wait;

pub use crate::identity::Identity;
pub use cookies::{Carried, CookieTerms, Cookies, Membership};
pub use fast_open::{CookieVerdict, FastOpenCache, FastOpenKeys, KnownServer, Service};
pub use fast_opens::{FastOpens, Opened};
pub use flow_table::{FlowHash, FlowHasher, FlowTable, Kind, Record};
pub use latency::{LatencyHistogram, PassiveLatencies};
pub use listeners::{
    AcceptQueueFull, EndpointInUse, Families, Inheritance, Listener, ListenerId, ListenerStats,
    Listeners,
};
pub use ports::{Destination, NextPort, PortUse, Ports, PortsExhausted, Stamped, Taken};
pub use syn_cache::{Due, SynCache, SynCacheFull};
pub use syn_entry::{AdvertisedValues, Asked, FastOpenForm, PassiveOpen, SynEntry, SynStep};
pub use time_wait::{
    Ended, Lifetimes, Opener, PathClass, RefusalReason, ReuseBy, RstVerdict, SegmentVerdict,
    SynAnswer, SynVerdict, TakeOver, TimeWait, TimeWaits,
};
