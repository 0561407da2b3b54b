//! What a worker asks of a device, whatever it is: TUN, packet rings, shared memory, a socket.

use std::fmt;
use std::io;

use bytes::Bytes;
use whimbrel_base::Instant;
use whimbrel_base::packet::SegMeta;
use whimbrel_stack::{Capabilities, RxFrame, TxBatch};
use whimbrel_tcp::recv::ChunkPool;

use crate::sys::AsFd;

/// A device with one queue in each direction, driven by one thread and never blocking.
///
/// [`AsFd`] gives the descriptor that becomes readable when frames wait, and writable when a
/// [`TxOutcome::Blocked`] batch can go on. A device whose descriptor errs (`POLLERR`, `POLLHUP`)
/// is asked why by [`Device::on_poll_error`]. Where the system is not Linux nothing waits for descriptors:
/// what has frames wakes the worker by its [`Waker`](crate::Waker).
///
/// # Frames are lent
///
/// What `deliver` is given lives for that call and no longer: a ring's slot, a UMEM chunk or a
/// buffer is reused afterwards. Who keeps some of it copies it, unless the frame is
/// [in a chunk](RxFrame::chunk) of the shard's.
pub trait Device: AsFd + fmt::Debug {
    /// What it is called, as in `--wire`: `tun:whim0`. Errors name it.
    fn name(&self) -> String;

    /// Its name, and what people are told of it: `tun:whim0 (offloads: csum tso4; mtu 1500)`.
    fn about(&self) -> String {
        self.name()
    }

    /// What it can do. Constant for the life of the device.
    fn capabilities(&self) -> Capabilities;

    /// Takes chunks of the shard's pool to read the next burst into, if it has use for some. Called before
    /// [`Device::rx_burst`], by whoever drives a shard with it.
    fn take_room(&mut self, _chunks: &mut ChunkPool) {}

    /// Takes one burst of the frames that wait and lends them to `deliver`, in the order of their
    /// arrival: in one call or several (a ring delivers block by block), each of at least one and
    /// at most [`MAX_BURST`] frames.
    ///
    /// Returns how many frames were taken from the system, those counted as malformed included:
    /// 0 means that none waits. A device bounds a burst also by octets, so that what it lends
    /// stays in the cache. An error says that the device is lost; frames read before it are
    /// delivered first.
    fn rx_burst(&mut self, deliver: &mut dyn FnMut(&[RxFrame<'_>])) -> io::Result<usize>;

    /// Sends pending segments, oldest first, and [consumes](TxBatch::consume) those that are done
    /// with. A segment that the system refuses for itself is dropped and counted, so that nothing
    /// behind it hangs. An error says that the device is lost.
    fn tx_burst(&mut self, batch: &mut TxBatch) -> io::Result<TxOutcome>;

    /// What happened so far.
    fn counters(&self) -> &DeviceCounters;

    /// When frames will be due, or a [`TxOutcome::Full`] queue has room, though the descriptor will not
    /// say so: an impaired link inside this process that holds frames back. On the clock the device was
    /// built with, the worker's. Asked after the worker announced its sleep.
    fn next_deadline(&self) -> Option<Instant> {
        None
    }

    /// The descriptor reported an error. `Ok` if the device goes on (a packet socket whose
    /// interface went down for a while), having cleared the condition.
    fn on_poll_error(&mut self) -> io::Result<()> {
        Err(interface_is_gone())
    }
}

/// What there is to say of a device whose interface was removed.
pub(crate) fn interface_is_gone() -> io::Error {
    io::Error::new(io::ErrorKind::NotConnected, "the interface is gone")
}

/// A device of whatever kind.
pub type AnyDevice = Box<dyn Device + Send>;

/// Devices of one kind as devices of any.
pub fn boxed<D: Device + Send + 'static>(devices: impl IntoIterator<Item = D>) -> Vec<AnyDevice> {
    devices.into_iter().map(|device| Box::new(device) as AnyDevice).collect()
}

/// The most frames in one call of `deliver`.
pub const MAX_BURST: usize = 64;

/// How far a burst got.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TxOutcome {
    /// No segment of the batch is left.
    Drained,
    /// The queue is full; the descriptor becomes writable when it can go on.
    Blocked,
    /// The system is short of memory; no descriptor tells when that is over.
    Congested,
    /// The queue is full, and whoever makes room wakes the worker by its [`Waker`](crate::Waker): a
    /// queue inside the process. [`Device::next_deadline`] says whether there is room since.
    Full,
}

/// What happened at a device.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct DeviceCounters {
    /// Frames delivered, super-frames counted once.
    pub rx_frames: u64,
    /// Segments delivered: what the super-frames stand for.
    pub rx_segments: u64,
    /// Octets delivered, from the first header on.
    pub rx_octets: u64,
    /// Frames skipped because their offload header contradicts them, or could not be made.
    pub rx_malformed: u64,
    /// Frames skipped because they exceed what one buffer holds.
    pub rx_oversized: u64,
    /// Frames that the system dropped before they could be taken: nobody did in time.
    pub rx_missed: u64,
    /// Segments sent, super-segments counted once.
    pub tx_frames: u64,
    /// Segments sent that the system is to cut.
    pub tx_super: u64,
    /// Octets sent, from the first header on.
    pub tx_octets: u64,
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
    /// Hands packets of one segment each to `deliver` in one call, and counts them: [`MAX_BURST`] at most,
    /// those beyond are left.
    pub fn deliver_packets(&mut self, packets: &[Bytes], deliver: &mut dyn FnMut(&[RxFrame<'_>])) {
        let count = packets.len().min(MAX_BURST);
        let mut frames = [RxFrame::new(&[], SegMeta::SINGLE); MAX_BURST];
        for (frame, packet) in frames.iter_mut().zip(packets) {
            *frame = RxFrame::new(packet, SegMeta::SINGLE);
            self.rx_octets += packet.len() as u64;
        }
        self.rx_frames += count as u64;
        self.rx_segments += count as u64;
        deliver(frames.get(..count).unwrap_or_default());
    }

    /// The system refused a segment: counts that it has no room now, if that is why, and says what the
    /// burst came to; `None` if the reason is another.
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
