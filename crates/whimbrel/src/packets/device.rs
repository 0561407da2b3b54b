//! The stack's end of a packet wire: one device for each shard.

use std::io;
#[cfg(target_os = "linux")]
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use bytes::Bytes;
use whimbrel_base::Instant;
use whimbrel_base::packet::TxSegment;
use whimbrel_io::device::{AnyDevice, MAX_BURST, boxed};
use whimbrel_io::{Device, DeviceCounters, TxOutcome, Waker};
use whimbrel_link::cut;
use whimbrel_stack::{Capabilities, Medium, RxFrame, TxBatch};

use super::PacketQueues;

/// The stack's end before the stack is built.
#[derive(Debug)]
pub(crate) struct PacketEnd(Arc<EndOnDrop>);

/// The queues; dropping the last reference ends the wire.
#[derive(Debug)]
struct EndOnDrop(Arc<PacketQueues>);

/// Device of one shard.
#[derive(Debug)]
struct PacketDevice {
    end: Arc<EndOnDrop>,
    which: u16,
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "no descriptor is asked for"))]
    waker: Waker,
    /// Packets for the queue, segmented before it is locked.
    cut: Vec<Bytes>,
    /// True if the queue had no room for the last burst.
    is_blocked: bool,
    counters: DeviceCounters,
}

impl PacketEnd {
    pub(super) fn new(queues: Arc<PacketQueues>) -> Self {
        Self(Arc::new(EndOnDrop(queues)))
    }

    /// Returns the queues.
    pub(crate) fn queues(&self) -> Arc<PacketQueues> {
        Arc::clone(&self.0.0)
    }

    /// Creates a device for each shard, and the wakers of the workers.
    pub(crate) fn open(self, shards: u16) -> io::Result<(Vec<AnyDevice>, Vec<Waker>)> {
        let wakers = (0..shards.max(1)).map(|_| Waker::new()).collect::<io::Result<Vec<_>>>()?;
        self.0.0.open(wakers.clone().into());
        let device = |(which, waker): (u16, &Waker)| PacketDevice {
            end: Arc::clone(&self.0),
            which,
            waker: waker.clone(),
            cut: Vec::new(),
            is_blocked: false,
            counters: DeviceCounters::default(),
        };
        Ok((boxed((0..).zip(&wakers).map(device)), wakers))
    }
}

impl PacketDevice {
    fn queues(&self) -> &PacketQueues {
        &self.end.0
    }

    fn count_sent(&mut self, segment: &TxSegment) {
        self.counters.tx_frames += 1;
        self.counters.tx_super += u64::from(packets_of(segment) > 1);
        self.counters.tx_bytes += segment.len() as u64;
    }
}

impl Device for PacketDevice {
    fn name(&self) -> String {
        "packets".into()
    }

    fn capabilities(&self) -> Capabilities {
        // Segmented here, where data is copied anyway: a packet is one piece.
        Capabilities::plain(Medium::Ip, self.queues().mtu()).with_segmentation(u16::MAX.into())
    }

    fn rx_burst(&mut self, deliver: &mut dyn FnMut(&[RxFrame<'_>])) -> io::Result<usize> {
        let mut packets = [const { Bytes::new() }; MAX_BURST];
        let Some(taken) = self.queues().take(self.which, &mut packets) else {
            let text = "its PacketPort was dropped";
            return Err(io::Error::new(io::ErrorKind::ConnectionAborted, text));
        };
        if taken == 0 {
            return Ok(0);
        }
        self.counters.deliver_packets(packets.get(..taken).unwrap_or_default(), deliver);
        Ok(taken)
    }

    fn tx_burst(&mut self, batch: &mut TxBatch) -> io::Result<TxOutcome> {
        let pending = batch.pending();
        let (fitting, reserved) = self.queues().reserve(pending.iter().map(packets_of));
        for segment in pending.iter().take(fitting) {
            self.count_sent(segment);
            cut(segment, |packet| self.cut.push(packet));
        }
        self.is_blocked = fitting < pending.len();
        batch.consume(fitting);
        if fitting > 0 {
            let mut cut = std::mem::take(&mut self.cut);
            self.queues().put(reserved, cut.drain(..));
            self.cut = cut;
        }
        if self.is_blocked {
            self.counters.tx_blocked += 1;
            return Ok(TxOutcome::Full);
        }
        Ok(TxOutcome::Drained)
    }

    fn counters(&self) -> &DeviceCounters {
        &self.counters
    }

    fn next_deadline(&self) -> Option<Instant> {
        let goes_on = self.is_blocked && !self.queues().is_blocked();
        (goes_on || self.queues().has_news(self.which)).then_some(Instant::ZERO)
    }
}

#[cfg(target_os = "linux")]
impl AsFd for PacketDevice {
    /// Readable when a worker with a thread of its own is to be woken.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.waker.as_fd()
    }
}

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.fail("a worker of it stopped");
        }
        self.0.end();
    }
}

/// Returns the number of packets of a segment.
fn packets_of(segment: &TxSegment) -> usize {
    let text = segment.payload.bytes();
    match segment.gso_size {
        0 => 1,
        size => text.div_ceil(size.into()).max(1) as usize,
    }
}
