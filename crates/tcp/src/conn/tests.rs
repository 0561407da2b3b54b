//! Two connections that speak to each other across a wire of the test's making.

mod lengths;
mod pair;

mod arrival;
mod closing;
mod congestion;
mod counts;
mod faults;
mod hunger;
mod icmp;
mod mtu_search;
mod rate_limited;
mod sizes;
mod stalls;
mod timestamps;
mod transfer;
mod windows;
