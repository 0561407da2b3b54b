//! The stack under test as a script's runner sees it: packets, calls, time.

use alloc::string::String;
use alloc::vec::Vec;
use core::net::Ipv6Addr;
use core::time::Duration;

use whimbrel_posix::{Errno, TcpInfo};
use whimbrel_wire::{Address, Flow, SeqNum};

use super::call::{Call, Returned};

/// A host under test. It begins at time zero, with the addresses of the script's [`Network`].
pub trait ScriptHost {
    /// The time since the script's beginning.
    fn now(&self) -> Duration;

    /// Lets time pass until `until` at most, and returns early when a packet left or a call that
    /// was under way ended, so that neither is noticed late.
    fn run_until(&mut self, until: Duration);

    /// The next packet that left, from its IP header on, and when.
    fn poll_packet(&mut self) -> Option<(Duration, Vec<u8>)>;

    /// A packet from the peer, from its IP header on, arrives now.
    fn inject(&mut self, packet: &[u8]);

    /// Makes a call now. One that blocks goes on while time passes.
    fn call(&mut self, call: Call) -> Progress;

    /// The end of a call that blocked, and when, once it has come.
    fn poll_call(&mut self, call: CallId) -> Option<(Duration, Returned)>;

    /// What `TCP_INFO` says of a descriptor now, for snippets.
    fn tcp_info(&mut self, fd: i32) -> Result<TcpInfo, Errno>;

    /// RCV.NXT + RCV.WND of the connection between these ends: where it ceases to take text, which may be
    /// farther than a header could announce. None if the host cannot tell.
    fn right_edge(&mut self, _flow: &Flow) -> Option<SeqNum> {
        None
    }

    /// Sets a tunable by any of its names (`sysctl`).
    fn set(&mut self, name: &str, value: &str) -> Result<(), SetError>;

    /// Does something that shell lines ask for.
    fn administer(&mut self, what: &Administration) -> Result<(), SetError>;

    /// The host's sockets in the named state and at the named port, as `ss` would count them.
    fn count_sockets(&mut self, which: &SocketFilter) -> Result<usize, SetError>;
}

/// Where the host under test and its peer live.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Network {
    /// The address of the host that the script is about.
    pub local: Address,
    /// The length of its network's prefix.
    pub prefix_len: u8,
    /// The router to everywhere else.
    pub gateway: Address,
    /// The address of its peer, which the script plays.
    pub remote: Address,
    /// The largest packet, bytes.
    pub mtu: u16,
}

impl Network {
    /// Where scripts over IPv4 live.
    pub fn v4() -> Self {
        Self {
            local: Address::from_v4_octets([192, 168, 0, 1]),
            prefix_len: 16,
            gateway: Address::from_v4_octets([192, 168, 0, 2]),
            remote: Address::from_v4_octets([192, 0, 2, 1]),
            mtu: 1_500,
        }
    }

    /// Where scripts over IPv6 live; the MTU makes the MSS that of IPv4.
    pub fn v6() -> Self {
        let address = |groups: [u16; 8]| Ipv6Addr::from(groups).into();
        Self {
            local: address([0xfd3d, 0x0a0b, 0x17d6, 0, 0, 0, 0, 1]),
            prefix_len: 48,
            gateway: address([0xfd3d, 0x0a0b, 0x17d6, 0x8888, 0, 0, 0, 1]),
            remote: address([0xfd3d, 0xfa7b, 0xd17d, 0, 0, 0, 0, 1]),
            mtu: 1_520,
        }
    }
}

/// How far a call got.
#[derive(Clone, PartialEq, Debug)]
pub enum Progress {
    /// The call is over, and returned this.
    Done(Returned),
    /// The call waits: its end is told later, by this number.
    Blocked(CallId),
}

/// A call under way.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct CallId(pub u32);

/// Why something could not be set or looked at.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum SetError {
    /// This host knows nothing of the kind.
    Unknown,
    /// It knows, and refuses: why.
    Refused(String),
    /// Only the system of that name has it, and this host is another: the line is passed over, and
    /// that is told.
    Elsewhere(&'static str),
}

/// What shell lines do to a host, besides setting tunables.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Administration {
    /// Ends connections (`tcpdrop`, `ss -K`), those that match.
    Drop(SocketFilter),
    /// Forgets what was learned of paths and of Fast Open cookies (`ip tcp_metrics flush`).
    PurgeCaches,
    /// The same, by a variable that only FreeBSD has (`hostcache.purgenow`).
    PurgeHostCache,
}

/// Which sockets are meant, of those that the host has.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SocketFilter {
    /// States by Linux' names (`ESTABLISHED`, `TIME_WAIT`, …, `CLOSE` for a socket that has neither
    /// a connection nor listens); none means any but `CLOSE`.
    pub states: Vec<&'static str>,
    /// The local port, if only one is meant.
    pub local_port: Option<u16>,
    /// The peer's port, if only one is meant.
    pub remote_port: Option<u16>,
    /// A port of either side, if only one is meant.
    pub port: Option<u16>,
}
