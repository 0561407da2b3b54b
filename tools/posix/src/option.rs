//! Socket options: Linux' levels, numbers and names, and the values they take.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use crate::TcpInfo;

/// Level of socket options.
pub const SOL_SOCKET: i32 = 1;
/// Level of IPv4 options.
pub const IPPROTO_IP: i32 = 0;
/// Level of TCP options.
pub const IPPROTO_TCP: i32 = 6;
/// Level of IPv6 options.
pub const IPPROTO_IPV6: i32 = 41;
/// Level of UDP options.
pub const IPPROTO_UDP: i32 = 17;

macro_rules! options {
    ($($level:ident { $($option:ident = $number:literal, $name:literal;)* })*) => {
        /// Every option with a known name. [`Sockets::setsockopt`](crate::Sockets::setsockopt)
        /// lists those with an effect.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum SocketOption { $($(#[doc = $name] $option,)*)* }

        impl SocketOption {
            /// All options, by level.
            pub const ALL: &'static [Self] = &[$($(Self::$option,)*)*];

            /// Level in C.
            pub const fn level(self) -> i32 {
                match self { $($(Self::$option => $level,)*)* }
            }

            /// Number in C.
            pub const fn number(self) -> i32 {
                match self { $($(Self::$option => $number,)*)* }
            }

            /// The C name.
            pub const fn name(self) -> &'static str {
                match self { $($(Self::$option => $name,)*)* }
            }
        }
    };
}

options! {
    SOL_SOCKET {
        ReuseAddr = 2, "SO_REUSEADDR";
        Type = 3, "SO_TYPE";
        Error = 4, "SO_ERROR";
        SendBuffer = 7, "SO_SNDBUF";
        RecvBuffer = 8, "SO_RCVBUF";
        KeepAlive = 9, "SO_KEEPALIVE";
        OobInline = 10, "SO_OOBINLINE";
        Priority = 12, "SO_PRIORITY";
        Linger = 13, "SO_LINGER";
        ReusePort = 15, "SO_REUSEPORT";
        RecvLowAt = 18, "SO_RCVLOWAT";
        RecvTimeOut = 20, "SO_RCVTIMEO";
        SendTimeOut = 21, "SO_SNDTIMEO";
        BindToDevice = 25, "SO_BINDTODEVICE";
        AcceptConn = 30, "SO_ACCEPTCONN";
        SendBufferForce = 32, "SO_SNDBUFFORCE";
        RecvBufferForce = 33, "SO_RCVBUFFORCE";
        Mark = 36, "SO_MARK";
        Timestamping = 37, "SO_TIMESTAMPING";
        ProtocolOf = 38, "SO_PROTOCOL";
        DomainOf = 39, "SO_DOMAIN";
        BusyPoll = 46, "SO_BUSY_POLL";
        MaxPacingRate = 47, "SO_MAX_PACING_RATE";
        ZeroCopy = 60, "SO_ZEROCOPY";
    }
    IPPROTO_TCP {
        NoDelay = 1, "TCP_NODELAY";
        MaxSeg = 2, "TCP_MAXSEG";
        Cork = 3, "TCP_CORK";
        KeepIdle = 4, "TCP_KEEPIDLE";
        KeepInterval = 5, "TCP_KEEPINTVL";
        KeepCount = 6, "TCP_KEEPCNT";
        SynCount = 7, "TCP_SYNCNT";
        Linger2 = 8, "TCP_LINGER2";
        DeferAccept = 9, "TCP_DEFER_ACCEPT";
        WindowClamp = 10, "TCP_WINDOW_CLAMP";
        Info = 11, "TCP_INFO";
        QuickAck = 12, "TCP_QUICKACK";
        Congestion = 13, "TCP_CONGESTION";
        Md5Sig = 14, "TCP_MD5SIG";
        UserTimeOut = 18, "TCP_USER_TIMEOUT";
        Repair = 19, "TCP_REPAIR";
        FastOpen = 23, "TCP_FASTOPEN";
        Timestamp = 24, "TCP_TIMESTAMP";
        NotSentLowAt = 25, "TCP_NOTSENT_LOWAT";
        SaveSyn = 27, "TCP_SAVE_SYN";
        FastOpenConnect = 30, "TCP_FASTOPEN_CONNECT";
        FastOpenKey = 33, "TCP_FASTOPEN_KEY";
        FastOpenNoCookie = 34, "TCP_FASTOPEN_NO_COOKIE";
        ZeroCopyReceive = 35, "TCP_ZEROCOPY_RECEIVE";
        Inq = 36, "TCP_INQ";
        TxDelay = 37, "TCP_TX_DELAY";
    }
    IPPROTO_IP {
        Tos = 1, "IP_TOS";
        Ttl = 2, "IP_TTL";
        MtuDiscover = 10, "IP_MTU_DISCOVER";
        RecvErr = 11, "IP_RECVERR";
        Mtu = 14, "IP_MTU";
        BindAddressNoPort = 24, "IP_BIND_ADDRESS_NO_PORT";
    }
    IPPROTO_IPV6 {
        UnicastHops = 16, "IPV6_UNICAST_HOPS";
        Mtu6 = 24, "IPV6_MTU";
        RecvErr6 = 25, "IPV6_RECVERR";
        V6Only = 26, "IPV6_V6ONLY";
        TrafficClass = 67, "IPV6_TCLASS";
    }
    IPPROTO_UDP {
        Segment = 103, "UDP_SEGMENT";
    }
}

impl SocketOption {
    /// The option with this C name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|option| option.name() == name).copied()
    }

    /// The option with this level and number.
    pub fn by_number(level: i32, number: i32) -> Option<Self> {
        let is_it = |option: &&Self| option.level() == level && option.number() == number;
        Self::ALL.iter().find(is_it).copied()
    }
}

/// The value of an option.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OptionValue {
    /// A number, or 0 and 1 for off and on.
    Int(i32),
    /// Time that `close` waits: `struct linger`.
    Linger(Linger),
    /// A name, such as a congestion control's.
    Text(String),
    /// Bytes with a meaning of the option's own.
    Bytes(Vec<u8>),
    /// TCP's view of the connection: `struct tcp_info`.
    Info(Box<TcpInfo>),
}

/// Action of `close` on unacknowledged data (`struct linger`).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Linger {
    /// It returns; the connection closes in the background.
    #[default]
    Off,
    /// It blocks for at most this many seconds; with 0 the connection is reset instead.
    Seconds(u32),
}

impl OptionValue {
    /// Its number.
    pub const fn as_int(&self) -> Option<i32> {
        match self {
            Self::Int(value) => Some(*value),
            _ => None,
        }
    }
}
