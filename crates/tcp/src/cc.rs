//! Congestion control: how much may be in flight.

mod new_reno;

pub use new_reno::NewReno;

/// The congestion window of a fresh connection whose full segments have `mss` octets of text, octets.
pub fn initial_cwnd(mss: u32) -> u32 {
    // RFC 6928 2: "min (10*MSS, max (2*MSS, 14600))"
    (10 * mss).min((2 * mss).max(14_600))
}
