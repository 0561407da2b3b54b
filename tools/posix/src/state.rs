//! Names and numbers of TCP's states in Linux, `ss` and `netstat`.

use whimbrel_stack::shard::SocketState;
use whimbrel_tcp::conn::State;

/// Names of Linux' numbers (`tcpi_state`).
pub const NUMBERS: &[(&str, u8)] = &[
    ("TCP_ESTABLISHED", 1),
    ("TCP_SYN_SENT", 2),
    ("TCP_SYN_RECV", 3),
    ("TCP_FIN_WAIT1", 4),
    ("TCP_FIN_WAIT2", 5),
    ("TCP_TIME_WAIT", 6),
    ("TCP_CLOSE", CLOSE),
    ("TCP_CLOSE_WAIT", 8),
    ("TCP_LAST_ACK", 9),
    ("TCP_LISTEN", LISTEN),
    ("TCP_CLOSING", 11),
];

/// `TCP_CLOSE`: state of a socket without a connection.
pub const CLOSE: u8 = 7;
/// Linux' number of LISTEN: `TCP_LISTEN`.
pub const LISTEN: u8 = 10;

/// Linux' number of a connection's state. A descriptor whose connection is in TIME-WAIT shows
/// `TCP_CLOSE`, because the record is separate.
pub const fn number_of(state: State) -> u8 {
    match state {
        State::Established => 1,
        State::SynSent => 2,
        State::SynReceived => 3,
        State::FinWait1 => 4,
        State::FinWait2 => 5,
        State::TimeWait | State::Closed => CLOSE,
        State::CloseWait => 8,
        State::LastAck => 9,
        State::Closing => 11,
    }
}

/// State of this name in RFC 9293, `ss`, `netstat` or FreeBSD.
pub fn by_name(name: &str) -> Option<SocketState> {
    let letters = name.bytes().filter(u8::is_ascii_alphanumeric);
    let plain = letters.map(|letter| letter.to_ascii_uppercase());
    let is_it = |(known, _): &&(&str, SocketState)| plain.clone().eq(known.bytes());
    NAMES.iter().find(is_it).map(|(_, state)| *state)
}

/// Without hyphens and underscores, in which the tools differ.
const NAMES: &[(&str, SocketState)] = &[
    ("LISTEN", SocketState::Listen),
    ("SYNSENT", SocketState::SynSent),
    ("SYNRECEIVED", SocketState::SynReceived),
    ("SYNRECV", SocketState::SynReceived),
    ("SYNRCVD", SocketState::SynReceived),
    ("ESTABLISHED", SocketState::Established),
    ("ESTAB", SocketState::Established),
    ("FINWAIT1", SocketState::FinWait1),
    ("FINWAIT2", SocketState::FinWait2),
    ("CLOSEWAIT", SocketState::CloseWait),
    ("CLOSING", SocketState::Closing),
    ("LASTACK", SocketState::LastAck),
    ("TIMEWAIT", SocketState::TimeWait),
];
