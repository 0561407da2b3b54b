//! Data that a call filled in.

use alloc::format;
use alloc::string::{String, ToString};

use whimbrel_base::Foreign;
use whimbrel_posix::{EpollEvents, MsgFlags, OptionValue, PollEvents, TcpInfo};
use whimbrel_wire::Endpoint;

use super::Mismatch;
use crate::ast::{Arg, CallStep};
use crate::call::{Filled, Polled, Returned};
use crate::lower::{LowerError, expected_events, option_value, read_event};
use crate::value::{bits, describe, endpoint, field, fields, int, number, only};

pub(super) fn judge(step: &CallStep, returned: &Returned) -> Result<(), Mismatch> {
    match &returned.out {
        Filled::Nothing => Ok(()),
        Filled::Bytes(bytes, flags) => judge_bytes(step, bytes, *flags),
        Filled::Peer(peer) => judge_peer(step, *peer),
        Filled::Option(value) => judge_option(step, value),
        Filled::Number(came) => judge_number(step, *came),
        Filled::Polled(came) => judge_polled(step, came),
        Filled::Epoll(came) => judge_epoll(step, came),
    }
}

fn judge_bytes(step: &CallStep, bytes: &[u8], flags: MsgFlags) -> Result<(), Mismatch> {
    let buffer = step.args.get(1).map(|buffer| only(buffer).unwrap_or(buffer));
    match buffer {
        Some(Arg::Text(text)) if text.as_bytes() != bytes => {
            let [expected, came] =
                [text.as_bytes(), bytes].map(|it| format!("{:?}", Foreign::new(it)));
            return Err(Mismatch::new("what was read", expected, came));
        }
        _ => {}
    }
    let message = step.args.get(1).filter(|_| step.name == "recvmsg");
    match message.and_then(|message| field(fields(message).ok()?, &["msg_flags"])) {
        None | Some(Arg::Ellipsis) => Ok(()),
        Some(written) => {
            let came = format!("{flags:?}");
            let expected = MsgFlags::from_bits(read("msg_flags", written, bits, &came)?);
            match expected == flags {
                true => Ok(()),
                false => Err(Mismatch::new("msg_flags", format!("{expected:?}"), came)),
            }
        }
    }
}

fn judge_peer(step: &CallStep, came: Endpoint) -> Result<(), Mismatch> {
    let Some(written @ Arg::Struct(_)) = step.args.get(1) else { return Ok(()) };
    let what = "the peer's address";
    // Omitted parts and `...` match all.
    let expected = endpoint(written, came)
        .map_err(|error| Mismatch::new(what, error, describe_endpoint(came)))?;
    match expected {
        Some(expected) if expected != came => {
            Err(Mismatch::new(what, describe_endpoint(expected), describe_endpoint(came)))
        }
        _ => Ok(()),
    }
}

fn describe_endpoint(endpoint: Endpoint) -> core::net::SocketAddr {
    endpoint.into()
}

fn judge_option(step: &CallStep, came: &OptionValue) -> Result<(), Mismatch> {
    let (Some(written), Some(len)) = (step.args.get(3), step.args.get(4)) else { return Ok(()) };
    let value = only(written).unwrap_or(written);
    match (value, came) {
        (Arg::Ellipsis, _) => {}
        (value, OptionValue::Info(info)) => judge_info(value, info)?,
        (value, came) => {
            let expected = option_value(value)
                .map_err(|error| Mismatch::new("the value", error, describe_value(came)))?;
            let same = match (&expected, came) {
                (OptionValue::Text(text), OptionValue::Bytes(bytes)) => {
                    text.chars().eq(bytes.iter().copied().map(char::from))
                }
                (expected, came) => expected == came,
            };
            if !same {
                return Err(Mismatch::new(
                    "the value",
                    describe_value(&expected),
                    describe_value(came),
                ));
            }
        }
    }
    judge_len(only(len).unwrap_or(len), came)
}

/// Compares the fields that the script has.
fn judge_info(value: &Arg, info: &TcpInfo) -> Result<(), Mismatch> {
    let written =
        fields(value).map_err(|error| Mismatch::new("the value", error, "a struct tcp_info"))?;
    for part in written {
        let name = part.name.as_deref().unwrap_or_default();
        let came = info.field(name);
        let described = came.map_or("no such field".to_string(), |came| came.to_string());
        if part.value == Arg::Ellipsis {
            continue;
        }
        let expected = read(name, &part.value, number, &described)?;
        if came != Some(expected) {
            return Err(Mismatch::new(name, expected, described));
        }
    }
    Ok(())
}

/// Compares the returned length. That of a text or of `tcp_info` depends on the system.
fn judge_len(len: &Arg, came: &OptionValue) -> Result<(), Mismatch> {
    let size = match came {
        OptionValue::Int(_) => 4,
        OptionValue::Linger(_) => 8,
        OptionValue::Bytes(bytes) => bytes.len() as i64,
        OptionValue::Text(_) | OptionValue::Info(_) => return Ok(()),
    };
    if *len == Arg::Ellipsis {
        return Ok(());
    }
    match read("the length of the value", len, number, size)? {
        expected if expected == size => Ok(()),
        expected => Err(Mismatch::new("the length of the value", expected, size)),
    }
}

fn judge_number(step: &CallStep, came: i32) -> Result<(), Mismatch> {
    match step.args.get(2).map(|value| only(value).unwrap_or(value)) {
        None | Some(Arg::Ellipsis) => Ok(()),
        Some(written) => match read("the number", written, int, came)? {
            expected if expected == came => Ok(()),
            expected => Err(Mismatch::new("the number", expected, came)),
        },
    }
}

fn judge_polled(step: &CallStep, came: &[Polled]) -> Result<(), Mismatch> {
    let Some(Arg::List(list)) = step.args.first() else { return Ok(()) };
    for (entry, polled) in list.iter().zip(came) {
        let entry = fields(entry).unwrap_or_default();
        let came = polled.revents;
        let fd = field(entry, &["fd"]).map(describe).unwrap_or_default();
        let what = format!("revents of descriptor {fd}");
        let expected = match field(entry, &["revents"]) {
            None | Some(Arg::Ellipsis) => continue,
            Some(written) => read(&what, written, bits, format!("{came:?}"))?,
        };
        if expected != came.bits() {
            let expected = PollEvents::from_bits(expected);
            return Err(Mismatch::new(&what, format!("{expected:?}"), format!("{came:?}")));
        }
    }
    Ok(())
}

/// Compares the events returned, in order; their number is the call's result.
fn judge_epoll(step: &CallStep, came: &[(EpollEvents, u64)]) -> Result<(), Mismatch> {
    for (number, (written, came)) in (1..).zip(expected_events(step).iter().zip(came)) {
        let what = format!("event {number}");
        let described = describe_event(*came);
        let expected = read(&what, written, read_event, &described)?;
        if expected != *came {
            return Err(Mismatch::new(&what, describe_event(expected), described));
        }
    }
    Ok(())
}

fn describe_event(event: (EpollEvents, u64)) -> String {
    let (events, data) = event;
    format!("{events:?} with {data}")
}

fn describe_value(value: &OptionValue) -> String {
    match value {
        OptionValue::Int(value) => value.to_string(),
        OptionValue::Linger(linger) => format!("{linger:?}"),
        OptionValue::Text(text) => format!("{text:?}"),
        OptionValue::Bytes(bytes) => format!("{bytes:?}"),
        OptionValue::Info(_) => "a struct tcp_info".to_string(),
    }
}

/// Reads a value of the script. An invalid one would have stopped the call before it was made.
fn read<'a, T>(
    what: &str,
    written: &'a Arg,
    as_what: impl Fn(&'a Arg) -> Result<T, LowerError>,
    came: impl ToString,
) -> Result<T, Mismatch> {
    as_what(written).map_err(|error| Mismatch::new(what, error, came))
}
