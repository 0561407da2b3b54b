//! One end of a wire between two smoltcp interfaces: frames are written once, by the sender, and
//! read where they are.

use smoltcp::phy::{self, DeviceCapabilities, Medium};
use smoltcp::time::Instant;

/// One end; see [`Device::carry`].
#[derive(Default)]
pub(super) struct Device {
    pub(super) received: Queue,
    pub(super) sent: Queue,
}

/// Frames in buffers that are used again and again.
#[derive(Default)]
pub(super) struct Queue {
    buffers: Vec<Vec<u8>>,
    filled: usize,
    taken: usize,
}

impl Queue {
    /// Forgets all frames.
    pub(super) fn clear(&mut self) {
        self.filled = 0;
        self.taken = 0;
    }

    /// The frames that are in it.
    pub(super) fn frames(&self) -> impl Iterator<Item = &[u8]> {
        self.buffers.iter().take(self.filled).map(Vec::as_slice)
    }

    /// An empty buffer of this length at the end.
    fn add(&mut self, len: usize) -> &mut [u8] {
        if self.filled == self.buffers.len() {
            self.buffers.push(Vec::with_capacity(usize::from(MTU)));
        }
        let buffer = &mut self.buffers[self.filled];
        buffer.resize(len, 0);
        self.filled += 1;
        buffer
    }
}

impl Device {
    /// Delivers the sent frames to `other`, which has read all earlier ones.
    pub(super) fn carry(&mut self, other: &mut Self) -> usize {
        std::mem::swap(&mut self.sent, &mut other.received);
        self.sent.clear();
        other.received.filled
    }

    /// A frame arrives from elsewhere.
    pub(super) fn inject(&mut self, frame: &[u8]) {
        if self.received.taken == self.received.filled {
            self.received.clear();
        }
        self.received.add(frame.len()).copy_from_slice(frame);
    }
}

impl phy::Device for Device {
    type RxToken<'a> = Received<'a>;
    type TxToken<'a> = Sent<'a>;

    fn receive(&mut self, _: Instant) -> Option<(Received<'_>, Sent<'_>)> {
        let Queue { buffers, filled, taken } = &mut self.received;
        let frame = buffers.get(*taken).filter(|_| *taken < *filled)?;
        *taken += 1;
        Some((Received(frame), Sent(&mut self.sent)))
    }

    fn transmit(&mut self, _: Instant) -> Option<Sent<'_>> {
        Some(Sent(&mut self.sent))
    }

    /// No offload: every checksum is computed and verified.
    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = usize::from(MTU);
        capabilities
    }
}

/// A frame to be read.
pub(super) struct Received<'a>(&'a [u8]);

impl phy::RxToken for Received<'_> {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, read: F) -> R {
        read(self.0)
    }
}

/// A frame to be written.
pub(super) struct Sent<'a>(&'a mut Queue);

impl phy::TxToken for Sent<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, write: F) -> R {
        write(self.0.add(len))
    }
}

const MTU: u16 = 1_500;
