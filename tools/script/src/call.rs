//! A call as a host makes it, with values for names and structs.

use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use whimbrel_posix::sockets::{EpollOp, Ioctl, Shut};
use whimbrel_posix::{
    Domain, EpollEvents, Errno, FileFlags, MsgFlags, OptionValue, PollEvents, Protocol,
    SocketFlags, SocketOption, SocketType,
};
use whimbrel_wire::Endpoint;

/// A call with the host's descriptors.
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
    /// `accept` or `accept4`: the next waiting connection.
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
    /// All reading calls.
    Receive {
        fd: i32,
        with: Reading,
        flags: MsgFlags,
    },
    /// All writing calls.
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

/// Parameters of a reading call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reading {
    /// The reading call.
    pub call: ReadCall,
    /// The size of each buffer, bytes.
    pub sizes: Vec<usize>,
}

/// Reading calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the names are those of the C functions")]
pub enum ReadCall {
    Read,
    Readv,
    Recv,
    RecvFrom,
    RecvMsg,
}

/// Parameters of a writing call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Writing {
    /// The writing call.
    pub call: WriteCall,
    /// Data, one buffer each.
    pub pieces: Vec<Vec<u8>>,
    /// Address of `sendto` and `sendmsg`.
    pub to: Option<Endpoint>,
    /// Use of the address on a socket that is not connected.
    pub unconnected: Unconnected,
}

/// Use of the address of `sendto` and `sendmsg` on a stream socket that is not connected.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Unconnected {
    /// None: the call fails, except with `MSG_FASTOPEN`, as in Linux.
    #[default]
    Fails,
    /// The socket connects to it, as in FreeBSD.
    Connects,
}

/// Writing calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the names are those of the C functions")]
pub enum WriteCall {
    Write,
    Writev,
    Send,
    SendTo,
    SendMsg,
}

/// Time-out of `poll` and `epoll_wait`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TimeOut {
    /// No time-out: -1.
    Never,
    /// 0 or more, whole milliseconds.
    After(Duration),
}

/// One of `poll`'s descriptors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Polled {
    /// Descriptor; negative ones are skipped.
    pub fd: i32,
    /// Requested events.
    pub events: PollEvents,
    /// Events returned.
    pub revents: PollEvents,
}

/// Result of a call, and the data it filled in.
#[derive(Clone, PartialEq, Debug)]
pub struct Returned {
    /// Its value, or the error.
    pub value: Result<i64, Errno>,
    /// Data that it filled in.
    pub out: Filled,
}

/// Data that a call filled in.
#[derive(Clone, PartialEq, Debug)]
pub enum Filled {
    /// Only its value.
    Nothing,
    /// Data read, and `msg_flags`.
    Bytes(Vec<u8>, MsgFlags),
    /// Address of the peer, from `accept`.
    Peer(Endpoint),
    /// Value of an option.
    Option(OptionValue),
    /// Number stored by `ioctl`.
    Number(i32),
    /// Events of `poll`, for each descriptor.
    Polled(Vec<Polled>),
    /// Events and data of `epoll_wait`.
    Epoll(Vec<(EpollEvents, u64)>),
}

/// Reason for which no host here can make a call of the language. The script is skipped.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unsupported(pub String);
