//! Two shards, joined by a wire in virtual time.

mod hosts;

mod close;
mod echo;
mod ethernet;
mod open;
mod refuse;
