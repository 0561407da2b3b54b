//! Errors of calls, with Linux' numbers, names and texts (errno(3), strerror(3)).

macro_rules! errnos {
    ($($name:ident = $number:literal $text:literal,)*) => {
        /// Error of a call, as on Linux.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Errno { $(#[doc = $text] $name = $number,)* }

        impl Errno {
            /// All errors, by number.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// Name in C.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)* }
            }

            /// Text of `strerror`.
            pub const fn text(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
        }
    };
}

errnos! {
    EPERM = 1 "Operation not permitted",
    ENOENT = 2 "No such file or directory",
    ESRCH = 3 "No such process",
    EINTR = 4 "Interrupted system call",
    EIO = 5 "Input/output error",
    ENXIO = 6 "No such device or address",
    E2BIG = 7 "Argument list too long",
    EBADF = 9 "Bad file descriptor",
    EAGAIN = 11 "Resource temporarily unavailable",
    ENOMEM = 12 "Cannot allocate memory",
    EACCES = 13 "Permission denied",
    EFAULT = 14 "Bad address",
    EBUSY = 16 "Device or resource busy",
    EEXIST = 17 "File exists",
    ENODEV = 19 "No such device",
    ENOTDIR = 20 "Not a directory",
    EISDIR = 21 "Is a directory",
    EINVAL = 22 "Invalid argument",
    ENFILE = 23 "Too many open files in system",
    EMFILE = 24 "Too many open files",
    ENOTTY = 25 "Inappropriate ioctl for device",
    EFBIG = 27 "File too large",
    ENOSPC = 28 "No space left on device",
    ESPIPE = 29 "Illegal seek",
    EROFS = 30 "Read-only file system",
    EPIPE = 32 "Broken pipe",
    EDOM = 33 "Numerical argument out of domain",
    ERANGE = 34 "Numerical result out of range",
    EDEADLK = 35 "Resource deadlock avoided",
    ENAMETOOLONG = 36 "File name too long",
    ENOSYS = 38 "Function not implemented",
    ELOOP = 40 "Too many levels of symbolic links",
    ENODATA = 61 "No data available",
    ENONET = 64 "Machine is not on the network",
    EPROTO = 71 "Protocol error",
    EBADMSG = 74 "Bad message",
    EOVERFLOW = 75 "Value too large for defined data type",
    ENOTSOCK = 88 "Socket operation on non-socket",
    EDESTADDRREQ = 89 "Destination address required",
    EMSGSIZE = 90 "Message too long",
    EPROTOTYPE = 91 "Protocol wrong type for socket",
    ENOPROTOOPT = 92 "Protocol not available",
    EPROTONOSUPPORT = 93 "Protocol not supported",
    ESOCKTNOSUPPORT = 94 "Socket type not supported",
    EOPNOTSUPP = 95 "Operation not supported",
    EPFNOSUPPORT = 96 "Protocol family not supported",
    EAFNOSUPPORT = 97 "Address family not supported by protocol",
    EADDRINUSE = 98 "Address already in use",
    EADDRNOTAVAIL = 99 "Cannot assign requested address",
    ENETDOWN = 100 "Network is down",
    ENETUNREACH = 101 "Network is unreachable",
    ENETRESET = 102 "Network dropped connection on reset",
    ECONNABORTED = 103 "Software caused connection abort",
    ECONNRESET = 104 "Connection reset by peer",
    ENOBUFS = 105 "No buffer space available",
    EISCONN = 106 "Transport endpoint is already connected",
    ENOTCONN = 107 "Transport endpoint is not connected",
    ESHUTDOWN = 108 "Cannot send after transport endpoint shutdown",
    ETOOMANYREFS = 109 "Too many references: cannot splice",
    ETIMEDOUT = 110 "Connection timed out",
    ECONNREFUSED = 111 "Connection refused",
    EHOSTDOWN = 112 "Host is down",
    EHOSTUNREACH = 113 "No route to host",
    EALREADY = 114 "Operation already in progress",
    EINPROGRESS = 115 "Operation now in progress",
    ESTALE = 116 "Stale file handle",
    ECANCELED = 125 "Operation canceled",
}

impl Errno {
    /// Number in C.
    pub const fn number(self) -> i32 {
        self as i32
    }

    /// Error of this name; `EWOULDBLOCK` and `ENOTSUP` are second names on Linux.
    pub fn by_name(name: &str) -> Option<Self> {
        match name {
            "EWOULDBLOCK" => Some(Self::EAGAIN),
            "ENOTSUP" => Some(Self::EOPNOTSUPP),
            _ => Self::ALL.iter().find(|errno| errno.name() == name).copied(),
        }
    }

    /// Error of this number.
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
