//! Two processes on two hosts, with a wire between them in virtual time.

mod world;

mod bind;
mod close;
mod connect;
mod datagrams;
mod epoll;
mod errors;
mod fast_open;
mod info;
mod names;
mod options;
mod packets;
mod poll;
mod sizes;
mod times;
mod transfer;
mod urgent;
