//! `getsockopt`: what was set, and what is so.

use alloc::boxed::Box;
use core::time::Duration;

use super::Sockets;
use crate::socket::{Phase, Socket};
use crate::{Domain, Errno, Fd, OptionValue, Protocol, SocketOption, SocketType, TcpInfo};

impl Sockets {
    /// `getsockopt(2)`. Buffers are told at twice their octets, as on Linux, which counts its own
    /// overhead.
    pub fn getsockopt(&mut self, fd: Fd, option: SocketOption) -> Result<OptionValue, Errno> {
        if option == SocketOption::Error {
            self.get(fd)?;
            return Ok(OptionValue::Int(self.take_error(fd).map_or(0, Errno::number)));
        }
        let socket = self.get(fd)?;
        if let Some(value) = self.setting(socket, option) {
            return Ok(OptionValue::Int(value));
        }
        match option {
            SocketOption::Linger => Ok(OptionValue::Linger(socket.settings.linger)),
            SocketOption::Congestion => Ok(OptionValue::Text(super::setsockopt::CONGESTION.into())),
            SocketOption::Info => Ok(OptionValue::Info(Box::new(self.tcp_info(fd)?))),
            SocketOption::V6Only if socket.domain == Domain::Inet6 => {
                Ok(OptionValue::Int(i32::from(socket.settings.v6_only)))
            }
            _ => Err(Errno::ENOPROTOOPT),
        }
    }

    /// `TCP_INFO`, as a struct.
    pub fn tcp_info(&self, fd: Fd) -> Result<TcpInfo, Errno> {
        if let Phase::Listening(id) = self.get(fd)?.phase {
            let listener = self.shard.listener(id);
            return Ok(listener.map_or_else(TcpInfo::unconnected, TcpInfo::of_listener));
        }
        let connection = self.connection(fd)?;
        Ok(connection.map_or_else(TcpInfo::unconnected, |(_, snapshot)| TcpInfo::of(&snapshot)))
    }

    /// The options whose value is a number.
    fn setting(&self, socket: &Socket, option: SocketOption) -> Option<i32> {
        let settings = &socket.settings;
        let rules = self.shard.tunables();
        let on = |flag: bool| Some(i32::from(flag));
        match option {
            SocketOption::ReuseAddr => on(settings.reuse_addr),
            SocketOption::KeepAlive => on(settings.keep_alive),
            SocketOption::NoDelay => on(settings.no_delay),
            SocketOption::Cork => on(settings.cork),
            SocketOption::AcceptConn => on(matches!(socket.phase, Phase::Listening(_))),
            SocketOption::Type => Some(SocketType::Stream.number()),
            SocketOption::ProtocolOf => Some(Protocol::Tcp.number()),
            SocketOption::DomainOf => Some(socket.domain.number()),
            // Urgent octets stay in the stream, always.
            SocketOption::OobInline => Some(1),
            SocketOption::SendBuffer => {
                Some(doubled(settings.send_size.unwrap_or(rules.send_buffer)))
            }
            SocketOption::RecvBuffer => {
                Some(doubled(settings.recv_size.unwrap_or(rules.recv_buffer)))
            }
            SocketOption::MaxSeg => Some(self.max_seg(socket)),
            SocketOption::KeepIdle => Some(seconds(rules.keepalive_time)),
            SocketOption::KeepInterval => Some(seconds(rules.keepalive_interval)),
            SocketOption::KeepCount => Some(i32::from(rules.keepalive_probes)),
            SocketOption::SynCount => Some(i32::from(rules.syn_retries)),
            _ => None,
        }
    }

    fn max_seg(&self, socket: &Socket) -> i32 {
        let snapshot = socket.stream().and_then(|stream| self.shard.snapshot(stream.handle));
        snapshot.map_or(DEFAULT_MSS, |snapshot| i32::from(snapshot.mss))
    }
}

fn doubled(octets: u32) -> i32 {
    i32::try_from(octets.saturating_mul(2)).unwrap_or(i32::MAX)
}

fn seconds(duration: Duration) -> i32 {
    i32::try_from(duration.as_secs()).unwrap_or(i32::MAX)
}

/// RFC 9293 3.7.1: "SendMSS (...) 536": what Linux tells before there is a connection.
const DEFAULT_MSS: i32 = 536;
