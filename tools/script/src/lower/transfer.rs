//! All reading and writing calls.

use alloc::format;
use alloc::vec;
use alloc::vec::Vec;

use whimbrel_posix::MsgFlags;

use super::{LowerError, args, check_address_len, host_fd};
use crate::ast::{Arg, CallStep};
use crate::call::{Call, ReadCall, Reading, WriteCall, Writing};
use crate::lower_error::{invalid, unsupported};
use crate::names::Names;
use crate::value::{bits, check_fields, describe, endpoint, field, fields, number, only};

pub(super) fn receive(step: &CallStep, names: &Names) -> Result<Call, LowerError> {
    let (fd, call, sizes, flags) = match step.name.as_str() {
        "read" => {
            let [fd, buffer, len] = args(step)?;
            (fd, ReadCall::Read, vec![room(buffer, len)?], None)
        }
        "readv" => {
            let [fd, pieces, count] = args(step)?;
            (fd, ReadCall::Readv, rooms(pieces, Some(count))?, None)
        }
        "recv" => {
            let [fd, buffer, len, flags] = args(step)?;
            (fd, ReadCall::Recv, vec![room(buffer, len)?], Some(flags))
        }
        "recvfrom" => {
            let [fd, buffer, len, flags, from, from_len] = args(step)?;
            check_unnamed(from)?;
            check_address_len(from_len)?;
            (fd, ReadCall::RecvFrom, vec![room(buffer, len)?], Some(flags))
        }
        _ => {
            let [fd, message, flags] = args(step)?;
            let message = fields(message)?;
            check_fields(message, MESSAGE)?;
            if let Some(name) = field(message, &["msg_name"]) {
                check_unnamed(name)?;
            }
            (fd, ReadCall::RecvMsg, rooms(iov(message)?, None)?, Some(flags))
        }
    };
    let flags = MsgFlags::from_bits(flags.map_or(Ok(0), bits)?);
    Ok(Call::Receive { fd: host_fd(fd, names)?, with: Reading { call, sizes }, flags })
}

pub(super) fn send(step: &CallStep, names: &Names) -> Result<Call, LowerError> {
    let (fd, call, pieces, flags, to) = match step.name.as_str() {
        "write" => {
            let [fd, buffer, len] = args(step)?;
            (fd, WriteCall::Write, vec![bytes(buffer, len)?], None, None)
        }
        "writev" => {
            let [fd, list, count] = args(step)?;
            (fd, WriteCall::Writev, pieces(list, Some(count))?, None, None)
        }
        "send" => {
            let [fd, buffer, len, flags] = args(step)?;
            (fd, WriteCall::Send, vec![bytes(buffer, len)?], Some(flags), None)
        }
        "sendto" => {
            let [fd, buffer, len, flags, to, to_len] = args(step)?;
            check_address_len(to_len)?;
            (fd, WriteCall::SendTo, vec![bytes(buffer, len)?], Some(flags), Some(to))
        }
        _ => {
            let [fd, message, flags] = args(step)?;
            let message = fields(message)?;
            check_fields(message, MESSAGE)?;
            let to = field(message, &["msg_name"]);
            (fd, WriteCall::SendMsg, pieces(iov(message)?, None)?, Some(flags), to)
        }
    };
    let flags = MsgFlags::from_bits(flags.map_or(Ok(0), bits)?);
    let to = to.map_or(Ok(None), |to| endpoint(to, names.remote))?;
    let with = Writing { call, pieces, to, unconnected: names.unconnected };
    Ok(Call::Send { fd: host_fd(fd, names)?, with, flags })
}

/// A stream returns no sender, so a written address cannot be compared.
fn check_unnamed(from: &Arg) -> Result<(), LowerError> {
    match from {
        Arg::Ellipsis => Ok(()),
        Arg::Name(name) if name == "NULL" => Ok(()),
        _ => Err(unsupported("the sender's address of what was received")),
    }
}

fn iov(message: &[crate::ast::Field]) -> Result<&Arg, LowerError> {
    field(message, &["msg_iov"]).ok_or_else(|| invalid("a message without msg_iov"))
}

fn rooms(list: &Arg, count: Option<&Arg>) -> Result<Vec<usize>, LowerError> {
    let rooms: Vec<usize> = each_piece(list, count, room)?;
    Ok(rooms)
}

fn pieces(list: &Arg, count: Option<&Arg>) -> Result<Vec<Vec<u8>>, LowerError> {
    let pieces = each_piece(list, count, bytes)?;
    match pieces.iter().map(Vec::len).sum::<usize>() {
        sum if sum > LARGEST => Err(unsupported(&format!("a message of {sum} bytes"))),
        _ => Ok(pieces),
    }
}

/// Maps each `{buffer, length}` of `read`.
fn each_piece<T>(
    list: &Arg,
    count: Option<&Arg>,
    read: impl Fn(&Arg, &Arg) -> Result<T, LowerError>,
) -> Result<Vec<T>, LowerError> {
    let Arg::List(list) = list else {
        return Err(invalid(&format!("a list of buffers is expected, not {}", describe(list))));
    };
    match count.map(number).transpose()? {
        Some(count) if usize::try_from(count) != Ok(list.len()) => {
            return Err(unsupported(&format!("{count} of {} buffers", list.len())));
        }
        _ => {}
    }
    list.iter()
        .map(|piece| match fields(piece)? {
            [buffer, len] => read(&buffer.value, &len.value),
            _ => Err(invalid("a buffer is written {..., length}")),
        })
        .collect()
}

/// Size of a buffer to fill. A text in its place is the expected content.
fn room(buffer: &Arg, len: &Arg) -> Result<usize, LowerError> {
    match only(buffer).unwrap_or(buffer) {
        Arg::Ellipsis | Arg::Text(_) => size(len),
        other => Err(unsupported(&format!("a buffer at {}", describe(other)))),
    }
}

/// Bytes to send: zeros, or the requested length of a text.
fn bytes(buffer: &Arg, len: &Arg) -> Result<Vec<u8>, LowerError> {
    let size = size(len)?;
    match only(buffer).unwrap_or(buffer) {
        Arg::Ellipsis => Ok(vec![0; size]),
        Arg::Text(text) => text
            .as_bytes()
            .get(..size)
            .map(<[u8]>::to_vec)
            .ok_or_else(|| unsupported("more bytes than the text has")),
        other => Err(unsupported(&format!("a buffer at {}", describe(other)))),
    }
}

fn size(len: &Arg) -> Result<usize, LowerError> {
    let len = number(len)?;
    let size = usize::try_from(len).ok().filter(|size| *size <= LARGEST);
    size.ok_or_else(|| unsupported(&format!("a buffer of {len} bytes")))
}

const MESSAGE: &[&str] = &["msg_name", "msg_namelen", "msg_iov", "msg_iovlen", "msg_flags"];

/// Bytes: more than scripts need, and an amount that a host can keep in memory.
const LARGEST: usize = 64 << 20;
