//! `setsockopt`: what the stack can do takes effect at once, the rest is refused.

use core::ops::RangeInclusive;
use core::time::Duration;

use whimbrel_tcp::conn::{AckTiming, BufferSize, Cork, KeepAlive, Nagle, SocketOptions};
use whimbrel_wire::TrafficClass;

use super::Sockets;
use crate::socket::{Phase, Settings, Socket};
use crate::{Domain, Errno, Fd, OptionValue, SocketOption};

impl Sockets {
    /// `setsockopt(2)`. `ENOPROTOOPT` for whatever would have no effect. What is set on a listener
    /// holds for the connections that it accepts.
    pub fn setsockopt(
        &mut self,
        fd: Fd,
        option: SocketOption,
        value: &OptionValue,
    ) -> Result<(), Errno> {
        if self.is_datagrams(fd) {
            return self.set_datagrams_option(fd, option, value);
        }
        self.get(fd)?;
        match (option, value) {
            (SocketOption::Linger, OptionValue::Linger(linger)) => {
                self.get_mut(fd)?.settings.linger = *linger;
                Ok(())
            }
            (SocketOption::Congestion, OptionValue::Text(name)) => {
                let algorithm = self.shard.congestion_controls().find(name).ok_or(Errno::ENOENT)?;
                let options = &mut self.get_mut(fd)?.settings.options;
                if options.congestion_control.replace(algorithm) != Some(algorithm) {
                    self.tell_options(fd, option)?;
                }
                Ok(())
            }
            (SocketOption::FastOpenKey, OptionValue::Octets(bytes)) => {
                self.set_fast_open_keys(fd, bytes)
            }
            (SocketOption::Linger | SocketOption::Congestion | SocketOption::FastOpenKey, _) => {
                Err(Errno::EINVAL)
            }
            (SocketOption::V6Only, OptionValue::Int(value)) => self.set_v6_only(fd, *value),
            (_, OptionValue::Int(value)) => self.set_number(fd, option, *value),
            _ => Err(Errno::ENOPROTOOPT),
        }
    }

    fn set_number(&mut self, fd: Fd, option: SocketOption, value: i32) -> Result<(), Errno> {
        if self.set_fast_open(fd, option, value)? {
            return Ok(());
        }
        let socket = self.get_mut(fd)?;
        let before = socket.settings;
        let known = set_switch(&mut socket.settings, option, value)
            || set_buffer(&mut socket.settings.options, option, value)
            || set_time(&mut socket.settings.options, option, value)?
            || set_segments(socket, option, value)?
            || set_packets(socket, option, value)?;
        if !known {
            return Err(Errno::ENOPROTOOPT);
        }
        let changed = before.options != socket.settings.options;
        if changed {
            self.tell_options(fd, option)?;
        }
        Ok(())
    }

    /// What was set takes effect.
    fn tell_options(&mut self, fd: Fd, option: SocketOption) -> Result<(), Errno> {
        let socket = self.get_mut(fd)?;
        let mut options = socket.settings.options;
        match &mut socket.phase {
            Phase::Idle => {}
            Phase::Listening(listener) => {
                let listener = *listener;
                self.shard.set_listener_options(listener, &options);
            }
            Phase::Stream(stream) => {
                if option == SocketOption::Cork {
                    stream.corked = options.cork == Cork::On;
                } else if stream.corked {
                    // By `MSG_MORE`.
                    options.cork = Cork::On;
                }
                let handle = stream.handle;
                self.shard.set_options(handle, &options);
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
}

/// Each of the following says whether the option is one of its own.
fn set_switch(settings: &mut Settings, option: SocketOption, value: i32) -> bool {
    let on = value != 0;
    let options = &mut settings.options;
    match option {
        SocketOption::ReuseAddr => settings.reuse_addr = on,
        SocketOption::ReusePort => settings.reuse_port = on,
        SocketOption::BindAddressNoPort => settings.no_port = on,
        SocketOption::OobInline => settings.oob_inline = on,
        SocketOption::KeepAlive => {
            options.keep_alive = if on { KeepAlive::On } else { KeepAlive::Off };
        }
        SocketOption::NoDelay => options.nagle = if on { Nagle::Off } else { Nagle::On },
        SocketOption::Cork => options.cork = if on { Cork::On } else { Cork::Off },
        SocketOption::QuickAck => {
            options.overrides.acks = if on { AckTiming::AtOnce } else { AckTiming::Delayed };
        }
        _ => return false,
    }
    true
}

/// The bytes given hold for text; Linux would take the value for its overhead too, and so tells
/// twice as much.
fn set_buffer(options: &mut SocketOptions, option: SocketOption, value: i32) -> bool {
    // As on Linux a negative number is a large one.
    let bytes = value.cast_unsigned();
    match option {
        SocketOption::SendBuffer => {
            options.send_size = BufferSize::Asked(bytes.clamp(LEAST_SEND, MOST_BUFFER));
        }
        SocketOption::RecvBuffer => {
            options.recv_size = BufferSize::Asked(bytes.clamp(LEAST_RECV, MOST_BUFFER));
        }
        _ => return false,
    }
    true
}

/// Time-outs, and how often something is tried.
fn set_time(options: &mut SocketOptions, option: SocketOption, value: i32) -> Result<bool, Errno> {
    let set = &mut options.overrides;
    match option {
        SocketOption::KeepIdle => set.keepalive_time = Some(seconds(value, 1..=32_767)?),
        SocketOption::KeepInterval => set.keepalive_interval = Some(seconds(value, 1..=32_767)?),
        SocketOption::KeepCount => set.keepalive_probes = Some(within(value, 1..=127)?),
        SocketOption::SynCount => set.syn_retries = Some(within(value, 1..=127)?),
        SocketOption::UserTimeOut => {
            let millis = u64::try_from(value).map_err(|_| Errno::EINVAL)?;
            set.user_timeout = (millis > 0).then(|| Duration::from_millis(millis));
        }
        SocketOption::Linger2 => {
            set.fin_timeout = match value {
                0 => None,
                ..0 => Some(Duration::ZERO),
                1.. => Some(seconds(value.min(MOST_LINGER), 1..=MOST_LINGER)?),
            };
        }
        SocketOption::DeferAccept => options.defer_accept = repetitions(value),
        _ => return Ok(false),
    }
    Ok(true)
}

/// Sizes of segments and windows.
fn set_segments(socket: &mut Socket, option: SocketOption, value: i32) -> Result<bool, Errno> {
    let set = &mut socket.settings.options.overrides;
    match option {
        SocketOption::MaxSeg if value == 0 => set.max_seg = None,
        SocketOption::MaxSeg => set.max_seg = Some(within(value, 88..=32_767)?),
        SocketOption::NotSentLowAt => {
            set.unsent_low_water = (value != 0).then_some(value.cast_unsigned());
        }
        SocketOption::WindowClamp if value == 0 => {
            if !matches!(socket.phase, Phase::Idle) {
                return Err(Errno::EINVAL);
            }
            set.window_clamp = None;
        }
        SocketOption::WindowClamp => {
            set.window_clamp = Some(value.cast_unsigned().max(LEAST_RECV));
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// What IP headers say. An IPv6 socket has the options of both families, the others for peers in
/// mapped form.
fn set_packets(socket: &mut Socket, option: SocketOption, value: i32) -> Result<bool, Errno> {
    let set = &mut socket.settings.options.overrides;
    let v6 = socket.domain == Domain::Inet6;
    match option {
        SocketOption::Ttl => set.ttl = hops(value)?,
        SocketOption::Tos => set.tos = class(value & 0xff),
        SocketOption::UnicastHops if v6 => set.hop_limit = hops(value)?,
        SocketOption::TrafficClass if v6 => {
            set.traffic_class = class(if value == -1 { 0 } else { within(value, 0..=255)? });
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// -1: as the tunable has it. 0, which Linux takes for IPv6, would go nowhere (RFC 1122 3.2.1.7: "A
/// host MUST NOT send a datagram with a Time-to-Live (TTL) value of zero").
fn hops(value: i32) -> Result<Option<u8>, Errno> {
    if value == -1 { Ok(None) } else { within(value, 1..=255).map(Some) }
}

/// The ECN field is the protocol's, not the application's.
fn class(value: i32) -> TrafficClass {
    TrafficClass((value & 0xfc) as u8)
}

fn within<T: TryFrom<i32>>(value: i32, range: RangeInclusive<i32>) -> Result<T, Errno> {
    let value = Some(value).filter(|value| range.contains(value));
    value.and_then(|value| T::try_from(value).ok()).ok_or(Errno::EINVAL)
}

fn seconds(value: i32, range: RangeInclusive<i32>) -> Result<Duration, Errno> {
    within(value, range).map(Duration::from_secs)
}

/// How many repetitions of a SYN-ACK take `seconds`, and one more: Linux' `secs_to_retrans`.
fn repetitions(seconds: i32) -> u8 {
    (0..=u8::MAX).find(|count| lasting(*count) >= seconds).unwrap_or(u8::MAX)
}

/// How many seconds that is: the waits double from 1 s to 120 s (Linux' `retrans_to_secs`).
pub(super) fn lasting(repetitions: u8) -> i32 {
    (0..u32::from(repetitions)).map(|count| (1 << count.min(7)).min(120)).sum()
}

/// Half of Linux' `SOCK_MIN_SNDBUF`.
const LEAST_SEND: u32 = 2_304;
/// Half of Linux' `SOCK_MIN_RCVBUF`.
const LEAST_RECV: u32 = 1_152;
/// So that twice as much is a number of C's.
const MOST_BUFFER: u32 = (1 << 30) - 1;
/// The longest that `TCP_LINGER2` takes, seconds: Linux' `TCP_FIN_TIMEOUT_MAX`.
const MOST_LINGER: i32 = 120;
