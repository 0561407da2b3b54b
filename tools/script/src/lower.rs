//! Translates a written call into one that a host can make.
//!
//! Names become the values that [`whimbrel_posix`] has for them. Unknown names (another system's
//! options and flags among them) are unsupported: such a script is skipped, because its result here
//! is not defined.

mod option;
mod transfer;
mod wait;

pub(super) use option::value as option_value;
pub(super) use wait::{expected_events, read_event};

use alloc::format;

use whimbrel_posix::{Errno, FileFlags, Ioctl, Protocol, Shut, SocketFlags, SocketType};

use super::ast::{Arg, CallStep};
use super::call::Call;
use super::lower_error::{invalid, unsupported};
use super::names::Names;
use super::value::{bits, describe, domain, endpoint, int, number, only};

pub use super::lower_error::LowerError;

/// The call of a step.
pub fn lower(step: &CallStep, names: &Names) -> Result<Call, LowerError> {
    if let Some(errno) =
        step.expected.errno.as_deref().filter(|name| Errno::by_name(name).is_none())
    {
        return Err(unsupported(&format!("the error {errno}")));
    }
    if step.expected.value != Arg::Ellipsis {
        number(&step.expected.value)?;
    }
    match step.name.as_str() {
        "socket" => socket(step, names),
        "bind" | "connect" => with_address(step, names),
        "listen" => {
            let [fd, backlog] = args(step)?;
            Ok(Call::Listen { fd: host_fd(fd, names)?, backlog: int(backlog)? })
        }
        "accept" | "accept4" => accept(step, names),
        "close" => {
            let [fd] = args(step)?;
            Ok(Call::Close { fd: host_fd(fd, names)? })
        }
        "shutdown" => {
            let [fd, how] = args(step)?;
            let number = int(how)?;
            let how = Shut::by_number(number)
                .ok_or_else(|| unsupported(&format!("shutdown by {number}")))?;
            Ok(Call::Shutdown { fd: host_fd(fd, names)?, how })
        }
        "read" | "readv" | "recv" | "recvfrom" | "recvmsg" => transfer::receive(step, names),
        "write" | "writev" | "send" | "sendto" | "sendmsg" => transfer::send(step, names),
        "poll" | "epoll_create" | "epoll_create1" | "epoll_ctl" | "epoll_wait" => {
            wait::lower(step, names)
        }
        "fcntl" => fcntl(step, names),
        "ioctl" => ioctl(step, names),
        "getsockopt" => option::read(step, names),
        "setsockopt" => option::set(step, names),
        name => Err(unsupported(&format!("the call {name}"))),
    }
}

/// The arguments, which must be `N`.
fn args<const N: usize>(step: &CallStep) -> Result<&[Arg; N], LowerError> {
    let wrong = |_| invalid(&format!("{} takes {N} arguments, not {}", step.name, step.args.len()));
    step.args.as_slice().try_into().map_err(wrong)
}

fn host_fd(arg: &Arg, names: &Names) -> Result<i32, LowerError> {
    Ok(names.host_fd(int(arg)?))
}

fn socket(step: &CallStep, names: &Names) -> Result<Call, LowerError> {
    let [family, kind, protocol] = args(step)?;
    let domain = match family {
        Arg::Ellipsis => names.domain,
        family => domain(family)?,
    };
    let written = bits(kind)?;
    // Linux keeps flags of the descriptor above the type.
    let flags = SocketFlags::from_bits(written & !0xf);
    let kind = SocketType::by_number((written & 0xf).cast_signed());
    let Some(kind @ SocketType::Stream) = kind else {
        return Err(unsupported("a socket that is not of a stream"));
    };
    let number = int(protocol)?;
    let protocol = Protocol::by_number(number)
        .ok_or_else(|| unsupported(&format!("the protocol {number}")))?;
    Ok(Call::Socket { domain, kind, flags, protocol })
}

fn with_address(step: &CallStep, names: &Names) -> Result<Call, LowerError> {
    let [fd, to, len] = args(step)?;
    check_address_len(len)?;
    let fd = host_fd(fd, names)?;
    let is_bind = step.name == "bind";
    let usual = if is_bind { names.local } else { names.remote };
    let to = endpoint(to, usual)?.ok_or_else(|| unsupported("an address at NULL"))?;
    Ok(if is_bind { Call::Bind { fd, to } } else { Call::Connect { fd, to } })
}

/// The length of an address follows from it, so a script may omit it.
fn check_address_len(arg: &Arg) -> Result<(), LowerError> {
    match arg {
        Arg::Ellipsis => Ok(()),
        Arg::Apply(name, _) if name == "sizeof" => Ok(()),
        Arg::Name(name) if name == "NULL" => Ok(()),
        // Those of sockaddr_in, sockaddr_in6 and sockaddr_storage.
        arg => match number(only(arg).unwrap_or(arg))? {
            0 | 16 | 28 | 128 => Ok(()),
            other => Err(unsupported(&format!("an address of {other} bytes"))),
        },
    }
}

fn accept(step: &CallStep, names: &Names) -> Result<Call, LowerError> {
    let (fd, len, flags) = if step.name == "accept" {
        let [fd, _, len] = args(step)?;
        (fd, len, SocketFlags::NONE)
    } else {
        let [fd, _, len, flags] = args(step)?;
        (fd, len, SocketFlags::from_bits(bits(flags)?))
    };
    check_address_len(len)?;
    // The written peer must be valid, although it is judged later.
    step.args.get(1).map_or(Ok(None), |peer| endpoint(peer, names.remote))?;
    Ok(Call::Accept { fd: host_fd(fd, names)?, flags })
}

fn fcntl(step: &CallStep, names: &Names) -> Result<Call, LowerError> {
    let command = step.args.get(1).map(describe).unwrap_or_default();
    match (command.as_str(), step.args.as_slice()) {
        ("F_GETFL", [fd, _]) => Ok(Call::FcntlGetFl { fd: host_fd(fd, names)? }),
        // Some scripts pass a third argument that the command does not have.
        ("F_GETFL", [fd, _, Arg::Int(0)]) => Ok(Call::FcntlGetFl { fd: host_fd(fd, names)? }),
        ("F_SETFL", [fd, _, flags]) => {
            let flags = FileFlags::from_bits(bits(flags)?);
            Ok(Call::FcntlSetFl { fd: host_fd(fd, names)?, flags })
        }
        _ => Err(unsupported(&format!("fcntl {command} of {} arguments", step.args.len()))),
    }
}

fn ioctl(step: &CallStep, names: &Names) -> Result<Call, LowerError> {
    let [fd, request, value] = args(step)?;
    let written = describe(request);
    let request = match written.as_str() {
        // FreeBSD's name for the bytes in the send buffer.
        "FIONWRITE" => Some(Ioctl::Outq),
        name => Ioctl::by_name(name),
    };
    let request = request.ok_or_else(|| unsupported(&format!("ioctl {written}")))?;
    match value {
        Arg::Ellipsis => {}
        value => {
            let value = only(value).ok_or_else(|| unsupported("ioctl without [number]"))?;
            if *value != Arg::Ellipsis {
                int(value)?;
            }
        }
    }
    Ok(Call::Ioctl { fd: host_fd(fd, names)?, request })
}

#[cfg(test)]
pub(crate) mod tests;
