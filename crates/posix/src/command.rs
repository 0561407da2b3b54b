//! The commands of `shutdown`, `fcntl` and `ioctl`.

use crate::FileFlags;

c_enum! {
    /// Which directions `shutdown` ends.
    Shut {
        /// No more is to be read.
        Read = 0, "SHUT_RD";
        /// Writing: FIN follows what was written.
        Write = 1, "SHUT_WR";
        /// Neither direction is used any more.
        Both = 2, "SHUT_RDWR";
    }
}

/// What `fcntl` is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fcntl {
    /// The flags of the open file: `F_GETFL`.
    GetFl,
    /// Sets the flags of the open file that can change: `F_SETFL`.
    SetFl(FileFlags),
}

impl Fcntl {
    /// Linux' number of `F_GETFL`.
    pub const GETFL: i32 = 3;
    /// Linux' number of `F_SETFL`.
    pub const SETFL: i32 = 4;
}

c_enum! {
    /// What `ioctl` is asked for: each answers a number.
    Ioctl {
        /// Bytes that can be read.
        Fionread = 0x541b, "FIONREAD";
        /// Bytes that wait to be read, by Linux' other name for it.
        Inq = 0x541b, "SIOCINQ";
        /// Numbers sent and not acknowledged, bytes to be sent included.
        Outq = 0x5411, "SIOCOUTQ";
        /// Bytes that were not sent yet.
        OutqUnsent = 0x894b, "SIOCOUTQNSD";
        /// Whether the next byte of the stream is the urgent one (`sockatmark`).
        AtMark = 0x8905, "SIOCATMARK";
    }
}
