//! Borrowed halves of a stream, like tokio's `ReadHalf` and `WriteHalf`.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::BufMut;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf, Ready};

use crate::TcpStream;

/// Read half of a borrowed stream.
#[derive(Debug)]
pub struct ReadHalf<'a>(&'a TcpStream);

/// Write half of a borrowed stream. Dropping it shuts nothing down.
#[derive(Debug)]
pub struct WriteHalf<'a>(&'a TcpStream);

impl TcpStream {
    /// Borrows the stream as a read half and a write half.
    pub fn split(&mut self) -> (ReadHalf<'_>, WriteHalf<'_>) {
        (ReadHalf(self), WriteHalf(self))
    }
}

/// Methods of both kinds of read halves.
macro_rules! read_half {
    ($half:ty, $field:tt) => {
        impl $half {
            /// Calls [`TcpStream::poll_peek`].
            pub fn poll_peek(
                &mut self,
                cx: &mut Context<'_>,
                buf: &mut ReadBuf<'_>,
            ) -> Poll<io::Result<usize>> {
                self.$field.poll_peek(cx, buf)
            }

            /// Calls [`TcpStream::peek`].
            ///
            /// # Cancel safety
            ///
            /// Dropping the future changes nothing.
            pub async fn peek(&mut self, buf: &mut [u8]) -> io::Result<usize> {
                self.$field.peek(buf).await
            }

            /// Calls [`TcpStream::ready`].
            ///
            /// # Cancel safety
            ///
            /// Dropping the future changes nothing.
            pub async fn ready(&self, interest: Interest) -> io::Result<Ready> {
                self.$field.ready(interest).await
            }

            /// Calls [`TcpStream::readable`].
            ///
            /// # Cancel safety
            ///
            /// Dropping the future changes nothing.
            pub async fn readable(&self) -> io::Result<()> {
                self.$field.readable().await
            }

            /// Calls [`TcpStream::try_read`].
            pub fn try_read(&self, buf: &mut [u8]) -> io::Result<usize> {
                self.$field.try_read(buf)
            }

            /// Calls [`TcpStream::try_read_vectored`].
            pub fn try_read_vectored(&self, bufs: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
                self.$field.try_read_vectored(bufs)
            }

            /// Calls [`TcpStream::try_read_buf`].
            pub fn try_read_buf<B: BufMut>(&self, buf: &mut B) -> io::Result<usize> {
                self.$field.try_read_buf(buf)
            }

            /// Returns the peer's address and port.
            pub fn peer_addr(&self) -> io::Result<SocketAddr> {
                self.$field.peer_addr()
            }

            /// Returns the local address and port.
            pub fn local_addr(&self) -> io::Result<SocketAddr> {
                self.$field.local_addr()
            }
        }

        impl AsyncRead for $half {
            fn poll_read(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buf: &mut ReadBuf<'_>,
            ) -> Poll<io::Result<()>> {
                self.$field.poll_read_by_ref(cx, buf)
            }
        }

        impl AsRef<TcpStream> for $half {
            fn as_ref(&self) -> &TcpStream {
                &self.$field
            }
        }
    };
}

/// Methods of both kinds of write halves.
macro_rules! write_half {
    ($half:ty, $field:tt) => {
        impl $half {
            /// Calls [`TcpStream::ready`].
            ///
            /// # Cancel safety
            ///
            /// Dropping the future changes nothing.
            pub async fn ready(&self, interest: Interest) -> io::Result<Ready> {
                self.$field.ready(interest).await
            }

            /// Calls [`TcpStream::writable`].
            ///
            /// # Cancel safety
            ///
            /// Dropping the future changes nothing.
            pub async fn writable(&self) -> io::Result<()> {
                self.$field.writable().await
            }

            /// Calls [`TcpStream::try_write`].
            pub fn try_write(&self, buf: &[u8]) -> io::Result<usize> {
                self.$field.try_write(buf)
            }

            /// Calls [`TcpStream::try_write_vectored`].
            pub fn try_write_vectored(&self, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
                self.$field.try_write_vectored(bufs)
            }

            /// Returns the peer's address and port.
            pub fn peer_addr(&self) -> io::Result<SocketAddr> {
                self.$field.peer_addr()
            }

            /// Returns the local address and port.
            pub fn local_addr(&self) -> io::Result<SocketAddr> {
                self.$field.local_addr()
            }
        }

        impl AsyncWrite for $half {
            fn poll_write(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buf: &[u8],
            ) -> Poll<io::Result<usize>> {
                self.$field.poll_write_by_ref(cx, &[IoSlice::new(buf)])
            }

            fn poll_write_vectored(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                bufs: &[IoSlice<'_>],
            ) -> Poll<io::Result<usize>> {
                self.$field.poll_write_by_ref(cx, bufs)
            }

            fn is_write_vectored(&self) -> bool {
                true
            }

            fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                Poll::Ready(Ok(()))
            }

            fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                self.$field.shut_down();
                Poll::Ready(Ok(()))
            }
        }

        impl AsRef<TcpStream> for $half {
            fn as_ref(&self) -> &TcpStream {
                &self.$field
            }
        }
    };
}

pub(crate) use {read_half, write_half};

read_half!(ReadHalf<'_>, 0);
write_half!(WriteHalf<'_>, 0);
