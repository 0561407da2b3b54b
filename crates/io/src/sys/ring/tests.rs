//! A ring over plain memory, filled by threads of the test. Miri runs it, too.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::sync::Arc;
use std::thread;

use super::*;

/// Memory for a ring of a shape, owned by the test.
struct Plain {
    start: NonNull<u8>,
    shape: RingShape,
}

impl Plain {
    fn new(shape: RingShape) -> Arc<Self> {
        // SAFETY: a shape has bytes.
        let start = unsafe { alloc_zeroed(Self::layout(shape)) };
        let start = NonNull::new(start);
        let start = start.unwrap_or_else(|| handle_alloc_error(Self::layout(shape)));
        Arc::new(Self { start, shape })
    }

    fn layout(shape: RingShape) -> Layout {
        Layout::from_size_align(shape.bytes(), 16).unwrap()
    }

    /// Writes a slot's bytes as the kernel does, once the slot is its own: the status last.
    fn fill(&self, number: usize, slot: &[u8], status: u32) {
        let start = number % self.shape.slots * self.shape.slot;
        assert!((4..=self.shape.slot).contains(&slot.len()));
        // SAFETY: the slot lies in the memory, and begins with a word that both sides access as this.
        let word = unsafe { self.start.add(start).cast::<AtomicU32>().as_ref() };
        while word.load(Ordering::Acquire) & libc::TP_STATUS_USER != 0 {
            thread::yield_now();
        }
        // SAFETY: as many bytes lie in the slot, behind its status, and the slot is the kernel's.
        let rest = unsafe {
            slice::from_raw_parts_mut(self.start.add(start + 4).as_ptr(), slot.len() - 4)
        };
        rest.copy_from_slice(&slot[4..]);
        word.store(status, Ordering::Release);
    }
}

// SAFETY: the memory is one allocation of that many bytes, aligned to 16, which is freed with the
// last reference. `fill` accesses slots as a ring demands.
unsafe impl RingMemory for Arc<Plain> {
    fn start(&self) -> NonNull<u8> {
        self.start
    }

    fn shape(&self) -> RingShape {
        self.shape
    }
}

// SAFETY: all threads access the memory by the protocol of a ring.
unsafe impl Send for Plain {}
// SAFETY: as above.
unsafe impl Sync for Plain {}

impl Drop for Plain {
    fn drop(&mut self) {
        // SAFETY: it was allocated with this layout, and this is the last reference.
        unsafe { dealloc(self.start.as_ptr(), Plain::layout(self.shape)) };
    }
}

/// Returns a ring of the least size, in four slots.
fn ring() -> (Arc<Plain>, Ring<Arc<Plain>>) {
    let plain = Plain::new(RingShape::new(16 << 10, 4).unwrap());
    (Arc::clone(&plain), Ring::over(plain))
}

/// Returns a slot with `frame` at `mac`, of which `kept` bytes were stored.
fn slot(mac: u16, len: u32, kept: u32, frame: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; usize::from(mac).max(32) + frame.len()];
    let mut put = |at: usize, number: &[u8]| bytes[at..at + number.len()].copy_from_slice(number);
    put(offset_of!(tpacket2_hdr, tp_len), &len.to_ne_bytes());
    put(offset_of!(tpacket2_hdr, tp_snaplen), &kept.to_ne_bytes());
    put(offset_of!(tpacket2_hdr, tp_mac), &mac.to_ne_bytes());
    put(mac.max(32).into(), frame);
    bytes
}

#[test]
fn slots_are_read_in_order_and_returned_to_the_kernel() {
    let (kernel, mut ring) = ring();
    assert!(ring.waiting(0).is_none());
    for round in 0..3_u8 {
        for number in 0..4 {
            let frame = [round, number];
            kernel.fill(number.into(), &slot(76, 2, 2, &frame), libc::TP_STATUS_USER);
        }
        let frames: Vec<_> = (0..4).map(|ahead| ring.waiting(ahead).unwrap()).collect();
        for (number, slot) in frames.iter().enumerate() {
            assert_eq!((slot.len, slot.head.len()), (2, 76));
            assert_eq!(slot.frame, [round, number as u8]);
        }
        assert!(ring.waiting(4).is_none(), "there are four");
        ring.release(3);
        assert_eq!(ring.waiting(0).unwrap().frame, [round, 3]);
        assert!(ring.waiting(1).is_none());
        // No more than there are.
        ring.release(usize::MAX);
        assert!(ring.waiting(0).is_none());
    }
}

#[test]
fn a_slots_header_that_leads_out_of_it_is_no_frame() {
    let (kernel, mut ring) = ring();
    let room = 16 << 10;
    let user = libc::TP_STATUS_USER;
    let mut number = 0;
    let mut seen = |bytes: &[u8]| {
        kernel.fill(number, bytes, user);
        let seen = ring.waiting(0).map(|slot| (slot.len, slot.head.len(), slot.frame.len()));
        ring.release(1);
        number += 1;
        seen
    };
    assert_eq!(seen(&slot(100, u32::MAX, 8, &[7; 8])), Some((u32::MAX as usize, 100, 8)));
    assert_eq!(seen(&slot(76, 0, 0, &[])), Some((0, 76, 0)));
    assert_eq!(seen(&slot(0, 1, 1, &[7])), Some((1, 0, 1)));
    let most = room as u32 - 76;
    assert_eq!(seen(&slot(76, most, most, &[7])), Some((most as usize, 76, most as usize)));
    for wrong in [(76, most + 1), (room as u16, 1), (room as u16 + 1, 0), (u16::MAX, u32::MAX)] {
        let mut bytes = slot(32, 0, 0, &[]);
        bytes[offset_of!(tpacket2_hdr, tp_mac)..][..2].copy_from_slice(&wrong.0.to_ne_bytes());
        bytes[offset_of!(tpacket2_hdr, tp_snaplen)..][..4].copy_from_slice(&wrong.1.to_ne_bytes());
        assert_eq!(seen(&bytes), None, "{wrong:?}");
    }
}

#[test]
fn who_fills_it_from_another_thread_and_who_empties_it_agree() {
    let (kernel, mut ring) = ring();
    let frames = 40_u32;
    let filler = thread::spawn(move || {
        for number in 0..frames {
            let bytes = slot(76, 4, 4, &number.to_ne_bytes());
            kernel.fill(number as usize, &bytes, libc::TP_STATUS_USER | libc::TP_STATUS_COPY);
        }
    });
    let mut next = 0_u32;
    while next < frames {
        let waiting = (0..4).take_while(|ahead| {
            let Some(slot) = ring.waiting(*ahead) else { return false };
            assert_eq!(slot.frame, (next + *ahead as u32).to_ne_bytes());
            true
        });
        let count = waiting.count();
        next += count as u32;
        ring.release(count);
        thread::yield_now();
    }
    filler.join().unwrap();
}

#[test]
fn only_shapes_that_the_kernel_lays_out_as_we_do_are_shapes() {
    for (slot, slots) in [(2048, 4096), (256, 256), (1 << 20, 1 << 10), (65_536, 1)] {
        let shape = RingShape::new(slot, slots).unwrap();
        assert_eq!((shape.slot(), shape.bytes()), (slot, slot * slots));
    }
    for (slot, slots) in [
        (2048, 4095),
        (3008, 4096),
        (128, 4096),
        (2 << 20, 64),
        (2048, 16),
        (2048, 0),
        (0, 2048),
        (1 << 20, 1 << 11),
        (1 << 32 | 2048, 4096),
        (usize::MAX / 2 + 1, usize::MAX / 2 + 1),
    ] {
        RingShape::new(slot, slots).unwrap_err();
    }
}
