//! Congestion control: how much may be in flight.

mod new_reno;

pub use new_reno::NewReno;
