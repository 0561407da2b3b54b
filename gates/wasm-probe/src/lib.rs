//! The pure crates in one WebAssembly module, which must have no import section.
//!
//! A module without imports cannot read a clock, open a file or ask for entropy: nobody is there
//! to ask. The linker keeps only what an export reaches, so each pure crate has one exported
//! function here that drives its widest entry point. The inputs are arguments and the result
//! depends on them: neither may be folded away.
//!
//! What this does not prove: `std`'s own clock panics on this target instead of importing one.
//! Clippy's `disallowed_methods` covers that side.

use bytes::Bytes;
use whimbrel_link::{Link, LinkConfig};
use whimbrel_tcp::Instant;
use whimbrel_wire::SeqNum;

// Empty so far. Each gets an exported function as soon as it has an entry point.
pub use whimbrel_stack as stack;
pub use whimbrel_tcp as tcp;

/// Links `wire`.
#[unsafe(no_mangle)]
pub extern "C" fn probe_wire(left: u32, right: u32) -> u32 {
    SeqNum::new(left).later(SeqNum::new(right)).raw()
}

/// Links `link`: its parser of what is typed, its chance and its time.
#[unsafe(no_mangle)]
pub extern "C" fn probe_link(seed: u64, nanos: u64) -> u64 {
    let Ok(config) = "rate=45M,delay=35ms,jitter=1ms,loss=1%".parse::<LinkConfig>() else {
        return 0;
    };
    let mut link = Link::new(config, seed);
    link.push_frame(Instant::from_nanos(nanos), Bytes::from_static(&[0; 64]));
    link.next_arrival().map_or(0, Instant::as_nanos)
}
