//! Programs that know nothing of virtual time: hyper, and a client of Redis.

mod payment;
mod posts;
mod redis;
mod upload;
