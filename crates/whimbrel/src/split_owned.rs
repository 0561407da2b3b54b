//! Owned halves of a stream, like those of `tokio::net::tcp`.

use std::fmt;
use std::io::{self, IoSlice, IoSliceMut};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::BufMut;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf, Ready};

use crate::TcpStream;
use crate::split::{read_half, write_half};

/// Owned read half.
#[derive(Debug)]
pub struct OwnedReadHalf {
    stream: Arc<TcpStream>,
}

/// Owned write half. Dropping it sends FIN after the written data.
#[derive(Debug)]
pub struct OwnedWriteHalf {
    stream: Arc<TcpStream>,
    on_drop: OnDrop,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum OnDrop {
    ShutDown,
    Nothing,
}

/// The halves belong to different streams; the error returns both.
#[derive(Debug)]
pub struct ReuniteError(pub OwnedReadHalf, pub OwnedWriteHalf);

impl TcpStream {
    /// Splits the stream into a read half and a write half, which different tasks may own. Dropping the
    /// write half shuts that direction down.
    pub fn into_split(self) -> (OwnedReadHalf, OwnedWriteHalf) {
        let stream = Arc::new(self);
        let write = OwnedWriteHalf { stream: Arc::clone(&stream), on_drop: OnDrop::ShutDown };
        (OwnedReadHalf { stream }, write)
    }
}

fn reunite(read: OwnedReadHalf, write: OwnedWriteHalf) -> Result<TcpStream, ReuniteError> {
    if !Arc::ptr_eq(&read.stream, &write.stream) {
        return Err(ReuniteError(read, write));
    }
    write.forget();
    // There were two, and one is forgotten.
    Ok(Arc::into_inner(read.stream).expect("a stream has two halves"))
}

impl OwnedReadHalf {
    /// Rejoins the two halves of a stream.
    pub fn reunite(self, other: OwnedWriteHalf) -> Result<TcpStream, ReuniteError> {
        reunite(self, other)
    }
}

impl OwnedWriteHalf {
    /// Rejoins the two halves of a stream.
    pub fn reunite(self, other: OwnedReadHalf) -> Result<TcpStream, ReuniteError> {
        reunite(other, self)
    }

    /// Drops the half without shutting the direction down.
    pub fn forget(mut self) {
        self.on_drop = OnDrop::Nothing;
    }
}

impl Drop for OwnedWriteHalf {
    fn drop(&mut self) {
        if self.on_drop == OnDrop::ShutDown {
            self.stream.shut_down();
        }
    }
}

impl fmt::Display for ReuniteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("these halves are not of one stream: reunite those of one into_split")
    }
}

impl std::error::Error for ReuniteError {}

read_half!(OwnedReadHalf, stream);
write_half!(OwnedWriteHalf, stream);
