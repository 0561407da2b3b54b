//! An allocator that counts what each thread holds.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
}

/// The bytes that this thread allocated, less those that it freed.
pub(crate) fn held() -> isize {
    HELD.get()
}

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: each call is the system allocator's, with the arguments as they came; the counter is a plain
// cell without a destructor, which neither allocates nor unwinds.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.set(HELD.get() + layout.size().cast_signed());
        // SAFETY: the caller keeps to the contract of `alloc`, which is the same there.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        HELD.set(HELD.get() - layout.size().cast_signed());
        // SAFETY: `memory` came from `alloc` above, and so from there, with this layout.
        unsafe { System.dealloc(memory, layout) }
    }
}
