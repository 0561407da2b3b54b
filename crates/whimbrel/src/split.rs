//! The halves of a lent stream, as tokio's `ReadHalf` and `WriteHalf` of `tokio::net::tcp`.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::BufMut;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf, Ready};

use crate::TcpStream;

/// The half for reading of a lent stream.
#[derive(Debug)]
pub struct ReadHalf<'a>(&'a TcpStream);

/// The half for writing of a lent stream. Dropping it shuts nothing down.
#[derive(Debug)]
pub struct WriteHalf<'a>(&'a TcpStream);

impl TcpStream {
    /// Lends a half for reading and one for writing.
    pub fn split(&mut self) -> (ReadHalf<'_>, WriteHalf<'_>) {
        (ReadHalf(self), WriteHalf(self))
    }
}

/// What both kinds of halves for reading have.
macro_rules! read_half {
    ($half:ty, $field:tt) => {
        impl $half {
            /// As [`TcpStream::poll_peek`], by the half that reads.
            pub fn poll_peek(
                &mut self,
                cx: &mut Context<'_>,
                buf: &mut ReadBuf<'_>,
            ) -> Poll<io::Result<usize>> {
                self.$field.poll_peek(cx, buf)
            }

            /// As [`TcpStream::peek`], by the half that reads.
            pub async fn peek(&mut self, buf: &mut [u8]) -> io::Result<usize> {
                self.$field.peek(buf).await
            }

            /// As [`TcpStream::ready`], by the half that reads.
            pub async fn ready(&self, interest: Interest) -> io::Result<Ready> {
                self.$field.ready(interest).await
            }

            /// As [`TcpStream::readable`], by the half that reads.
            pub async fn readable(&self) -> io::Result<()> {
                self.$field.readable().await
            }

            /// As [`TcpStream::try_read`], by the half that reads.
            pub fn try_read(&self, buf: &mut [u8]) -> io::Result<usize> {
                self.$field.try_read(buf)
            }

            /// As [`TcpStream::try_read_vectored`], by the half that reads.
            pub fn try_read_vectored(&self, bufs: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
                self.$field.try_read_vectored(bufs)
            }

            /// As [`TcpStream::try_read_buf`], by the half that reads.
            pub fn try_read_buf<B: BufMut>(&self, buf: &mut B) -> io::Result<usize> {
                self.$field.try_read_buf(buf)
            }

            /// The address and port of the peer.
            pub fn peer_addr(&self) -> io::Result<SocketAddr> {
                self.$field.peer_addr()
            }

            /// The address and port of this side.
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

/// What both kinds of halves for writing have.
macro_rules! write_half {
    ($half:ty, $field:tt) => {
        impl $half {
            /// As [`TcpStream::ready`], by the half that writes.
            pub async fn ready(&self, interest: Interest) -> io::Result<Ready> {
                self.$field.ready(interest).await
            }

            /// As [`TcpStream::writable`], by the half that writes.
            pub async fn writable(&self) -> io::Result<()> {
                self.$field.writable().await
            }

            /// As [`TcpStream::try_write`], by the half that writes.
            pub fn try_write(&self, buf: &[u8]) -> io::Result<usize> {
                self.$field.try_write(buf)
            }

            /// As [`TcpStream::try_write_vectored`], by the half that writes.
            pub fn try_write_vectored(&self, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
                self.$field.try_write_vectored(bufs)
            }

            /// The address and port of the peer.
            pub fn peer_addr(&self) -> io::Result<SocketAddr> {
                self.$field.peer_addr()
            }

            /// The address and port of this side.
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
