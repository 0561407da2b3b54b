//! Two shards, joined by a wire in virtual time.

mod hosts;
mod leaks;
mod lists;
mod packets;

mod administer;
mod anywhere;
mod budget;
mod close;
mod cookies;
mod cutting;
mod drops;
mod echo;
mod ethernet;
mod fast_open;
mod flood;
mod fragments;
mod hostile;
mod hostile_bursts;
mod icmp;
mod merging;
mod metrics;
mod narrow;
mod open;
mod overflow;
mod policies;
mod ports;
mod pressure;
mod refuse;
mod same_tick;
mod storms;
mod time_wait;
mod timers;
mod udp;
mod unclaimed;
mod wrap;
