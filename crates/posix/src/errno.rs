//! Why a call failed: Linux' numbers, names and texts (errno(3), strerror(3)).

macro_rules! errnos {
    ($($name:ident = $number:literal $text:literal,)*) => {
        /// Why a call failed, as on Linux.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Errno { $(#[doc = $text] $name = $number,)* }

        impl Errno {
            /// Every one, by number.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// Its name.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)* }
            }

            /// What `strerror` says.
            pub const fn text(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
        }
    };
}

errnos! {
    EPERM = 1 "Operation not permitted",
    ENOENT = 2 "No such file or directory",
    EINTR = 4 "Interrupted system call",
    EIO = 5 "Input/output error",
    EBADF = 9 "Bad file descriptor",
    EAGAIN = 11 "Resource temporarily unavailable",
    ENOMEM = 12 "Cannot allocate memory",
    EACCES = 13 "Permission denied",
    EFAULT = 14 "Bad address",
    EBUSY = 16 "Device or resource busy",
    EEXIST = 17 "File exists",
    EINVAL = 22 "Invalid argument",
    ENFILE = 23 "Too many open files in system",
    EMFILE = 24 "Too many open files",
    ENOTTY = 25 "Inappropriate ioctl for device",
    EPIPE = 32 "Broken pipe",
    EDOM = 33 "Numerical argument out of domain",
    EPROTO = 71 "Protocol error",
    ENOTSOCK = 88 "Socket operation on non-socket",
    EDESTADDRREQ = 89 "Destination address required",
    EMSGSIZE = 90 "Message too long",
    EPROTOTYPE = 91 "Protocol wrong type for socket",
    ENOPROTOOPT = 92 "Protocol not available",
    EPROTONOSUPPORT = 93 "Protocol not supported",
    ESOCKTNOSUPPORT = 94 "Socket type not supported",
    EOPNOTSUPP = 95 "Operation not supported",
    EAFNOSUPPORT = 97 "Address family not supported by protocol",
    EADDRINUSE = 98 "Address already in use",
    EADDRNOTAVAIL = 99 "Cannot assign requested address",
    ENETDOWN = 100 "Network is down",
    ENETUNREACH = 101 "Network is unreachable",
    ECONNABORTED = 103 "Software caused connection abort",
    ECONNRESET = 104 "Connection reset by peer",
    ENOBUFS = 105 "No buffer space available",
    EISCONN = 106 "Transport endpoint is already connected",
    ENOTCONN = 107 "Transport endpoint is not connected",
    ETIMEDOUT = 110 "Connection timed out",
    ECONNREFUSED = 111 "Connection refused",
    EHOSTDOWN = 112 "Host is down",
    EHOSTUNREACH = 113 "No route to host",
    EALREADY = 114 "Operation already in progress",
    EINPROGRESS = 115 "Operation now in progress",
}

impl Errno {
    /// The number that C sees.
    pub const fn number(self) -> i32 {
        self as i32
    }

    /// The one with this name; `EWOULDBLOCK` and `ENOTSUP` are second names on Linux.
    pub fn by_name(name: &str) -> Option<Self> {
        match name {
            "EWOULDBLOCK" => Some(Self::EAGAIN),
            "ENOTSUP" => Some(Self::EOPNOTSUPP),
            _ => Self::ALL.iter().find(|errno| errno.name() == name).copied(),
        }
    }

    /// The one with this number.
    pub fn by_number(number: i32) -> Option<Self> {
        Self::ALL.iter().find(|errno| errno.number() == number).copied()
    }
}

impl core::fmt::Display for Errno {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} ({})", self.name(), self.text())
    }
}

impl core::error::Error for Errno {}
