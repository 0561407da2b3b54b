//! Two shards, joined by a wire in virtual time.

mod hosts;

mod close;
mod echo;
mod hostile;
mod open;
mod refuse;
mod storms;
