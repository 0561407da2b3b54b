//! A host under siege: any bytes are a script of actions by peers, applications and time.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|script: &[u8]| {
    if let Err(fault) = whimbrel_sim::siege::play(script) {
        panic!("{fault}");
    }
});
