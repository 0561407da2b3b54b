//! `getsockopt`: what was set, and what is so.

use alloc::boxed::Box;
use core::time::Duration;

use whimbrel_stack::Handle;
use whimbrel_tcp::Tunables;
use whimbrel_tcp::conn::{AckTiming, Cork, KeepAlive, Nagle};
use whimbrel_tcp::tunables::ToldBuffers;

use super::Sockets;
use super::fast_open::{fast_open_keys, fast_open_setting};
use super::setsockopt::lasting;
use crate::socket::{Phase, Socket};
use crate::tcp_info::Surroundings;
use crate::{Domain, Errno, Fd, OptionValue, Protocol, SocketOption, SocketType, TcpInfo};

impl Sockets {
    /// `getsockopt(2)`. Buffers are told at twice their bytes, as on Linux, which counts its own
    /// overhead, unless `Tunables::told_buffers` says otherwise.
    pub fn getsockopt(&mut self, fd: Fd, option: SocketOption) -> Result<OptionValue, Errno> {
        if self.is_datagrams(fd) {
            return self.get_datagrams_option(fd, option);
        }
        if option == SocketOption::Error {
            self.get(fd)?;
            let error = self.take_error(fd).or_else(|| self.take_soft_error(fd));
            return Ok(OptionValue::Int(error.map_or(0, Errno::number)));
        }
        let socket = self.get(fd)?;
        if let Some(value) = self.setting(socket, option) {
            return Ok(OptionValue::Int(value));
        }
        match option {
            SocketOption::Linger => Ok(OptionValue::Linger(socket.settings.linger)),
            SocketOption::Congestion => {
                Ok(OptionValue::Text(self.congestion_control(socket).into()))
            }
            SocketOption::FastOpenKey => Ok(OptionValue::Octets(fast_open_keys(socket))),
            SocketOption::Info => Ok(OptionValue::Info(Box::new(self.tcp_info(fd)?))),
            SocketOption::V6Only if socket.domain == Domain::Inet6 => {
                Ok(OptionValue::Int(i32::from(socket.settings.v6_only)))
            }
            SocketOption::Mtu => self.told_mtu(fd),
            SocketOption::Mtu6 if socket.domain == Domain::Inet6 => self.told_mtu(fd),
            _ => Err(Errno::ENOPROTOOPT),
        }
    }

    /// What the path to the peer is known to carry, bytes.
    fn told_mtu(&self, fd: Fd) -> Result<OptionValue, Errno> {
        let (stream, _) = self.connection(fd)?.ok_or(Errno::ENOTCONN)?;
        Ok(OptionValue::Int(i32::from(self.path_mtu(stream.handle))))
    }

    fn path_mtu(&self, handle: Handle) -> u16 {
        let flow = self.shard.flow(handle);
        let narrow = flow.and_then(|flow| self.shard.path_mtu(&flow.remote.addr));
        narrow.unwrap_or(self.shard.mtu())
    }

    /// `TCP_INFO`, as a struct.
    pub fn tcp_info(&self, fd: Fd) -> Result<TcpInfo, Errno> {
        if let Phase::Listening(id) = self.get(fd)?.phase {
            let listener = self.shard.listener(id);
            return Ok(listener.map_or_else(TcpInfo::unconnected, TcpInfo::of_listener));
        }
        let Some((stream, snapshot)) = self.connection(fd)? else {
            return Ok(TcpInfo::unconnected());
        };
        let around = Surroundings {
            now: self.shard.now(),
            path_mtu: self.path_mtu(stream.handle),
            delayed_ack: self.shard.tunables().delayed_ack,
        };
        Ok(TcpInfo::of(&snapshot, &around))
    }

    /// The options whose value is a number.
    fn setting(&self, socket: &Socket, option: SocketOption) -> Option<i32> {
        let fast_open = fast_open_setting(socket, option);
        fast_open
            .or_else(|| self.own_setting(socket, option))
            .or_else(|| self.time_setting(socket, option))
    }

    fn own_setting(&self, socket: &Socket, option: SocketOption) -> Option<i32> {
        let settings = &socket.settings;
        let options = &settings.options;
        let rules = self.shard.tunables();
        let on = |flag: bool| Some(i32::from(flag));
        match option {
            SocketOption::ReuseAddr => on(settings.reuse_addr),
            SocketOption::ReusePort => on(settings.reuse_port),
            SocketOption::BindAddressNoPort => on(settings.no_port),
            SocketOption::OobInline => on(settings.oob_inline),
            SocketOption::QuickAck => on(options.overrides.acks == AckTiming::AtOnce),
            SocketOption::KeepAlive => on(options.keep_alive == KeepAlive::On),
            SocketOption::NoDelay => on(options.nagle == Nagle::Off),
            SocketOption::Cork => on(options.cork == Cork::On),
            SocketOption::AcceptConn => on(matches!(socket.phase, Phase::Listening(_))),
            SocketOption::Type => Some(SocketType::Stream.number()),
            SocketOption::ProtocolOf => Some(Protocol::Tcp.number()),
            SocketOption::DomainOf => Some(socket.domain.number()),
            SocketOption::SendBuffer => {
                Some(reported_size(options.send_size.octets().unwrap_or(rules.send_buffer), rules))
            }
            SocketOption::RecvBuffer => {
                let snapshot =
                    socket.stream().and_then(|stream| self.shard.snapshot(stream.handle));
                let set = options.recv_size.octets().unwrap_or(rules.recv_buffer);
                // A connection may have rounded it up.
                Some(reported_size(snapshot.map_or(set, |snapshot| snapshot.recv_size), rules))
            }
            SocketOption::MaxSeg => Some(self.max_seg(socket)),
            SocketOption::NotSentLowAt => {
                Some(options.overrides.unsent_low_water.unwrap_or(0).cast_signed())
            }
            SocketOption::WindowClamp => Some(number(options.overrides.window_clamp.unwrap_or(0))),
            _ => self.packet_setting(socket, option),
        }
    }

    /// Time-outs, and how often something is tried.
    fn time_setting(&self, socket: &Socket, option: SocketOption) -> Option<i32> {
        let (options, rules) = (&socket.settings.options, self.shard.tunables());
        let set = &options.overrides;
        match option {
            SocketOption::KeepIdle => {
                Some(seconds(set.keepalive_time.unwrap_or(rules.keepalive_time)))
            }
            SocketOption::KeepInterval => {
                Some(seconds(set.keepalive_interval.unwrap_or(rules.keepalive_interval)))
            }
            SocketOption::KeepCount => {
                Some(i32::from(set.keepalive_probes.unwrap_or(rules.keepalive_probes)))
            }
            SocketOption::SynCount => Some(i32::from(set.syn_retries.unwrap_or(rules.syn_retries))),
            SocketOption::UserTimeOut => {
                let millis = set.user_timeout.map_or(0, |limit| limit.as_millis());
                Some(i32::try_from(millis).unwrap_or(i32::MAX))
            }
            SocketOption::Linger2 if set.fin_timeout == Some(Duration::ZERO) => Some(-1),
            SocketOption::Linger2 => Some(seconds(set.fin_timeout.unwrap_or(rules.fin_timeout))),
            SocketOption::DeferAccept => Some(lasting(options.defer_accept)),
            _ => None,
        }
    }

    /// What IP headers say.
    fn packet_setting(&self, socket: &Socket, option: SocketOption) -> Option<i32> {
        let set = &socket.settings.options.overrides;
        let usual = self.shard.tunables().hop_limit;
        let v6 = socket.domain == Domain::Inet6;
        match option {
            SocketOption::Ttl => Some(i32::from(set.ttl.unwrap_or(usual))),
            SocketOption::Tos => Some(i32::from(set.tos.0)),
            SocketOption::UnicastHops if v6 => Some(i32::from(set.hop_limit.unwrap_or(usual))),
            SocketOption::TrafficClass if v6 => Some(i32::from(set.traffic_class.0)),
            _ => None,
        }
    }

    /// That of the connection, or what a connection of this socket would have as far as is known.
    fn congestion_control(&self, socket: &Socket) -> &str {
        let snapshot = socket.stream().and_then(|stream| self.shard.snapshot(stream.handle));
        let set = socket.settings.options.congestion_control;
        let algorithm = snapshot.map(|snapshot| snapshot.congestion_control).or(set);
        let all = self.shard.congestion_controls();
        let usual = || all.usual(self.shard.tunables().congestion_control);
        all.name(algorithm.unwrap_or_else(usual))
    }

    /// As on Linux: what was set, if there is no connection yet.
    fn max_seg(&self, socket: &Socket) -> i32 {
        let set = socket.settings.options.overrides.max_seg;
        let snapshot = socket.stream().and_then(|stream| self.shard.snapshot(stream.handle));
        let unconnected = set.map_or(DEFAULT_MSS, i32::from);
        snapshot.map_or(unconnected, |snapshot| i32::from(snapshot.mss))
    }
}

fn number(bytes: u32) -> i32 {
    i32::try_from(bytes).unwrap_or(i32::MAX)
}

fn reported_size(bytes: u32, rules: &Tunables) -> i32 {
    match rules.told_buffers {
        ToldBuffers::Doubled => number(bytes.saturating_mul(2)),
        ToldBuffers::AsSet => number(bytes),
    }
}

fn seconds(duration: Duration) -> i32 {
    i32::try_from(duration.as_secs()).unwrap_or(i32::MAX)
}

/// RFC 9293 3.7.1: "SendMSS (...) 536": what Linux tells before there is a connection.
const DEFAULT_MSS: i32 = 536;
