//! Where a stack keeps its flows: the one table that finds a segment's record, and the records
//! that are not connections.

pub mod flow_table;
pub mod secrets;
pub mod slab;
pub mod time_wait;

pub use flow_table::{FlowHash, FlowHasher, FlowTable, Kind, Record};
pub use secrets::Secrets;
pub use slab::Slab;
pub use time_wait::{
    ChallengeReason, Ended, Lifetimes, PathClass, ReuseBy, RstVerdict, SegmentVerdict, SynVerdict,
    TimeWait, TimeWaits,
};
