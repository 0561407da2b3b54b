//! The stream comes out as it went in, however it was cut.

use std::vec::Vec;

use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;

use super::SendBuffer;
use whimbrel_base::packet::{MAX_SLICES, Slices};

fn slice(buffer: &mut SendBuffer, offset: u32, len: u32) -> Slices {
    let mut slices = Slices::new();
    let taken = buffer.slice(offset, len, &mut slices);
    assert_eq!(taken, slices.bytes());
    slices
}

#[test]
fn large_writes_are_kept_by_reference() {
    let mut buffer = SendBuffer::default();
    let written = Bytes::from(std::vec![7; 4_000]);
    buffer.push(written.clone());
    let slices = slice(&mut buffer, 1_000, 1_460);
    assert_eq!(slices.as_slice()[0].as_ptr(), written[1_000..].as_ptr());
    assert_eq!(slices.bytes(), 1_460);
}

#[test]
fn small_writes_are_gathered() {
    let mut buffer = SendBuffer::default();
    for byte in 0..2_000u32 {
        buffer.push(Bytes::copy_from_slice(&[byte as u8]));
    }
    let slices = slice(&mut buffer, 0, 1_460);
    assert_eq!(slices.bytes(), 1_460);
    assert!(slices.as_slice().len() <= 2, "{} slices", slices.as_slice().len());
}

#[test]
fn single_byte_writes_do_not_stay_a_piece_each() {
    let mut buffer = SendBuffer::default();
    for count in 0..100_000_u32 {
        buffer.push(Bytes::copy_from_slice(&[count as u8]));
        assert_eq!(slice(&mut buffer, count, 1).as_slice(), [Bytes::from(std::vec![count as u8])]);
        let most = 16 + buffer.len() as usize / 256;
        assert!(buffer.pieces.len() <= most, "{} pieces of {count}", buffer.pieces.len());
    }
    let mut slices = Slices::new();
    let taken = buffer.slice(50_000, 9_000, &mut slices);
    let bytes: Vec<u8> = slices.as_slice().iter().flatten().copied().collect();
    let written: Vec<u8> = (50_000..50_000 + taken).map(|count| count as u8).collect();
    assert_eq!(bytes, written);
}

#[test]
fn a_slice_ends_where_its_places_do() {
    let mut buffer = SendBuffer::default();
    for _ in 0..30 {
        buffer.push(Bytes::from(std::vec![1; 600]));
    }
    assert_eq!(slice(&mut buffer, 100, 65_000).bytes(), 500 + 17 * 600);
}

#[test]
fn what_is_acknowledged_is_let_go() {
    let mut buffer = SendBuffer::default();
    let written = Bytes::from(std::vec![7; 4_000]);
    buffer.push(written.clone());
    buffer.push(Bytes::from_static(&[8; 600]));
    buffer.acknowledge(3_999);
    assert!(!written.is_unique(), "one byte of it is still needed");
    buffer.acknowledge(1);
    assert!(written.is_unique());
    buffer.acknowledge(600);
    assert!(buffer.is_empty());
}

#[test]
fn clearing_lets_go_of_everything() {
    let mut buffer = SendBuffer::default();
    let written = Bytes::from(std::vec![7; 4_000]);
    buffer.push(written.clone());
    buffer.push(Bytes::from_static(b"small"));
    buffer.push(Bytes::from_static(b"and small"));
    buffer.clear();
    assert!(buffer.is_empty() && written.is_unique());
    buffer.push(Bytes::from_static(b"a new stream"));
    assert_eq!(slice(&mut buffer, 0, 100).as_slice().concat(), b"a new stream");
}

#[derive(Clone, Debug)]
enum Step {
    Push(usize),
    /// So many thousandths of what is held.
    Acknowledge(u64),
    /// From so many thousandths of what is held, so many bytes.
    Slice(u64, u32),
}

fn step() -> impl Strategy<Value = Step> {
    let len = prop_oneof![4 => 0usize..=20, 2 => 500usize..=520, 2 => 0usize..=5_000];
    prop_oneof![
        4 => len.prop_map(Step::Push),
        2 => (0u64..=1_000).prop_map(Step::Acknowledge),
        3 => (0u64..=1_000, prop_oneof![0u32..=70_000, 1u32..=10])
            .prop_map(|(from, len)| Step::Slice(from, len)),
    ]
}

proptest! {
    #[test]
    fn it_equals_a_vector_from_which_the_front_is_dropped(steps in vec(step(), 0..200)) {
        let (mut buffer, mut model) = (SendBuffer::default(), Vec::new());
        let mut sent = 0;
        let mut written = 0u32;
        for step in steps {
            match step {
                Step::Push(len) => {
                    let bytes: Vec<u8> =
                        (written..).take(len).map(|at| (at ^ (at >> 8)) as u8).collect();
                    written += len as u32;
                    model.extend_from_slice(&bytes);
                    buffer.push(bytes.into());
                }
                Step::Acknowledge(part) => {
                    // Only what was sent is acknowledged.
                    let len = (sent as u64 * part / 1_000) as usize;
                    model.drain(..len);
                    sent -= len;
                    buffer.acknowledge(len as u32);
                }
                Step::Slice(part, len) => {
                    let from = (model.len() as u64 * part / 1_000) as usize;
                    let slices = slice(&mut buffer, from as u32, len);
                    let wanted = (model.len() - from).min(len as usize);
                    let got = slices.as_slice().concat();
                    prop_assert!(slices.as_slice().iter().all(|slice| !slice.is_empty()));
                    prop_assert!(got.len() == wanted || slices.as_slice().len() == MAX_SLICES);
                    prop_assert_eq!(&got[..], &model[from..from + got.len()]);
                    sent = sent.max(from + got.len());
                }
            }
            prop_assert_eq!(buffer.len() as usize, model.len());
            prop_assert_eq!(buffer.is_empty(), model.is_empty());
        }
    }
}
