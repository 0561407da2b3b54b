//! Hosts on an Ethernet: who is where, and what becomes of packets until that is known.

mod bounds;
mod changing;
mod check;
mod frames;
mod gateways;
mod pair;
mod states;
mod station;
