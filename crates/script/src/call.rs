//! A call as a host makes it: names and structs became values.

use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use whimbrel_posix::sockets::{EpollOp, Ioctl, Shut};
use whimbrel_posix::{
    Domain, EpollEvents, Errno, FileFlags, MsgFlags, OptionValue, PollEvents, Protocol,
    SocketFlags, SocketOption, SocketType,
};
use whimbrel_wire::Endpoint;

/// A call, its descriptors being those of the host.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs, reason = "the names are those of the C functions and their parameters")]
pub enum Call {
    Socket {
        domain: Domain,
        kind: SocketType,
        flags: SocketFlags,
        protocol: Protocol,
    },
    Bind {
        fd: i32,
        to: Endpoint,
    },
    Listen {
        fd: i32,
        backlog: i32,
    },
    /// `accept` or `accept4`: the next connection that waits.
    Accept {
        fd: i32,
        flags: SocketFlags,
    },
    Connect {
        fd: i32,
        to: Endpoint,
    },
    Close {
        fd: i32,
    },
    Shutdown {
        fd: i32,
        how: Shut,
    },
    /// Every way to read.
    Receive {
        fd: i32,
        with: Reading,
        flags: MsgFlags,
    },
    /// Every way to write.
    Send {
        fd: i32,
        with: Writing,
        flags: MsgFlags,
    },
    Poll {
        fds: Vec<Polled>,
        time_out: TimeOut,
    },
    EpollCreate,
    EpollCtl {
        epoll: i32,
        op: EpollOp,
        fd: i32,
        events: EpollEvents,
        data: u64,
    },
    EpollWait {
        epoll: i32,
        most: u32,
        time_out: TimeOut,
    },
    FcntlGetFl {
        fd: i32,
    },
    FcntlSetFl {
        fd: i32,
        flags: FileFlags,
    },
    Ioctl {
        fd: i32,
        request: Ioctl,
    },
    GetSockOpt {
        fd: i32,
        option: SocketOption,
    },
    SetSockOpt {
        fd: i32,
        option: SocketOption,
        value: OptionValue,
    },
}

/// How something is read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reading {
    /// The call by which it is read, which decides how.
    pub call: ReadCall,
    /// The size of each buffer, bytes.
    pub sizes: Vec<usize>,
}

/// The calls that read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the names are those of the C functions")]
pub enum ReadCall {
    Read,
    Readv,
    Recv,
    RecvFrom,
    RecvMsg,
}

/// How something is written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Writing {
    /// The call by which it is written, which decides how.
    pub call: WriteCall,
    /// What is written, a buffer for each.
    pub pieces: Vec<Vec<u8>>,
    /// The address that `sendto` and `sendmsg` pass.
    pub to: Option<Endpoint>,
    /// What the address means to a socket that is not connected.
    pub unconnected: Unconnected,
}

/// What the address of `sendto` and `sendmsg` means to a stream socket that is not connected.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Unconnected {
    /// Nothing: the call fails, but with `MSG_FASTOPEN`. Linux.
    #[default]
    Fails,
    /// The socket connects there. FreeBSD.
    Connects,
}

/// The calls that write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the names are those of the C functions")]
pub enum WriteCall {
    Write,
    Writev,
    Send,
    SendTo,
    SendMsg,
}

/// How long `poll` and `epoll_wait` wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TimeOut {
    /// For as long as it takes: -1.
    Never,
    /// 0 and above, whole milliseconds.
    After(Duration),
}

/// One of `poll`'s descriptors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Polled {
    /// Which; negative ones are passed over.
    pub fd: i32,
    /// The events that are asked about.
    pub events: PollEvents,
    /// What is so, once polled.
    pub revents: PollEvents,
}

/// What a call returned, and what it filled in.
#[derive(Clone, PartialEq, Debug)]
pub struct Returned {
    /// The value that it returned, or the error.
    pub value: Result<i64, Errno>,
    /// What it filled in.
    pub out: Filled,
}

/// What a call filled in.
#[derive(Clone, PartialEq, Debug)]
pub enum Filled {
    /// Nothing beside its value.
    Nothing,
    /// What was read, and `msg_flags`.
    Octets(Vec<u8>, MsgFlags),
    /// The address of the peer, as `accept` tells it.
    Peer(Endpoint),
    /// The value of an option.
    Option(OptionValue),
    /// The number that `ioctl` stored.
    Number(i32),
    /// What `poll` found, for each descriptor that it was asked about.
    Polled(Vec<Polled>),
    /// What `epoll_wait` found: events and data.
    Epoll(Vec<(EpollEvents, u64)>),
}

/// A call that the language has and no host of ours can make: why. The script is skipped.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unsupported(pub String);
