//! TCP options of a script to bytes and back, one by one and in order.
//!
//! [`whimbrel_wire::TcpOptions`] holds the values that a receiver uses; here the order, the padding
//! and the mistakes count.

use alloc::vec::Vec;

use super::super::ast::TcpOption;

/// The options' bytes, in the written order. A list whose length is no multiple of 4 is padded with
/// end-of-list bytes, so that a script may omit the padding; nothing else is corrected.
pub fn encode(options: &[TcpOption]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for option in options {
        encode_one(option, &mut bytes);
    }
    bytes.resize(bytes.len().next_multiple_of(4), END_OF_LIST);
    bytes
}

fn encode_one(option: &TcpOption, bytes: &mut Vec<u8>) {
    match option {
        TcpOption::Eol => bytes.push(END_OF_LIST),
        TcpOption::Nop => bytes.push(NOP),
        TcpOption::Mss(mss) => put(bytes, MSS, &mss.to_be_bytes()),
        TcpOption::WindowScale(shift) => put(bytes, WINDOW_SCALE, &[*shift]),
        TcpOption::SackPermitted => put(bytes, SACK_PERMITTED, &[]),
        TcpOption::Sack(blocks) => {
            let edges = blocks.iter().flat_map(|(left, right)| [left, right]);
            let body: Vec<u8> = edges.flat_map(|edge| edge.to_be_bytes()).collect();
            put(bytes, SACK, &body);
        }
        TcpOption::Timestamps { val, ecr } => {
            let body: Vec<u8> = [val, ecr].into_iter().flat_map(|it| it.to_be_bytes()).collect();
            put(bytes, TIMESTAMPS, &body);
        }
        TcpOption::SomeTimestamps { val, ecr } => {
            let (val, ecr) = (val.unwrap_or(0), ecr.unwrap_or(0));
            encode_one(&TcpOption::Timestamps { val, ecr }, bytes);
        }
        TcpOption::FastOpen(cookie) => put(bytes, FAST_OPEN, cookie),
        TcpOption::FastOpenExperimental(cookie) => {
            put(bytes, EXPERIMENT, &[&FAST_OPEN_MAGIC, cookie.as_slice()].concat());
        }
        TcpOption::Md5 => put(bytes, MD5, &[0; 16]),
        TcpOption::Raw(raw) => bytes.extend(raw),
        TcpOption::Other { kind, data } => put(bytes, *kind, data),
    }
}

fn put(bytes: &mut Vec<u8>, kind: u8, body: &[u8]) {
    bytes.extend([kind, (body.len() + 2) as u8]);
    bytes.extend(body);
}

/// The options in `bytes`. A length beyond the end gives one option of its kind with the rest.
pub fn decode(mut bytes: &[u8]) -> Vec<TcpOption> {
    let mut options = Vec::new();
    while let [kind, rest @ ..] = bytes {
        bytes = match *kind {
            END_OF_LIST => {
                options.push(TcpOption::Eol);
                rest
            }
            NOP => {
                options.push(TcpOption::Nop);
                rest
            }
            kind => {
                let (body, next) = split_body(rest).unwrap_or((rest, &[]));
                options.push(decode_one(kind, body));
                next
            }
        };
    }
    options
}

fn split_body(rest: &[u8]) -> Option<(&[u8], &[u8])> {
    let (len, rest) = rest.split_first()?;
    rest.split_at_checked(usize::from(len.checked_sub(2)?))
}

fn decode_one(kind: u8, body: &[u8]) -> TcpOption {
    match (kind, body) {
        (MSS, &[a, b]) => TcpOption::Mss(u16::from_be_bytes([a, b])),
        (WINDOW_SCALE, &[shift]) => TcpOption::WindowScale(shift),
        (SACK_PERMITTED, []) => TcpOption::SackPermitted,
        (SACK, body) if body.len() % 8 == 0 => {
            let blocks = body.as_chunks::<8>().0.iter().copied();
            TcpOption::Sack(blocks.map(two_numbers).collect())
        }
        (TIMESTAMPS, body) if body.len() == 8 => {
            let (val, ecr) = body.first_chunk().copied().map_or((0, 0), two_numbers);
            TcpOption::Timestamps { val, ecr }
        }
        (FAST_OPEN, cookie) => TcpOption::FastOpen(cookie.to_vec()),
        (EXPERIMENT, [0xf9, 0x89, cookie @ ..]) => TcpOption::FastOpenExperimental(cookie.to_vec()),
        (MD5, body) if body.len() == 16 => TcpOption::Md5,
        (kind, body) => TcpOption::Other { kind, data: body.to_vec() },
    }
}

fn two_numbers([a, b, c, d, e, f, g, h]: [u8; 8]) -> (u32, u32) {
    (u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h]))
}

/// Most bytes in a header (RFC 9293 3.1: the data offset has four bits).
pub const MAX_LEN: usize = 40;

const END_OF_LIST: u8 = 0;
const NOP: u8 = 1;
const MSS: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;
const MD5: u8 = 19;
const FAST_OPEN: u8 = 34;
const EXPERIMENT: u8 = 254;
const FAST_OPEN_MAGIC: [u8; 2] = [0xf9, 0x89];

#[cfg(test)]
mod tests;
