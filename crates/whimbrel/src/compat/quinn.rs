//! A socket for quinn's endpoints.

use std::fmt;
use std::future::Future;
use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use quinn::udp::{EcnCodepoint, RecvMeta, Transmit};
use quinn::{AsyncUdpSocket, UdpPoller};
use whimbrel_udp::OutgoingDatagram;

use crate::{Ecn, Fragmenting, Received, SendOptions, SendTo, TrafficClass, UdpSocket};

/// A [`UdpSocket`] with quinn's trait, for `quinn::Endpoint::new_with_abstract_socket`.
///
/// It passes on ECN codepoints and destination addresses, and sends up to 64 datagrams a call. No datagram is
/// fragmented, as QUIC demands (RFC 9000 14: "UDP datagrams MUST NOT be fragmented at the IP layer.").
#[derive(Debug)]
pub struct QuinnSocket(UdpSocket);

impl QuinnSocket {
    /// Wraps a socket.
    pub const fn new(socket: UdpSocket) -> Self {
        Self(socket)
    }

    fn receive(&self, cx: &mut Context<'_>) -> Poll<io::Result<Received>> {
        loop {
            match self.0.try_recv_datagram() {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                result => return Poll::Ready(result),
            }
            ready!(self.0.poll_recv_ready(cx))?;
        }
    }
}

impl AsyncUdpSocket for QuinnSocket {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        Box::pin(SendRoom { socket: self, waiting: Mutex::new(None) })
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        let ecn = match transmit.ecn {
            None => Ecn::NotEct,
            Some(EcnCodepoint::Ect0) => Ecn::Ect0,
            Some(EcnCodepoint::Ect1) => Ecn::Ect1,
            Some(EcnCodepoint::Ce) => Ecn::Ce,
        };
        let options = SendOptions::new()
            .with_class(TrafficClass::new(0, ecn))
            .with_fragmenting(Fragmenting::Refused);
        let mut send = SendTo::peer(transmit.destination.into()).with_options(options);
        send.source = transmit.src_ip.map(Into::into);
        send.segment = transmit.segment_size.and_then(|size| u16::try_from(size).ok());
        let size = transmit.segment_size.unwrap_or(MOST_BYTES).clamp(1, MOST_BYTES);
        for (place, bytes) in transmit.contents.chunks(MOST_BYTES / size * size).enumerate() {
            match self.0.try_send_datagram(bytes, &send) {
                // What was sent already must not be sent twice.
                Err(error) if place == 0 && REPORTED.contains(&error.kind()) => return Err(error),
                // Of the rest quinn learns as of any loss, for example that a probe exceeds the path's MTU.
                _ => {}
            }
        }
        Ok(())
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let mut count = 0;
        for (buf, meta) in bufs.iter_mut().zip(meta) {
            let received = match self.receive(cx) {
                Poll::Pending if count == 0 => return Poll::Pending,
                Poll::Ready(Err(error)) if count == 0 => return Poll::Ready(Err(error)),
                Poll::Ready(Ok(received)) => received,
                _ => break,
            };
            let len = received.data.len().min(buf.len());
            buf[..len].copy_from_slice(&received.data[..len]);
            *meta = RecvMeta {
                addr: received.from.into(),
                len,
                stride: len,
                ecn: EcnCodepoint::from_bits(received.class.ecn() as u8),
                dst_ip: Some(received.to.addr.to_ip()),
            };
            count += 1;
        }
        Poll::Ready(Ok(count))
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }

    fn max_transmit_segments(&self) -> usize {
        OutgoingDatagram::MOST_SEGMENTS
    }

    fn may_fragment(&self) -> bool {
        false
    }
}

/// The most that one call sends: the text of a UDP datagram over IPv4, bytes.
const MOST_BYTES: usize = 65_507;
/// Kinds of error that quinn has to know: no room now, and the end of the stack.
const REPORTED: [io::ErrorKind; 2] = [io::ErrorKind::WouldBlock, io::ErrorKind::NotConnected];

/// A task that waits for room to send.
struct SendRoom {
    socket: Arc<QuinnSocket>,
    waiting: Mutex<Option<Waiting>>,
}

type Waiting = Pin<Box<dyn Future<Output = io::Result<()>> + Send>>;

impl UdpPoller for SendRoom {
    fn poll_writable(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let room = waiting.get_or_insert_with(|| {
            let socket = Arc::clone(&self.socket);
            Box::pin(async move { socket.0.writable().await })
        });
        let result = ready!(room.as_mut().poll(cx));
        *waiting = None;
        Poll::Ready(result)
    }
}

impl fmt::Debug for SendRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendRoom").field("socket", &self.socket).finish_non_exhaustive()
    }
}
