//! The interface between a worker and its device: TUN, packet rings, shared memory or a socket.

use std::fmt;
use std::io;

use bytes::Bytes;
use whimbrel_base::Instant;
use whimbrel_base::packet::{SegMeta, TxSegment};
use whimbrel_stack::{Capabilities, RxFrame, TxBatch};
use whimbrel_tcp::recv::ChunkPool;

use crate::sys::AsFd;

/// A device with one queue in each direction, driven by one thread and never blocking.
///
/// [`AsFd`] returns the descriptor, which becomes readable when frames wait, and writable when a
/// [`TxOutcome::Blocked`] batch can continue. If it reports an error (`POLLERR`, `POLLHUP`), the worker
/// calls [`Device::on_poll_error`]. On systems other than Linux, descriptors are not polled: the source
/// of frames wakes the worker by its [`Waker`](crate::Waker).
///
/// # Frames are borrowed
///
/// Frames passed to `deliver` are valid during that call only: the ring slot, UMEM chunk or buffer is
/// reused afterwards. To keep one, copy it, unless it is [in a chunk](RxFrame::chunk) of the shard's.
pub trait Device: AsFd + fmt::Debug {
    /// Returns the name as in `--wire` and in errors: `tun:whim0`.
    fn name(&self) -> String;

    /// Returns the name with details for users: `tun:whim0 (offloads: csum tso4; mtu 1500)`.
    fn about(&self) -> String {
        self.name()
    }

    /// Returns the capabilities, which never change.
    fn capabilities(&self) -> Capabilities;

    /// Takes chunks of the shard's pool for the next burst, if the device can use them. Called before
    /// [`Device::rx_burst`].
    fn take_room(&mut self, _chunks: &mut ChunkPool) {}

    /// Takes one burst of waiting frames and passes them to `deliver`, in their order of arrival. There
    /// may be several calls (a ring delivers block by block), each with 1 to [`MAX_BURST`] frames.
    ///
    /// Returns the number of frames taken from the system, malformed ones included; 0 if none waits. A
    /// device also limits a burst in bytes, so that it stays in the cache. An error means that the
    /// device is lost; frames read before it are delivered first.
    fn rx_burst(&mut self, deliver: &mut dyn FnMut(&[RxFrame<'_>])) -> io::Result<usize>;

    /// Sends pending segments, oldest first, and [consumes](TxBatch::consume) those that are done.
    /// A segment that the system refuses is dropped and counted, so that it does not block the
    /// others. An error means that the device is lost.
    fn tx_burst(&mut self, batch: &mut TxBatch) -> io::Result<TxOutcome>;

    /// Returns the counters.
    fn counters(&self) -> &DeviceCounters;

    /// Returns the time at which frames are due or a [`TxOutcome::Full`] queue has room, if the
    /// descriptor will not report it. An impaired link inside this process needs this, because it
    /// delays frames. The clock is the worker's. Called after the worker has announced its sleep.
    fn next_deadline(&self) -> Option<Instant> {
        None
    }

    /// Handles an error of the descriptor. Returns `Ok` after clearing it if the device goes on (a
    /// packet socket whose interface was down for a while).
    fn on_poll_error(&mut self) -> io::Result<()> {
        Err(interface_is_gone())
    }
}

/// Returns the error of a device whose interface was removed.
pub(crate) fn interface_is_gone() -> io::Error {
    io::Error::new(io::ErrorKind::NotConnected, "the interface is gone")
}

/// A device of any kind.
pub type AnyDevice = Box<dyn Device + Send>;

/// Boxes devices of one kind.
pub fn boxed<D: Device + Send + 'static>(devices: impl IntoIterator<Item = D>) -> Vec<AnyDevice> {
    devices.into_iter().map(|device| Box::new(device) as AnyDevice).collect()
}

/// Limit of frames in one call of `deliver`.
pub const MAX_BURST: usize = 64;

/// Result of sending a burst.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TxOutcome {
    /// No segment of the batch is left.
    Drained,
    /// The queue is full; the descriptor becomes writable when it can go on.
    Blocked,
    /// The system is short of memory; no descriptor reports the end of the shortage.
    Congested,
    /// The queue inside the process is full, and its reader wakes the worker by its
    /// [`Waker`](crate::Waker). [`Device::next_deadline`] reports room made since.
    Full,
}

/// Counters of a device.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct DeviceCounters {
    /// Frames delivered, super-frames counted once.
    pub rx_frames: u64,
    /// Segments delivered; a super-frame counts as the segments that it stands for.
    pub rx_segments: u64,
    /// Bytes delivered, from the first header on.
    pub rx_bytes: u64,
    /// Frames skipped because their offload header is inconsistent or could not be built.
    pub rx_malformed: u64,
    /// Frames skipped because they exceed one buffer.
    pub rx_oversized: u64,
    /// Frames that the system dropped because they were not taken in time.
    pub rx_missed: u64,
    /// Segments sent; a super-segment counts once.
    pub tx_frames: u64,
    /// Super-segments sent, which the system segments.
    pub tx_super: u64,
    /// Bytes sent, from the first header on.
    pub tx_bytes: u64,
    /// Segments that the system refused, with the last reason in `tx_last_error`.
    pub tx_dropped: u64,
    /// Bursts cut short because the queue was full.
    pub tx_blocked: u64,
    /// Bursts cut short because the system was short of memory.
    pub tx_congested: u64,
    /// `errno` of the last segment that the system refused: EIO means that the interface is down.
    pub tx_last_error: Option<i32>,
}

impl DeviceCounters {
    /// Passes packets of one segment each to `deliver` in one call, and counts them. Packets beyond
    /// [`MAX_BURST`] are left.
    pub fn deliver_packets(&mut self, packets: &[Bytes], deliver: &mut dyn FnMut(&[RxFrame<'_>])) {
        let count = packets.len().min(MAX_BURST);
        let mut frames = [RxFrame::new(&[], SegMeta::SINGLE); MAX_BURST];
        for (frame, packet) in frames.iter_mut().zip(packets) {
            *frame = RxFrame::new(packet, SegMeta::SINGLE);
            self.rx_bytes += packet.len() as u64;
        }
        self.rx_frames += count as u64;
        self.rx_segments += count as u64;
        deliver(frames.get(..count).unwrap_or_default());
    }

    /// Counts a segment that was sent.
    pub(crate) fn count_sent(&mut self, segment: &TxSegment) {
        let is_super = segment.gso_size > 0 && segment.payload.bytes() > segment.gso_size.into();
        self.tx_frames += 1;
        self.tx_super += u64::from(is_super);
        self.tx_bytes += segment.len() as u64;
    }

    /// Takes the first `count` segments of `batch`, which were sent.
    #[cfg(target_os = "linux")]
    pub(crate) fn consume_sent(&mut self, batch: &mut TxBatch, count: usize) {
        let sent = batch.pending().iter().take(count);
        sent.for_each(|segment| self.count_sent(segment));
        batch.consume(count);
    }

    /// Takes the first `count` segments of `batch`, which the system refused with `errno`.
    #[cfg(target_os = "linux")]
    pub(crate) fn consume_refused(
        &mut self,
        batch: &mut TxBatch,
        count: usize,
        errno: Option<i32>,
    ) {
        batch.consume(count);
        self.tx_dropped += count as u64;
        self.tx_last_error = errno;
    }

    /// Handles a refused segment. If the reason is lack of room, counts it and returns the result of
    /// the burst; otherwise returns `None`.
    #[cfg(target_os = "linux")]
    pub(crate) fn on_busy(&mut self, error: &io::Error) -> Option<TxOutcome> {
        match error.raw_os_error() {
            Some(libc::EAGAIN | libc::EINTR) => {
                self.tx_blocked += 1;
                Some(TxOutcome::Blocked)
            }
            Some(libc::ENOBUFS | libc::ENOMEM) => {
                self.tx_congested += 1;
                Some(TxOutcome::Congested)
            }
            _ => None,
        }
    }
}
