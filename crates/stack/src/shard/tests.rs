//! Two shards, joined by a wire in virtual time.

mod hosts;

mod close;
mod echo;
mod open;
mod policies;
mod refuse;
