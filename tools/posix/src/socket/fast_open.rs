//! Options of Fast Open: `TCP_FASTOPEN`, `TCP_FASTOPEN_KEY` and `TCP_FASTOPEN_CONNECT`.

use alloc::boxed::Box;
use alloc::vec::Vec;

use whimbrel_base::Key;

use super::{FastOpenKeyPair, Phase, Socket};
use crate::context::Context;
use crate::{Errno, SocketOption};

impl Socket {
    /// `setsockopt`, for options of Fast Open.
    pub(super) fn set_fast_open(
        &mut self,
        cx: &mut Context,
        option: SocketOption,
        value: i32,
    ) -> Result<bool, Errno> {
        let client = cx.shard.tunables().fast_open_client;
        match (option, &self.phase) {
            (SocketOption::FastOpen, Phase::Stream(_)) => return Err(Errno::EINVAL),
            (SocketOption::FastOpen, phase) => {
                let listener = match phase {
                    Phase::Listening(listener) => Some(*listener),
                    _ => None,
                };
                let pending = u32::try_from(value).map_err(|_| Errno::EINVAL)?.min(MOST_PENDING);
                self.settings.fast_open = pending;
                if let Some(listener) = listener {
                    cx.shard.set_fast_open(listener, pending);
                }
            }
            (SocketOption::FastOpenConnect, _) if !matches!(value, 0 | 1) => {
                return Err(Errno::EINVAL);
            }
            (SocketOption::FastOpenConnect, _) if !client => return Err(Errno::EOPNOTSUPP),
            (SocketOption::FastOpenConnect, Phase::Idle) => {
                self.settings.fast_open_connect = value == 1;
            }
            (SocketOption::FastOpenConnect, _) => return Err(Errno::EINVAL),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// `TCP_FASTOPEN_KEY`.
impl Socket {
    /// Sets one key of 16 bytes, or two: cookies are granted under the first, and accepted under
    /// both. A listener uses them at once, any other socket when it listens. Accepted sockets have
    /// none.
    pub(super) fn set_fast_open_keys(
        &mut self,
        cx: &mut Context,
        bytes: &[u8],
    ) -> Result<(), Errno> {
        let (primary, backup) = match bytes.as_chunks() {
            ([primary], []) => (Key(*primary), None),
            ([primary, backup], []) => (Key(*primary), Some(Key(*backup))),
            _ => return Err(Errno::EINVAL),
        };
        self.fast_open_keys = Some(Box::new(FastOpenKeyPair { primary, backup }));
        if let Phase::Listening(listener) = self.phase {
            cx.shard.set_fast_open_keys(listener, &primary, backup.as_ref());
        }
        Ok(())
    }

    /// Keys that were set; empty for a socket with the stack's key, which stays secret.
    pub(super) fn fast_open_keys(&self) -> Vec<u8> {
        let keys = self.fast_open_keys.as_deref();
        let both = keys.into_iter().flat_map(|keys| [Some(keys.primary), keys.backup]);
        both.flatten().flat_map(|key| key.0).collect()
    }

    /// `getsockopt`, for options of Fast Open.
    pub(super) fn fast_open_setting(&self, option: SocketOption) -> Option<i32> {
        match option {
            SocketOption::FastOpen => Some(self.settings.fast_open.cast_signed()),
            SocketOption::FastOpenConnect => Some(i32::from(self.settings.fast_open_connect)),
            _ => None,
        }
    }
}

/// Most handshakes under way with data, as Linux' `net.core.somaxconn`.
const MOST_PENDING: u32 = 4_096;
