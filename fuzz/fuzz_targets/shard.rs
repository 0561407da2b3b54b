//! A host under siege: any octets are a script of what peers, applications and time do to it.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|script: &[u8]| {
    if let Err(fault) = whimbrel_sim::siege::play(script) {
        panic!("{fault}");
    }
});
