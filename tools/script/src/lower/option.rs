//! `getsockopt` and `setsockopt`.

use alloc::format;
use alloc::vec::Vec;

use whimbrel_posix::option::IPPROTO_IP;
use whimbrel_posix::{Linger, OptionValue, SocketOption};

use super::{LowerError, args, host_fd};
use crate::ast::{Arg, CallStep, Field};
use crate::call::Call;
use crate::lower_error::{invalid, unsupported};
use crate::names::Names;
use crate::value::{bits, check_fields, describe, field, int, number, only};

pub(super) fn read(step: &CallStep, names: &Names) -> Result<Call, LowerError> {
    let [fd, level, option, value, len] = args(step)?;
    let option = find(level, option)?;
    // The written value must be valid, although it is judged later.
    if *value != Arg::Ellipsis
        && only(value) != Some(&Arg::Ellipsis)
        && option != SocketOption::Info
    {
        self::value(value)?;
    }
    match only(len).unwrap_or(len) {
        Arg::Ellipsis => {}
        len => drop(number(len)?),
    }
    Ok(Call::GetSockOpt { fd: host_fd(fd, names)?, option })
}

pub(super) fn set(step: &CallStep, names: &Names) -> Result<Call, LowerError> {
    let [fd, level, option, value, len] = args(step)?;
    let option = find(level, option)?;
    let value = match (option, only(value).unwrap_or(value)) {
        (SocketOption::FastOpen, Arg::Struct(fields)) => fast_open(fields)?,
        _ => self::value(value)?,
    };
    let value = match (option, value) {
        (SocketOption::FastOpenKey, OptionValue::Text(key)) => OptionValue::Bytes(bytes(&key)?),
        (_, value) => value,
    };
    if *len != Arg::Ellipsis {
        let len = number(len)?;
        let fits = match &value {
            // Linux takes one byte for options of IP.
            OptionValue::Int(0..=255) if option.level() == IPPROTO_IP => matches!(len, 1 | 4),
            // FreeBSD's struct tcp_fastopen has room for a key.
            OptionValue::Int(_) if option == SocketOption::FastOpen => matches!(len, 4 | 20),
            OptionValue::Int(_) => len == 4,
            OptionValue::Linger(_) => len == 8,
            OptionValue::Text(text) => usize::try_from(len).is_ok_and(|len| len >= text.len()),
            OptionValue::Bytes(bytes) => usize::try_from(len) == Ok(bytes.len()),
            OptionValue::Info(_) => false,
        };
        if !fits {
            return Err(unsupported(&format!("a value of {len} bytes for {}", option.name())));
        }
    }
    Ok(Call::SetSockOpt { fd: host_fd(fd, names)?, option, value })
}

/// Bytes of a text whose characters are bytes.
fn bytes(text: &str) -> Result<Vec<u8>, LowerError> {
    let byte = |letter: char| u8::try_from(letter).map_err(|_| invalid("a character of 16 bits"));
    text.chars().map(byte).collect()
}

/// The option, which must be of the written level.
fn find(level: &Arg, option: &Arg) -> Result<SocketOption, LowerError> {
    let level = int(level)?;
    let found = match option {
        Arg::Int(_) => SocketOption::by_number(level, int(option)?),
        Arg::Name(name) => SocketOption::by_name(name).filter(|found| found.level() == level),
        _ => None,
    };
    found.ok_or_else(|| unsupported(&format!("the option {} of level {level}", describe(option))))
}

/// `[1]`, `{onoff=1, linger=0}` (in brackets or not), `"reno"`.
pub(crate) fn value(arg: &Arg) -> Result<OptionValue, LowerError> {
    match only(arg).unwrap_or(arg) {
        Arg::Struct(fields) => linger(fields),
        Arg::Text(text) => Ok(OptionValue::Text(text.clone())),
        Arg::Name(name) if name == "NULL" => Err(unsupported("a value at NULL")),
        arg => Ok(OptionValue::Int(int(arg)?)),
    }
}

/// FreeBSD's `struct tcp_fastopen`, without a pre-shared key.
fn fast_open(written: &[Field]) -> Result<OptionValue, LowerError> {
    check_fields(written, &["enable", "psk"])?;
    if field(written, &["psk"]).is_some() {
        return Err(unsupported("a pre-shared key of Fast Open"));
    }
    let enable = field(written, &["enable"]);
    Ok(OptionValue::Int(int(
        enable.ok_or_else(|| invalid("a struct tcp_fastopen without enable"))?
    )?))
}

fn linger(written: &[Field]) -> Result<OptionValue, LowerError> {
    const NAMES: &[&str] = &["onoff", "l_onoff", "linger", "l_linger"];
    check_fields(written, NAMES)?;
    let onoff = field(written, &["onoff", "l_onoff"]);
    let onoff = onoff.ok_or_else(|| invalid("a struct linger without onoff"))?;
    let seconds = field(written, &["linger", "l_linger"]).map_or(Ok(0), bits)?;
    Ok(OptionValue::Linger(match int(onoff)? {
        0 => Linger::Off,
        _ => Linger::Seconds(seconds),
    }))
}
