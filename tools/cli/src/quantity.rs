//! Numbers, durations and rates as they are typed.

use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

pub(crate) use whimbrel_io::text::thousands;

/// A parser of whole numbers in `range`.
pub(crate) fn whole<N: TryFrom<u64>>(
    range: RangeInclusive<u64>,
) -> impl Fn(&str) -> Result<N, String> + Clone {
    move |text| {
        let digits = text.bytes().all(|byte| byte.is_ascii_digit());
        let typed: Option<u64> = text.parse().ok().filter(|_| digits);
        let number = typed.filter(|number| range.contains(number));
        let (least, most) = (range.start(), *range.end());
        let refused = || match most {
            u64::MAX if digits && typed.is_none() && !text.is_empty() => {
                format!("give at most {}", thousands(most))
            }
            u64::MAX => format!("give a whole number from {least} on"),
            _ => format!("give a whole number from {least} to {}", thousands(most)),
        };
        number.and_then(|number| N::try_from(number).ok()).ok_or_else(refused)
    }
}

/// `10s`, `500ms`, `2m`, `1.5h`; a number without a unit means seconds, at most 1e9.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    const UNITS: [(&str, f64); 6] =
        [("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];
    let seconds = scaled(text, &UNITS).ok_or("give a duration, as in 10s, 500ms, 2m or 1h")?;
    match seconds <= 1e9 {
        true => Ok(Duration::from_secs_f64(seconds)),
        false => Err("give at most 1000000000s".into()),
    }
}

/// A duration of at least a millisecond.
pub(crate) fn some_time(text: &str) -> Result<Duration, String> {
    let time = duration(text)?;
    if time < Duration::from_millis(1) {
        return Err("give at least 1ms".into());
    }
    Ok(time)
}

/// A rate by the second: `1000`, `2.5k`, `45M`, `1G`, in powers of a thousand; above 0, and 1000G at
/// most.
pub(crate) fn rate(text: &str) -> Result<f64, String> {
    const UNITS: [(&str, f64); 4] = [("k", 1e3), ("K", 1e3), ("M", 1e6), ("G", 1e9)];
    scaled(text, &UNITS)
        .filter(|rate| *rate > 0.0 && *rate <= 1e12)
        .ok_or_else(|| "give a rate above 0, and 1000G at most, as in 1000, 2.5k, 45M or 1G".into())
}

/// Number of answers a second: each takes at least a nanosecond.
pub(crate) fn service_rate(text: &str) -> Result<f64, String> {
    let refused = "give a rate above 0, and 1G at most, as in 500 or 28k";
    rate(text).ok().filter(|rate| *rate <= 1e9).ok_or_else(|| refused.into())
}

/// A range of ports, as it was typed.
pub(crate) fn ports(text: &str) -> Result<String, String> {
    let port = |text: &str| text.trim().parse::<u16>().ok().filter(|port| *port > 0);
    let ends = text.split_once('-').and_then(|(first, last)| Some((port(first)?, port(last)?)));
    ends.filter(|(first, last)| first <= last).map(|_| text.into()).ok_or_else(|| {
        "give FIRST-LAST, ports from 1 to 65535, the lower first, as in 49152-65535".into()
    })
}

/// An address in numbers.
pub(crate) fn address(text: &str) -> Result<IpAddr, String> {
    text.trim().parse().map_err(|_| {
        "give addresses in numbers, with commas between them, as in 10.0.0.3,10.0.0.4".into()
    })
}

/// A time for people, in the unit that suits it: `61us`, `3.1ms`, `1.10s`.
pub(crate) fn show(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    match seconds {
        0.0 => "0".into(),
        _ if seconds < 1e-6 => format!("{}ns", time.as_nanos()),
        _ if seconds < 1e-4 => format!("{:.1}us", seconds * 1e6),
        _ if seconds < 1e-3 => format!("{:.0}us", seconds * 1e6),
        _ if seconds < 0.1 => format!("{:.2}ms", seconds * 1e3),
        _ if seconds < 1.0 => format!("{:.0}ms", seconds * 1e3),
        _ => format!("{seconds:.2}s"),
    }
}

/// A count with its noun: `1 connection`, `2 connections`.
pub(crate) fn of(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

fn scaled(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let split = |(unit, scale): &(&str, f64)| {
        let number = text.strip_suffix(unit)?;
        // "ms" ends in "s", too: the rest must be a number.
        number.ends_with(|last: char| last.is_ascii_digit()).then_some((number, *scale))
    };
    let (number, scale) = units.iter().find_map(split).unwrap_or((text, 1.0));
    let plain = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    Some(number.parse::<f64>().ok().filter(|_| plain)? * scale)
}

#[cfg(test)]
mod tests;
