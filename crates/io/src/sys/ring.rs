//! A ring of frames in memory that is shared with its writer (TPACKET_V2; Linux
//! `Documentation/networking/packet_mmap.rst`).
//!
//! The writer is the kernel, or a test.

use std::io;
use std::mem::offset_of;
use std::ptr::NonNull;
use std::slice;
use std::sync::atomic::{AtomicU32, Ordering};

use libc::tpacket2_hdr;

/// Number of a ring's slots and their size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RingShape {
    slot: usize,
    slots: usize,
}

impl RingShape {
    /// Creates a shape. Both numbers are powers of two, so that no slot crosses the boundary of a
    /// kernel block; a slot has 256 bytes to 1 MiB, a ring 64 KiB to 1 GiB.
    pub(crate) fn new(slot: usize, slots: usize) -> io::Result<Self> {
        let fits = slot.is_power_of_two() && SLOT.contains(&slot) && slots.is_power_of_two();
        let bytes = slot.checked_mul(slots).filter(|bytes| fits && RING.contains(bytes));
        bytes.map(|_| Self { slot, slots }).ok_or_else(|| io::ErrorKind::InvalidInput.into())
    }

    /// Returns the size of a slot in bytes.
    pub(crate) const fn slot(self) -> usize {
        self.slot
    }

    /// Returns the size of all slots in bytes.
    pub(crate) const fn bytes(self) -> usize {
        self.slot * self.slots
    }
}

/// Memory that a writer fills with frames.
///
/// # Safety
///
/// At `start`, aligned to 16, begins a region of as many bytes as `shape` has. It is valid and does
/// not move until the value is dropped, even if the value is moved. A slot begins with its status,
/// a word that both sides access as an atomic. While the status says `TP_STATUS_USER`, the writer
/// does not write to the slot; otherwise only the writer accesses the rest of it. The writer sets
/// the status after it has written the whole slot.
pub(crate) unsafe trait RingMemory {
    /// Returns the address of the first byte.
    fn start(&self) -> NonNull<u8>;

    /// Returns the number and size of its slots.
    fn shape(&self) -> RingShape;
}

/// The slots, which the kernel fills one after the other, in a circle.
///
/// A slot belongs to the kernel until its status says that it is the user's.
/// It belongs to the user until [`Ring::release`].
#[derive(Debug)]
pub(crate) struct Ring<M> {
    memory: M,
    /// Index of the next slot that the kernel fills, or has filled.
    next: usize,
}

/// A frame in its slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RingSlot<'a> {
    /// Owner of the slot, and what its frame lacks: bits `TP_STATUS_*`.
    pub(crate) status: u32,
    /// Length of the frame in bytes, also if only a part fitted.
    pub(crate) len: usize,
    /// Bytes in front of the frame, which end with the offload header, if there is one.
    pub(crate) head: &'a [u8],
    /// The part of the frame that fitted.
    pub(crate) frame: &'a [u8],
}

impl<M: RingMemory> Ring<M> {
    /// Creates a ring whose first slot is filled first.
    pub(crate) fn over(memory: M) -> Self {
        Self { memory, next: 0 }
    }

    /// Returns the frame `ahead` slots after the next one, if the kernel has filled that slot.
    pub(crate) fn waiting(&self, ahead: usize) -> Option<RingSlot<'_>> {
        let shape = self.memory.shape();
        if ahead >= shape.slots {
            return None;
        }
        let status = self.status(ahead).load(Ordering::Acquire);
        if status & libc::TP_STATUS_USER == 0 {
            return None;
        }
        // SAFETY: the slot lies in the memory, and is the user's: it is not written before
        // `release`, which takes the ring exclusively and so ends this borrow.
        let bytes = unsafe { slice::from_raw_parts(self.place(ahead).as_ptr(), shape.slot) };
        let (len, head, frame) = frame_in(bytes)?;
        Some(RingSlot { status, len, head, frame })
    }

    /// Returns the next `count` slots to the kernel, as far as they are the user's.
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

/// Returns the frame's length, the bytes in front of it, and the part that was stored; `None` if
/// the slot's header points outside of the slot.
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
