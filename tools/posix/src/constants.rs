//! Every constant by its C name, for tools that read programs as text.

use crate::errno::Errno;
use crate::option::{IPPROTO_IPV6, IPPROTO_UDP, SOL_SOCKET};
use crate::{
    Domain, EpollEvents, EpollOp, Fcntl, FileFlags, Ioctl, MsgFlags, PollEvents, Protocol, Shut,
    SocketFlags, SocketOption, SocketType, TcpInfo, state,
};

/// Linux' value of a C constant.
pub fn value(name: &str) -> Option<i64> {
    flag(name).or_else(|| one(name)).or_else(|| other(name))
}

fn flag(name: &str) -> Option<i64> {
    let bits = MsgFlags::by_name(name)
        .map(MsgFlags::bits)
        .or_else(|| FileFlags::by_name(name).map(FileFlags::bits))
        .or_else(|| SocketFlags::by_name(name).map(SocketFlags::bits))
        .or_else(|| PollEvents::by_name(name).map(PollEvents::bits))
        .or_else(|| EpollEvents::by_name(name).map(EpollEvents::bits));
    bits.map(i64::from)
}

fn one(name: &str) -> Option<i64> {
    let number = Domain::by_name(name)
        .map(Domain::number)
        .or_else(|| SocketType::by_name(name).map(SocketType::number))
        .or_else(|| Protocol::by_name(name).map(Protocol::number))
        .or_else(|| SocketOption::by_name(name).map(SocketOption::number))
        .or_else(|| Shut::by_name(name).map(Shut::number))
        .or_else(|| EpollOp::by_name(name).map(EpollOp::number))
        .or_else(|| Ioctl::by_name(name).map(Ioctl::number))
        .or_else(|| Errno::by_name(name).map(Errno::number));
    number.map(i64::from)
}

fn other(name: &str) -> Option<i64> {
    let state = state::NUMBERS.iter().find(|(known, _)| *known == name);
    let option = TcpInfo::OPTIONS.iter().find(|(known, _)| *known == name);
    match name {
        "SOL_SOCKET" => Some(i64::from(SOL_SOCKET)),
        "SOL_IP" => Some(0),
        "SOL_TCP" => Some(6),
        "SOL_UDP" => Some(i64::from(IPPROTO_UDP)),
        "IPPROTO_IPV6" | "SOL_IPV6" => Some(i64::from(IPPROTO_IPV6)),
        "F_GETFL" => Some(i64::from(Fcntl::GETFL)),
        "F_SETFL" => Some(i64::from(Fcntl::SETFL)),
        "INADDR_ANY" => Some(0),
        "SOMAXCONN" => Some(4096),
        _ => state.or(option).map(|(_, number)| i64::from(*number)).or_else(|| dscp(name)),
    }
}

/// Byte of a named code point.
// RFC 2474 4.2.2.2: class selectors; RFC 2597 6: assured forwarding; RFC 3246 2.7: expedited.
fn dscp(name: &str) -> Option<i64> {
    let class = name.strip_prefix("IPTOS_DSCP_").or_else(|| name.strip_prefix("IPTOS_CLASS_"))?;
    match *class.as_bytes() {
        [b'C', b'S', class @ b'0'..=b'7'] => Some(i64::from(class - b'0') << 5),
        [b'A', b'F', class @ b'1'..=b'4', drop @ b'1'..=b'3'] => {
            Some(i64::from(class - b'0') << 5 | i64::from(drop - b'0') << 3)
        }
        [b'E', b'F'] => Some(0xb8),
        _ => None,
    }
}
