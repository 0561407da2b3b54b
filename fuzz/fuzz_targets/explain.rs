//! Captures of any bytes: the reader takes what it can, and each packet is explained.
#![no_main]

use libfuzzer_sys::fuzz_target;
use whimbrel_explain::Explainer;
use whimbrel_explain::link::pcapng::LinkType;
use whimbrel_explain::link::reader::{Packet, Reader};

fuzz_target!(|input: &[u8]| {
    let Some((mode, rest)) = input.split_first() else { return };
    let mut explainer = Explainer::new();
    if mode % 2 == 0 {
        file(&mut explainer, rest);
    } else {
        packets(&mut explainer, rest);
    }
    explainer.finish();
});

/// The bytes are a file.
fn file(explainer: &mut Explainer, mut rest: &[u8]) {
    let mut reader = Reader::of_any_link();
    while let Ok(block) = reader.block(rest) {
        if let Some(packet) = block.packet {
            explainer.take(&packet);
        }
        rest = &rest[block.len..];
    }
}

/// The bytes are packets of raw IP, each behind its length and the time since the one before it, in
/// milliseconds.
fn packets(explainer: &mut Explainer, mut rest: &[u8]) {
    let mut at = 0u64;
    while let Some(([len, high, low], behind)) = rest.split_first_chunk::<3>() {
        let (bytes, after) = behind.split_at(usize::from(*len).min(behind.len()));
        at = at.saturating_add(u64::from(u16::from_be_bytes([*high, *low])) * 1_000_000);
        let wire_len = bytes.len() as u32;
        explainer.take(&Packet { at, direction: None, link_type: LinkType::Raw, wire_len, bytes });
        rest = after;
    }
}
