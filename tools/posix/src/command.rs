//! The commands of `shutdown`, `fcntl` and `ioctl`.

use crate::FileFlags;

c_enum! {
    /// Directions that `shutdown` ends.
    Shut {
        /// Reading ends.
        Read = 0, "SHUT_RD";
        /// Writing ends: FIN follows the data written.
        Write = 1, "SHUT_WR";
        /// Both directions end.
        Both = 2, "SHUT_RDWR";
    }
}

/// Commands of `fcntl`.
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
    /// Commands of `ioctl`: each returns a number.
    Ioctl {
        /// Bytes that can be read.
        Fionread = 0x541b, "FIONREAD";
        /// Bytes that can be read, by Linux' other name.
        Inq = 0x541b, "SIOCINQ";
        /// Numbers sent and not acknowledged, bytes to be sent included.
        Outq = 0x5411, "SIOCOUTQ";
        /// Bytes not sent yet.
        OutqUnsent = 0x894b, "SIOCOUTQNSD";
        /// True if the next byte of the stream is the urgent one (`sockatmark`).
        AtMark = 0x8905, "SIOCATMARK";
    }
}
