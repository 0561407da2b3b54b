//! A socket between two processes as a wire: each message is a frame that begins with its IP
//! header.
//!
//! The first process listens at the path, the second connects; neither needs a privilege. While
//! there is no peer, frames are dropped, as by an unplugged cable. If the connecting process ends,
//! the listening one waits for the next. If the listening one ends, the other loses the wire. A
//! third that connects waits until the second has gone.
//!
//! Up to 64 frames travel with one system call (sendmmsg, recvmmsg). There are no offloads. A
//! peer's different MTU is not detected: frames beyond this side's MTU are dropped and counted.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};

use whimbrel_base::packet::{MAX_SLICES, SegMeta, TxSegment};
use whimbrel_stack::{Capabilities, Medium, RxFrame, TxBatch};

use crate::device::{Device, DeviceCounters, MAX_BURST, TxOutcome};
use crate::sys::seqpacket::{MOST, Received, SeqPacket};

pub mod config;
pub mod error;
mod join;

pub use config::UnixConfig;
pub use error::UnixError;
use join::End;

/// One end of the wire.
#[derive(Debug)]
pub struct UnixWire {
    end: End,
    name: String,
    mtu: u16,
    /// Buffers of a burst, each for one frame and one byte more.
    arena: Box<[u8]>,
    counters: DeviceCounters,
}

impl UnixWire {
    /// Connects to the process at the path; if there is none, waits for one.
    pub fn open(config: &UnixConfig) -> Result<Self, UnixError> {
        let end = join::join(config.path())?;
        let mtu = config.mtu();
        let places = (BURST_BYTES / place(mtu)).clamp(1, MAX_BURST.min(MOST));
        let arena = vec![0; places * place(mtu)].into_boxed_slice();
        let name = format!("unix:{}", crate::text::path(config.path()));
        Ok(Self { end, name, mtu, arena, counters: DeviceCounters::default() })
    }

    /// True if a peer is known to be connected.
    pub fn is_joined(&self) -> bool {
        self.end.peer().is_some()
    }

    /// Handles the end of the peer.
    fn on_peer_closed(&mut self) -> io::Result<()> {
        let gone = "the process at the other end of the socket has gone";
        match &mut self.end {
            End::First { peer, .. } => {
                *peer = None;
                Ok(())
            }
            End::Second { .. } => Err(io::Error::new(io::ErrorKind::UnexpectedEof, gone)),
        }
    }

    /// Counts the received frames, and fills `frames` with the valid ones.
    fn judge<'a>(
        arena: &'a [u8],
        place: usize,
        received: &[Received],
        frames: &mut [RxFrame<'a>],
        counters: &mut DeviceCounters,
    ) -> usize {
        let mut good = 0;
        for (bytes, received) in arena.chunks_exact(place).zip(received) {
            let frame = bytes.get(..received.len).filter(|frame| frame.len() < place);
            match frame.zip(frames.get_mut(good)) {
                Some((bytes, frame)) => {
                    *frame = RxFrame::new(bytes, SegMeta::SINGLE);
                    good += 1;
                    counters.rx_frames += 1;
                    counters.rx_segments += 1;
                    counters.rx_bytes += bytes.len() as u64;
                }
                None => counters.rx_oversized += 1,
            }
        }
        good
    }

    /// Sends some of the pending segments. Returns how many, or the error for the first.
    fn send(peer: &SeqPacket, pending: &[TxSegment]) -> io::Result<usize> {
        let mut slices = [[IoSlice::new(&[]); MAX_SLICES + 1]; AT_ONCE];
        let mut messages: [&[IoSlice<'_>]; AT_ONCE] = [&[]; AT_ONCE];
        let mut count = 0;
        for ((slices, message), segment) in slices.iter_mut().zip(&mut messages).zip(pending) {
            let text = segment.payload.as_slice();
            let parts = std::iter::once(segment.header()).chain(text.iter().map(AsRef::as_ref));
            for (slice, part) in slices.iter_mut().zip(parts) {
                *slice = IoSlice::new(part);
            }
            *message = slices.get(..=text.len()).unwrap_or_default();
            count += 1;
        }
        peer.send(messages.get(..count).unwrap_or_default())
    }

    /// Handles a refused send. Returns the reason to stop, or `None` if the refused segment was
    /// dropped.
    fn on_refusal(&mut self, error: &io::Error, batch: &mut TxBatch) -> Option<TxOutcome> {
        if let Some(outcome) = self.counters.on_busy(error) {
            return Some(outcome);
        }
        match error.raw_os_error() {
            // The peer is gone; receiving reports that, after the frames that are still unread.
            errno @ Some(libc::EPIPE | libc::ECONNRESET | libc::ENOTCONN) => {
                self.counters.consume_refused(batch, batch.pending().len(), errno);
            }
            errno => self.counters.consume_refused(batch, 1, errno),
        }
        None
    }
}

impl Device for UnixWire {
    fn name(&self) -> String {
        self.name.clone()
    }

    /// `unix:/run/w (joined; mtu 1500)`.
    fn about(&self) -> String {
        let state = if self.is_joined() { "joined" } else { "waiting for its other end" };
        format!("{} ({state}; mtu {})", self.name, self.mtu)
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::plain(Medium::Ip, self.mtu)
    }

    fn rx_burst(&mut self, deliver: &mut dyn FnMut(&[RxFrame<'_>])) -> io::Result<usize> {
        self.end.accept_peer()?;
        let Some(peer) = self.end.peer() else { return Ok(0) };
        let mut received = [Received::default(); MAX_BURST];
        let place = place(self.mtu);
        let taken = match peer.receive(&mut self.arena, place, &mut received) {
            Ok(taken) => taken,
            Err(error) if is_transient(&error) => return Ok(0),
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => 0,
            Err(error) => return Err(error),
        };
        // No frame is empty: a length of zero is the end of the connection.
        let received = received.get(..taken).unwrap_or_default();
        let whole = received.iter().take_while(|received| received.len > 0).count();
        let mut frames = [RxFrame::new(&[], SegMeta::SINGLE); MAX_BURST];
        let received = received.get(..whole).unwrap_or_default();
        let good = Self::judge(&self.arena, place, received, &mut frames, &mut self.counters);
        if good > 0 {
            deliver(frames.get(..good).unwrap_or_default());
        }
        if whole == 0 {
            self.on_peer_closed()?;
        }
        Ok(whole)
    }

    fn tx_burst(&mut self, batch: &mut TxBatch) -> io::Result<TxOutcome> {
        while !batch.is_empty() {
            let Some(peer) = self.end.peer() else {
                let gone = Some(libc::ENOTCONN);
                self.counters.consume_refused(batch, batch.pending().len(), gone);
                break;
            };
            match Self::send(peer, batch.pending()) {
                Ok(sent) => self.counters.consume_sent(batch, sent),
                Err(error) => {
                    if let Some(outcome) = self.on_refusal(&error, batch) {
                        return Ok(outcome);
                    }
                }
            }
        }
        Ok(TxOutcome::Drained)
    }

    fn counters(&self) -> &DeviceCounters {
        &self.counters
    }

    /// Handles a hang-up of the peer: receiving reports it, after the frames that are still unread.
    fn on_poll_error(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsFd for UnixWire {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.end {
            End::First { peer: Some(peer), .. } | End::Second { peer } => peer.as_fd(),
            End::First { listener, .. } => listener.as_fd(),
        }
    }
}

fn is_transient(error: &io::Error) -> bool {
    let aborted = error.kind() == io::ErrorKind::ConnectionAborted;
    aborted || matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// Returns the size of a buffer for one frame, and one byte that is filled only if the frame is
/// larger.
fn place(mtu: u16) -> usize {
    usize::from(mtu) + 1
}

/// Limit of a burst in bytes, so that they are still in the second-level cache when the stack reads
/// them.
const BURST_BYTES: usize = 256 * 1024;
/// Limit of frames in one outward system call: their slices take 5 kB of stack.
const AT_ONCE: usize = 16;
