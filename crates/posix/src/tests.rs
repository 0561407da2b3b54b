//! Stories: two processes on two hosts, and a wire between them in virtual time.

mod world;

mod bind;
mod close;
mod connect;
mod epoll;
mod errors;
mod names;
mod options;
mod poll;
mod transfer;
