//! Interface of the stack under test to a script's runner: packets, calls, time.

use alloc::string::String;
use alloc::vec::Vec;
use core::net::Ipv6Addr;
use core::time::Duration;

use whimbrel_posix::{Errno, TcpInfo};
use whimbrel_wire::{Address, Flow, SeqNum};

use super::call::{Call, Returned};

/// A host under test. It begins at time zero, with the addresses of the script's [`Network`].
pub trait ScriptHost {
    /// Time since the script's beginning.
    fn now(&self) -> Duration;

    /// Lets time pass until `until` at most. Returns early when a packet left or a blocked call
    /// ended, so that neither is noticed late.
    fn run_until(&mut self, until: Duration);

    /// The next packet that left, from its IP header on, with its time.
    fn poll_packet(&mut self) -> Option<(Duration, Vec<u8>)>;

    /// Delivers a packet of the peer, from its IP header on.
    fn inject(&mut self, packet: &[u8]);

    /// Makes a call now. A blocking one continues while time passes.
    fn call(&mut self, call: Call) -> Progress;

    /// Result and time of a blocked call, once it has ended.
    fn poll_call(&mut self, call: CallId) -> Option<(Duration, Returned)>;

    /// `TCP_INFO` of a descriptor now, for snippets.
    fn tcp_info(&mut self, fd: i32) -> Result<TcpInfo, Errno>;

    /// RCV.NXT + RCV.WND of the connection: the end of acceptable text, which may be farther than a
    /// header can announce. `None` if the host cannot tell.
    fn right_edge(&mut self, _flow: &Flow) -> Option<SeqNum> {
        None
    }

    /// Sets a tunable by any of its names (`sysctl`).
    fn set(&mut self, name: &str, value: &str) -> Result<(), SetError>;

    /// Performs an action of a shell line.
    fn administer(&mut self, what: &Administration) -> Result<(), SetError>;

    /// Number of the host's sockets in the named state and at the named port, as `ss` counts them.
    fn count_sockets(&mut self, which: &SocketFilter) -> Result<usize, SetError>;
}

/// Addresses of the host under test and its peer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Network {
    /// Address of the host under test.
    pub local: Address,
    /// Length of its network's prefix.
    pub prefix_len: u8,
    /// Router to all other networks.
    pub gateway: Address,
    /// Address of its peer, which the script plays.
    pub remote: Address,
    /// The largest packet, bytes.
    pub mtu: u16,
}

impl Network {
    /// Addresses of scripts over IPv4.
    pub fn v4() -> Self {
        Self {
            local: Address::from_v4_bytes([192, 168, 0, 1]),
            prefix_len: 16,
            gateway: Address::from_v4_bytes([192, 168, 0, 2]),
            remote: Address::from_v4_bytes([192, 0, 2, 1]),
            mtu: 1_500,
        }
    }

    /// Addresses of scripts over IPv6; the MTU makes the MSS that of IPv4.
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

/// Progress of a call.
#[derive(Clone, PartialEq, Debug)]
pub enum Progress {
    /// The call is over, with this result.
    Done(Returned),
    /// The call blocks: its end is reported later under this number.
    Blocked(CallId),
}

/// Number of a call under way.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct CallId(pub u32);

/// Error of setting or counting.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum SetError {
    /// The host does not know the name.
    Unknown,
    /// The host refuses, with the reason.
    Refused(String),
    /// Only the named system has it, and this host is another: the line is skipped with a note.
    Elsewhere(&'static str),
}

/// Actions of shell lines on a host, except for tunables.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Administration {
    /// Ends the matching connections (`tcpdrop`, `ss -K`).
    Drop(SocketFilter),
    /// Clears caches of paths and of Fast Open cookies (`ip tcp_metrics flush`).
    PurgeCaches,
    /// Clears the host cache, by a variable that only FreeBSD has (`hostcache.purgenow`).
    PurgeHostCache,
}

/// Filter of the host's sockets.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SocketFilter {
    /// States by Linux' names (`ESTABLISHED`, `TIME_WAIT`, …; `CLOSE` for a socket that neither has
    /// a connection nor listens); empty matches all but `CLOSE`.
    pub states: Vec<&'static str>,
    /// Local port, if it matters.
    pub local_port: Option<u16>,
    /// Port of the peer, if it matters.
    pub remote_port: Option<u16>,
    /// Port of either side, if it matters.
    pub port: Option<u16>,
}
