//! Options and queues of the kernel's sockets as getsockopt(2), setsockopt(2) and ioctl(2) have
//! them, for tools that examine the kernel's TCP call by call. Programs use `std` or `socket2`
//! instead.

pub use crate::sys::option::{PlainOption, SocketRequest, get, request_number, set};
