//! `getsockopt`: settings and state.

use alloc::boxed::Box;
use core::time::Duration;

use whimbrel_stack::{Handle, Shard};
use whimbrel_tcp::Tunables;
use whimbrel_tcp::conn::{AckTiming, Cork, KeepAlive, Nagle};
use whimbrel_tcp::tunables::ToldBuffers;

use super::setsockopt::lasting;
use super::{Phase, Socket};
use crate::tcp_info::SocketMetrics;
use crate::{Domain, Errno, OptionValue, Protocol, SocketOption, SocketType, TcpInfo};

impl Socket {
    pub(crate) fn getsockopt(
        &mut self,
        shard: &mut Shard,
        option: SocketOption,
    ) -> Result<OptionValue, Errno> {
        if option == SocketOption::Error {
            let error = self.take_error(shard).or_else(|| self.take_soft_error(shard));
            return Ok(OptionValue::Int(error.map_or(0, Errno::number)));
        }
        if let Some(value) = self.setting(shard, option) {
            return Ok(OptionValue::Int(value));
        }
        match option {
            SocketOption::Linger => Ok(OptionValue::Linger(self.settings.linger)),
            SocketOption::Congestion => {
                Ok(OptionValue::Text(self.congestion_control(shard).into()))
            }
            SocketOption::FastOpenKey => Ok(OptionValue::Bytes(self.fast_open_keys())),
            SocketOption::Info => Ok(OptionValue::Info(Box::new(self.tcp_info(shard)))),
            SocketOption::V6Only if self.domain == Domain::Inet6 => {
                Ok(OptionValue::Int(i32::from(self.settings.v6_only)))
            }
            SocketOption::Mtu => self.told_mtu(shard),
            SocketOption::Mtu6 if self.domain == Domain::Inet6 => self.told_mtu(shard),
            _ => Err(Errno::ENOPROTOOPT),
        }
    }

    /// Path MTU to the peer as known, bytes.
    fn told_mtu(&self, shard: &Shard) -> Result<OptionValue, Errno> {
        let (stream, _) = self.connection(shard).ok_or(Errno::ENOTCONN)?;
        Ok(OptionValue::Int(i32::from(path_mtu(shard, stream.handle))))
    }

    pub(crate) fn tcp_info(&self, shard: &Shard) -> TcpInfo {
        if let Phase::Listening(id) = self.phase {
            return shard.listener(id).map_or_else(TcpInfo::unconnected, TcpInfo::of_listener);
        }
        let Some((stream, snapshot)) = self.connection(shard) else {
            return TcpInfo::unconnected();
        };
        let around = SocketMetrics {
            now: shard.now(),
            path_mtu: path_mtu(shard, stream.handle),
            delayed_ack: shard.tunables().delayed_ack,
        };
        TcpInfo::of(&snapshot, &around)
    }

    /// Options whose value is a number.
    fn setting(&self, shard: &Shard, option: SocketOption) -> Option<i32> {
        let rules = shard.tunables();
        let fast_open = self.fast_open_setting(option);
        fast_open
            .or_else(|| self.own_setting(shard, option))
            .or_else(|| self.time_setting(rules, option))
            .or_else(|| self.packet_setting(rules, option))
    }

    fn own_setting(&self, shard: &Shard, option: SocketOption) -> Option<i32> {
        let settings = &self.settings;
        let options = &settings.options;
        let rules = shard.tunables();
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
            SocketOption::AcceptConn => on(matches!(self.phase, Phase::Listening(_))),
            SocketOption::Type => Some(SocketType::Stream.number()),
            SocketOption::ProtocolOf => Some(Protocol::Tcp.number()),
            SocketOption::DomainOf => Some(self.domain.number()),
            SocketOption::SendBuffer => {
                Some(reported_size(options.send_size.bytes().unwrap_or(rules.send_buffer), rules))
            }
            SocketOption::RecvBuffer => {
                let set = options.recv_size.bytes().unwrap_or(rules.recv_buffer);
                let connection = self.connection(shard);
                // A connection may have rounded it up.
                Some(reported_size(connection.map_or(set, |(_, it)| it.recv_size), rules))
            }
            SocketOption::MaxSeg => Some(self.max_seg(shard)),
            SocketOption::NotSentLowAt => {
                Some(options.overrides.unsent_low_water.unwrap_or(0).cast_signed())
            }
            SocketOption::MaxPacingRate => {
                let rate = options.overrides.max_pacing_rate.map(|rate| u32::try_from(rate.get()));
                Some(rate.map_or(-1, |rate| rate.unwrap_or(u32::MAX).cast_signed()))
            }
            SocketOption::WindowClamp => Some(number(options.overrides.window_clamp.unwrap_or(0))),
            _ => None,
        }
    }

    /// Time-outs, and numbers of attempts.
    fn time_setting(&self, rules: &Tunables, option: SocketOption) -> Option<i32> {
        let options = &self.settings.options;
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

    /// Setting of IP headers.
    fn packet_setting(&self, rules: &Tunables, option: SocketOption) -> Option<i32> {
        let set = &self.settings.options.overrides;
        let usual = rules.hop_limit;
        let v6 = self.domain == Domain::Inet6;
        match option {
            SocketOption::Ttl => Some(i32::from(set.ttl.unwrap_or(usual))),
            SocketOption::Tos => Some(i32::from(set.tos.0)),
            SocketOption::UnicastHops if v6 => Some(i32::from(set.hop_limit.unwrap_or(usual))),
            SocketOption::TrafficClass if v6 => Some(i32::from(set.traffic_class.0)),
            _ => None,
        }
    }

    /// Congestion control of the connection, or of a future one as far as known.
    fn congestion_control<'a>(&self, shard: &'a Shard) -> &'a str {
        let set = self.settings.options.congestion_control;
        let algorithm = self.connection(shard).map(|(_, it)| it.congestion_control).or(set);
        let all = shard.congestion_controls();
        let usual = || all.usual(shard.tunables().congestion_control);
        all.name(algorithm.unwrap_or_else(usual))
    }

    /// As on Linux: the setting, if there is no connection yet.
    fn max_seg(&self, shard: &Shard) -> i32 {
        let unconnected = self.settings.options.overrides.max_seg.map_or(DEFAULT_MSS, i32::from);
        self.connection(shard).map_or(unconnected, |(_, it)| i32::from(it.mss))
    }
}

fn path_mtu(shard: &Shard, handle: Handle) -> u16 {
    let flow = shard.flow(handle);
    let narrow = flow.and_then(|flow| shard.path_mtu(&flow.remote.addr));
    narrow.unwrap_or(shard.mtu())
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

/// RFC 9293 3.7.1: "SendMSS (...) 536": Linux' value before there is a connection.
const DEFAULT_MSS: i32 = 536;
