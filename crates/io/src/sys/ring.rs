//! A ring of frames in memory that is shared with whoever fills it (TPACKET_V2; Linux
//! `Documentation/networking/packet_mmap.rst`).
//!
//! It does not know whose memory that is: the kernel's, or a test's.

use std::io;
use std::mem::offset_of;
use std::ptr::NonNull;
use std::slice;
use std::sync::atomic::{AtomicU32, Ordering};

use libc::tpacket2_hdr;

/// How many slots a ring has, and of how many bytes each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RingShape {
    slot: usize,
    slots: usize,
}

impl RingShape {
    /// Both are powers of two, so that no slot crosses the bounds of what the kernel has in one piece;
    /// a slot has 256 bytes to 1 MiB, a ring 64 KiB to 1 GiB.
    pub(crate) fn new(slot: usize, slots: usize) -> io::Result<Self> {
        let fits = slot.is_power_of_two() && SLOT.contains(&slot) && slots.is_power_of_two();
        let octets = slot.checked_mul(slots).filter(|octets| fits && RING.contains(octets));
        octets.map(|_| Self { slot, slots }).ok_or_else(|| io::ErrorKind::InvalidInput.into())
    }

    /// Bytes of a slot.
    pub(crate) const fn slot(self) -> usize {
        self.slot
    }

    /// Bytes of all slots together.
    pub(crate) const fn octets(self) -> usize {
        self.slot * self.slots
    }
}

/// Memory that somebody puts frames into.
///
/// # Safety
/// As many bytes as `shape` has begin at `start`, which is aligned to 16, and are there, nowhere else,
/// until the value is dropped, wherever it was moved. A slot begins with its status, a word that both
/// sides access as an atomic. While that says `TP_STATUS_USER` nobody writes to the slot; otherwise
/// nobody but who fills it accesses the rest of it. It is set when all of the slot has been written.
pub(crate) unsafe trait RingMemory {
    /// Where its first byte is.
    fn start(&self) -> NonNull<u8>;

    /// How many slots it has, and of what size.
    fn shape(&self) -> RingShape;
}

/// The slots that the kernel puts frames into, one after the other and round again.
///
/// A slot belongs to the kernel until its status says that it is the user's, and to the user until
/// it is given back by [`Ring::release`].
#[derive(Debug)]
pub(crate) struct Ring<M> {
    memory: M,
    /// The next slot that the kernel fills, or has filled.
    next: usize,
}

/// A frame in its slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RingSlot<'a> {
    /// Whose the slot is, and what its frame lacks: bits `TP_STATUS_*`.
    pub(crate) status: u32,
    /// The frame's bytes, of which those that did not fit are missing.
    pub(crate) len: usize,
    /// What stands in front of the frame: the offload header, if there is one, ends it.
    pub(crate) head: &'a [u8],
    /// The frame, as far as it fitted.
    pub(crate) frame: &'a [u8],
}

impl<M: RingMemory> Ring<M> {
    /// A ring whose first slot is filled first.
    pub(crate) fn over(memory: M) -> Self {
        Self { memory, next: 0 }
    }

    /// The frame in the slot `ahead` slots behind the next, if the kernel has filled it.
    pub(crate) fn waiting(&self, ahead: usize) -> Option<RingSlot<'_>> {
        let shape = self.memory.shape();
        if ahead >= shape.slots {
            return None;
        }
        let status = self.status(ahead).load(Ordering::Acquire);
        if status & libc::TP_STATUS_USER == 0 {
            return None;
        }
        // SAFETY: the slot lies in the memory, and is the user's: nobody writes there before
        // `release`, which takes the ring exclusively and so ends this borrow.
        let octets = unsafe { slice::from_raw_parts(self.place(ahead).as_ptr(), shape.slot) };
        let (len, head, frame) = frame_in(octets)?;
        Some(RingSlot { status, len, head, frame })
    }

    /// Gives the next `count` slots back to the kernel, as far as they are the user's.
    pub(crate) fn release(&mut self, count: usize) {
        for _ in 0..count {
            let status = self.status(0);
            if status.load(Ordering::Relaxed) & libc::TP_STATUS_USER == 0 {
                return;
            }
            status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
            self.next = (self.next + 1) % self.memory.shape().slots;
        }
    }

    fn status(&self, ahead: usize) -> &AtomicU32 {
        // SAFETY: each slot begins with its status, aligned to 16 bytes, and both sides access it
        // as one word.
        unsafe { self.place(ahead).cast().as_ref() }
    }

    fn place(&self, ahead: usize) -> NonNull<u8> {
        let shape = self.memory.shape();
        // SAFETY: the product is less than the bytes of the memory.
        unsafe { self.memory.start().add((self.next + ahead) % shape.slots * shape.slot) }
    }
}

/// How long the frame was that is in a slot, what stands in front of it, and what was kept of it;
/// `None` if the slot's header leads out of the slot.
fn frame_in(slot: &[u8]) -> Option<(usize, &[u8], &[u8])> {
    let number = |at| Some(u32::from_ne_bytes(*slot.get(at..)?.first_chunk()?) as usize);
    let len = number(offset_of!(tpacket2_hdr, tp_len))?;
    let kept = number(offset_of!(tpacket2_hdr, tp_snaplen))?;
    let mac = slot.get(offset_of!(tpacket2_hdr, tp_mac)..)?.first_chunk()?;
    let (head, rest) = slot.split_at_checked(u16::from_ne_bytes(*mac).into())?;
    Some((len, head, rest.get(..kept)?))
}

const SLOT: std::ops::RangeInclusive<usize> = 256..=1 << 20;
const RING: std::ops::RangeInclusive<usize> = 64 << 10..=1 << 30;

#[cfg(test)]
mod tests;
