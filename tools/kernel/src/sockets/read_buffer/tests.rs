//! Tests of `read_buffer`.

#![allow(clippy::unwrap_used, reason = "a test that fails says so by panicking")]

use super::*;

#[test]
fn data_stays_whole_however_long_it_is_held() {
    let text: Vec<u8> = (0..700_001_u32).map(|place| (place % 251) as u8).collect();
    for most in [1_000, ReadBuffer::LEN / 2, ReadBuffer::LEN] {
        let (mut buffer, mut rest) = (ReadBuffer::new(), text.as_slice());
        let mut all = Vec::new();
        loop {
            let bytes = buffer.read((&mut rest).take(most as u64)).unwrap();
            if bytes.is_empty() {
                break;
            }
            all.push(bytes);
        }
        assert_eq!(all.concat(), text, "reads of {most}");
    }
}

#[test]
fn long_read_shares_buffer_until_it_is_held() {
    let (mut buffer, mut text) = (ReadBuffer::new(), io::repeat(7));
    let first = buffer.read(&mut text).unwrap();
    let place = first.as_ptr();
    drop(first);
    let second = buffer.read(&mut text).unwrap();
    assert_eq!(second.as_ptr(), place, "no other memory");
    let others: Vec<_> = (0..40).map(|text| buffer.read(io::repeat(text)).unwrap()).collect();
    assert_eq!(buffer.shared.len(), ReadBuffer::MOST, "beyond, it is copied");
    assert!(second.iter().all(|byte| *byte == 7));
    for (text, other) in (0..40).zip(&others) {
        assert_ne!(other.as_ptr(), place);
        assert!(other.iter().all(|byte| *byte == text), "{text}");
    }
    drop(second);
    assert_eq!(buffer.read(&mut text).unwrap().as_ptr(), place, "it is free again");
    // A short read does not hold it.
    let short = buffer.read(text.take(100)).unwrap();
    assert_ne!(short.as_ptr(), place);
}

#[test]
fn failed_read_keeps_buffer() {
    struct Fails;
    impl Read for Fails {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::ErrorKind::WouldBlock.into())
        }
    }
    let mut buffer = ReadBuffer::new();
    buffer.read(Fails).unwrap_err();
    assert_eq!(buffer.read(io::repeat(1)).unwrap().len(), ReadBuffer::LEN);
}
