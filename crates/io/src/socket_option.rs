//! Options and queues of the kernel's sockets as getsockopt(2), setsockopt(2) and ioctl(2) have them: for tools that
//! look at the kernel's TCP, call by call. A program uses `std` or `socket2` instead.

pub use crate::sys::option::{PlainOption, SocketRequest, get, request_number, set};
