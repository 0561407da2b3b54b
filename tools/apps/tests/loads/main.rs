//! Loads and servers in the simulated world: virtual time, exact counts.
#![forbid(unsafe_code)]

#[cfg(test)]
mod bulk;
#[cfg(test)]
mod exchanges;
#[cfg(test)]
mod http;
#[cfg(test)]
mod iperf3;
#[cfg(test)]
mod pace;
#[cfg(test)]
mod resets;
#[cfg(test)]
mod slow;
#[cfg(test)]
mod steering;
#[cfg(test)]
mod web;
#[cfg(test)]
mod world;
