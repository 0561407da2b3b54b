//! The halves of a stream that was given away, as those of `tokio::net::tcp`.

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

/// The half for reading.
#[derive(Debug)]
pub struct OwnedReadHalf {
    stream: Arc<TcpStream>,
}

/// The half for writing. Dropping it sends FIN after what was written.
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

/// Two halves that are not of one stream; here they are again.
#[derive(Debug)]
pub struct ReuniteError(pub OwnedReadHalf, pub OwnedWriteHalf);

impl TcpStream {
    /// Makes a half for reading and one for writing, which can go to different tasks. Dropping the
    /// latter shuts the direction down.
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
    /// Puts both halves of one stream together again.
    pub fn reunite(self, other: OwnedWriteHalf) -> Result<TcpStream, ReuniteError> {
        reunite(self, other)
    }
}

impl OwnedWriteHalf {
    /// Puts both halves of one stream together again.
    pub fn reunite(self, other: OwnedReadHalf) -> Result<TcpStream, ReuniteError> {
        reunite(other, self)
    }

    /// Lets go without shutting down.
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
