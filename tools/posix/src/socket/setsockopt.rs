//! `setsockopt`: supported options take effect at once, others are refused.

use core::num::NonZeroU64;
use core::ops::RangeInclusive;
use core::time::Duration;

use whimbrel_tcp::conn::{AckTiming, BufferSize, Cork, KeepAlive, Nagle, SocketOptions};
use whimbrel_wire::TrafficClass;

use super::{Phase, Settings, Socket};
use crate::context::Context;
use crate::{Domain, Errno, OptionValue, SocketOption};

impl Socket {
    pub(crate) fn setsockopt(
        &mut self,
        cx: &mut Context,
        option: SocketOption,
        value: &OptionValue,
    ) -> Result<(), Errno> {
        match (option, value) {
            (SocketOption::Linger, OptionValue::Linger(linger)) => {
                self.settings.linger = *linger;
            }
            (SocketOption::Congestion, OptionValue::Text(name)) => {
                let algorithm = cx.shard.congestion_controls().find(name).ok_or(Errno::ENOENT)?;
                let set = self.settings.options.congestion_control.replace(algorithm);
                if set != Some(algorithm) {
                    self.tell_options(cx, option);
                }
            }
            (SocketOption::FastOpenKey, OptionValue::Bytes(bytes)) => {
                self.set_fast_open_keys(cx, bytes)?;
            }
            (SocketOption::Linger | SocketOption::Congestion | SocketOption::FastOpenKey, _) => {
                return Err(Errno::EINVAL);
            }
            (SocketOption::V6Only, OptionValue::Int(value)) => self.set_v6_only(*value)?,
            (_, OptionValue::Int(value)) => self.set_number(cx, option, *value)?,
            _ => return Err(Errno::ENOPROTOOPT),
        }
        Ok(())
    }

    fn set_number(
        &mut self,
        cx: &mut Context,
        option: SocketOption,
        value: i32,
    ) -> Result<(), Errno> {
        if self.set_fast_open(cx, option, value)? {
            return Ok(());
        }
        let before = self.settings.options;
        let known = set_switch(&mut self.settings, option, value)
            || set_buffer(&mut self.settings.options, option, value)
            || set_time(&mut self.settings.options, option, value)?
            || set_segments(self, option, value)?
            || set_packets(self, option, value)?;
        if !known {
            return Err(Errno::ENOPROTOOPT);
        }
        if before != self.settings.options {
            self.tell_options(cx, option);
        }
        Ok(())
    }

    /// Applies an option that was set.
    fn tell_options(&mut self, cx: &mut Context, option: SocketOption) {
        let mut options = self.settings.options;
        match &mut self.phase {
            Phase::Idle => {}
            Phase::Listening(listener) => {
                cx.shard.set_listener_options(*listener, &options);
            }
            Phase::Stream(stream) => {
                if option == SocketOption::Cork {
                    stream.corked = options.cork == Cork::On;
                } else if stream.corked {
                    // Set by `MSG_MORE`.
                    options.cork = Cork::On;
                }
                cx.shard.set_options(stream.handle, &options);
            }
        }
        cx.polls.notify(self.fd);
    }

    fn set_v6_only(&mut self, value: i32) -> Result<(), Errno> {
        if self.domain != Domain::Inet6 {
            return Err(Errno::ENOPROTOOPT);
        }
        if self.local.is_some() {
            return Err(Errno::EINVAL);
        }
        self.settings.v6_only = value != 0;
        Ok(())
    }
}

/// Each function below returns true if the option is one of its own.
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

/// The given bytes are for data. Linux counts its overhead in the value too, and so reports twice
/// as much.
fn set_buffer(options: &mut SocketOptions, option: SocketOption, value: i32) -> bool {
    // As on Linux, a negative number counts as a large one.
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

/// Time-outs, and numbers of attempts.
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
        // -1: any rate. 0 is none to Linux, either.
        SocketOption::MaxPacingRate => {
            let rate = Some(value).filter(|value| *value != -1).map(i32::cast_unsigned);
            set.max_pacing_rate = rate.and_then(|rate| NonZeroU64::new(rate.into()));
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

/// Sets options of IP headers. An IPv6 socket has the options of both families, the others for
/// peers in mapped form.
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

/// -1: the tunable's value. 0, which Linux takes for IPv6, would not leave the host (RFC 1122
/// 3.2.1.7: "A host MUST NOT send a datagram with a Time-to-Live (TTL) value of zero").
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

/// Number of SYN-ACK repetitions that take `seconds`, plus one: Linux' `secs_to_retrans`.
fn repetitions(seconds: i32) -> u8 {
    (0..=u8::MAX).find(|count| lasting(*count) >= seconds).unwrap_or(u8::MAX)
}

/// Seconds that these take: the waits double from 1 s to 120 s (Linux' `retrans_to_secs`).
pub(super) fn lasting(repetitions: u8) -> i32 {
    (0..u32::from(repetitions)).map(|count| (1 << count.min(7)).min(120)).sum()
}

/// Half of Linux' `SOCK_MIN_SNDBUF`.
const LEAST_SEND: u32 = 2_304;
/// Half of Linux' `SOCK_MIN_RCVBUF`.
const LEAST_RECV: u32 = 1_152;
/// Twice as much must fit in a C `int`.
const MOST_BUFFER: u32 = (1 << 30) - 1;
/// Longest `TCP_LINGER2`, seconds: Linux' `TCP_FIN_TIMEOUT_MAX`.
const MOST_LINGER: i32 = 120;
