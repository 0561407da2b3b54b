//! `setsockopt`: what the stack can do takes effect at once, the rest is refused.

use whimbrel_stack::Handle;
use whimbrel_tcp::conn::{Cork, KeepAlive, Nagle};

use super::Sockets;
use crate::{Domain, Errno, Fd, OptionValue, SocketOption};

impl Sockets {
    /// `setsockopt(2)`. `ENOPROTOOPT` for whatever would have no effect.
    pub fn setsockopt(
        &mut self,
        fd: Fd,
        option: SocketOption,
        value: &OptionValue,
    ) -> Result<(), Errno> {
        self.get(fd)?;
        match (option, value) {
            (SocketOption::Linger, OptionValue::Linger(linger)) => {
                self.get_mut(fd)?.settings.linger = *linger;
                Ok(())
            }
            (SocketOption::Congestion, OptionValue::Text(name)) => {
                if name == CONGESTION {
                    Ok(())
                } else {
                    Err(Errno::ENOENT)
                }
            }
            (SocketOption::Linger | SocketOption::Congestion, _) => Err(Errno::EINVAL),
            (_, OptionValue::Int(value)) => self.set_number(fd, option, *value),
            _ => Err(Errno::ENOPROTOOPT),
        }
    }

    fn set_number(&mut self, fd: Fd, option: SocketOption, value: i32) -> Result<(), Errno> {
        match option {
            SocketOption::SendBuffer | SocketOption::RecvBuffer => {
                self.set_buffer(fd, option, value)
            }
            SocketOption::OobInline if value != 0 => Ok(()),
            SocketOption::V6Only => self.set_v6_only(fd, value),
            _ => self.set_switch(fd, option, value),
        }
    }

    fn set_switch(&mut self, fd: Fd, option: SocketOption, value: i32) -> Result<(), Errno> {
        let on = value != 0;
        let handle = self.handle(fd)?;
        let settings = &mut self.get_mut(fd)?.settings;
        match option {
            SocketOption::ReuseAddr => settings.reuse_addr = on,
            SocketOption::KeepAlive => {
                settings.keep_alive = on;
                let keep_alive = if on { KeepAlive::On } else { KeepAlive::Off };
                if let Some(handle) = handle {
                    self.shard.set_keep_alive(handle, keep_alive);
                }
            }
            SocketOption::NoDelay => {
                settings.no_delay = on;
                let nagle = if on { Nagle::Off } else { Nagle::On };
                if let Some(handle) = handle {
                    self.shard.set_nodelay(handle, nagle);
                }
            }
            SocketOption::Cork => {
                settings.cork = on;
                if let Some(stream) = self.stream_mut(fd) {
                    stream.corked = on;
                }
                let cork = if on { Cork::On } else { Cork::Off };
                if let Some(handle) = handle {
                    self.shard.set_cork(handle, cork);
                }
            }
            _ => return Err(Errno::ENOPROTOOPT),
        }
        Ok(())
    }

    /// The octets given hold for text; Linux would take the value for its overhead too, and so
    /// tells twice as much.
    fn set_buffer(&mut self, fd: Fd, option: SocketOption, value: i32) -> Result<(), Errno> {
        let handle = self.handle(fd)?;
        let settings = &mut self.get_mut(fd)?.settings;
        // As on Linux a negative number is a large one.
        let octets = value.cast_unsigned();
        if option == SocketOption::SendBuffer {
            let octets = octets.clamp(LEAST_SEND, MOST_BUFFER);
            settings.send_size = Some(octets);
            if let Some(handle) = handle {
                self.shard.set_send_size(handle, octets);
            }
        } else {
            let octets = octets.clamp(LEAST_RECV, MOST_BUFFER);
            settings.recv_size = Some(octets);
            if let Some(handle) = handle {
                self.shard.set_recv_size(handle, octets);
            }
        }
        self.notify(fd);
        Ok(())
    }

    fn set_v6_only(&mut self, fd: Fd, value: i32) -> Result<(), Errno> {
        let socket = self.get_mut(fd)?;
        if socket.domain != Domain::Inet6 {
            return Err(Errno::ENOPROTOOPT);
        }
        if socket.local.is_some() {
            return Err(Errno::EINVAL);
        }
        socket.settings.v6_only = value != 0;
        Ok(())
    }

    fn handle(&self, fd: Fd) -> Result<Option<Handle>, Errno> {
        Ok(self.get(fd)?.stream().map(|stream| stream.handle))
    }
}

/// The congestion control that there is, by Linux' name for it.
pub(super) const CONGESTION: &str = "reno";
/// Half of Linux' `SOCK_MIN_SNDBUF`.
const LEAST_SEND: u32 = 2_304;
/// Half of Linux' `SOCK_MIN_RCVBUF`.
const LEAST_RECV: u32 = 1_152;
/// So that twice as much is a number of C's.
const MOST_BUFFER: u32 = (1 << 30) - 1;
